#!/usr/bin/env node
import '../base/no-debugger.ts';
import { gnnctlExit } from '../base/exit-codes.ts';
import { runCli } from './program.ts';
import { processIo } from './session/io.ts';

// Libraries' notes to their users, such as Node's about TLS to an IP address, are none for ours.
process.noDeprecation = true;

// A reader that has seen enough, such as head, is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(gnnctlExit.OK);
  throw error;
});
process.stderr.on('error', () => {});

// Not process.exit: what was written must reach a slow pipe first.
process.exitCode = await runCli(process.argv.slice(2), processIo());
