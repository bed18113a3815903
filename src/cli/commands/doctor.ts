import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, readFileSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { stringify } from 'yaml';
import { HostService } from '../../api/gen/gnnd/v1/host_service_pb.ts';
import { serveCommand } from '../../base/advice.ts';
import { builtPath } from '../../base/built-path.ts';
import { needsTorch, readProbe, withTorch } from '../../base/device-probe.ts';
import { messageOf } from '../../base/errors.ts';
import { gnnctlExit } from '../../base/exit-codes.ts';
import { isWheel, packageRoot, setupCommand } from '../../base/package-root.ts';
import type { Run } from '../session/run.ts';
import type { Session } from '../session/session.ts';
import { padEnd, printable } from '../session/terminal.ts';
import { formatBytes } from '../session/units.ts';
import { type Finding, gpuFindings, notBuiltFinding, type Verdict } from './gpu-findings.ts';
import { jobFindings } from './job-findings.ts';

/** `gnnctl doctor`: what this machine has and lacks, with the command that gets it. */
export function addDoctor(program: Command, run: Run): void {
  program
    .command('doctor')
    .description(
      'check what this machine has and lacks for gnnd; exit code 1 when it lacks something',
    )
    .action(run(doctor));
}

const installPackages = 'sudo apt-get install';

async function doctor(session: Session): Promise<number> {
  const findings = [
    nodeFinding(process.versions.node),
    ...buildFindings(session.io.env),
    ...kernelFindings(),
    confinementFinding(session.io.env),
    diskFinding(packageRoot),
    ...cudaFindings(session.io.env),
    await daemonFinding(session),
    ...(await jobFindings(session)),
  ];
  printFindings(session, findings);
  const isMissing = findings.some(({ verdict }) => verdict === 'missing');
  return isMissing ? gnnctlExit.FAILURE : gnnctlExit.OK;
}

function ok(what: string, found: string): Finding {
  return { what, verdict: 'ok', found, command: '' };
}

export function nodeFinding(version: string): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major > 20 || (major === 20 && minor >= 17)) return ok('Node', version);
  const found = `${version}; gnnd needs 20.17 or later`;
  const command = 'nvm install 20, or see https://nodejs.org/en/download';
  return { what: 'Node', verdict: 'missing', found, command };
}

/** Compiler and PyTorch are needed to build; what is built needs PyTorch's libraries only. */
function buildFindings(env: Session['io']['env']): readonly Finding[] {
  const addons = ['gnnd_core.node', 'gnnd_train.node'];
  const absent = addons.filter((name) => !existsSync(builtPath(name, env)));
  const isBuilt = absent.length === 0;
  const addonsFinding: Finding = isBuilt
    ? ok('Native code', addons.join(', '))
    : {
        what: 'Native code',
        verdict: 'missing',
        found: `not built: ${absent.join(', ')}`,
        command: setupCommand,
      };
  if (isWheel) return [torchFinding(env), storeFinding(), addonsFinding];
  const needed: Verdict = isBuilt ? 'advice' : 'missing';
  return [
    toolFinding('C++ compiler', outputOf('c++', ['--version']), needed, `${installPackages} g++`),
    toolFinding(
      'Python',
      outputOf('python3', ['--version']),
      needed,
      `${installPackages} python3 python3-venv`,
    ),
    torchFinding(env),
    storeFinding(),
    addonsFinding,
  ];
}

function toolFinding(
  what: string,
  output: string | null,
  verdict: Verdict,
  command: string,
): Finding {
  const [first = ''] = (output ?? '').split('\n');
  if (output !== null) return ok(what, first);
  const found = verdict === 'missing' ? 'not found' : 'not found; only needed to build';
  return { what, verdict, found, command };
}

