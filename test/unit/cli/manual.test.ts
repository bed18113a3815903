import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { daemonExit, gnnctlExit } from '../../../src/base/exit-codes.ts';
import { addCommands } from '../../../src/cli/program.ts';
import { manualOf } from '../../../src/cli/show/manual.ts';
import { program as gnnd } from '../../../src/serve.ts';

/** Manual pages are what commander knows: `npm run build:man` writes them, and this compares. */

const run = () => async () => {};
const gnnctl = addCommands(new Command('gnnctl'), run);
const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
const facts = { section: 1, version };
const pages = {
  'gnnctl.1': manualOf(gnnctl, { ...facts, exitCodes: gnnctlExit, seeAlso: ['gnnd(1)'] }),
  'gnnd.1': manualOf(gnnd, { ...facts, exitCodes: daemonExit, seeAlso: ['gnnctl(1)'] }),
};

describe('manual pages', () => {
  it.each(Object.entries(pages))('%s is current', (name, page) => {
    const path = `man/${name}`;
    if (process.env['UPDATE_GOLDEN'] !== undefined) {
      mkdirSync('man', { recursive: true });
      writeFileSync(path, page);
    }
    expect(readFileSync(path, 'utf8')).toBe(page);
  });

  it('have every command that does something, its arguments and its options', () => {
    const page = pages['gnnctl.1'];
    expect(page).toContain('.SS gnnctl job create\n');
    expect(page).toContain('.SS gnnctl job delete <job...>\n');
    expect(page).toMatch(/\.SS gnnctl top\n[\s\S]*?\.B \\-\\-interval <duration>\n.*default 1s\./);
    expect(page).not.toContain('__complete');
    expect(pages['gnnd.1']).toMatch(/\.SS gnnd run\n[\s\S]*?\.B \\-\\-otlp\\-endpoint <value>\n/);
  });

  it('keep what roff would take for its own', () => {
    const odd = new Command('odd').description('.starts with a dot');
    odd.command('go').description("'quoted \\ and -dashed");
    const page = manualOf(odd, { ...facts, exitCodes: { OK: 0 }, seeAlso: [] });
    expect(page).toContain('odd \\- \\&.starts with a dot\n');
    expect(page).toContain("\\&'quoted \\e and \\-dashed.\n");
  });
});
