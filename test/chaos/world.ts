import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { setTimeout as later } from 'node:timers/promises';
import {
  create,
  type DescMessage,
  type DescMethod,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf';
import { type Job, JobPhase, JobState } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import {
  JobService,
  WatchJobRequestSchema,
  type WatchJobResponse,
  WatchJobResponseSchema,
} from '../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { type DaemonOptions, executorPids, TestDaemon } from '../support/daemon.ts';
import { linkOf } from '../support/leftovers.ts';
import { hangMs, Patience } from '../support/until.ts';
import type { Role } from './plan.ts';

/** A daemon that may be killed at any moment, its clients, and what it has acknowledged. */

/** One of the daemon's processes, and what it does. */
export interface Process {
  readonly pid: number;
  /** Uid of the job, by which its folder is named; empty: no job. */
  readonly uid: string;
  readonly role: Role;
}

const unavailable = 14;
const cancelled = 1;

export class World {
  daemon: TestDaemon;
  /** Facts that were acknowledged: of each job its newest revision. */
  readonly acknowledged = new Map<string, { uid: string; revision: bigint }>();
  /** Daemons that came after others. */
  restarts = 0;
  readonly #options: DaemonOptions;
  #replacing: Promise<void> = Promise.resolve();
  #looking: Promise<readonly Job[]> | null = null;
  #looked: Promise<readonly Job[]> = Promise.resolve([]);

  private constructor(daemon: TestDaemon, options: DaemonOptions) {
    this.daemon = daemon;
    this.#options = options;
  }

  static async start(options: DaemonOptions): Promise<World> {
    return new World(await TestDaemon.start(options), options);
  }

  /** Ends the daemon and starts the next one on its state; answers what the old one left. */
  async replace(signal: 'SIGKILL' | 'SIGTERM'): Promise<readonly string[]> {
    await this.#replacing;
    const violations: string[] = [];
    const work = async () => {
      const { daemon } = this;
      const { pid } = daemon;
      const code = await daemon.kill(signal);
      daemon.client.close();
      if (signal === 'SIGTERM' && code !== 0) violations.push(`I3: SIGTERM ended with ${code}`);
      // A process stopped before it asked to die with its daemon notices when it goes on.
      const isOver = () => executorPids(pid).length === 0;
      if (!(await soon(isOver))) {
        for (const stopped of executorPids(pid).filter(isStopped)) process.kill(stopped, 'SIGCONT');
      }
      if (!(await soon(isOver))) {
        violations.push(`I2: executors ${executorPids(pid).join(', ')} outlived daemon ${pid}`);
      }
      const { datasets: _, ...again } = this.#options;
      this.daemon = await TestDaemon.start({ ...again, folder: daemon.folder });
      this.restarts += 1;
    };
    this.#replacing = work();
    await this.#replacing;
    return violations;
  }

  /**
   * A call with a request id of its own, repeated with that until it is answered: a daemon may die
   * before or after it has done what was asked.
   */
  async call<I extends DescMessage, O extends DescMessage>(
    method: DescMethod & { readonly input: I; readonly output: O },
    request: MessageInitShape<I>,
    requestId?: string,
  ): Promise<MessageShape<O>> {
    const given = requestId === undefined ? request : { ...request, requestId };
    const patience = new Patience(hangMs);
    for (;;) {
      await this.#replacing;
      try {
        return await this.daemon.call(method, given as MessageInitShape<I>);
      } catch (error) {
        if (!isLost(error) || patience.isOver()) throw error;
      }
      await later(20);
    }
  }

  /** A change of a job that was acknowledged. */
  async change(
    method: DescMethod & { readonly output: typeof JobService.method.getJob.output },
    request: object,
  ): Promise<Job> {
    const job = await this.call(method, request as MessageInitShape<DescMessage>, randomUUID());
    this.note(job as Job);
    return job as Job;
  }

  note({ name, uid, revision }: Pick<Job, 'name' | 'uid' | 'revision'>): void {
    const before = this.acknowledged.get(name);
    const isNewer = before === undefined || before.uid !== uid || revision > before.revision;
    if (isNewer) this.acknowledged.set(name, { uid, revision });
  }

  job(id: string): Promise<Job> {
    return this.call(JobService.method.getJob, { name: `jobs/${id}` });
  }

  /** Like `job`, without epochs; concurrent looks share one call. Undefined: there is no job. */
  async look(id: string): Promise<Job | undefined> {
    this.#looking ??= this.#look();
    return (await this.#looking).find(({ name }) => name === `jobs/${id}`);
  }

  async #look(): Promise<readonly Job[]> {
    // Whoever comes while a call is in progress is answered by the next one.
    await this.#looked.catch(() => {});
    this.#looking = null;
    const { listJobs } = JobService.method;
    this.#looked = this.call(listJobs, { pageSize: 500 }).then(({ jobs }) => jobs);
    return await this.#looked;
  }

  /** The processes of the daemon that lives now. */
  processes(): readonly Process[] {
    return executorPids(this.daemon.pid).map((pid) => {
      // A process's output goes to a file that is named by its job and role.
      const log = linkOf(`/proc/${pid}/fd/1`);
      const uid = /\/jobs\/([^/]+)\//.exec(log)?.[1] ?? '';
      return { pid, uid, role: roleOf(basename(log)) };
    });
  }

  /**
   * All transitions of a job after a revision, as a watch tells them. One whose daemon dies is
   * resumed after what it told last: none may be missed, and none told twice.
   */
  async history(job: Job, after: bigint): Promise<readonly WatchJobResponse[]> {
    const told: WatchJobResponse[] = [];
    const patience = new Patience(hangMs);
    for (let last = after; last < job.revision; last = told.at(-1)?.revision ?? after) {
      await this.#replacing;
      try {
        for await (const response of this.#watch(job.name, last)) {
          told.push(response);
          if (response.revision >= job.revision) break;
        }
      } catch (error) {
        if (!isLost(error) || patience.isOver()) throw error;
        await later(20);
      }
    }
    return told;
  }

  async *#watch(name: string, startRevision: bigint): AsyncGenerator<WatchJobResponse> {
    const request = create(WatchJobRequestSchema, { name, startRevision });
    const call = this.daemon.client.makeServerStreamRequest(
      '/gnnd.v1.JobService/WatchJob',
      (bytes: Buffer) => bytes,
      (bytes) => fromBinary(WatchJobResponseSchema, bytes),
      Buffer.from(toBinary(WatchJobRequestSchema, request)),
      { deadline: Date.now() + hangMs },
    );
    call.on('error', () => {});
    try {
      yield* call as AsyncIterable<WatchJobResponse>;
    } finally {
      call.cancel();
    }
  }

  async stop(): Promise<number | null> {
    await this.#replacing;
    return await this.daemon.stop();
  }
}

