#!/usr/bin/env node
// Chaos for as long as one likes: `npm run chaos -- --minutes 60 --seed 7 --kinds rows,standby`.
// What it does is in chaos.test.ts; a seed stands for a plan, times are the machine's.
import { spawnSync } from 'node:child_process';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    seed: { type: 'string' },
    kinds: { type: 'string' },
    // One daemon lives through all of it; what it holds is compared.
    soak: { type: 'boolean', default: false },
  },
});
if (!(Number(values.minutes) > 0)) {
  process.stderr.write(`--minutes ${values.minutes}: expected a number above 0\n`);
  process.exit(64);
}
const env = {
  ...process.env,
  GNND_CHAOS_MINUTES: values.minutes,
  ...(values.seed === undefined ? {} : { GNND_SEED: values.seed }),
  ...(values.soak ? { GNND_CHAOS_SOAK: '1' } : {}),
  ...(values.kinds === undefined ? {} : { GNND_CHAOS_KINDS: values.kinds }),
};
const args = ['run', '--project', 'chaos', '--reporter=default', '--disable-console-intercept'];
const { status } = spawnSync('node_modules/.bin/vitest', args, { stdio: 'inherit', env });
process.exit(status ?? 1);
