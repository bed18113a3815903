#!/usr/bin/env node
// Imports of wide tables: `npm run bench -- tables [--rows 10000] [--columns 2000] [--before DIST]
// [--folder DIR]`. Makes one random table of nodes as CSV and as Parquet and reads it in a process
// of its own each, without the check that ends an import: seconds, and seconds of processor time.
// DIST is the build of another revision (its `dist`), which takes its turns beside this one in the
// same run. Medians of three; digests must agree.
import { spawnSync } from 'node:child_process';
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { DuckDBInstance } from '@duckdb/node-api';

const { values } = parseArgs({
  options: {
    rows: { type: 'string', default: '10000' },
    columns: { type: 'string', default: '2000' },
    before: { type: 'string' },
    folder: { type: 'string', default: tmpdir() },
    read: { type: 'string' },
    format: { type: 'string' },
    source: { type: 'string' },
  },
});
const turns = 3;

/** Reads one source in this process, with the importers of the build in `dist`. */
async function read(dist, format, source) {
  const { readSource } = await import(pathToFileURL(resolve(dist, 'datasets/read-source.js')).href);
  const folder = join(source, '..', 'out');
  mkdirSync(folder);
  const choices = { featureDtype: null, directed: false, link: false, task: null, split: null };
  const later = { ignoredColumns: [], madeFeatures: null, randomSplit: null };
  const native = { datasetValidate: async () => ({ problems: [], problemCount: 0 }) };
  const begun = performance.now();
  const written = await readSource({
    ...{ id: 'wide', source, root: '', format, folder, native },
    choices: { ...choices, ...later },
    ...{ origin: null, progress: () => undefined, signal: new AbortController().signal },
  });
  const seconds = (performance.now() - begun) / 1000;
  rmSync(folder, { recursive: true });
  const { userCPUTime, systemCPUTime } = process.resourceUsage();
  const cpu = (userCPUTime + systemCPUTime) / 1e6;
  const line = { seconds, cpu, digest: written.digest };
  process.stdout.write(JSON.stringify(line));
}

async function makeTables(folder, rows, columns) {
  const names = Array.from({ length: columns }, (_, at) => `f${at}`);
  const header = ['id', 'label', 'split', ...names].join(',');
  for (const format of ['CSV', 'PARQUET']) mkdirSync(join(folder, format));
  const path = join(folder, 'CSV', 'nodes.csv');
  writeFileSync(path, `${header}\n`);
  for (let row = 0; row < rows; row += 1) {
    const numbers = names.map((_, at) => (((row * 2654435761 + at * 40503) >>> 12) % 80000) / 8);
    appendFileSync(path, `n${row},${row % 5},train,${numbers.join(',')}\n`);
  }
  writeFileSync(join(folder, 'CSV', 'edges.csv'), 'source,target\nn0,n1\n');
  const connection = await (await DuckDBInstance.create(':memory:')).connect();
  const types = ['VARCHAR', 'INTEGER', 'VARCHAR', ...names.map(() => 'DOUBLE')];
  const listed = header.split(',').map((name, at) => `${name}: '${types[at]}'`);
  const source = `read_csv('${path}', header = true, columns = {${listed.join(', ')}})`;
  const target = join(folder, 'PARQUET', 'nodes.parquet');
  await connection.run(`COPY (FROM ${source}) TO '${target}' (ROW_GROUP_SIZE 10240)`);
  const edges = join(folder, 'PARQUET', 'edges.parquet');
  await connection.run(`COPY (SELECT 'n0' AS source, 'n1' AS target) TO '${edges}'`);
}

const median = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)];

async function compare() {
  const builds = { now: 'dist', ...(values.before === undefined ? {} : { before: values.before }) };
  const folder = mkdtempSync(join(values.folder, 'gnnd-bench-tables-'));
  let failed = false;
  try {
    await makeTables(folder, Number(values.rows), Number(values.columns));
    process.stdout.write(`${cpus()[0]?.model ?? ''}, ${cpus().length} processors\n`);
    process.stdout.write('format   build    seconds   processor s\n');
    for (const format of ['CSV', 'PARQUET']) {
      const lines = Object.fromEntries(Object.keys(builds).map((name) => [name, []]));
      for (let turn = 0; turn < turns; turn += 1) {
        for (const [name, dist] of Object.entries(builds)) {
          const own = ['--read', dist, '--format', format, '--source', join(folder, format)];
          const args = [fileURLToPath(import.meta.url), ...own];
          const { status, stdout } = spawnSync(process.execPath, args, {
            stdio: ['ignore', 'pipe', 'inherit'],
          });
          if (status !== 0) throw new Error(`reading ${format} with ${dist} failed`);
          lines[name].push(JSON.parse(String(stdout)));
        }
      }
      const digests = new Set(Object.values(lines).flatMap((each) => each.map((l) => l.digest)));
      failed ||= digests.size > 1;
      for (const [build, each] of Object.entries(lines)) {
        const of = (key) => median(each.map((line) => line[key]));
        const figures = [of('seconds').toFixed(2), of('cpu').toFixed(2)];
        const cells = [format.padEnd(8), build.padEnd(6), ...figures.map((t) => t.padStart(9))];
        process.stdout.write(`${cells.join(' ')}\n`);
        const line = { format, build, seconds: of('seconds'), cpu: of('cpu') };
        process.stdout.write(`${JSON.stringify(line)}\n`);
      }
    }
    if (failed) process.stdout.write('the digests differ\n');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  process.exitCode = failed ? 1 : 0;
}

if (values.read === undefined) await compare();
else await read(values.read, values.format, values.source);
