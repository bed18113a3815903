#!/usr/bin/env node
// The wheel on a machine that has nothing: Debian with Python, pip and systemd, in namespaces of
// its own. It installs as docs/operating.md says, runs the lines of README, serves under systemd,
// trains there, shows its page, and is uninstalled. As root; `npm run wheel` comes first.
//
//   node test/wheel-check.mjs [--root FOLDER] [--wheel FILE]
//
// FOLDER (default .cache/bare) is made by debootstrap where it is missing; nothing is written to it
// later: the machine works on a copy in memory. Prints each step with its seconds.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as later } from 'node:timers/promises';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: { root: { type: 'string', default: '.cache/bare' }, wheel: { type: 'string' } },
});
const repository = resolve(import.meta.dirname, '..');
const folder = mkdtempSync(join(tmpdir(), 'gnnd-wheel-check-'));
const environment = '/opt/gnnd';
const address = 'unix:/run/gnnd/gnnd.sock';
/** What a wheel that is complete does without. */
const absent = ['node', 'npm', 'npx', 'cc', 'gcc', 'g++', 'clang', 'cmake', 'make', 'ninja'];
const linesOfFailure = 20;
/** The first process of the machine; steps are run beside it. */
let init = 0;

function say(seconds, text) {
  process.stdout.write(`${seconds.toFixed(1).padStart(7)} s  ${text}\n`);
}

function bareRoot() {
  const root = resolve(values.root);
  if (existsSync(join(root, 'usr/bin/python3'))) return root;
  const packages = 'python3,python3-venv,ca-certificates,systemd,dbus';
  const release = readFileSync('/etc/os-release', 'utf8').match(/^VERSION_CODENAME=(.*)$/m)?.[1];
  const words = ['--variant=minbase', `--include=${packages}`, release ?? 'stable', root];
  execFileSync('debootstrap', words, { stdio: 'inherit' });
  return root;
}

function wheelFile() {
  if (values.wheel !== undefined) return resolve(values.wheel);
  const made = join(repository, 'build/wheel');
  const name = readdirSync(made).find((file) => file.endsWith('.whl'));
  if (name === undefined) throw new Error('there is no wheel: npm run wheel');
  return join(made, name);
}

