import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { expect, test } from 'vitest';
import {
  EvaluationKind,
  EvaluationProgressSchema,
  JobPhase,
  JobState,
} from '../../../src/api/gen/gnnd/v1/job_pb.ts';
import { Reason } from '../../../src/api/gen/gnnd/v1/types_pb.ts';
import { createStyle, glyphsOf } from '../../../src/cli/session/terminal.ts';
import { epochText } from '../../../src/cli/show/kind-views.ts';
import {
  changeLine,
  epochLine,
  evaluationLine,
  renderFrame,
} from '../../../src/cli/show/watch-frame.ts';
import { sampleJob, startMs } from './sample-job.ts';

const options = {
  nowMs: startMs + 66_000,
  columns: 100,
  style: createStyle(false),
  glyphs: glyphsOf({ LANG: 'C.UTF-8' }),
  notice: null,
};

test('a running job shows where it is, who does what, and how it learns', () => {
  expect(renderFrame(sampleJob(), options)).toEqual([
    'npm-sage  RUNNING  training · 1m 05s',
    'npm-deps-2016, GRAPHSAGE 128, fanouts 10,10',
    '',
    'epoch  4/10  █████████████▌░░░░░░░░░░░░░░░░░░░░░░░░░░  34 %  batch 13/34  1m 12s left',
    'loss 1.0234   val accuracy 68.0 %   seeds/s 6.64k   edges/s 1.23M',
    'queue █████░░░ 5 of 8 ready',
    '',
    'device  role     stage     busy               batches',
    'cpu:0   Sampler  sample    ████████▎░  82 %       123',
    'cpu:0   standby  wait      ░░░░░░░░░░   0 %         0',
    'cpu:1   Trainer  train     █████████▊  97 %       115',
    '',
    'loss          ⣧⡀  1.9000 → 1.2000',
    'val accuracy  ⣰⡇  60.0 % → 68.0 %',
  ]);
});

test('an evaluation that runs has a bar of its own, and a line of the log', () => {
  const evaluation = create(EvaluationProgressSchema, {
    ...{ kind: EvaluationKind.VALIDATION, epoch: 2 },
    ...{ rowsDone: 430n, rowsTotal: 1000n, remainingMs: 12_000n },
  });
  const job = sampleJob();
  if (job.progress !== undefined) job.progress.evaluation = evaluation;
  expect(renderFrame(job, options)[4]).toBe(
    'evaluating validation nodes  █████████████████▎░░░░░░░░░░░░░░░░░░░░░░  43 %  12.0 s left',
  );
  expect(evaluationLine(job, evaluation, Date.UTC(2026, 0, 1, 3, 4, 5))).toBe(
    '03:04:05  npm-sage  evaluating validation nodes, 43 %, 12.0 s left',
  );
});

test('without UTF-8 the same frame is plain ASCII', () => {
  const lines = renderFrame(sampleJob(), { ...options, glyphs: glyphsOf({ LANG: 'C' }) });
  expect(lines.join('\n')).toMatch(/^[\n -~]+$/);
  expect(lines[12]).toBe('loss          #~_  1.9000 -> 1.2000');
});

test('a waiting job says for what, and since when', () => {
  const job = sampleJob({
    state: JobState.PENDING,
    phase: JobPhase.UNSPECIFIED,
    reason: Reason.WAITING_FOR_DEVICES,
    message: 'waits for 1 of 2 devices: cpu:1 has jobs/other',
    progress: { epochs: 0 },
    epochs: [],
  });
  expect(renderFrame(job, { ...options, notice: 'connection lost' })).toEqual([
    'npm-sage  PENDING · 1m 05s',
    'npm-deps-2016, GRAPHSAGE 128, fanouts 10,10',
    'waits for 1 of 2 devices: cpu:1 has jobs/other (created 66s ago)',
    '',
    'connection lost',
  ]);
});

test('before the first step there is no loss to show', () => {
  const before = sampleJob({
    progress: { epoch: 0, epochs: 10, batchesPerEpoch: 34n },
    epochs: [],
  });
  expect(renderFrame(before, options)[4]).toBe('loss -   val accuracy -   seeds/s 0   edges/s 0');
});

test('a finished job shows what it reached and where its checkpoint is', () => {
  const job = sampleJob({
    state: JobState.SUCCEEDED,
    phase: JobPhase.UNSPECIFIED,
    endTime: timestampFromMs(startMs + 61_000),
    result: {
      testAccuracyBest: 0.7131,
      testAccuracyLast: 0.7122,
      bestEpoch: 8,
      checkpointDir: '/state/jobs/1/checkpoint',
    },
  });
  const lines = renderFrame(job, options);
  expect(lines[0]).toBe('npm-sage  SUCCEEDED · 1m 00s');
  expect(lines.slice(-2)).toEqual([
    '✓ test accuracy 71.3 % at the best validation (epoch 9), 71.2 % at the last',
    '  checkpoint /state/jobs/1/checkpoint',
  ]);
});

test('a job that stopped early says after which epoch and why', () => {
  const message =
    'stopped early after epoch 7: no better validation accuracy for 3 epochs; best epoch 4';
  const job = sampleJob({
    state: JobState.SUCCEEDED,
    phase: JobPhase.UNSPECIFIED,
    message,
    result: { testAccuracyBest: 0.7131, testAccuracyLast: 0.7122, bestEpoch: 3, epochs: 7 },
  });
  expect(renderFrame(job, options).slice(-3, -1)).toEqual([
    '✓ test accuracy 71.3 % at the best validation (epoch 4), 71.2 % at the last',
    `  ${message}`,
  ]);
  expect(changeLine(job, startMs)).toBe(
    `03:04:05  npm-sage  SUCCEEDED  test accuracy 71.3 %  ${message}`,
  );
  expect(epochText(job)).toBe('7/10');
});

test('a failed job shows its reason and the end of the log', () => {
  const job = sampleJob({
    state: JobState.FAILED,
    reason: Reason.RESTART_BUDGET_EXHAUSTED,
    message: 'EXECUTOR_CRASHED: SIGSEGV of Trainer cpu:1',
    attempts: [{ number: 3, exits: [{ logTail: 'first\n\u001b[31mlast\n' }] }],
  });
  expect(renderFrame(job, options).slice(-3)).toEqual([
    '✗ RESTART_BUDGET_EXHAUSTED: EXECUTOR_CRASHED: SIGSEGV of Trainer cpu:1',
    '  first',
    '  last',
  ]);
});

test('a change and a finished epoch are one line each', () => {
  const job = sampleJob();
  const [first] = job.epochs;
  expect(changeLine(job, startMs)).toBe('03:04:05  npm-sage  RUNNING, training');
  expect(first && epochLine(job, first, startMs)).toBe(
    '03:04:05  npm-sage  epoch  1/10    5.2 s  loss 1.9000  val accuracy 60.0 %',
  );
});
