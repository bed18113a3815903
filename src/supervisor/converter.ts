import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { createInterface } from 'node:readline';
import { packageRoot, setupCommand } from '../base/package-root.ts';
import type { Converted } from '../datasets/converted-formats.ts';
import type { SourceConversion, TaskWatch } from '../datasets/data-tasks.ts';
import { badFile, ProblemList } from '../datasets/problems.ts';
import { withinRoot } from '../datasets/source-root.ts';

/**
 * Has Python read a source (src/python/gnnd_formats), in a process that ends with the daemon or
 * with the import. No code of the source is run in it.
 */

/** What is kept of an error that the converter did not expect. */
const errorCharsMax = 2000;

/** A line of the converter. */
type Line =
  | { readonly progress: number; readonly message: string }
  | { readonly notice: string }
  | { readonly path: string; readonly description: string };

/** Fills `folder`, which is empty, with arrays. Throws ImportFailure for what is wrong. */
export async function convertSource(
  conversion: SourceConversion,
  watch: TaskWatch,
): Promise<Converted> {
  const { source, root } = conversion;
  const { signal } = watch;
  return await withinRoot({ root, source, signal }, () => convert(conversion, watch));
}

async function convert(
  { format, source, directed, folder }: SourceConversion,
  { progress, signal }: TaskWatch,
): Promise<Converted> {
  signal.throwIfAborted();
  const args = ['-s', '-m', 'gnnd_formats', '--parent', String(process.pid)];
  if (directed) args.push('--directed');
  const child = spawn(pythonPath(), [...args, format, source, folder], {
    cwd: folder,
    env: {
      ...{ PATH: process.env['PATH'], LANG: 'C.UTF-8', TMPDIR: folder, HOME: folder },
      ...{ PYTHONPATH: join(packageRoot, 'dist', 'python'), PYTHONDONTWRITEBYTECODE: '1' },
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const kill = () => void child.kill('SIGKILL');
  signal.addEventListener('abort', kill);
  const ended = new Promise<number | null>((done, fail) => {
    child.on('error', fail);
    child.on('close', done);
  });
  // Whoever waits for lines first must not leave a failed start unheard.
  ended.catch(() => {});
  let said = '';
  child.stderr.on('data', (data: Buffer) => {
    said = (said + data.toString('utf8')).slice(-errorCharsMax);
  });
  const problems = new ProblemList();
  const notices: string[] = [];
  try {
    for await (const text of createInterface({ input: child.stdout })) {
      const line: Line = JSON.parse(text);
      if ('progress' in line) progress(line.progress, line.message);
      else if ('notice' in line) notices.push(line.notice);
      else problems.add(line.path, line.description);
    }
    const code = await ended;
    signal.throwIfAborted();
    problems.throwIfAny();
    if (code === 0) return { folder, notices };
    const last = said.trim().split('\n').at(-1) ?? '';
    const why = last === '' ? `its reader ended with ${code ?? 'a signal'}` : last;
    throw badFile(basename(source), `cannot be read as ${format}: ${why}`);
  } finally {
    signal.removeEventListener('abort', kill);
    kill();
  }
}

/** The Python that set-up linked gnnd to, which has torch and numpy. */
function pythonPath(): string {
  const { GNND_PYTHON } = process.env;
  if (GNND_PYTHON !== undefined && GNND_PYTHON !== '') return GNND_PYTHON;
  const note = join(packageRoot, 'build', 'python.txt');
  if (existsSync(note)) return readFileSync(note, 'utf8').trim();
  throw badFile('python', `set-up has not said which Python there is: run ${setupCommand}`);
}
