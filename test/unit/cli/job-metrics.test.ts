import { create } from '@bufbuild/protobuf';
import { expect, test } from 'vitest';
import { DecidingMetric } from '../../../src/api/gen/gnnd/v1/evaluation_pb.ts';
import { HostSchema } from '../../../src/api/gen/gnnd/v1/host_service_pb.ts';
import { type Job, JobSchema, JobState } from '../../../src/api/gen/gnnd/v1/job_pb.ts';
import { JobSpecSchema } from '../../../src/api/gen/gnnd/v1/job_spec_pb.ts';
import { Session } from '../../../src/cli/session/session.ts';
import { createStyle, glyphsOf } from '../../../src/cli/session/terminal.ts';
import { epochColumnsOf, jobColumns, jobFacts } from '../../../src/cli/show/job-view.ts';
import { topFrame, topJson } from '../../../src/cli/show/top-frame.ts';
import { renderFrame } from '../../../src/cli/show/watch-frame.ts';
import { sampleJob, startMs } from './sample-job.ts';
import { createTestIo } from './test-io.ts';

/** A job whose dataset has no classes has no accuracy anywhere. */

const mae = (value: number) => [
  { name: 'mae', value },
  { name: 'rmse', value: 2 * value },
];
const session = new Session(createTestIo({}).io, { headers: true, color: 'never' });
const text = { nowMs: startMs, columns: 160, rows: 40, notice: null };
const options = { ...text, style: createStyle(false), glyphs: glyphsOf({ LANG: 'C.UTF-8' }) };

/** Trains on numbers: `evaluated` epochs of three have ended. */
function regression(evaluated: number): Job {
  const job = sampleJob();
  const { epochs, progress, effectiveSpec } = job;
  if (progress === undefined || effectiveSpec === undefined) throw new Error('it has both');
  for (const report of epochs) Object.assign(report, { trainAccuracy: 0, valAccuracy: undefined });
  const of = (index: number) => create(JobSchema, { epochs: [{ valMetrics: mae(3 - index) }] });
  epochs.splice(evaluated);
  epochs.forEach((report, index) => {
    report.valMetrics = of(index).epochs[0]?.valMetrics ?? [];
  });
  progress.valAccuracy = 0;
  progress.valMetrics = epochs.at(-1)?.valMetrics ?? [];
  const evaluation = create(JobSpecSchema, { evaluation: { metric: DecidingMetric.MAE } });
  effectiveSpec.evaluation = evaluation.evaluation;
  return job;
}

function shown(job: Job): string {
  const snapshot = {
    atMs: startMs,
    host: create(HostSchema),
    devices: [],
    jobs: [{ job, rows: null }],
  };
  const cells = jobColumns(session).map((column) => `${column.title} ${column.shown(job)}`);
  const facts = jobFacts(session, job).map(([title, words]) => `${title} ${words}`);
  const columns = epochColumnsOf(job.epochs).map(({ title }) => title);
  return [
    ...[...cells, ...facts, ...columns, ...renderFrame(job, options)],
    ...[...topFrame(snapshot, options), JSON.stringify(topJson(snapshot).jobs[0]?.valMetric)],
  ].join('\n');
}

test.each([0, 3])('after %i evaluations nothing is called an accuracy', (evaluated) => {
  const seen = shown(regression(evaluated));
  expect(seen).not.toMatch(/acc|% +$/im);
  expect(seen).toContain(evaluated === 0 ? 'val MAE -' : 'val MAE 1 ');
});

test('each view has the metric with its name', () => {
  const seen = shown(regression(3));
  for (const part of ['VALIDATION MAE 1', 'METRIC mae', 'VAL MAE\nVAL RMSE', '{"name":"mae"']) {
    expect(seen).toContain(part);
  }
  expect(seen).toMatch(/npm-sage {2}RUNNING .* MAE 1 /);
});

test('an ended job has the loss of its last epoch', () => {
  const ended = sampleJob({ state: JobState.FAILED });
  ended.progress = undefined;
  expect(jobFacts(session, ended)).toContainEqual(['Loss', '1.2000', '1.2']);
  ended.epochs = [];
  expect(jobFacts(session, ended).map(([title]) => title)).not.toContain('Loss');
});