/** pip's settings here, less what limits versions, and the folders that they name. */
function pipSettings() {
  const listed = execFileSync('python3', ['-m', 'pip', 'config', 'list'], { encoding: 'utf8' });
  const settings = {};
  for (const [, name, value] of listed.matchAll(/^(?:global|:env:)\.([\w-]+)='(.*)'$/gm)) {
    if (name !== 'constraint') settings[name] = value;
  }
  const words = Object.values(settings).flatMap((value) => value.split(' '));
  const paths = words.map((word) => word.replace(/^file:\/\//, '')).filter((w) => w[0] === '/');
  const folders = paths.filter((path) => statSync(path).isDirectory());
  // An index of files lies beside the files.
  return { settings, folders: [...new Set(folders.map((f) => f.replace(/\/simple$/, '')))] };
}

/** Files that the machine is given: the wheel, the lines of README, how pip reaches its index. */
function givenFiles(wheel) {
  const given = join(folder, 'given');
  const { settings, folders } = pipSettings();
  const put = (path, text) => {
    mkdirSync(join(given, dirname(path)), { recursive: true });
    writeFileSync(join(given, path), text);
  };
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}\n`);
  put('etc/pip.conf', `[global]\n${lines.join('')}`);
  const certificates = settings.cert;
  if (certificates !== undefined) put(certificates.slice(1), readFileSync(certificates));
  for (const name of ['hosts', 'resolv.conf']) put(`etc/${name}`, readFileSync(`/etc/${name}`));
  const readme = readFileSync(join(repository, 'README.md'), 'utf8').split(/```python\n|```\n/)[3];
  put('srv/lines.py', readme ?? '');
  put('srv/served.py', (readme ?? '').replace('gnnd.local()', `gnnd.connect("${address}")`));
  // The host's other daemons may have the usual port: the network is not one of its own.
  const port = '[Service]\nEnvironment=GNND_METRICS_LISTEN=127.0.0.1:0\n';
  put('etc/systemd/system/gnnd.service.d/port.conf', port);
  cpSync(wheel, join(given, 'srv', wheel.slice(wheel.lastIndexOf('/') + 1)));
  return { given, folders };
}

async function start(root, { given, folders }) {
  const own = join(folder, 'machine');
  mkdirSync(own);
  const namespaces = ['--mount', '--pid', '--fork', '--uts', '--ipc', '--cgroup', '--kill-child'];
  const support = (name) => join(repository, 'test/support', name);
  const prepared = [support('wheel-machine.sh'), given, ...folders];
  const words = [...namespaces, support('systemd.sh'), own, root, ...prepared];
  const machine = spawn('unshare', words, { stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  for (const stream of [machine.stdout, machine.stderr]) {
    stream.on('data', (chunk) => {
      said += chunk;
    });
  }
  while (init === 0 || inside('test -S /run/systemd/private').status !== 0) {
    if (machine.exitCode !== null) throw new Error(`systemd does not start: ${said}`);
    await later(100);
    const children = `/proc/${machine.pid}/task/${machine.pid}/children`;
    if (existsSync(children)) init = Number(readFileSync(children, 'utf8').trim().split(' ')[0]);
  }
  return machine;
}

/** A line of shell on the machine, as root, with nothing of this environment. */
function inside(line) {
  const enter = ['-t', String(init), '-m', '-p', '-u', '-i', '-C', 'env', '-i', 'HOME=/root'];
  const path = 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
  const words = [...enter, path, 'sh', '-c', `cd /srv && ${line}`];
  return spawnSync('nsenter', words, { encoding: 'utf8', maxBuffer: 1 << 28 });
}

/** A step: its seconds and its answer; throws where it fails. */
function step(line, shown = line) {
  const begun = performance.now();
  const { status, stdout, stderr } = inside(line);
  say((performance.now() - begun) / 1000, shown);
  if (status !== 0) {
    const said = `${stdout}${stderr}`.split('\n').slice(-linesOfFailure).join('\n');
    throw new Error(`exits with ${status}:\n${said}`);
  }
  for (const each of stdout.trim().split('\n').slice(-4)) {
    if (each !== '') process.stdout.write(`           ${each}\n`);
  }
  return stdout;
}

function files() {
  const found = inside('find / -xdev -path /tmp -prune -o ! -type d -print').stdout;
  return new Set(found.trim().split('\n'));
}

/** Files of the environment that a distribution in it has listed. */
const listing = `import importlib.metadata as m
for d in m.distributions():
    for f in d.files or []: print(d.locate_file(f).resolve())`;

/** What is there now and was not before, apart from what other packages brought or compiled. */
function left(before) {
  const theirs = inside(`${environment}/bin/python -c '${listing}'`).stdout.split('\n');
  const known = new Set([...before, ...theirs]);
  const isOthers = (path) => path.endsWith('.pyc') && !path.includes('/gnnd');
  return [...files()].filter((path) => !known.has(path) && !isOthers(path));
}

/** The lines of docs/operating.md that install from a wheel. */
function documented() {
  const page = readFileSync(join(repository, 'docs/operating.md'), 'utf8');
  const block = page.split('From a wheel ')[1]?.split('\n\n')[1] ?? '';
  return block.split('\n').map((line) => line.trim().replaceAll('sudo ', ''));
}

async function check(wheel) {
  const found = inside(`command -v ${absent.join(' ')}`).stdout.trim();
  if (found !== '') throw new Error(`the machine has ${found}`);
  say(0, `none of ${absent.join(', ')}`);
  const [venv = '', pip = '', ...service] = documented();
  step(venv);
  const before = files();
  step(`${pip} --quiet --no-cache-dir --disable-pip-version-check --root-user-action ignore`, pip);
  step(`${environment}/bin/python lines.py`, 'the lines of README');
  for (const line of service) step(line);
  step(`${environment}/bin/gnnctl --version`, 'gnnctl --version');
  const gnnctl = `${environment}/bin/gnnctl --address ${address}`;
  const page = step(`${gnnctl} -q page`, 'gnnctl page').trim().split(/\s/).at(-1);
  const opened = `urllib.request.urlopen("${page}").read()`;
  const read = `import urllib.request; print(${opened}.count(b"<title>gnnd"))`;
  const titles = step(`${environment}/bin/python -c '${read}'`, 'the page').trim();
  if (titles !== '1') throw new Error('this is not the page');
  step(`${environment}/bin/python served.py`, 'the lines of README, by the daemon under systemd');
  step('systemctl show -p ActiveState -p SubState -p NRestarts gnnd', 'systemctl show');
  const bytes = Number(inside(`du -sb ${environment}`).stdout.split('\t')[0]);
  const own = `du -scb ${environment}/lib/python*/site-packages/gnnd* | tail -1`;
  const ownBytes = Number(inside(own).stdout.split('\t')[0]);
  const MB = (count) => `${Math.round(count / 1e6)} MB`;
  const sizes = `wheel ${MB(statSync(wheel).size)}, unpacked ${MB(ownBytes)}`;
  say(0, `${sizes}, with all that it needs ${MB(bytes)}`);
  step('systemctl disable --now gnnd');
  step('systemctl clean --what=all gnnd && userdel gnnd');
  step('rm /usr/bin/gnnd /etc/systemd/system/gnnd.service && rm -r /etc/gnnd', 'rm');
  step(`${environment}/bin/pip uninstall --yes --quiet --root-user-action ignore gnnd`);
  const remains = left(before);
  say(0, `${remains.length} files are left`);
  if (remains.length > 0) throw new Error(remains.slice(0, 50).join('\n'));
}

let machine = null;
try {
  const wheel = wheelFile();
  machine = await start(bareRoot(), givenFiles(wheel));
  await check(wheel);
} catch (error) {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
} finally {
  machine?.kill('SIGKILL');
  await later(500);
  rmSync(folder, { recursive: true, force: true });
}
