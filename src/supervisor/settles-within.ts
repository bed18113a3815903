/** A part of a wait, in which a process that runs does at least something. */
const sliceMs = 500;

/**
 * Whether a promise settles while this process runs for `timeoutMs`: time in which it was stopped
 * does not count, because nobody has heard then what the others did.
 */
export async function settlesWithin(
  promise: Promise<unknown>,
  timeoutMs: number,
): Promise<boolean> {
  let isSettled = false;
  const settled = promise.then(() => {
    isSettled = true;
  });
  for (let leftMs = timeoutMs; leftMs >= 0 && !isSettled; leftMs -= sliceMs) {
    await within(settled, Math.min(sliceMs, leftMs));
  }
  return isSettled;
}

async function within(promise: Promise<unknown>, timeoutMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, timeoutMs);
  });
  try {
    await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
