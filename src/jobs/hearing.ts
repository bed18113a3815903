import { unreachable } from '../base/errors.ts';
import type { Store } from '../store/store.ts';
import type { AttemptEvent, JobAttempt } from '../supervisor/supervisor.ts';
import { imageMessage, resumedMessage } from './job-images.ts';
import type { Recording } from './recording.ts';
import type { RunnerEvent } from './runner-loop.ts';

/** Writes down what attempts report, and tells it to observers and, as events, to the scheduler. */

type OfAttempt = Extract<RunnerEvent, { readonly attempt: number }>;
type Unnamed<E> = E extends unknown ? Omit<E, 'jobId' | 'attempt'> : never;

export interface HearingParts {
  readonly store: Pick<
    Store,
    'addExecutorExit' | 'atomically' | 'getJob' | 'recordEpochs' | 'resumeAttempt'
  >;
  readonly recording: Recording;
  readonly random: () => number;
  readonly handle: (event: RunnerEvent) => void;
}

/** A job is held when so many of its writes wait for the store; one has at most 100 epochs. */
const unstoredMax = 100;

/** How a runner hears its attempts. */
export function createHearing({ store, recording, random, handle }: HearingParts) {
  const tell = ({ input }: JobAttempt, event: Unnamed<OfAttempt>) => {
    const { jobId, ordinal: attempt } = input;
    handle({ ...event, jobId, attempt } as OfAttempt);
  };

  const epochsEnded = (
    attempt: JobAttempt,
    { reports, timings }: Extract<AttemptEvent, { readonly kind: 'epochsEnded' }>,
  ) => {
    const { jobId, number } = attempt.input;
    const write = () => store.recordEpochs(jobId, number, reports);
    recording.record('epochsEnded', attempt.input, write);
    if (recording.countOf(jobId) >= unstoredMax) attempt.hold(true);
    for (const report of reports) {
      recording.observe((observer) => observer.epochEnded(attempt, report));
    }
    // One look is one piece of evidence, however many epochs it saw.
    tell(attempt, { kind: 'epochEnded', epoch: reports.at(-1)?.epoch ?? 0, timings });
  };

  return (attempt: JobAttempt, event: AttemptEvent): void => {
    const { jobId, number } = attempt.input;
    const record = (write: () => void) => recording.record(event.kind, attempt.input, write);
    switch (event.kind) {
      case 'phase':
        record(() => void recording.transition(jobId, { phase: event.phase }));
        return;
      case 'resumed':
        record(() =>
          store.atomically(() => {
            store.resumeAttempt(jobId, number, event.point, event.epochs);
            recording.transition(jobId, { message: resumedMessage(event.point) });
          }),
        );
        return;
      case 'imageTried':
        record(() => void recording.transition(jobId, { message: imageMessage(event.error) }));
        return;
      case 'cacheSeen':
        record(() => {
          const plan = store.getJob(jobId)?.plan ?? null;
          if (plan === null) return;
          recording.transition(jobId, { plan: { ...plan, cache: event.cache } });
        });
        return;
      case 'partEnded':
        recording.observe((observer) => observer.partEnded(attempt, event.part, event.ms / 1000));
        return;
      case 'executorSpawned':
        recording.observe((observer) => observer.executorStarted(event.role));
        return;
      case 'calibrated':
        tell(attempt, event);
        return;
      case 'executorExited': {
        const { exit, executor, outcome } = event;
        recording.observe((observer) => observer.executorExited(exit));
        if (outcome.kind !== 'DONE') record(() => store.addExecutorExit(jobId, number, exit));
        tell(attempt, { kind: 'executorExited', executor, outcome });
        return;
      }
      case 'epochsEnded':
        epochsEnded(attempt, event);
        return;
      case 'completed':
        // Before anybody is stopped: from here on the job has succeeded, whatever dies.
        record(() => void recording.transition(jobId, { result: event.result }));
        recording.observe((observer) =>
          observer.checkpointWritten(attempt, event.checkpointMs / 1000),
        );
        tell(attempt, { kind: 'completed' });
        return;
      case 'stopped':
        tell(attempt, { kind: 'stopped', jitter: random() });
        return;
      case 'prepared':
      case 'executorReady':
      case 'progress':
      case 'attemptFailed':
        tell(attempt, event);
        return;
      default:
        unreachable(event);
    }
  };
}
