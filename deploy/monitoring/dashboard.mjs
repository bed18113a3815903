// Prints the dashboard for Grafana: `npm run build` writes it to dashboard.json, beside this file.

const datasource = { type: 'prometheus', uid: `$\{datasource}` };
const here = 'instance=~"$instance"';
/** Multiplies a series of a job by its info, which has the job's name and chooses the job. */
const ofJob = (expr) =>
  `${expr} * on (instance, job_slot) group_left (gnnd_job) ` +
  `gnnd_job_info{${here}, gnnd_job=~"$gnnd_job"}`;

const fillOf = (fillOpacity) => ({ fillOpacity, lineWidth: 1, showPoints: 'never' });
/** What each type of panel looks like; `stacked` is a time series of areas on one another. */
const looks = {
  stat: {
    custom: {},
    options: {
      reduceOptions: { calcs: ['lastNotNull'] },
      colorMode: 'value',
      graphMode: 'none',
    },
  },
  timeseries: {
    custom: fillOf(10),
    options: {
      legend: { displayMode: 'list', placement: 'bottom' },
      tooltip: { mode: 'multi' },
    },
  },
  'state-timeline': {
    custom: {},
    options: { mergeValues: true, showValue: 'auto', rowHeight: 0.8 },
  },
};
looks.stacked = { ...looks.timeseries, custom: { ...fillOf(60), stacking: { mode: 'normal' } } };

const words = (texts) => [
  {
    type: 'value',
    options: Object.fromEntries(Object.entries(texts).map(([value, text]) => [value, { text }])),
  },
];
const redThenGreen = {
  mode: 'absolute',
  steps: [
    { color: 'red', value: null },
    { color: 'green', value: 1 },
  ],
};

/** A panel: `queries` are pairs of an expression and its legend, `more` are further defaults. */
const panel = (look, title, description, unit, queries, more = {}) => ({
  type: look === 'stacked' ? 'timeseries' : look,
  title,
  description,
  datasource,
  fieldConfig: { defaults: { unit, custom: looks[look].custom, ...more }, overrides: [] },
  options: looks[look].options,
  targets: queries.map(([expr, legendFormat], index) => ({
    refId: 'AB'[index],
    datasource,
    expr,
    legendFormat,
  })),
});
const stat = (title, description, unit, expr, legend, more) =>
  panel('stat', title, description, unit, [[expr, legend]], more);
const line = (title, description, unit, expr, legend, more) =>
  panel('timeseries', title, description, unit, [[expr, legend]], more);
const area = (title, description, unit, expr, legend) =>
  panel('stacked', title, description, unit, [[expr, legend]], fromZero);

const fromZero = { min: 0 };
const share = { min: 0, max: 1 };
const job = '{{gnnd_job}}';

const waiting = 'state=~"PENDING|PREPARING|RUNNING|CANCELLING"';
const hosts = [
  stat('Ready', '1: the daemon takes jobs.', 'short', `gnnd_ready{${here}}`, '{{instance}}', {
    mappings: words({ 0: 'no', 1: 'yes' }),
    thresholds: redThenGreen,
  }),
  stat(
    'Jobs',
    'Jobs that have not ended, by state.',
    'short',
    `sum by (state) (gnnd_jobs{${here}, ${waiting}})`,
    '{{state}}',
  ),
  stat(
    'Devices',
    'Devices by state: ALLOCATED ones work for a job.',
    'short',
    `sum by (state) (gnnd_device_state{${here}})`,
    '{{state}}',
  ),
  stat(
    'State folder, free',
    'Room where the daemon keeps jobs, datasets and checkpoints.',
    'bytes',
    `min(gnnd_state_dir_free_bytes{${here}})`,
    '',
  ),
];

