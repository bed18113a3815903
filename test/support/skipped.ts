/**
 * Says that `tests` do not run because something is missing, and that they are to be skipped. Where
 * everything has to run, as in CI (GNND_NO_SKIPS=1), it throws instead.
 */
export function skipped(tests: string, missing: string): true {
  if (process.env['GNND_NO_SKIPS'] === '1') throw new Error(`${tests} cannot run: ${missing}`);
  process.stderr.write(`SKIPPED: ${tests} (${missing})\n`);
  return true;
}
