import { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { daemonExit, gnnctlExit } from '../../../src/base/exit-codes.ts';
import { addCommands } from '../../../src/cli/program.ts';
import { manualOf } from '../../../src/cli/show/manual.ts';
import { program as gnnd } from '../../../src/serve.ts';

/** Manual pages are what commander knows: deploy/manual.mjs writes them with every build. */

const run = () => async () => {};
const gnnctl = addCommands(new Command('gnnctl'), run);
const facts = { section: 1, version: '1.2.3' };
const pages = {
  'gnnctl.1': manualOf(gnnctl, { ...facts, exitCodes: gnnctlExit, seeAlso: ['gnnd(1)'] }),
  'gnnd.1': manualOf(gnnd, { ...facts, exitCodes: daemonExit, seeAlso: ['gnnctl(1)'] }),
};

describe('manual pages', () => {
  it('have every command that does something, its arguments and its options', () => {
    const page = pages['gnnctl.1'];
    expect(page).toContain('.TH "GNNCTL" "1" "" "gnnd 1.2.3" "User Commands"\n');
    expect(page).toMatch(/\.SH EXIT STATUS\n\.TP\n\.B 0\nOK\n[\s\S]*\.SH SEE ALSO\ngnnd\(1\)\n$/);
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
