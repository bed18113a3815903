#!/usr/bin/env node
// Makes TypeScript and Python from all protos, and what else follows from the job spec's. Set-up
// runs it where a proto changed, and `npm run build:proto` does.
//
//   node proto/generate.mjs            writes what differs, removes what has no proto any more
//   node proto/generate.mjs --check    writes nothing: names what differs, and fails
//
// Python needs grpc_tools, which set-up gets; else the rest is made, and --check ends with 75.
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createFileRegistry, fromBinary } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { fieldTable, nativeTables, tableMarks } from './outputs.mjs';

const root = fileURLToPath(new URL('../', import.meta.url));
const isCheck = process.argv.includes('--check');
const python = join(root, '.cache/python-client/bin/python');
/** Folders of which git keeps nothing. */
const folders = ['src/api/gen', ...(existsSync(python) ? ['src/python/gnnd/v1'] : [])];
/** Files that git keeps, because people read them. */
const files = ['docs/job-spec.md', 'native/node/gen/job_spec.h'];

/** Makes all of it below a folder, at the paths that it has in the clone. */
function makeAll(scratch) {
  const buf = (args) =>
    execFileSync(join(root, 'node_modules/.bin/buf'), args, { cwd: join(root, 'proto') });
  buf(['generate', '--output', scratch]);
  const image = buf(['build', '--as-file-descriptor-set', '-o', '-']);
  const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, image));

  const text = readFileSync(join(root, 'docs/job-spec.md'), 'utf8');
  const [before, rest] = text.split(tableMarks[0]);
  const after = rest.split(tableMarks[1])[1];
  const spec = registry.getMessage('gnnd.v1.JobSpec');
  const table = fieldTable(spec, registry.getExtension('gnnd.v1.field'));
  const page = `${before}${tableMarks[0]}\n${table}\n${tableMarks[1]}${after}`;
  write(join(scratch, 'docs/job-spec.md'), page);
  const tables = nativeTables((name) => registry.getMessage(name));
  write(join(scratch, 'native/node/gen/job_spec.h'), tables);

  if (!existsSync(python)) return;
  const stubs = [join(root, 'proto/stubs.py'), join(scratch, 'src/python')];
  execFileSync(python, stubs, { stdio: 'inherit' });
}

function write(path, content) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
}

/** Paths of files below `base`, of those folders; Python's own caches left out. */
function filesOf(base) {
  return folders
    .filter((folder) => existsSync(join(base, folder)))
    .flatMap((folder) =>
      readdirSync(join(base, folder), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile() && !entry.parentPath.endsWith('__pycache__'))
        .map((entry) => join(entry.parentPath, entry.name).slice(join(base, '/').length)),
    );
}

const contentOf = (path) => (existsSync(path) ? readFileSync(path) : null);

const scratch = mkdtempSync(join(tmpdir(), 'gnnd-proto-'));
const different = [];
try {
  makeAll(scratch);
  for (const path of new Set([...files, ...filesOf(scratch), ...filesOf(root)])) {
    const [made, found] = [scratch, root].map((base) => contentOf(join(base, path)));
    if (made !== null && found !== null && made.equals(found)) continue;
    different.push(path);
    if (isCheck) continue;
    if (made === null) rmSync(join(root, path));
    else write(join(root, path), made);
  }
} finally {
  rmSync(scratch, { recursive: true });
}
if (isCheck && different.length > 0) {
  process.stderr.write(
    `not what the protos make of it (npm run build:proto): ${different.join(', ')}\n`,
  );
  process.exitCode = 1;
} else if (!existsSync(python)) {
  process.stderr.write("no grpc_tools for Python's messages and stubs: npm run setup gets it\n");
  if (isCheck) process.exitCode = 75;
}
