import { toJson } from '@bufbuild/protobuf';
import { expect, test } from 'vitest';
import { Standardize } from '../../../src/api/gen/gnnd/v1/features_pb.ts';
import { JobSpecSchema } from '../../../src/api/gen/gnnd/v1/job_spec_pb.ts';
import { ModelType } from '../../../src/api/gen/gnnd/v1/model_pb.ts';
import { placeOf, readSpec, showPlace } from '../../../src/cli/read/spec-file.ts';
import { specYaml } from '../../../src/cli/show/output.ts';
import { leafAt } from '../../../src/spec/spec-fields.ts';

function read(text: string, settings: readonly string[] = []) {
  const reading = readSpec({ file: 'job.yaml', text }, settings);
  if ('problems' in reading) throw new Error(JSON.stringify(reading.problems));
  return reading.ok;
}

function problemsOf(text: string, settings: readonly string[] = []): readonly string[] {
  const reading = readSpec({ file: 'job.yaml', text }, settings);
  if ('ok' in reading) return [];
  return reading.problems.map((problem) =>
    [showPlace(problem), problem.path, problem.description].join(' | '),
  );
}

test('a spec is read with or without its envelope, in snake_case or camelCase', () => {
  const bare = read('dataset: cora\nmodel: {type: GCN, hidden_dim: 16}\ntraining: {epochs: 2}\n');
  const wrapped = read(
    'api_version: gnnd/v1\nkind: Job\nmetadata: {name: mine}\n' +
      'spec:\n  dataset: cora\n  model: {type: MODEL_TYPE_GCN, hiddenDim: 16}\n' +
      '  training: {epochs: 2}\n',
  );
  expect(bare.spec.model?.type).toBe(ModelType.GCN);
  expect(bare.spec.model?.hiddenDim).toBe(16);
  expect(wrapped.spec).toEqual(bare.spec);
  expect([bare.jobId, wrapped.jobId]).toEqual(['', 'mine']);
});

test('JSON is read, too', () => {
  const { spec } = read('{"dataset": "cora", "queue": {"maxBytes": "1024"}}');
  expect(spec.queue?.maxBytes).toBe(1024n);
  const enums = (type: string, algorithm: string) =>
    read(JSON.stringify({ model: { type }, sampling: { algorithm } })).spec;
  const named = enums('MODEL_TYPE_GCN', 'SAMPLING_ALGORITHM_LABOR');
  expect(named.model?.type).toBe(ModelType.GCN);
  expect(enums('GCN', 'LABOR')).toEqual(named);
});

test('unset differs from 0 and from false', () => {
  const { spec } = read('dataset: x\nmodel: {dropout: 0}\nfeatures: {standardize: OFF}\nqueue:\n');
  expect(spec.model?.dropout).toBe(0);
  expect(spec.model?.inputDropout).toBeUndefined();
  expect(spec.features?.standardize).toBe(Standardize.OFF);
  expect(spec.queue).toBeUndefined();
});

test('durations and sizes take units or plain numbers, and random seeds keep all 64 bits', () => {
  const { spec } = read(
    'timeouts: {stall_ms: 90s, run_ms: 1h30m, startup_ms: 1500}\n' +
      'queue: {max_bytes: 512MiB}\ntraining: {random_seed: 18446744073709551615}\n',
  );
  expect(spec.timeouts?.stallMs).toBe(90_000n);
  expect(spec.timeouts?.runMs).toBe(5_400_000n);
  expect(spec.timeouts?.startupMs).toBe(1500n);
  expect(spec.queue?.maxBytes).toBe(536_870_912n);
  expect(spec.training?.randomSeed).toBe(2n ** 64n - 1n);
});

test('every problem is found at once, each with its line, path and what was meant', () => {
  const text = [
    'dataset: 7',
    'model: {type: GCNN, hiddn_dim: 16}',
    'sampling: {fanouts: [10, ten]}',
    'training:',
    '  epochs: 2.5',
    '  seed: 3',
    '  lr: 0.1',
    'queue: {max_bytes: 512MB}',
    'timeouts: {stall_ms: 90x}',
    'features: [1]',
    'batch_size: 5',
  ].join('\n');
  const types = leafAt('model.type').choices.join(', ');
  expect(problemsOf(text)).toEqual([
    'job.yaml:1:10 | spec.dataset | 7: expected text (in quotes, where it looks like a number)',
    `job.yaml:2:15 | spec.model.type | "GCNN": expected one of ${types}; did you mean GCN?`,
    'job.yaml:2:21 | spec.model.hiddn_dim | unknown key; did you mean hidden_dim?',
    'job.yaml:3:26 | spec.sampling.fanouts[1] | "ten": expected an integer',
    'job.yaml:5:11 | spec.training.epochs | 2.5: expected an integer',
    'job.yaml:6:3 | spec.training.seed | unknown key; did you mean random_seed?',
    'job.yaml:7:3 | spec.training.lr | unknown key; did you mean spec.training.optimizer.learning_rate?',
    'job.yaml:8:20 | spec.queue.max_bytes | "512MB": expected a size such as 512MiB or 8GiB; did you mean 512MiB?',
    'job.yaml:9:22 | spec.timeouts.stall_ms | "90x": expected a duration such as 90s, 5m or 2h',
    'job.yaml:10:11 | spec.features | a list: expected a map of standardize',
    'job.yaml:11:1 | spec.batch_size | unknown key; did you mean spec.training.batch_size?',
  ]);
});

