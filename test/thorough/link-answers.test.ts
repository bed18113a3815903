import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import {
  InferenceFormat,
  InferenceOutput,
  JobKind,
} from '../../src/api/gen/gnnd/v1/inference_pb.ts';
import { type Job, JobState } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { JobTask, LinkHead } from '../../src/api/gen/gnnd/v1/links_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { temporaryFolder } from '../support/at-end.ts';
import { executorPids, TestDaemon } from '../support/daemon.ts';
import { writeLargeGraph } from '../support/large-graph.ts';
import { npy } from '../unit/datasets/workbench.ts';

/** Rows, scores and the nearest are the same bytes whoever computes them and whoever dies. */

let daemon: TestDaemon;
const folder = temporaryFolder('gnnd-link-answers-');
const numNodes = 20_000;
const numPairs = 2_000_000;
const heads = { dot: LinkHead.DOT, bilinear: LinkHead.BILINEAR };

beforeAll(async () => {
  daemon = await TestDaemon.start({ cpuDevices: 3 });
  writeLargeGraph(join(folder, 'crowd'), { numNodes, degree: 8, features: 16 });
  await daemon.import('crowd', join(folder, 'crowd'));
  for (const [id, head] of Object.entries(heads)) {
    await daemon.train(id, {
      ...{ dataset: 'crowd', task: JobTask.LINKS, links: { head, evaluation: { count: 20 } } },
      model: { type: ModelType.GRAPHSAGE, hiddenDim: 256, dropout: 0 },
      sampling: { fanouts: [3, 3] },
      training: { epochs: 1, batchSize: 4096 },
      evaluation: { everyEpochs: 0 },
    });
  }
  const ends = BigInt64Array.from({ length: 2 * numPairs }, (_, at) =>
    BigInt((at * 7919 + (at % 97)) % numNodes),
  );
  writeFileSync(join(folder, 'pairs.npy'), npy('int64', [2, numPairs], ends));
});

const questions = {
  rows: { outputs: [InferenceOutput.EMBEDDINGS] },
  scores: { outputs: [InferenceOutput.SCORES], pairsFile: join(folder, 'pairs.npy') },
  nearest: { outputs: [InferenceOutput.NEAREST], k: 20 },
};

type Question = keyof typeof questions;

function ask(id: string, question: Question, job: string, devices: number) {
  const formats = [InferenceFormat.NPY];
  const inference = { ...questions[question], job, formats };
  return daemon.createJob(id, { kind: JobKind.INFERENCE, inference, resources: { devices } });
}

/** Digests of all files of an inference that SUCCEEDED, by their names. */
function digestsOf({ result }: Job): Readonly<Record<string, string>> {
  const path = result?.predictions?.folder ?? '';
  const digest = (name: string) => createHash('sha256').update(readFileSync(join(path, name)));
  return Object.fromEntries(
    readdirSync(path)
      .sort()
      .map((name) => [name, digest(name).digest('hex')]),
  );
}

const inMidst = (share: number) => (job: Job) => {
  const { rowsDone = 0n, rowsTotal = 0n } = job.progress?.evaluation ?? {};
  if (job.state === JobState.SUCCEEDED) throw new Error('it was over before it was hit');
  return rowsTotal > 0n && Number(rowsDone) >= share * Number(rowsTotal);
};

const cases = Object.keys(heads).flatMap((head) =>
  (Object.keys(questions) as Question[]).map((question) => [head, question] as const),
);

test.each(cases)('%s, %s: the same bytes from any crew, killed or not', async (head, question) => {
  const name = `${head}-${question}`;
  await ask(`${name}-1`, question, head, 1);
  const wanted = digestsOf(await daemon.succeeded(`${name}-1`));
  for (const devices of [2, 3]) {
    await ask(`${name}-${devices}`, question, head, devices);
    expect(digestsOf(await daemon.succeeded(`${name}-${devices}`))).toEqual(wanted);
  }
  // Rows alone are over in a moment.
  if (question === 'rows') return;
  const killed = `${name}-killed`;
  await ask(killed, question, head, 2);
  await daemon.until(killed, inMidst(0.2));
  const [pid] = executorPids(daemon.pid);
  if (pid !== undefined) process.kill(pid, 'SIGKILL');
  const { uid } = await daemon.until(killed, inMidst(0.4));
  await daemon.kill('SIGKILL');
  expect(existsSync(join(daemon.folder, 'state', 'jobs', uid, 'predictions'))).toBe(false);
  daemon = await TestDaemon.start({ folder: daemon.folder, cpuDevices: 3 });
  const after = await daemon.succeeded(killed);
  expect(after.attempts.length).toBeGreaterThan(1);
  expect(digestsOf(after)).toEqual(wanted);
});
