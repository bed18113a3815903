import { useEffect, useState } from 'preact/hooks';
import { browserTime } from './browser-time.ts';
import { JobFeed } from './job-feed.ts';
import { Painter } from './painter.ts';

const time = {
  sleep: (delayMs: number, signal: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      const timer = setTimeout(resolve, delayMs);
      signal.addEventListener('abort', () => {
        clearTimeout(timer);
        reject(signal.reason);
      });
    }),
};

/** Runs while the page is seen: a hidden one holds no connection, and goes on where it was. */
export function whileSeen(run: (signal: AbortSignal) => void): () => void {
  let controller: AbortController | null = null;
  const look = () => {
    if (document.hidden) {
      controller?.abort();
      controller = null;
    } else if (controller === null) {
      controller = new AbortController();
      run(controller.signal);
    }
  };
  look();
  document.addEventListener('visibilitychange', look);
  return () => {
    document.removeEventListener('visibilitychange', look);
    controller?.abort();
  };
}

/** The feed of a job; renders the component when it has more to show, as often as painters do. */
export function useFeed(name: string): JobFeed {
  const [feed, setFeed] = useState(() => new JobFeed(name, time));
  const [, setPaint] = useState(0);
  useEffect(() => {
    const mine = new JobFeed(name, time);
    setFeed(mine);
    const painter = new Painter(() => setPaint(painter.draws), browserTime);
    const forget = mine.onChange(() => painter.ask());
    const stop = whileSeen((signal) => void mine.run(signal));
    return () => {
      stop();
      forget();
      painter.stop();
    };
  }, [name]);
  return feed;
}

/** What `load` answers, asked again every `periodMs` while the page is seen. */
export function usePolled<T>(
  load: (signal: AbortSignal) => Promise<T>,
  periodMs: number,
  keys: readonly unknown[],
): { readonly value: T | null; readonly error: unknown } {
  const [found, setFound] = useState<{ value: T | null; error: unknown }>({
    value: null,
    error: null,
  });
  useEffect(() => {
    setFound({ value: null, error: null });
    const poll = async (signal: AbortSignal) => {
      while (!signal.aborted) {
        try {
          const value = await load(signal);
          if (!signal.aborted) setFound({ value, error: null });
        } catch (error) {
          if (!signal.aborted) setFound(({ value }) => ({ value, error }));
        }
        if (periodMs === Number.POSITIVE_INFINITY) return;
        await time.sleep(periodMs, signal).catch(() => {});
      }
    };
    return whileSeen((signal) => void poll(signal));
  }, keys);
  return found;
}