const progress = [
  line(
    'Epochs done',
    'Share of the epochs that were asked for.',
    'percentunit',
    ofJob('gnnd_epochs_total / gnnd_epochs_target'),
    job,
    share,
  ),
  line(
    'Time left',
    'As the daemon expects it.',
    's',
    ofJob('gnnd_job_remaining_seconds'),
    job,
    fromZero,
  ),
  line('Loss', "Mean of the last epoch's batches.", 'none', ofJob('gnnd_loss'), job),
  line(
    'Evaluation',
    'Of the last evaluation of each split.',
    'percentunit',
    ofJob('gnnd_eval_metric'),
    `${job} {{split}} {{metric}}`,
  ),
];

const handedOn = 'gnnd_batches_total{event=~"SAMPLED|TRAINED|COMMITTED|REDELIVERED"}';
const apart = [
  panel(
    'state-timeline',
    'Roles of devices',
    "Who samples, who trains, and when a Sampler's standby Trainer takes over.",
    'none',
    [[ofJob('(gnnd_executor_role == 1)'), '{{device}} {{role}}']],
    { mappings: words({ 1: 'yes' }) },
  ),
  line(
    'Batches',
    'SAMPLED and COMMITTED run level in a balanced job; REDELIVERED ones come back from the dead.',
    'ops',
    ofJob(`rate(${handedOn}[1m])`),
    `${job} {{event}}`,
    fromZero,
  ),
];

const work = [
  area(
    'What devices do',
    'Busy seconds a second: S sample, M mark, C copy, P prune, E extract, T train, A apply, ' +
      'V evaluate.',
    'short',
    `sum by (device, stage) (${ofJob('rate(gnnd_stage_seconds_total[1m])')})`,
    '{{device}} {{stage}}',
  ),
  area(
    'What they wait for',
    'DEQUEUE: Trainers starve. ENQUEUE: Samplers are ahead.',
    'short',
    `sum by (device, wait) (${ofJob('rate(gnnd_wait_seconds_total[1m])')})`,
    '{{device}} {{wait}}',
  ),
  line(
    'Queue',
    'Always empty: more Samplers. Always full: fewer.',
    'percentunit',
    ofJob('gnnd_queue_depth_batches / gnnd_queue_capacity_batches'),
    job,
    share,
  ),
];

const split = [
  panel(
    'timeseries',
    'Time of a batch, planned and measured',
    'Of all devices together.',
    's',
    [
      [ofJob('gnnd_predicted_batch_seconds'), `${job} planned`],
      [ofJob('gnnd_measured_batch_seconds'), `${job} measured`],
    ],
    fromZero,
  ),
  line(
    'K',
    'Time of training a batch over that of sampling one: what the split follows from.',
    'none',
    ofJob('gnnd_placement_k'),
    job,
    fromZero,
  ),
  line(
    'Standby Trainers',
    'USEFUL: trained at least one batch.',
    'ops',
    ofJob('rate(gnnd_standby_wakeups_total[1m])'),
    `${job} {{outcome}}`,
    fromZero,
  ),
];

const rowsOf = (labels) =>
  `sum by (instance, job_slot) (rate(gnnd_cache_rows_total{${labels}}[1m]))`;
const features = [
  line(
    'Cache hits',
    "Share of rows that the devices' caches had.",
    'percentunit',
    ofJob(`${rowsOf('tier="DEVICE", result="HIT"')} / ${rowsOf('tier="DEVICE"')}`),
    job,
    share,
  ),
  area(
    'Rows read by devices, by way',
    "CACHE: own memory. BUS: the host's, by the device itself. STAGED: copied by the host.",
    'Bps',
    `sum by (way) (${ofJob('rate(gnnd_device_feature_bytes_total[1m])')})`,
    '{{way}}',
  ),
];

