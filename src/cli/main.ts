#!/usr/bin/env node
import '../base/no-debugger.ts';
import { gnnctlExit } from '../base/exit-codes.ts';
import { packageVersion } from '../base/package-version.ts';

// Libraries' notes to their users, such as Node's about TLS to an IP address, are none for ours.
process.noDeprecation = true;

// A reader that has seen enough, such as head, is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(gnnctlExit.OK);
  throw error;
});
process.stderr.on('error', () => {});

const args = process.argv.slice(2);
if (args.length === 1 && ['-V', '--version'].includes(args[0] ?? '')) {
  // Asked by scripts, again and again: all else takes longer to load than this to say.
  process.stdout.write(`${packageVersion()}\n`);
} else {
  const [{ runCli }, { processIo }] = await Promise.all([
    import('./program.ts'),
    import('./session/io.ts'),
  ]);
  // Not process.exit: what was written must reach a slow pipe first.
  process.exitCode = await runCli(args, processIo());
}