/** The Python whose PyTorch is used, found as the set-up finds it. */
function torchFinding(env: Session['io']['env']): Finding {
  const folders = [env['VIRTUAL_ENV'], env['CONDA_PREFIX'], join(packageRoot, '.venv')];
  const ofFolders = folders.flatMap((folder) => (folder ? [join(folder, 'bin', 'python')] : []));
  const pythons = [...(env['GNND_PYTHON'] ? [env['GNND_PYTHON']] : []), ...ofFolders];
  for (const python of pythons.filter((path) => existsSync(path))) {
    const version = torchVersionOf(python);
    if (version !== null) return ok('PyTorch', `${version} of ${python}`);
  }
  const found = 'no Python with torch: GNND_PYTHON, an active environment or .venv';
  return { what: 'PyTorch', verdict: 'missing', found, command: setupCommand };
}

/** Read from its metadata: importing torch takes seconds. */
function torchVersionOf(python: string): string | null {
  const code = 'from importlib.metadata import version; print(version("torch"))';
  return outputOf(python, ['-c', code]);
}

function storeFinding(): Finding {
  const what = 'SQLite';
  // Where npm has put it: beside an installed package, or inside it.
  const folders = [join(packageRoot, 'node_modules'), join(packageRoot, '..')];
  const addon = 'better-sqlite3/build/Release/better_sqlite3.node';
  if (folders.some((folder) => existsSync(join(folder, addon)))) {
    return ok(what, 'better-sqlite3 is built');
  }
  return { what, verdict: 'missing', found: 'better-sqlite3 is not built', command: setupCommand };
}

function kernelFindings(): readonly Finding[] {
  const findings: Finding[] = [];
  if (process.platform !== 'linux') {
    const found = `${process.platform}: gnnd needs Linux (memfd, futex)`;
    return [{ what: 'Kernel', verdict: 'missing', found, command: 'use a Linux machine' }];
  }
  const overcommit = textOf('/proc/sys/vm/overcommit_memory');
  if (overcommit === '2') {
    const found = 'vm.overcommit_memory is 2: sparse segments may be refused';
    const command = 'sudo sysctl vm.overcommit_memory=0';
    findings.push({ what: 'Shared memory', verdict: 'advice', found, command });
  } else findings.push(ok('Shared memory', `memfd, vm.overcommit_memory=${overcommit ?? '?'}`));
  findings.push(hugePageFinding(textOf('/sys/kernel/mm/transparent_hugepage/shmem_enabled')));
  return findings;
}

/**
 * `setting` as the kernel shows it: the one in force stands in brackets. Topology is put on huge
 * pages explicitly (MADV_COLLAPSE), which any setting but `deny` allows.
 */
export function hugePageFinding(setting: string | null): Finding {
  const what = 'Huge pages';
  const current = /\[(\w+)\]/.exec(setting ?? '')?.[1] ?? null;
  if (current !== null && current !== 'deny') return ok(what, 'offered for shared memory');
  const found = `shared memory: ${current ?? 'not offered'}; sampling works, somewhat slower`;
  if (current === null) return { what, verdict: 'advice', found, command: '' };
  const file = '/sys/kernel/mm/transparent_hugepage/shmem_enabled';
  return { what, verdict: 'advice', found, command: `echo advise | sudo tee ${file}` };
}

/** Tried in a child, as executors do it (native/core/base/confine.h). */
function confinementFinding(env: Session['io']['env']): Finding {
  const what = 'Confinement';
  const addon = builtPath('gnnd_core.node', env);
  const none = 'what runs in executors (plug-ins of users, too) can do all that gnnd may';
  if (!existsSync(addon)) {
    const found = 'not known before native code is built';
    return { what, verdict: 'advice', found, command: setupCommand };
  }
  const tries = `try { require(process.argv[1]).hostConfine(false); console.log('on'); }
    catch (error) { console.log(error.message); }`;
  const answer = outputOf(process.execPath, ['-e', tries, addon]);
  if (answer === 'on') return ok(what, 'executors start no programs, open no sockets (seccomp)');
  const found = `${answer ?? 'not to be tried'}: ${none}`;
  const command = "allow seccomp(2) to gnnd: a container's profile may forbid it";
  return { what, verdict: 'advice', found, command };
}

const gib = 2 ** 30;

function diskFinding(folder: string): Finding {
  const { bavail, bsize } = statfsSync(folder);
  const freeBytes = bavail * bsize;
  const what = 'Disk';
  const found = `${formatBytes(freeBytes)} free at ${folder}`;
  if (freeBytes >= 5 * gib) return ok(what, found);
  const verdict = freeBytes < gib ? 'missing' : 'advice';
  return { what, verdict, found: `${found}; set-up and demo take about 4 GiB`, command: 'df -h .' };
}

