// What every step of set-up is made of: it says what it does, runs commands, and does nothing when
// its inputs did not change.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The clone, or the installed package. */
export const root = dirname(dirname(fileURLToPath(import.meta.url)));
/** An installed package has what was compiled, and no TypeScript. */
export const isClone = existsSync(join(root, 'src/main.ts'));
const startedMs = Date.now();
let announced = false;

export const wasAnnounced = () => announced;

/** Ends with a sentence for people and the command that helps. */
export class SetupError extends Error {
  constructor(message, command) {
    super(command === undefined ? message : `${message}\n\n    ${command}\n`);
  }
}

export function say(step, text) {
  if (!announced) {
    announced = true;
    tell(
      `Setting up gnnd in ${isClone ? 'this folder' : root} (the first time takes some minutes)`,
    );
  }
  const seconds = String(Math.round((Date.now() - startedMs) / 1000)).padStart(4);
  tell(`${seconds}s  ${step.padEnd(11)} ${text}`);
}

/** npm keeps what an install script says to itself, so that minutes would pass in silence. */
const isUnheard = process.env.npm_lifecycle_event === 'postinstall' && !process.stderr.isTTY;
let terminal = null;

function tell(line) {
  process.stderr.write(`${line}\n`);
  if (!isUnheard) return;
  try {
    terminal ??= openSync('/dev/tty', 'w');
    writeSync(terminal, `\r${line}\u001b[K\n`);
  } catch {
    // There is none.
  }
}

/** How long a command may say nothing before we say that it lives. */
const silenceMs = 30_000;

/**
 * Runs a command; shows that it lives; on failure shows the end of what it printed. A `listener`
 * hears all of it, and puts the last line and the milliseconds so far into words.
 */
export function run(step, command, args, options = {}) {
  return new Promise((done, fail) => {
    const child = spawn(command, args, {
      cwd: options.cwd ?? root,
      env: { ...process.env, ...options.env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    const startMs = Date.now();
    let shownMs = startMs;
    // A compiler of one large file says nothing for minutes.
    const silence = setInterval(() => {
      if (Date.now() - shownMs < silenceMs) return;
      shownMs = Date.now();
      say(step, `… at it for ${Math.round((shownMs - startMs) / 1000)} s`);
    }, silenceMs / 3);
    const take = (data) => {
      options.listener?.hear(String(data));
      output = (output + data).slice(-20_000);
      if (Date.now() - shownMs < 10_000) return;
      shownMs = Date.now();
      // pip warns of what it does without, which is no news of what it does.
      const lines = output.split('\n').filter((line) => !/^\s*$|^WARNING: /.test(line));
      if (lines.length === 0) return;
      const last = lines.at(-1).trim().slice(0, 90);
      say(step, `… ${options.listener?.words(last, shownMs - startMs) ?? last}`);
    };
    child.stdout.on('data', take);
    child.stderr.on('data', take);
    child.on('error', (error) => {
      clearInterval(silence);
      fail(new SetupError(`${command}: ${error.message}`));
    });
    child.on('close', (code, signal) => {
      clearInterval(silence);
      if (code === 0) {
        done(output);
        return;
      }
      const tail = output.trim().split('\n').slice(-40).join('\n');
      const why = `${step} failed (${signal ?? `exit ${code}`}): ${command} ${args.join(' ')}`;
      fail(new SetupError(`${tail}\n\n${why}`));
    });
  });
}

export function outputOf(command, args = ['--version'], env = {}) {
  const result = spawnSync(command, args, {
    ...{ encoding: 'utf8', maxBuffer: 2 ** 26 },
    env: { ...process.env, ...env },
  });
  return result.status === 0 ? result.stdout.trim() : null;
}

function filesUnder(path) {
  return readdirSync(path, { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const full = join(path, entry.name);
      return entry.isDirectory() ? filesUnder(full) : [full];
    });
}

/** SHA-256 over the files (or all files under the folders) of `paths`, and `words`. */
export function digestOf({ folders = [], files = [], words = [] }) {
  const hash = createHash('sha256');
  for (const word of words) hash.update(`${word}\0`);
  const all = [...folders.filter(existsSync).flatMap(filesUnder), ...files.filter(existsSync)];
  for (const path of all) {
    hash.update(`${path}\0`);
    hash.update(readFileSync(path));
  }
  return hash.digest('hex');
}

/** Runs `work` unless `digest` is what it was when it last succeeded and `products` are there. */
export async function once(name, digest, products, work) {
  const stamp = join(root, '.cache', `${name}.stamp`);
  const isThere = products.every(existsSync) && existsSync(stamp);
  if (isThere && readFileSync(stamp, 'utf8') === digest) return;
  rmSync(stamp, { force: true });
  await work();
  mkdirSync(dirname(stamp), { recursive: true });
  writeFileSync(stamp, digest);
}