test('a key may stand once, in either spelling', () => {
  expect(problemsOf('dataset: a\ndataset: b\n')).toEqual([
    'job.yaml:2:1 | spec.dataset | this key stands twice',
  ]);
  expect(problemsOf('training: {batch_size: 1, batchSize: 2}\n')).toEqual([
    'job.yaml:1:27 | spec.training.batchSize | the same field as batch_size above',
  ]);
});

test('anchors and aliases are refused', () => {
  expect(problemsOf('model: &m {type: GCN}\nsampling: *m\n')).toEqual([
    'job.yaml:1:11 |  | &m: anchors are not allowed, write the value',
    'job.yaml:2:11 |  | *m: aliases are not allowed, write the value',
  ]);
});

test('the envelope is checked', () => {
  expect(problemsOf('apiVersion: v2\nkind: Pod\nmetadata: {nme: x}\nspc: 1\nmodel: {}\n')).toEqual([
    'job.yaml:1:13 | apiVersion | "v2": expected gnnd/v1',
    'job.yaml:2:7 | kind | "Pod": expected Job or Inference',
    'job.yaml:3:12 | metadata.nme | unknown key; did you mean name?',
    'job.yaml:4:1 | spc | unknown key; did you mean spec?',
    'job.yaml:5:1 | model | unknown key; did you mean spec.model?',
  ]);
});

test('what is no YAML, no map or nothing says so', () => {
  expect(problemsOf('a: [1\nb: 2')[0]).toMatch(/^job\.yaml:\d+:\d+ \| {2}\| .+/);
  expect(problemsOf('- 1')[0]).toContain('expected a map: a job spec');
  expect(problemsOf('')[0]).toContain('empty: expected a job spec');
  expect(problemsOf('x'.repeat(2 ** 20 + 1))[0]).toContain('expected at most');
});

test('settings come after the file, and need none', () => {
  const { spec, places } = read('dataset: a\ntraining: {epochs: 1, batch_size: 8}\n', [
    'training.epochs=3',
    'spec.sampling.fanouts=[5, -1]',
    'model.type=gcn',
    'timeouts.run_ms=2m',
  ]);
  expect(spec.training?.epochs).toBe(3);
  expect(spec.training?.batchSize).toBe(8);
  expect(spec.sampling?.fanouts).toEqual([5, -1]);
  expect(spec.model?.type).toBe(ModelType.GCN);
  expect(spec.timeouts?.runMs).toBe(120_000n);
  expect(places.get('spec.training.batch_size')).toMatchObject({ line: 2, column: 23 });
  const alone = readSpec(null, ['dataset=cora']);
  expect('ok' in alone && alone.ok.spec.dataset).toBe('cora');
});

test('a value belongs to the setting that wrote it, whatever stood in the file', () => {
  const text =
    'training: {epochs: 1, batch_size: 8, optimizer: {learning_rate: 1}}\n' +
    'sampling: {fanouts: [5, 5]}\n';
  const settings = [
    'training.batchSize=0',
    'training.optimizer={type: SGD}',
    'sampling.fanouts=[5]',
  ];
  const { places } = read(text, settings);
  const shown = (path: string) => {
    const place = placeOf(places, path);
    return place === undefined ? '' : showPlace(place);
  };
  expect(shown('spec.training.epochs')).toBe('job.yaml:1:12');
  expect(shown('spec.training.batch_size')).toBe('--set training.batchSize=0');
  expect(shown('spec.training.optimizer.type')).toBe('--set training.optimizer={type: SGD}');
  // A setting replaces: what the file had below it is gone.
  expect(shown('spec.training.optimizer.learning_rate')).toBe(shown('spec.training.optimizer'));
  expect(shown('spec.sampling.fanouts[0]')).toBe('--set sampling.fanouts=[5]');
  expect(shown('spec.training.staleness')).toBe('job.yaml:1:1');
  expect(shown('spec.dataset')).toBe('');
});

test('wrong settings are problems beside those of the file', () => {
  expect(problemsOf('dataset: 1', ['training.epoch=3', 'priority', 'dataset.x=1'])).toEqual([
    'job.yaml:1:10 | spec.dataset | 1: expected text (in quotes, where it looks like a number)',
    '--set training.epoch=3 | spec.training.epoch | unknown key; did you mean epochs?',
    '--set priority |  | expected path=value, such as training.epochs=10',
    '--set dataset.x=1 | spec.dataset | has no fields below it',
  ]);
});

test('a spec that was printed is read back as it was', () => {
  const { spec } = read(
    'dataset: cora\nmodel: {type: GCN, dropout: 0.5}\nsampling: {fanouts: [-1, -1]}\n' +
      'training: {epochs: 2, random_seed: 9007199254740993}\nqueue: {max_bytes: 1GiB}\n' +
      'propagation: {operators: [SYMMETRIC, PPR]}\ninference: {formats: [PARQUET]}\n',
  );
  const again = read(specYaml(JobSpecSchema, spec));
  expect(toJson(JobSpecSchema, again.spec)).toEqual(toJson(JobSpecSchema, spec));
  expect(specYaml(JobSpecSchema, spec)).toContain('type: GCN\n');
  expect(specYaml(JobSpecSchema, spec)).toContain('formats:\n    - PARQUET\n');
});