/** Asked of the plug-in in a child, as the daemon does when it starts. */
function cudaFindings(env: Session['io']['env']): readonly Finding[] {
  const plugin = builtPath('gnnd_cuda.so', env);
  const driver = /Module\s+([\d.]+)/.exec(textOf('/proc/driver/nvidia/version') ?? '')?.[1] ?? null;
  if (!existsSync(plugin)) return [notBuiltFinding(driver)];
  const answer = outputOf(builtPath('gnnd_probe', env), [plugin, '--open'], 60_000);
  const probe = answer === null ? null : readProbe(answer);
  if (probe === null || !needsTorch(probe)) return gpuFindings(probe, driver);
  const torch = outputOf(builtPath('gnnd_torch_probe', env), [], 60_000);
  return gpuFindings(
    withTorch(probe, torch ?? 'gnnd_torch_probe is missing, fails or takes over a minute'),
    driver,
  );
}

async function daemonFinding(session: Session): Promise<Finding> {
  const what = 'Daemon';
  const path = session.address.startsWith('unix:') ? session.address.slice('unix:'.length) : null;
  const start = serveCommand(session.address) ?? 'name its address: --address, or GNND_ADDRESS';
  if (path !== null && !existsSync(path)) {
    const found = `not running at ${session.address}`;
    return { what, verdict: 'advice', found, command: start };
  }
  if (path !== null && !isWritable(path)) {
    const found = `may not open ${path}`;
    return {
      what,
      verdict: 'advice',
      found,
      command: `sudo usermod -aG gnnd ${session.io.env['USER'] ?? '$USER'}`,
    };
  }
  try {
    const { version, ready } = await session.client.unary(
      HostService.method.getHost,
      {},
      { timeoutMs: session.timeoutMs ?? 3000 },
    );
    const state = ready ? 'ready' : 'not ready yet: gnnctl host status';
    return ok(what, `${version} at ${session.address}, ${state}`);
  } catch (error) {
    const found = `no answer at ${session.address}: ${printable(messageOf(error))}`;
    return { what, verdict: 'advice', found, command: start };
  }
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

function textOf(path: string): string | null {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return null;
  }
}

function outputOf(command: string, args: readonly string[], timeout = 10_000): string | null {
  const result = spawnSync(command, [...args], { encoding: 'utf8', timeout });
  return result.status === 0 ? result.stdout.trim() : null;
}

export function printFindings(session: Session, findings: readonly Finding[]): void {
  switch (session.format) {
    case 'json':
      session.print(JSON.stringify({ findings }, null, 2));
      return;
    case 'jsonl':
      for (const finding of findings) session.print(JSON.stringify(finding));
      return;
    case 'yaml':
      session.print(stringify({ findings }));
      return;
    case 'name':
      for (const { what, verdict } of findings) if (verdict === 'missing') session.print(what);
      return;
    case 'plain':
      for (const { what, verdict, found, command } of findings) {
        session.print([what, verdict, found, command].join('\t'));
      }
      return;
    default:
      printForPeople(session, findings);
  }
}

function printForPeople(session: Session, findings: readonly Finding[]): void {
  const { style, glyphs } = session;
  const marks: Readonly<Record<Verdict, string>> = {
    ok: style.green(padEnd(glyphs.check, 2)),
    advice: style.yellow(padEnd(glyphs.warn, 2)),
    missing: style.red(padEnd(glyphs.cross, 2)),
  };
  for (const { what, verdict, found, command } of findings) {
    session.print(`${marks[verdict]} ${padEnd(what, 14)} ${found}`);
    if (command !== '') session.print(`${' '.repeat(18)}${style.bold(command)}`);
  }
  const missing = findings.filter(({ verdict }) => verdict === 'missing');
  session.print('');
  if (missing.length === 0) session.print('Nothing that gnnd needs is missing.');
  else session.print(`Missing: ${missing.map(({ what }) => what).join(', ')}.`);
}
