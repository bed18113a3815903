import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type NetConnectOpts, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { HostService } from '../../src/api/gen/gnnd/v1/host_service_pb.ts';
import { type Job, JobState } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { Reason } from '../../src/api/gen/gnnd/v1/types_pb.ts';
import { daemonExit } from '../../src/base/exit-codes.ts';
import { type DaemonOptions, executorPids, spawnDaemon, TestDaemon } from '../support/daemon.ts';

/** What the host refuses or takes away: descriptors, an address, the terminal. */

let folder = '';
let running: TestDaemon | null = null;
const sockets: Socket[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gnnd-limits-'));
});

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await running?.stop(true);
  running = null;
  rmSync(folder, { recursive: true, force: true });
});

async function start(options: DaemonOptions = {}): Promise<TestDaemon> {
  running = await TestDaemon.start({ folder, ...options });
  return running;
}

/** How a daemon ends that does not get as far as being ready. */
async function refusal(options: DaemonOptions) {
  const daemon = spawnDaemon(folder, options);
  let said = '';
  daemon.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const [code] = await once(daemon, 'close');
  return { code, lines: said.trim().split('\n') };
}

function spec(epochs: number) {
  return {
    dataset: 'cora',
    model: { type: ModelType.GRAPHSAGE, hiddenDim: 16 },
    sampling: { fanouts: [10, 5] },
    training: { epochs, batchSize: 20, staleness: 1, threadsPerTrainer: 1 },
    resources: { devices: 2 },
  };
}

function crowd(count: number, where: NetConnectOpts, words: string): Promise<void> {
  const made = Array.from({ length: count }, () => {
    const socket = connect(where)
      .on('error', () => {})
      .resume();
    socket.write(words);
    return socket;
  });
  sockets.push(...made);
  return Promise.all(made.map((socket) => once(socket, 'connect'))).then(() => {});
}

test('open connections cost no job its descriptors', async () => {
  const daemon = await start({ before: 'ulimit -n 256', datasets: ['cora'] });
  const [host = '', port = ''] = daemon.metrics.split(':');
  // The test's own connection: nobody who talks is sent away for those who come later.
  await daemon.call(HostService.method.getHost, {});
  const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0';
  await crowd(300, { path: join(folder, 'gnnd.sock') }, preface);
  await crowd(100, { host, port: Number(port) }, 'GET /metrics HTTP/1.1\r\n');
  await daemon.createJob('crowded', spec(5));
  const job = await daemon.succeeded('crowded');
  expect(job.attempts).toHaveLength(1);
  expect((await fetch(`http://${daemon.metrics}/readyz`)).status).toBe(200);
  expect(daemon.logs).not.toContain('EMFILE');
});

test.each([
  [32, 2],
  [64, 2],
  [200, 8],
])('%d open files are too few for %d devices, and the error says so', async (most, devices) => {
  const { code, lines } = await refusal({ before: `ulimit -n ${most}`, cpuDevices: devices });
  expect(code).toBe(daemonExit.OS_RESOURCE);
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatch(/^gnnd: at most \d+ files may be open, .* needs \d+.*: raise the limit/);
});

test.each([
  ['no memory may be locked', 'ulimit -l 0'],
  // What vm.overcommit_memory = 2 comes to for a process: address space is refused, not memory.
  ['address space is refused beyond 6 GiB', 'ulimit -v 6291456'],
  ['stacks are small and no core may be written', 'ulimit -s 1024 -c 0'],
  ['no new file may be longer than 512 MiB', 'ulimit -f 524288'],
])('where %s a job trains all the same', async (_, before) => {
  const daemon = await start({ before, datasets: ['cora'] });
  await daemon.createJob('limited', spec(5));
  const job = await daemon.succeeded('limited');
  expect(job.attempts).toHaveLength(1);
});

test('where a segment cannot be as long as a job needs it, that is said', async () => {
  const daemon = await start({ before: 'ulimit -f 4096', datasets: ['cora'] });
  await daemon.createJob('short', spec(5));
  const isOver = ({ state }: Job) => state === JobState.FAILED;
  const { reason, message, attempts } = await daemon.until('short', isOver);
  expect(Reason[reason]).toBe('SHM_ALLOCATION_FAILED');
  expect(message).toMatch(/File too large|limit/);
  expect(attempts).toHaveLength(2);
  expect((await fetch(`http://${daemon.metrics}/readyz`)).status).toBe(200);
});

test('an address that is in use ends the start with a code that is restarted', async () => {
  const holder = createServer().listen(0, '127.0.0.1');
  await once(holder, 'listening');
  const address = holder.address();
  const port = address !== null && typeof address === 'object' ? address.port : 0;
  for (const flag of ['--listen', '--metrics-listen']) {
    const { code, lines } = await refusal({
      flags: [flag, `127.0.0.1:${port}`, '--insecure-loopback'],
    });
    expect(lines.at(-1)).toMatch(/^gnnd: cannot listen on .*EADDRINUSE/);
    expect(code).toBe(daemonExit.OS_RESOURCE);
  }
  holder.close();
});

test('--listen may be given several times', async () => {
  const other = join(folder, 'other.sock');
  const daemon = await start({ flags: ['--listen', `unix:${other}`] });
  expect([daemon.address, daemon.tcpAddress]).toEqual([
    `unix:${join(folder, 'gnnd.sock')}`,
    `unix:${other}`,
  ]);
});

test('the end of its terminal drains the daemon', async () => {
  const daemon = await start({ datasets: ['cora'] });
  await daemon.createJob('drained', spec(10_000));
  const isTraining = ({ state, progress }: Job) =>
    state === JobState.RUNNING && (progress?.epoch ?? 0) > 0;
  await daemon.until('drained', isTraining);
  daemon.client.close();
  expect(await daemon.kill('SIGHUP')).toBe(daemonExit.OK);
  expect(executorPids(daemon.pid)).toEqual([]);
  expect(daemon.logs).toContain('daemon.stopped');
});
