#!/usr/bin/env node
// systemd-analyze verify on deploy/gnnd.service, with the installed binary's path replaced by one
// that exists here: the unit's grammar and directives are what is judged.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const folder = mkdtempSync(join(tmpdir(), 'gnnd-unit-'));
try {
  const unit = readFileSync('deploy/gnnd.service', 'utf8').replaceAll('/usr/bin/gnnd', '/bin/true');
  const path = join(folder, 'gnnd.service');
  writeFileSync(path, unit);
  const { status, stderr } = spawnSync('systemd-analyze', ['verify', path], { encoding: 'utf8' });
  // The account and the rest of the host's units are not what is judged.
  const ours = stderr.split('\n').filter((line) => line.includes('gnnd'));
  process.stderr.write(ours.map((line) => `${line}\n`).join(''));
  process.exit(status === 0 && ours.length === 0 ? 0 : 1);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
