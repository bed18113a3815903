import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  type EpochReport,
  EpochReportSchema,
} from '../../../src/api/gen/gnnd/v1/epoch_report_pb.ts';
import { JobService } from '../../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { runCli } from '../../../src/cli/program.ts';
import { tensorboardEvents } from '../../../src/cli/show/tensorboard.ts';
import { createTestIo, stoppedClock } from '../../unit/cli/test-io.ts';
import { FakeDaemon } from './fake-daemon.ts';

/** `gnnctl job history`: all numbers of all epochs, however many pages they are. */

let daemon: FakeDaemon;
let folder: string;
let epochs: EpochReport[];

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'gnnctl-history-'));
  daemon = new FakeDaemon();
  const report = { batches: 10n, steps: 5n, retries: 1n, durationMs: 1250n, loss: 0.1 };
  epochs = [
    create(EpochReportSchema, { ...report, epoch: 0, trainAccuracy: 0.5, version: 5n }),
    create(EpochReportSchema, { ...report, epoch: 1, trainAccuracy: 0.75, valAccuracy: 0.7 }),
  ];
  daemon.unary(JobService.method.listEpochs, ({ pageToken }) =>
    pageToken === ''
      ? { attempt: 3, epochs: epochs.slice(0, 1), nextPageToken: 'more' }
      : { attempt: 3, epochs: epochs.slice(1), nextPageToken: '' },
  );
  await daemon.listen();
});

afterEach(() => {
  daemon.close();
  rmSync(folder, { recursive: true, force: true });
});

async function history(...args: readonly string[]): Promise<string> {
  const io = createTestIo({ clock: stoppedClock(1_700_000_000_500) });
  const line = ['--address', daemon.address, 'job', 'history', 'mine', ...args];
  expect(await runCli(line, io.io), io.stderr()).toBe(0);
  return io.stdout();
}

test('is CSV, with nothing where nothing was measured', async () => {
  expect(await history()).toBe(
    'epoch,loss,train_accuracy,val_accuracy,seconds,batches,steps,retries,version\n' +
      '0,0.1,0.5,,1.25,10,5,1,5\n' +
      '1,0.1,0.75,0.7,1.25,10,5,1,0\n',
  );
});

test('is JSON lines with the same names', async () => {
  const rows = (await history('--format', 'jsonl')).trim().split('\n');
  expect(rows.map((row) => JSON.parse(row))).toMatchObject([
    { epoch: 0, val_accuracy: null, seconds: 1.25 },
    { epoch: 1, val_accuracy: 0.7 },
  ]);
});

test('is a file of events for TensorBoard, in a folder of its run', async () => {
  expect(await history('--tensorboard', folder)).toBe('');
  const [file = '', ...more] = readdirSync(join(folder, 'mine'));
  expect(more).toEqual([]);
  expect(file).toMatch(/^events\.out\.tfevents\.\d+\.gnnd$/);
  const bytes = readFileSync(join(folder, 'mine', file)).toString('latin1');
  expect(bytes.match(/val_accuracy/g)).toHaveLength(1);
  expect(bytes.match(/loss/g)).toHaveLength(2);
});

test('events are the bytes that the Python package writes', () => {
  const values = [
    ['loss', 0.5],
    ['steps', 300],
  ] as const;
  expect(tensorboardEvents([{ step: 0, values }], 1000.5).toString('hex')).toBe(
    '1800000000000000a37f4b22090000000000448f401a0d627261696e2e4576656e743a32aba33345' +
      '2800000000000000ff70164a090000000000448f4010002a1b0a0b0a046c6f7373150000003f0a0c' +
      '0a05737465707315000096436c3b9a46',
  );
});

test('has the metrics of tasks that have no accuracy', async () => {
  const valMetrics = [
    { name: 'mae', value: 1.5 },
    { name: 'rmse', value: 2.25 },
  ];
  epochs = [create(EpochReportSchema, { epoch: 0, loss: 2, durationMs: 500n, valMetrics })];
  const [names = '', row = ''] = (await history()).split('\n');
  expect(names).toBe('epoch,loss,seconds,batches,steps,retries,version,val_mae,val_rmse');
  expect(row).toBe('0,2,0.5,0,0,0,0,1.5,2.25');
});
