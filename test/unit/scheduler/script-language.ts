import { type FailureReason, failureRules } from '../../../src/scheduler/failure.ts';
import { freshTally } from '../../../src/scheduler/restart.ts';
import {
  type Command,
  type Executor,
  isActive,
  type Job,
  type JobRequest,
  type SchedulerEvent,
  type SchedulerState,
} from '../../../src/scheduler/state.ts';

/** The words of the transcripts in script/: events in, commands out. */

/** A job with the usual budgets; transcripts and tests change what they are about. */
export const plainRequest: JobRequest = {
  jobId: 'job',
  priority: 100,
  createdAtMs: 0,
  devices: { kind: 'count', count: 2 },
  placement: { policy: 'AUTO', fixedSamplers: 0, standby: 'AUTO' },
  steps: { batchesPerStep: 1, staleness: 7 },
  mustCalibrate: false,
  restart: {
    maxAttempts: 3,
    startupFailures: 2,
    executorRestarts: 3,
    windowMs: 600_000,
    backoff: { initialMs: 5_000, factor: 2, maxMs: 300_000, jitter: 0.2 },
  },
  timeouts: {
    pendingMs: 3_600_000,
    startupMs: 600_000,
    runMs: 0,
    stopMs: 75_000,
    finalizeMs: 900_000,
  },
  tally: freshTally,
  delayMs: 0,
};

/** Every job that has not ended. */
export function jobsOf({ running, queue }: SchedulerState): readonly Job[] {
  return [...running, ...queue];
}

/** Reads one event line; `ready JOB all` stands for several. */
export function parseEvents(
  line: string,
  nowMs: number,
  state: SchedulerState,
): readonly SchedulerEvent[] {
  const [verb = '', ...words] = line.split(/\s+/);
  switch (verb) {
    case 'devices':
      return [{ kind: 'devicesFound', nowMs, names: words }];
    case 'lost':
      return [{ kind: 'deviceLost', nowMs, device: word(words, 0), message: rest(words, 1) }];
    case 'submit':
      return [{ kind: 'submitted', nowMs, jobs: [parseRequest(words)] }];
    case 'cancel':
      return [{ kind: 'cancelled', nowMs, jobId: word(words, 0) }];
    case 'drain-device':
    case 'undrain-device':
      return [
        { kind: 'deviceDrained', nowMs, device: word(words, 0), drained: verb === 'drain-device' },
      ];
    case 'suspend':
      return [{ kind: 'suspended', nowMs, jobId: word(words, 0) }];
    case 'resume':
      return [{ kind: 'resumed', nowMs, jobId: word(words, 0) }];
    case 'tick':
      return [{ kind: 'tick', nowMs, jitter: 0.5 }];
    case 'drain':
      return [{ kind: 'drain', nowMs }];
    default:
      return parseAttemptEvents(verb, words, { nowMs, state });
  }
}

interface Scene {
  readonly nowMs: number;
  readonly state: SchedulerState;
}

/** Events of an attempt name their job as `a`, or as `a/1` where the attempt is not the present. */
function parseAttemptEvents(
  verb: string,
  words: readonly string[],
  { nowMs, state }: Scene,
): readonly SchedulerEvent[] {
  const [jobId = '', number] = word(words, 0).split('/');
  const job = jobsOf(state).find(({ request }) => request.jobId === jobId);
  const attempt = number === undefined ? (job?.tally.attempt ?? 0) : Number(number);
  const head = { jobId, attempt, nowMs };
  const executors = job !== undefined && isActive(job) ? job.stage.executors : [];
  switch (verb) {
    case 'prepared':
      return [{ kind: 'prepared', ...head }];
    case 'calibrated':
      return [
        {
          kind: 'calibrated',
          ...head,
          timings: timingsOf(words, 1),
          epoch: { batches: 1000, slots: 1000 },
          standbyRoom: roomOf(words),
        },
      ];
    case 'ready':
      return named(executors, words).map((executor) => ({
        kind: 'executorReady',
        ...head,
        executor,
      }));
    case 'exited':
      return named(executors, words).map((executor) => ({
        kind: 'executorExited',
        ...head,
        executor,
        outcome: outcomeOf(words.slice(2)),
      }));
    case 'progress':
      return [{ kind: 'progress', ...head, committedBatches: Number(word(words, 1)) }];
    case 'epoch': {
      const timings = timingsOf(words, 2);
      return [{ kind: 'epochEnded', ...head, epoch: Number(word(words, 1)), timings }];
    }
    case 'failed': {
      const reason = reasonOf(word(words, 1));
      return [{ kind: 'attemptFailed', ...head, reason, message: rest(words, 2) }];
    }
    case 'completed':
      return [{ kind: 'completed', ...head }];
    case 'stopped':
      return [{ kind: 'stopped', ...head, jitter: 0.5 }];
    default:
      throw new Error(`a transcript has no verb '${verb}'`);
  }
}

function named(executors: readonly Executor[], words: readonly string[]): readonly string[] {
  const name = word(words, 1);
  return name === 'all' ? executors.map(({ executor }) => executor) : [name];
}

type Outcome = Extract<SchedulerEvent, { kind: 'executorExited' }>['outcome'];

