import type { Changed } from '../store/store.ts';

/**
 * Who wants to look at a job again when it changed. Each job has listeners of its own, and many are
 * called a few at a time: 500 that watch one job must not hold up everybody else.
 */
export interface JobBells {
  listen(jobId: string, listener: () => void): () => void;
  ring(changed: Changed): void;
  /** Rings for the jobs among those that are listened to. */
  ringWhere(holds: (jobId: string) => boolean): void;
}

/** Called in one go; the rest in the next turns of the loop. */
const calledAtOnce = 32;

export function createJobBells(): JobBells {
  const listeners = new Map<string, Set<() => void>>();
  /** Due, in order; one that rings twice before its turn is called once. */
  const due = new Set<() => void>();
  let isCalling = false;

  const callSome = () => {
    isCalling = false;
    let left = calledAtOnce;
    for (const listener of due) {
      if (left === 0) break;
      left -= 1;
      due.delete(listener);
      listener();
    }
    if (due.size === 0) return;
    isCalling = true;
    setImmediate(callSome);
  };
  const call = (jobIds: Iterable<string>) => {
    for (const jobId of jobIds) {
      for (const listener of listeners.get(jobId) ?? []) due.add(listener);
    }
    if (!isCalling && due.size > 0) callSome();
  };

  return {
    listen(jobId, listener) {
      // The same function may listen twice; each place is called.
      const own = () => listener();
      const others = listeners.get(jobId) ?? new Set();
      listeners.set(jobId, others.add(own));
      return () => {
        others.delete(own);
        due.delete(own);
        if (others.size === 0 && listeners.get(jobId) === others) listeners.delete(jobId);
      };
    },
    ring: (changed) => call(changed === 'ALL' ? listeners.keys() : changed),
    ringWhere: (holds) => call([...listeners.keys()].filter(holds)),
  };
}
