/** The only place of the page that reads time. */

/** Monotonic ms, for intervals. */
export const nowMs = (): number => performance.now();

/** Ms since the epoch, for ages. */
export const wallMs = (): number => Date.now();
