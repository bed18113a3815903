#!/usr/bin/env node
// Imports of large tables: `npm run bench -- tables [--rows 10000] [--columns 2000] [--edges 1]
// [--ids texts|numbers] [--before DIST] [--folder DIR]`. Makes one random graph as tables in CSV
// and in Parquet and reads them in a process of its own each, without the check that ends an
// import: seconds, seconds of processor time, and MB of the source for each of these. DIST is the
// build of another revision (its `dist`, with its native files beside it), which takes its turns
// beside this one in the same run. Medians of three; digests must agree.
import { spawnSync } from 'node:child_process';
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { DuckDBInstance } from '@duckdb/node-api';

const { values } = parseArgs({
  options: {
    rows: { type: 'string', default: '10000' },
    columns: { type: 'string', default: '2000' },
    edges: { type: 'string', default: '1' },
    ids: { type: 'string', default: 'texts' },
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
  const { loadCore } = await import(pathToFileURL(resolve(dist, 'native/load.js')).href);
  const datasetValidate = async () => ({ problems: [], problemCount: 0 });
  const native = { ...loadCore(), datasetValidate };
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

/** Lines of a file of text, some at a time. */
function writeLines(path, header, count, lineOf) {
  writeFileSync(path, `${header}\n`);
  const piece = 4096;
  for (let row = 0; row < count; row += piece) {
    const lines = Array.from({ length: Math.min(piece, count - row) }, (_, at) => lineOf(row + at));
    appendFileSync(path, `${lines.join('\n')}\n`);
  }
}

async function makeTables(folder, { rows, columns, edges, ids }) {
  const names = Array.from({ length: columns }, (_, at) => `f${at}`);
  const header = ['id', 'label', 'split', ...names].join(',');
  for (const format of ['CSV', 'PARQUET']) mkdirSync(join(folder, format));
  const idOf = (row) => (ids === 'texts' ? `n${row}` : row);
  const [nodesPath, edgesPath] = ['nodes', 'edges'].map((t) => join(folder, 'CSV', `${t}.csv`));
  writeLines(nodesPath, header, rows, (row) => {
    const numbers = names.map((_, at) => (((row * 2654435761 + at * 40503) >>> 12) % 80000) / 8);
    return `${idOf(row)},${row % 5},train,${numbers.join(',')}`;
  });
  writeLines(edgesPath, 'source,target', edges, (edge) => {
    const source = edge % rows;
    const step = 1 + ((7919 * Math.floor(edge / rows)) % (rows - 1));
    return `${idOf(source)},${idOf((source + step) % rows)}`;
  });
  const connection = await (await DuckDBInstance.create(':memory:')).connect();
  const idType = ids === 'texts' ? 'VARCHAR' : 'BIGINT';
  const write = async (table, path, listed) => {
    const types = listed.map(([name, type]) => `${name}: '${type}'`).join(', ');
    const source = `read_csv('${path}', header = true, columns = {${types}})`;
    const target = join(folder, 'PARQUET', `${table}.parquet`);
    await connection.run(`COPY (FROM ${source}) TO '${target}' (ROW_GROUP_SIZE 10240)`);
  };
  const features = names.map((name) => [name, 'DOUBLE']);
  const others = [
    ['id', idType],
    ['label', 'INTEGER'],
    ['split', 'VARCHAR'],
  ];
  await write('nodes', nodesPath, [...others, ...features]);
  await write(
    'edges',
    edgesPath,
    ['source', 'target'].map((name) => [name, idType]),
  );
}

const median = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)];

async function compare() {
  const builds = { now: 'dist', ...(values.before === undefined ? {} : { before: values.before }) };
  const folder = mkdtempSync(join(values.folder, 'gnnd-bench-tables-'));
  let failed = false;
  try {
    const [rows, columns, edges] = [values.rows, values.columns, values.edges].map(Number);
    await makeTables(folder, { rows, columns, edges, ids: values.ids });
    process.stdout.write(`${cpus()[0]?.model ?? ''}, ${cpus().length} processors\n`);
    process.stdout.write('format   build    seconds  processor s  MB/processor s\n');
    for (const format of ['CSV', 'PARQUET']) {
      const source = join(folder, format);
      const bytes = readdirSync(source).reduce(
        (sum, name) => sum + statSync(join(source, name)).size,
        0,
      );
      const lines = Object.fromEntries(Object.keys(builds).map((name) => [name, []]));
      for (let turn = 0; turn < turns; turn += 1) {
        for (const [name, dist] of Object.entries(builds)) {
          const own = ['--read', dist, '--format', format, '--source', source];
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
        const rate = bytes / 1e6 / of('cpu');
        const figures = [of('seconds').toFixed(2), of('cpu').toFixed(2), rate.toFixed(0)];
        const cells = [format.padEnd(8), build.padEnd(6), ...figures.map((t) => t.padStart(11))];
        process.stdout.write(`${cells.join(' ')}\n`);
        const line = { format, build, bytes, seconds: of('seconds'), cpu: of('cpu') };
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
