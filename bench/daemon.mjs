import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';

// Processes that benchmarks talk to, and a daemon of their own.

const answerTimeoutMs = 900_000;

/** What a command prints, trimmed; throws with its errors when it fails. */
export function output(command, args) {
  const result = spawnSync(command, args, { encoding: 'utf8', maxBuffer: 1 << 26 });
  if (result.status !== 0) throw new Error(`${command} ${args.join(' ')}: ${result.stderr}`);
  return result.stdout.trim();
}

/** A child that answers with lines of JSON. */
export class LineChild {
  constructor(command, args, env = {}, stderr = 'inherit') {
    const stdio = ['pipe', 'pipe', stderr];
    this.process = spawn(command, args, { stdio, env: { ...process.env, ...env } });
    this.lines = createInterface({ input: this.process.stdout })[Symbol.asyncIterator]();
  }

  /** The next line; throws when there is none in time. */
  async next() {
    let timer;
    const late = new Promise((_, fail) => {
      timer = setTimeout(() => fail(new Error('no answer in time')), answerTimeoutMs);
    });
    const line = await Promise.race([this.lines.next(), late]).finally(() => clearTimeout(timer));
    if (line.done) throw new Error('ended without an answer');
    return JSON.parse(line.value);
  }

  ask(command) {
    this.process.stdin.write(`${command}\n`);
    return this.next();
  }

  end() {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    const ended = new Promise((done) => this.process.once('exit', done));
    this.process.kill('SIGTERM');
    return ended;
  }
}

/** The environment that bench/peers/setup.sh made for a peer. */
export function peerPython(peer) {
  return `.cache/peers/${peer.startsWith('pyg') ? 'pyg' : 'dgl'}/bin/python`;
}

/** A peer's loop of bench/peers, with so many threads. */
export function peerLoop(peer, script, threads) {
  const tuned = 'import sys,json;sys.path.insert(0,"bench/peers");import served;';
  return new LineChild(peerPython(peer), ['-W', 'ignore', ...script.map(String)], {
    ...JSON.parse(output('python3', ['-c', `${tuned}print(json.dumps(served.TUNED))`])),
    OMP_NUM_THREADS: String(threads),
    MKL_NUM_THREADS: String(threads),
    DGLBACKEND: 'pytorch',
    DGLDEFAULTDIR: resolve('.cache/dgl'),
  });
}

/** A control group (version 1, as root) with so much memory, page cache included. */
export class MemoryGroup {
  constructor(name, bytes) {
    this.folder = `/sys/fs/cgroup/memory/gnnd-bench-${name}-${process.pid}`;
    mkdirSync(this.folder);
    writeFileSync(join(this.folder, 'memory.limit_in_bytes'), String(Math.floor(bytes)));
  }

  /** A process, and those that it starts from now on. */
  add(pid) {
    writeFileSync(join(this.folder, 'cgroup.procs'), String(pid));
  }

  peakBytes() {
    return Number(readFileSync(join(this.folder, 'memory.max_usage_in_bytes'), 'utf8'));
  }

  /** From now on, peakBytes counts what comes. */
  forgetPeak() {
    writeFileSync(join(this.folder, 'memory.max_usage_in_bytes'), '0');
  }

  /** Gone with its last process; the kernel may need a moment. */
  release() {
    for (let tries = 0; tries < 50 && existsSync(this.folder); tries += 1) {
      try {
        rmdirSync(this.folder);
      } catch {
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
      }
    }
  }
}

/** `gnnd serve` on two CPU devices unless told, with its state in a folder of the caller's. */
export class Daemon {
  /**
   * Resolves when it takes jobs. In `group` from its first moment, when it asks for the memory;
   * with more flags and environment where these are given.
   */
  async start(folder, devices = 2, group = null, { flags = [], env = {} } = {}) {
    if (!existsSync('dist/main.js')) throw new Error('dist/main.js is missing: npm run setup');
    const args = ['serve', '--state-dir', join(folder, 'state'), '--cpu-devices', String(devices)];
    this.address = `unix:${join(folder, 'gnnd.sock')}`;
    args.push('--listen', this.address, '--metrics-listen', '127.0.0.1:0', ...flags);
    const command = [process.execPath, 'dist/main.js', ...args];
    const enter = group === null ? '' : `echo $$ > ${join(group.folder, 'cgroup.procs')};`;
    const shell = ['-c', `${enter} exec "$@"`, 'sh', ...command];
    this.child = new LineChild('/bin/sh', shell, env, 'ignore');
    this.metrics = (await this.child.next()).metrics;
  }

  /** Arguments of `node` that run gnnctl on this daemon. */
  command(...args) {
    return ['dist/cli/main.js', '--address', this.address, ...args];
  }

  gnnctl(...args) {
    return output(process.execPath, this.command(...args));
  }

  /** Creates a job, with assignments of fields as of --set; `folder` is for its file. */
  create(folder, id, spec, set = []) {
    const file = join(folder, `${id}.json`);
    const job = { api_version: 'gnnd/v1', kind: 'Job', metadata: { name: id }, spec };
    writeFileSync(file, JSON.stringify(job));
    const assignments = set.flatMap((assignment) => ['--set', assignment]);
    this.gnnctl('job', 'create', '-f', file, '--quiet', ...assignments);
  }

  /** The same, and waits for it; the job that SUCCEEDED. */
  train(folder, id, spec, set) {
    this.create(folder, id, spec, set);
    this.gnnctl('job', 'wait', id, '--quiet');
    return this.succeeded(id);
  }

  /** A job that SUCCEEDED, as proto JSON. */
  succeeded(id) {
    const job = JSON.parse(this.gnnctl('job', 'get', id, '--output', 'json'));
    if (job.state !== 'JOB_STATE_SUCCEEDED') throw new Error(`${id}: ${job.state} ${job.message}`);
    return job;
  }

  /** What the job has taken so far, all executors; null before and after, when it has no series. */
  async look() {
    // A kept connection may have been closed while gnnctl held up this process.
    const headers = { connection: 'close' };
    const text = await (await fetch(`http://${this.metrics}/metrics`, { headers })).text();
    const sum = (series) =>
      [...text.matchAll(series)].reduce((total, [, value]) => total + Number(value), 0);
    const finished = sum(/^gnnd_epochs_total\{[^}]*\} (\S+)/gm);
    if (finished === 0) return null;
    return { finished, cpu: sum(/^gnnd_executor_cpu_seconds_total\{[^}]*\} (\S+)/gm) };
  }

  /** The same as create and a wait, with looks at it meanwhile; the job that SUCCEEDED. */
  async watched(folder, id, spec) {
    this.create(folder, id, spec);
    const wait = this.command('job', 'wait', id, '--quiet');
    const waiting = spawn(process.execPath, wait, { stdio: 'ignore' });
    let ended = false;
    const end = new Promise((done) => waiting.once('exit', done)).then(() => (ended = true));
    const looks = [];
    while (!ended) {
      looks.push(await this.look());
      await Promise.race([end, new Promise((done) => setTimeout(done, 100))]);
    }
    return { job: this.succeeded(id), looks: looks.filter((look) => look !== null) };
  }

  async end() {
    await this.child?.end();
  }
}
