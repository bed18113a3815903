#!/usr/bin/env node
import { descriptorFacts, filesToLoad } from './base/descriptors.ts';
import { daemonExit } from './base/exit-codes.ts';

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
