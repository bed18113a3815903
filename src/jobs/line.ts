/** Lets one in at a time, in the order of arrival. */
export interface Line {
  /** Whether whoever comes now has to wait. */
  isBusy(): boolean;
  /** Resolves with the function to leave with; rejects with the signal's reason. */
  enter(signal: AbortSignal): Promise<() => void>;
}

export function createLine(): Line {
  let last: Promise<void> = Promise.resolve();
  let count = 0;
  return {
    isBusy: () => count > 0,
    async enter(signal) {
      signal.throwIfAborted();
      const before = last;
      let release = () => {};
      const mine = new Promise<void>((resolve) => {
        release = resolve;
      });
      // Whoever gives up waiting leaves its place to the one before it.
      last = before.then(() => mine);
      count += 1;
      let isIn = true;
      const leave = () => {
        if (!isIn) return;
        isIn = false;
        count -= 1;
        release();
      };
      let stop = () => {};
      const aborted = new Promise<never>((_, reject) => {
        stop = () => reject(signal.reason);
        signal.addEventListener('abort', stop, { once: true });
      });
      try {
        await Promise.race([before, aborted]);
        return leave;
      } catch (error) {
        leave();
        throw error;
      } finally {
        signal.removeEventListener('abort', stop);
        // Nobody else listens to it.
        aborted.catch(() => {});
      }
    },
  };
}
