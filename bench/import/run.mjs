#!/usr/bin/env node
// Imports of folders that are larger than the memory of their control group: `npm run bench --
// import [--gib 10] [--memory-mib 1024] [--formats npy,csv,csv-names,parquet,ogb] [--folder DIR]`.
// Makes a random graph whose arrays take so many GiB in each format, imports it with a daemon in a
// control group (version 1, as root), and says seconds, MB/s, the group's peak (with page cache)
// and whether all formats gave the same digest. Parquet needs pyarrow in GNND_PYTHON.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Daemon, MemoryGroup } from '../daemon.mjs';

const { values } = parseArgs({
  options: {
    gib: { type: 'string', default: '10' },
    'memory-mib': { type: 'string', default: '1024' },
    formats: { type: 'string', default: 'npy,csv,csv-names,parquet,ogb' },
    folder: { type: 'string', default: tmpdir() },
  },
});
const gib = Number(values.gib);
const memoryBytes = Number(values['memory-mib']) * 2 ** 20;
const python = process.env.GNND_PYTHON ?? 'python3';

const scratch = mkdtempSync(join(values.folder, 'gnnd-bench-import-'));
const daemon = new Daemon();
const group = new MemoryGroup('import', memoryBytes);
const digests = new Set();
let failed = false;

function bytesBelow(folder) {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .reduce(
      (sum, entry) => sum + statSync(join(entry.parentPath ?? entry.path, entry.name)).size,
      0,
    );
}

try {
  await daemon.start(scratch, 2, group);
  process.stdout.write('format     GiB    seconds    MB/s   peak MiB   nodes        entries\n');
  for (const format of values.formats.split(',')) {
    const source = join(scratch, format);
    mkdirSync(source);
    const made = spawnSync(python, ['bench/import/graph.py', format, source, String(gib)], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    if (made.status !== 0) throw new Error(`bench/import/graph.py ${format} failed`);
    const bytes = bytesBelow(source);
    group.forgetPeak();
    const begun = performance.now();
    const text = daemon.gnnctl('dataset', 'import', source, '--id', format, '--output', 'json');
    const seconds = (performance.now() - begun) / 1000;
    const dataset = JSON.parse(text);
    digests.add(dataset.digest);
    const line = {
      format,
      bytes,
      seconds: Number(seconds.toFixed(1)),
      peak_bytes: group.peakBytes(),
      nodes: Number(dataset.numNodes ?? dataset.num_nodes),
      entries: Number(dataset.numEdges ?? dataset.num_edges),
    };
    const cells = [
      format.padEnd(8),
      (bytes / 2 ** 30).toFixed(2).padStart(6),
      seconds.toFixed(1).padStart(10),
      (bytes / 1e6 / seconds).toFixed(0).padStart(7),
      (line.peak_bytes / 2 ** 20).toFixed(0).padStart(10),
      String(line.nodes).padStart(10),
      String(line.entries).padStart(12),
    ];
    process.stdout.write(`${cells.join(' ')}\n${JSON.stringify(line)}\n`);
    daemon.gnnctl('dataset', 'delete', format);
    rmSync(source, { recursive: true });
  }
  if (digests.size > 1) process.stdout.write('the digests differ\n');
  failed = digests.size > 1;
} finally {
  await daemon.end();
  group.release();
  rmSync(scratch, { recursive: true, force: true });
}
process.exit(failed ? 1 : 0);