const died = `gnnd_executor_exits_total{${here}, outcome!="expected"}`;
const failed = `gnnd_job_ends_total{${here}, state="FAILED"}`;
const transactions = (what) => `rate(gnnd_store_transaction_duration_seconds_${what}{${here}}[5m])`;
const faults = [
  line(
    'Executors that died',
    'In ten minutes. Their batches go back to the queue.',
    'short',
    `sum by (outcome) (increase(${died}[10m]))`,
    '{{outcome}}',
    fromZero,
  ),
  line(
    'Jobs that failed',
    'In an hour, by reason.',
    'short',
    `sum by (reason) (increase(${failed}[1h]))`,
    '{{reason}}',
    fromZero,
  ),
  panel(
    'timeseries',
    'Store and event loop',
    'What the daemon itself waits for.',
    's',
    [
      [`gnnd_event_loop_delay_seconds{${here}, quantile="0.99"}`, '{{instance}} event loop, p99'],
      [`${transactions('sum')} / ${transactions('count')}`, '{{instance}} {{op}}'],
    ],
    fromZero,
  ),
];

const memory = [
  area(
    'Device memory',
    'Of devices with memory of their own.',
    'bytes',
    `sum by (device, use) (${ofJob('gnnd_device_memory_bytes')})`,
    '{{device}} {{use}}',
  ),
  line(
    'Executors, resident',
    'Shared segments count in each process that touched them.',
    'bytes',
    ofJob('gnnd_executor_resident_bytes'),
    `${job} {{role}}`,
    fromZero,
  ),
];

/** Rows of panels: a title over the first of them, the height, and widths of 24 parts. */
const rows = [
  { title: 'Hosts', height: 4, widths: [4, 8, 8, 4], panels: hosts },
  { title: 'Job $gnnd_job', height: 8, widths: [6, 6, 6, 6], panels: progress },
  { title: 'Sampling and training apart', height: 8, widths: [12, 12], panels: apart },
  { height: 8, widths: [8, 8, 8], panels: work },
  { height: 8, widths: [8, 8, 8], panels: split },
  { title: 'Feature rows', height: 8, widths: [12, 12], panels: features },
  { title: 'Faults', height: 8, widths: [8, 8, 8], panels: faults },
  { title: 'Memory', height: 8, widths: [12, 12], panels: memory },
];

/** Panels with their places, from top to bottom. */
function laidOut() {
  const placed = [];
  let y = 0;
  const put = (what, x, w, h) =>
    placed.push({ id: placed.length + 1, ...what, gridPos: { x, y, w, h } });
  for (const { title, height, widths, panels } of rows) {
    if (title !== undefined) {
      put({ type: 'row', title, collapsed: false, panels: [] }, 0, 24, 1);
      y += 1;
    }
    let x = 0;
    for (const [index, each] of panels.entries()) {
      put(each, x, widths[index], height);
      x += widths[index];
    }
    y += height;
  }
  return placed;
}

const variable = (name, label, query) => ({
  name,
  label,
  type: 'query',
  datasource,
  query: { query, refId: name },
  definition: query,
  refresh: 2,
  multi: true,
  includeAll: true,
  allValue: '.*',
  current: { text: 'All', value: '$__all' },
  sort: 1,
});

const chosenSource = {
  name: 'datasource',
  label: 'Prometheus',
  type: 'datasource',
  query: 'prometheus',
  current: {},
};
const deaths = {
  name: 'Executors that died',
  enable: true,
  iconColor: 'red',
  datasource,
  expr: `increase(${died}[1m]) > 0`,
  titleFormat: '{{role}} {{outcome}}',
};
const dashboard = {
  uid: 'gnnd',
  title: 'gnnd',
  tags: ['gnnd'],
  schemaVersion: 39,
  version: 1,
  editable: true,
  time: { from: 'now-1h', to: 'now' },
  refresh: '15s',
  graphTooltip: 1,
  templating: {
    list: [
      chosenSource,
      variable('instance', 'Host', 'label_values(gnnd_ready, instance)'),
      variable('gnnd_job', 'Job', `label_values(gnnd_job_info{${here}}, gnnd_job)`),
    ],
  },
  annotations: { list: [deaths] },
  panels: laidOut(),
};

process.stdout.write(`${JSON.stringify(dashboard, null, 1)}\n`);
