// Writes the manual pages (man/) from what the built gnnd and gnnctl say of themselves.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { Command } from 'commander';
import { daemonExit, gnnctlExit } from '../dist/base/exit-codes.js';
import { addCommands } from '../dist/cli/program.js';
import { manualOf } from '../dist/cli/show/manual.js';
import { program as gnnd } from '../dist/serve.js';

const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
const gnnctl = addCommands(new Command('gnnctl'), () => async () => {});
mkdirSync('man', { recursive: true });
for (const [program, exitCodes, other] of [
  [gnnctl, gnnctlExit, 'gnnd(1)'],
  [gnnd, daemonExit, 'gnnctl(1)'],
]) {
  const page = manualOf(program, { section: 1, version, exitCodes, seeAlso: [other] });
  writeFileSync(`man/${program.name()}.1`, page);
}
