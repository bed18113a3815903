#!/usr/bin/env node
// npm run build:proto: TypeScript and Python from all protos, and what else is made from the job
// spec's.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createFileRegistry, fromBinary } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { fieldTable, nativeTables, tableMarks } from './outputs.mjs';
import { canMakePython, makePython } from './python.mjs';

const root = new URL('../', import.meta.url);
const cwd = new URL('proto/', root);
const buf = new URL('node_modules/.bin/buf', root).pathname;

execFileSync(buf, ['generate'], { cwd, stdio: 'inherit' });
const image = execFileSync(buf, ['build', '--as-file-descriptor-set', '-o', '-'], { cwd });
const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, image));

const docs = new URL('docs/job-spec.md', root);
const text = readFileSync(docs, 'utf8');
const [before, rest] = text.split(tableMarks[0]);
const after = rest.split(tableMarks[1])[1];
const spec = registry.getMessage('gnnd.v1.JobSpec');
const table = fieldTable(spec, registry.getExtension('gnnd.v1.field'));
writeFileSync(docs, `${before}${tableMarks[0]}\n${table}\n${tableMarks[1]}${after}`);

mkdirSync(new URL('native/node/gen/', root), { recursive: true });
const tables = nativeTables((name) => registry.getMessage(name));
writeFileSync(new URL('native/node/gen/job_spec.h', root), tables);

if (!canMakePython) throw new Error('no grpc_tools for Python: node deploy/setup.mjs --tests');
const stubs = new URL('src/python/gnnd/v1/', root);
rmSync(stubs, { recursive: true, force: true });
makePython(new URL('src/python/', root).pathname);