function outcomeOf(words: readonly string[]): Outcome {
  const kind = word(words, 0);
  switch (kind) {
    case 'DONE':
      return { kind };
    case 'STALLED':
    case 'UNKILLABLE':
      return { kind, message: rest(words, 1) };
    case 'CRASHED':
      return { kind, reason: reasonOf(word(words, 1)), message: rest(words, 2) };
    default:
      throw new Error(`an executor does not end as '${kind}'`);
  }
}

function reasonOf(text: string): FailureReason {
  const reason = Object.keys(failureRules).find((candidate) => candidate === text);
  if (reason === undefined) throw new Error(`'${text}' is no reason to fail`);
  return reason as FailureReason;
}

/** T_s, T_t, T_t' as three words in ms. */
function timingsOf(words: readonly string[], at: number) {
  const inNs = (index: number) => Number.parseFloat(word(words, at + index)) * 1e6;
  return { samplerBatchNs: inNs(0), trainerBatchNs: inNs(1), standbyBatchNs: inNs(2), parts: null };
}

/** `room=cpu:0/5/10`: 5 bytes free, 10 needed. */
function roomOf(words: readonly string[]) {
  return words
    .filter((text) => text.startsWith('room='))
    .map((text) => {
      const [device = '', free, needed] = text.slice('room='.length).split('/');
      return { device, freeBytes: Number(free), neededBytes: Number(needed) };
    });
}

/** `submit a devices=2 created=5 priority=1 policy=FIXED:1 standby=OFF attempts=1 ...`. */
function parseRequest(words: readonly string[]): JobRequest {
  const options = new Map(
    words.slice(1).map((text) => {
      const [key = '', ...value] = text.split('=');
      return [key, value.join('=')];
    }),
  );
  const take = (key: string) => {
    const value = options.get(key);
    options.delete(key);
    return value;
  };
  const number = (key: string, usual: number) => Number(take(key) ?? usual);
  const names = take('names');
  const [policy = 'AUTO', samplers = '0'] = (take('policy') ?? 'AUTO').split(':');
  const { restart, timeouts, placement, tally } = plainRequest;
  const count = number('devices', 2);
  const request: JobRequest = {
    jobId: word(words, 0),
    priority: number('priority', 100),
    preemptible: take('preemptible') === 'yes',
    createdAtMs: number('created', 0),
    devices:
      names === undefined ? { kind: 'count', count } : { kind: 'names', names: names.split(',') },
    placement: {
      policy: policy as JobRequest['placement']['policy'],
      fixedSamplers: Number(samplers),
      standby: (take('standby') ?? placement.standby) as JobRequest['placement']['standby'],
    },
    steps: { batchesPerStep: 1, staleness: number('staleness', plainRequest.steps.staleness) },
    mustCalibrate: false,
    restart: {
      ...restart,
      maxAttempts: number('attempts', restart.maxAttempts),
      executorRestarts: number('restarts', restart.executorRestarts),
    },
    timeouts: {
      ...timeouts,
      pendingMs: number('pending', timeouts.pendingMs / 1000) * 1000,
      runMs: number('run', 0) * 1000,
    },
    tally: { ...tally, attempt: number('attempt', 0), runFailures: number('failures', 0) },
    delayMs: number('delay', 0) * 1000,
  };
  if (options.size > 0) throw new Error(`unknown options: ${[...options.keys()].join(', ')}`);
  return request;
}

function word(words: readonly string[], index: number): string {
  const found = words[index];
  if (found === undefined) throw new Error(`a word is missing after '${words.join(' ')}'`);
  return found;
}

function rest(words: readonly string[], from: number): string {
  return words.slice(from).join(' ');
}

/** One line of a command, as transcripts show it. */
export function formatCommand(command: Command): string {
  switch (command.kind) {
    case 'drained':
      return 'drained';
    case 'quarantineDevice':
      return `quarantineDevice ${command.device}: ${command.message}`;
    case 'finish':
      return sentence(
        `finish ${command.jobId} ${command.outcome} ${command.reason}`,
        command.message,
      );
    default:
      return `${command.kind} ${command.jobId}/${command.attempt}${details(command)}`;
  }
}

type AttemptCommand = Exclude<Command, { kind: 'drained' | 'quarantineDevice' | 'finish' }>;

function details(command: AttemptCommand): string {
  switch (command.kind) {
    case 'prepare':
    case 'releaseDevices':
      return ` ${command.devices.join(' ')}`;
    case 'calibrate':
      return ` ${command.executors.map(({ executor }) => executor).join(' ')}`;
    case 'launch':
      return (
        ` ${command.executors.map(({ executor }) => executor).join(' ')}` +
        `\n    ${command.plan.explanation}`
      );
    case 'begin':
      return '';
    case 'respawn':
      return sentence(
        ` ${command.seat.executor} for ${command.replaces}`,
        `${command.because.reason}, ${command.because.message}`,
      );
    case 'stopExecutors':
      return command.shows === null
        ? ''
        : ` to ${{ CANCELLING: 'cancel', SUSPENDING: 'suspend' }[command.shows.state]}`;
    case 'suspend':
      return '';
    case 'requeue': {
      const { runFailures, startupFailures } = command.tally;
      return sentence(
        ` in ${command.delayMs / 1000}s (failed: ${runFailures} running, ${startupFailures} starting)`,
        `${command.failure.reason}, ${command.failure.message}`,
      );
    }
  }
}

function sentence(head: string, message: string): string {
  return message === '' ? head : `${head}: ${message}`;
}
