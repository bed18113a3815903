import { nowMs } from './clock.ts';
import type { PainterTime } from './painter.ts';

/** A browser's: after the delay with the next frame, so that a hidden page draws nothing. */
export const browserTime: PainterTime = {
  nowMs,
  later(run, delayMs) {
    let frame = 0;
    const timer = setTimeout(() => {
      frame = requestAnimationFrame(run);
    }, delayMs);
    return () => {
      clearTimeout(timer);
      cancelAnimationFrame(frame);
    };
  },
};
