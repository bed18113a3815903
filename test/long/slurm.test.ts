import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { repository } from '../support/daemon.ts';
import { skipped } from '../support/skipped.ts';
import { hangMs } from '../support/until.ts';

/**
 * `gnnd run` under a Slurm of one node that this starts (slurm-wlm and munge of Debian, as root):
 * the batch files of docs/fleets.md.
 */

const found = spawnSync('slurmctld', ['-V']).status === 0 && process.getuid?.() === 0;
const host = hostname().split('.')[0] ?? '';
let folder: string;
const stops: (() => Promise<unknown>)[] = [];

const configuration = () => `
ClusterName=gnnd-test
SlurmctldHost=${host}(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket=${folder}/munge.sock
SlurmUser=root
SlurmdUser=root
SlurmctldPort=26817
SlurmdPort=26818
StateSaveLocation=${folder}/state
SlurmdSpoolDir=${folder}/spool
SlurmctldPidFile=${folder}/slurmctld.pid
SlurmdPidFile=${folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=bf_interval=2,sched_interval=2,requeue_delay=1
MpiDefault=none
ReturnToService=2
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
NodeName=${host} NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=low Nodes=${host} Default=YES PriorityTier=1 PreemptMode=REQUEUE GraceTime=60
PartitionName=high Nodes=${host} PriorityTier=10 PreemptMode=OFF
`;

const environment = () => ({ ...process.env, SLURM_CONF: join(folder, 'slurm.conf') });

/** A process that stays in the foreground, ended after the tests. */
function serve(command: string, ...args: string[]): void {
  const child = spawn(command, args, { env: environment(), stdio: 'ignore' });
  const over = once(child, 'exit');
  stops.push(() => (child.kill('SIGTERM') ? over : Promise.resolve()));
}

function slurm(command: string, ...args: string[]): string {
  return execFileSync(command, args, { cwd: folder, env: environment(), encoding: 'utf8' });
}

/** What batch jobs have said so far, in bytes. */
function saidBytes(): number {
  const files = readdirSync(folder).filter((name) => name.endsWith('.out'));
  return files.reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
}

/** However slow a host is: only where nobody says anything any more it has failed. */
async function until(isSo: () => boolean): Promise<void> {
  let [deadline, said] = [0, -1];
  while (!isSo()) {
    if (saidBytes() !== said) [deadline, said] = [Date.now() + hangMs, saidBytes()];
    if (Date.now() > deadline) throw new Error(`waited in vain: ${isSo}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** Whether Slurm answers and says that. */
function says(command: string, args: readonly string[], what: RegExp): boolean {
  return what.test(spawnSync(command, args, { env: environment(), encoding: 'utf8' }).stdout ?? '');
}

beforeAll(async () => {
  if (!found) return;
  folder = mkdtempSync(join(tmpdir(), 'gnnd-slurm-'));
  for (const name of ['state', 'spool']) mkdirSync(join(folder, name));
  writeFileSync(join(folder, 'slurm.conf'), configuration());
  writeFileSync(join(folder, 'munge.key'), Buffer.alloc(1024, folder), { mode: 0o600 });
  const own = (name: string) => join(folder, `munge.${name}`);
  const files = [`--key-file=${own('key')}`, `--pid-file=${own('pid')}`];
  serve(
    'munged',
    '--foreground',
    '--force',
    `--socket=${own('sock')}`,
    ...files,
    `--seed-file=${own('seed')}`,
  );
  await until(() => existsSync(own('sock')));
  serve('slurmctld', '-D');
  serve('slurmd', '-D', '-N', host);
  await until(() => says('sinfo', ['-h', '-p', 'low', '-o', '%T'], /idle/));
  const spec = 'spec:\n  dataset: cora\n  training: {epochs: 1000, batch_size: 20}\n';
  writeFileSync(join(folder, 'job.yaml'), spec);
});

afterAll(async () => {
  if (!found) return;
  // Jobs first: what a test that failed left would write on.
  spawnSync('scancel', ['--user=root', '--signal=KILL', '--full'], { env: environment() });
  await until(() => !says('squeue', ['-h'], /\S/));
  for (const stop of stops.reverse()) await stop();
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
});

/** A batch file as docs/fleets.md has it. */
function submit(name: string, options: readonly string[], ...more: string[]): string {
  const file = join(folder, `${name}.sh`);
  const main = join(repository, 'dist', 'main.js');
  const cora = join(repository, 'test', 'fixtures', 'cora.npz');
  const run = `node ${main} run -f job.yaml --import ${cora} ${more.join(' ')}`;
  writeFileSync(
    file,
    `#!/bin/bash\nexec ${run} --state-dir ${folder}/$SLURM_JOB_NAME$SLURM_ARRAY_TASK_ID\n`,
  );
  const out = ['--open-mode=append', `--output=${folder}/%x.out`, '-J', name];
  return slurm('sbatch', '--parsable', '--requeue', ...out, ...options, file).trim();
}

const isOver = (id: string) => !says('squeue', ['-h', '-j', id], /\S/);
const outputOf = (name: string) => {
  const file = join(folder, `${name}.out`);
  return existsSync(file) ? readFileSync(file, 'utf8') : '';
};

function digestIn(state: string): string {
  const jobs = join(folder, state, 'jobs');
  const [job = ''] = readdirSync(jobs);
  const bytes = readFileSync(join(jobs, job, 'checkpoint', 'last.safetensors'));
  return createHash('sha256').update(bytes).digest('hex');
}

test('a preempted job is queued again and ends with the undisturbed model', async (context) => {
  if (!found) return context.skip(skipped('jobs under Slurm', 'no slurm-wlm, or not root'));
  const whole = submit('whole', ['-p', 'low', '-c', '2']);
  await until(() => isOver(whole));
  expect(outputOf('whole')).toContain('SUCCEEDED');
  const parts = submit('parts', ['-p', 'low', '-c', '2']);
  await until(() => /epoch +\d+\//.test(outputOf('parts')));
  slurm('sbatch', '-p', 'high', '-c', '2', '--output=/dev/null', '--wrap', 'sleep 1');
  await until(() => /rests in/.test(outputOf('parts')));
  await until(() => isOver(parts));
  expect(outputOf('parts')).toMatch(/DUE TO PREEMPTION[\s\S]*it goes on[\s\S]*SUCCEEDED/);
  expect(digestIn('parts')).toBe(digestIn('whole'));
}, 1_200_000);

test('an array trains random seeds beside each other', async (context) => {
  if (!found) return context.skip(skipped('jobs under Slurm', 'no slurm-wlm, or not root'));
  const set = ['--set', 'training.epochs=2', '--set', 'training.random_seed=$SLURM_ARRAY_TASK_ID'];
  const array = submit('seed', ['-p', 'low', '-c', '1', '--array=1-3'], ...set);
  await until(() => isOver(array));
  const digests = ['seed1', 'seed2', 'seed3'].map(digestIn);
  expect(new Set(digests).size).toBe(3);
}, 900_000);
