#!/usr/bin/env node
import './base/no-debugger.ts';
import { descriptorFacts, filesToLoad } from './base/descriptors.ts';
import { daemonExit } from './base/exit-codes.ts';

// A reader of our output may be gone: its error must not end the process.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});
// Modes are set, not inherited: what gnnd makes is its user's to write and its group's to read.
process.umask(0o027);

/** Loading all of gnnd opens many files at once: with too few, Node would end in a stack trace. */
const { limit } = descriptorFacts();
if (limit < filesToLoad) {
  process.stderr.write(
    `gnnd: at most ${limit} files may be open, and gnnd needs ${filesToLoad} to load at all: ` +
      'raise the limit (ulimit -n; LimitNOFILE of a systemd unit)\n',
  );
  process.exit(daemonExit.OS_RESOURCE);
}
const { program } = await import('./serve.ts');
await program.parseAsync();
