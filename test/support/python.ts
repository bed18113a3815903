import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { messageOf } from '../../src/base/errors.ts';
import { repository } from './daemon.ts';

/** Python for tests: an interpreter that has a module, and a client environment with our stubs. */

const run = promisify(execFile);
const outputBytesMax = 8 * 1024 * 1024;
/** An index that does not answer is one that cannot be reached. */
const installTimeoutMs = 240_000;

export const pythonScripts = join(repository, 'test', 'e2e', 'python');

/** The first interpreter that can import `module`; null when none can. */
export async function findPython(module: string): Promise<string | null> {
  const candidates = [process.env['GNND_PYTHON'], join(repository, '.venv/bin/python'), 'python3'];
  for (const python of candidates) {
    if (python === undefined || python === '') continue;
    try {
      await runPython(python, ['-c', `import ${module}`]);
      return python;
    } catch {
      // The next one may have it.
    }
  }
  return null;
}

/** What the interpreter printed. Rejects with all it said when it fails; 0 ms is no limit. */
export async function runPython(
  python: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  timeoutMs = 0,
): Promise<string> {
  try {
    const { stdout } = await run(python, args, {
      env: { ...process.env, ...env },
      maxBuffer: outputBytesMax,
      timeout: timeoutMs,
    });
    return stdout;
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    const said = `${stdout}${stderr}`.trim();
    throw new Error(`${python} ${args.join(' ')}: ${said}`, { cause: error });
  }
}

/** This machine cannot make the environment: a reason to skip, where all else is a failure. */
export class PythonMissing extends Error {}

export interface PythonClient {
  readonly python: string;
  /** For PYTHONPATH: what grpcio-tools makes of proto/. */
  readonly stubs: string;
}

/**
 * A virtual environment with the packages of requirements.txt, and stubs generated from proto/.
 * The environment is kept in .cache; the stubs are made anew each time. Rejects with PythonMissing
 * where there is no Python or pip cannot get the packages.
 */
export async function pythonClient(): Promise<PythonClient> {
  const folder = join(repository, '.cache', 'python-client');
  const python = await clientEnvironment(folder);
  const stubs = join(folder, 'stubs');
  rmSync(stubs, { recursive: true, force: true });
  mkdirSync(stubs);
  const protos = join(repository, 'proto');
  const files = readdirSync(join(protos, 'gnnd', 'v1')).filter((name) => name.endsWith('.proto'));
  const outputs = [`--python_out=${stubs}`, `--grpc_python_out=${stubs}`];
  const sources = files.sort().map((name) => `gnnd/v1/${name}`);
  await runPython(python, ['-m', 'grpc_tools.protoc', `-I${protos}`, ...outputs, ...sources]);
  return { python, stubs };
}

async function clientEnvironment(folder: string): Promise<string> {
  const requirements = join(pythonScripts, 'requirements.txt');
  const environment = join(folder, 'venv');
  const python = join(environment, 'bin', 'python');
  const stamp = join(folder, 'installed');
  const wanted = createHash('sha256').update(readFileSync(requirements)).digest('hex');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return python;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  try {
    await runPython('python3', ['-m', 'venv', environment]);
    const install = ['-m', 'pip', 'install', '--quiet', '--retries', '1', '-r', requirements];
    await runPython(python, install, {}, installTimeoutMs);
  } catch (error) {
    throw new PythonMissing(messageOf(error), { cause: error });
  }
  writeFileSync(stamp, wanted);
  return python;
}