/** Whether a call was cut off by its daemon's end; what it asked for may have been done. */
function isLost(error: unknown): boolean {
  const code = (error as { code?: unknown }).code;
  return code === unavailable || code === cancelled || /closed|shut ?down/.test(String(error));
}

function roleOf(log: string): Role {
  const role = /^(sampler|trainer|standby)_/.exec(log)?.[1];
  return role === undefined ? 'PREPARER' : (role.toUpperCase() as Role);
}

/** Looks until it holds, for as long as anything may take that nobody disturbs. */
export async function soon(holds: () => boolean, withinMs = 30_000): Promise<boolean> {
  const patience = new Patience(withinMs);
  while (!holds()) {
    if (patience.isOver()) return false;
    await later(20);
  }
  return true;
}

/** Whether a signal stopped the process, which does nothing until it is told to go on. */
function isStopped(pid: number): boolean {
  try {
    return /^\d+ \(.*\) T/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

/** Where a job is, in a word. */
export function whereIs({ state, phase }: Pick<Job, 'state' | 'phase'>): string {
  const works = state === JobState.PREPARING || state === JobState.RUNNING;
  return works && phase !== JobPhase.UNSPECIFIED ? JobPhase[phase] : JobState[state];
}

/** Names in a folder; none where there is none. */
export function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
