#!/usr/bin/env node
// One command per benchmark: `npm run bench -- sampler`. Each measures what it compares side by
// side in one run, prints a table for people and one JSON line per figure (kept in build/bench/).
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';

const benches = {
  sampler: 'k-hop sampling against the scalar reference and the line rate measured on the spot',
  gather: 'feature gather against plain row copies and the line rate',
  queue: 'hand-off bandwidth against memcpy, wake-up latency between processes',
};

const [name, ...args] = process.argv.slice(2);
if (name === undefined || !(name in benches)) {
  process.stdout.write('usage: npm run bench -- NAME [ARGUMENTS]\n\n');
  for (const [bench, what] of Object.entries(benches)) {
    process.stdout.write(`  ${bench.padEnd(10)} ${what}\n`);
  }
  process.exit(name === undefined ? 0 : 2);
}

const binary = join('build/native', `${name}_bench`);
if (!existsSync(binary)) {
  process.stderr.write(`${binary} is missing: run node deploy/setup.mjs --bench\n`);
  process.exit(1);
}
const commit = spawnSync('git', ['rev-parse', '--short', 'HEAD'], {
  encoding: 'utf8',
}).stdout.trim();
process.stdout.write(`${cpus()[0]?.model ?? 'unknown processor'}, commit ${commit}\n`);
const { status, stdout } = spawnSync(binary, args, {
  encoding: 'utf8',
  stdio: ['ignore', 'pipe', 'inherit'],
  maxBuffer: 64 * 1024 * 1024,
});
process.stdout.write(stdout);
const lines = stdout.split('\n').filter((line) => line.startsWith('{'));
mkdirSync('build/bench', { recursive: true });
writeFileSync(join('build/bench', `${name}.jsonl`), `${lines.join('\n')}\n`);
process.exit(status ?? 1);
