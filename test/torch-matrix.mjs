#!/usr/bin/env node
// Compiles what users build and that includes torch (tests and benchmarks are left out) against the
// headers of the oldest PyTorch that README names and of the newest that the package index has; the
// build itself does it for the one that it links. Nothing is linked and no object is kept: that a
// source compiles is all that is asked.
//
//   node test/torch-matrix.mjs [--oldest] [--fetch] [WORD]   (sources whose path contains WORD)
//
// Exit code 1 where a source does not compile, 75 where a wheel cannot be had.
//
// Headers are taken out of wheels once, into .cache/torch-headers/VERSION; --fetch does that alone.
// With ccache, sources that did not change take no time. What PyTorch was built for (CUDA 12, CUDA
// 13, no CUDA) changes none of these headers: gnnd includes none of CUDA's own.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, resolve } from 'node:path';

/** Named in README; older ones lack c10::Stream::native_handle. */
const oldest = '2.11.0';
const folderOf = (version) => resolve('.cache/torch-headers', version);
/** Exit code where a wheel cannot be had, which is no fault of the sources. */
const withoutHeaders = 75;
const buildFolder = 'build/native';
const python = resolve('.cache/checkers/bin/python');
const words = process.argv.slice(2).filter((word) => !word.startsWith('--'));

function lines(command, args) {
  const { status, stdout, stderr } = spawnSync(command, args, {
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
  });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${stderr}`);
  return stdout.split('\n');
}

/** The newest version that pip would install here. */
function newestVersion() {
  const asked = ['install', '--quiet', '--dry-run', '--ignore-installed', '--no-deps'];
  const report = lines(python, ['-m', 'pip', ...asked, '--report', '-', 'torch']).join('\n');
  return JSON.parse(report.slice(report.indexOf('{'))).install[0].metadata.version;
}

/** Takes a version's headers out of its wheel, unless that was done. */
function fetchHeaders(version) {
  const folder = folderOf(version);
  if (existsSync(folder)) return;
  const scratch = `${folder}.new`;
  rmSync(scratch, { recursive: true, force: true });
  mkdirSync(scratch, { recursive: true });
  process.stdout.write(`      headers of PyTorch ${version}: half a gigabyte of wheel, once\n`);
  const pip = ['-m', 'pip', 'download', '--quiet', '--no-deps', '--only-binary', ':all:'];
  lines(python, [...pip, '--dest', scratch, `torch==${version}`]);
  const wheel = readdirSync(scratch).find((name) => name.endsWith('.whl'));
  const code = `import sys, zipfile
archive = zipfile.ZipFile(sys.argv[1])
archive.extractall(sys.argv[2], [n for n in archive.namelist() if n.startswith('torch/include/')])`;
  lines(python, ['-c', code, join(scratch, wheel), scratch]);
  rmSync(join(scratch, wheel));
  renameSync(scratch, folder);
}

const isForUsers = (file) => !file.includes('/native/test/') && !file.includes('/bench/');

/** Compiler's calls of the build, of sources for users that include a header of `include`. */
function callsWith(include) {
  const having = new Set();
  let object = '';
  for (const line of lines('ninja', ['-C', buildFolder, '-t', 'deps'])) {
    if (line.startsWith(' ')) {
      if (line.includes(include)) having.add(object);
    } else if (line !== '') {
      object = line.split(':')[0];
    }
  }
  const calls = JSON.parse(readFileSync(join(buildFolder, 'compile_commands.json'), 'utf8'));
  return calls
    .map((call) => ({ ...call, object: / -o (\S+)/.exec(call.command)?.[1] }))
    .filter(
      ({ object, file }) =>
        having.has(object) && isForUsers(file) && words.every((word) => file.includes(word)),
    );
}

const hasCcache = spawnSync('ccache', ['--version'], { stdio: 'ignore' }).status === 0;

/** Resolves to what the compiler said; empty where it had nothing to say. */
function compiled(call, torchFolder, version) {
  // Optimizing finds no error more, and ccache keeps objects only.
  const scratch = resolve(buildFolder, `torch-matrix-${process.pid}-${call.index}.o`);
  const end = hasCcache ? `-O0 -g0 -c -o ${scratch}` : '-fsyntax-only';
  const command = call.command
    .replaceAll(torchFolder, join(folderOf(version), 'torch'))
    .replace(/ -o \S+/, '')
    // Those of the build are of its own PyTorch; and each source names what it needs.
    .replace(/ -Winvalid-pch -include \S+/, '')
    .replace(/ -c (?=\S+$)/, ` ${end} `)
    .replace(/ -O3 -g1 /, ' ');
  const words = hasCcache && !command.startsWith('ccache') ? `ccache ${command}` : command;
  return new Promise((done) => {
    const child = spawn('/bin/sh', ['-c', `exec ${words}`], { cwd: call.directory });
    let said = '';
    child.stderr.on('data', (data) => {
      said += data;
    });
    child.on('close', (code) => {
      rmSync(scratch, { force: true });
      done(code === 0 ? '' : said);
    });
  });
}

async function check(version, torchFolder) {
  const beganMs = Date.now();
  const calls = callsWith(torchFolder).map((call, index) => ({ ...call, index }));
  if (calls.length === 0)
    throw new Error(`no source of ${buildFolder} includes torch: build first`);
  const failed = [];
  const left = [...calls];
  const work = async () => {
    for (let call = left.pop(); call !== undefined; call = left.pop()) {
      const said = await compiled(call, torchFolder, version);
      if (said === '') continue;
      failed.push(call.file);
      process.stdout.write(`${said}\n`);
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, work));
  const seconds = ((Date.now() - beganMs) / 1000).toFixed(0);
  const outcome = failed.length === 0 ? 'ok  ' : 'FAIL';
  const each = (((Date.now() - beganMs) / 1000) * availableParallelism()) / calls.length;
  process.stdout.write(
    `${outcome}  PyTorch ${version}: ${calls.length} sources, ${seconds} s, ${each.toFixed(1)} s each\n`,
  );
  return failed.length === 0;
}

function linkedTorch() {
  const cache = readFileSync(join(buildFolder, 'CMakeCache.txt'), 'utf8');
  const linked = /GNND_PYTHON:\w+=(.*)/.exec(cache)[1];
  const code =
    "import importlib.util as u, os; print(os.path.dirname(u.find_spec('torch').origin))";
  return lines(linked, ['-c', code])[0];
}

function fetched() {
  try {
    const newest = process.argv.includes('--oldest') ? [] : [newestVersion()];
    const versions = [...new Set([oldest, ...newest])];
    for (const version of versions) fetchHeaders(version);
    return versions;
  } catch (error) {
    process.stdout.write(`no headers of PyTorch to compile against: ${error.message}\n`);
    process.exit(withoutHeaders);
  }
}

const versions = fetched();
if (!process.argv.includes('--fetch')) {
  const torchFolder = linkedTorch();
  const outcomes = [];
  for (const version of versions) outcomes.push(await check(version, torchFolder));
  process.exitCode = outcomes.every(Boolean) ? 0 : 1;
}
