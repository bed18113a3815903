#!/usr/bin/env node
import { gnnctlExit } from '../base/exit-codes.ts';
import { runCli } from './program.ts';
import { processIo } from './session/io.ts';

// A reader that has seen enough, such as head, is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(gnnctlExit.OK);
  throw error;
});
process.stderr.on('error', () => {});

// Not process.exit: what was written must reach a slow pipe first.
process.exitCode = await runCli(process.argv.slice(2), processIo());
