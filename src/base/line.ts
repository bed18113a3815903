/** Lets a few in at a time, in the order of arrival. */
export interface Line {
  /** Whether whoever comes now has to wait. */
  isBusy(): boolean;
  /** Resolves with the function to leave with; rejects with the signal's reason. */
  enter(signal: AbortSignal): Promise<() => void>;
}

export function createLine(width = 1): Line {
  let inside = 0;
  const waiting: (() => void)[] = [];
  const wait = (signal: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      const go = () => {
        signal.removeEventListener('abort', giveUp);
        resolve();
      };
      const giveUp = () => {
        waiting.splice(waiting.indexOf(go), 1);
        reject(signal.reason);
      };
      waiting.push(go);
      signal.addEventListener('abort', giveUp, { once: true });
    });
  return {
    isBusy: () => inside >= width,
    async enter(signal) {
      signal.throwIfAborted();
      if (inside < width) inside += 1;
      else await wait(signal);
      let isIn = true;
      return () => {
        if (!isIn) return;
        isIn = false;
        const next = waiting.shift();
        // Whoever leaves hands its place over.
        if (next === undefined) inside -= 1;
        else next();
      };
    },
  };
}
