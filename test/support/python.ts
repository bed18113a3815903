import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { repository } from './daemon.ts';

/** Python for tests: an interpreter that has a module, and a client environment with our stubs. */

const run = promisify(execFile);
const outputBytesMax = 8 * 1024 * 1024;

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

/** What the interpreter printed. Rejects with all it said when it fails. */
export async function runPython(
  python: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  try {
    const { stdout } = await run(python, args, {
      env: { ...process.env, ...env },
      maxBuffer: outputBytesMax,
    });
    return stdout;
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    const said = `${stdout}${stderr}`.trim();
    throw new Error(`${python} ${args.join(' ')}: ${said}`, { cause: error });
  }
}

export interface PythonClient {
  readonly python: string;
  /** For PYTHONPATH: what grpcio-tools makes of proto/. */
  readonly stubs: string;
}

/**
 * The virtual environment that set-up makes of requirements.txt, and stubs generated from proto/,
 * anew each time. Null where set-up could not get the packages.
 */
export async function pythonClient(): Promise<PythonClient | null> {
  const folder = join(repository, '.cache', 'python-client');
  const python = join(folder, 'bin', 'python');
  if (!existsSync(python)) return null;
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

/** Where set-up puts torch_geometric, for PYTHONPATH. */
const geometricPackages = join(repository, '.cache', 'pyg');

/** Runs a Python that has torch and torch_geometric; null where set-up could not get it. */
export async function geometricPython(): Promise<
  ((args: readonly string[]) => Promise<string>) | null
> {
  const python = await findPython('torch');
  if (python === null) return null;
  const run = (args: readonly string[]) =>
    runPython(python, args, { PYTHONPATH: geometricPackages });
  return run(['-c', 'import torch_geometric']).then(
    () => run,
    () => null,
  );
}
