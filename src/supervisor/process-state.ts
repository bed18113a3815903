import { appendFileSync, readdirSync, readFileSync } from 'node:fs';

/** What the kernel says of a process of ours; nothing where it is gone. */

export interface ProcessState {
  /** Whether a signal or a debugger stopped the process. */
  readonly isStopped: boolean;
  /** CPU time of all its threads so far. */
  readonly cpuMs: number;
}

/** USER_HZ: what the kernel counts in towards programs, whatever it uses itself. */
const msPerTick = 10;
/** Counted from behind the command, which may hold anything (proc(5)). */
const stateAt = 0;
const utimeAt = 11;
const stimeAt = 12;

export function processState(pid: number): ProcessState | null {
  const text = read(`/proc/${pid}/stat`);
  if (text === null) return null;
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const state = fields[stateAt] ?? '';
  const ticks = Number(fields[utimeAt]) + Number(fields[stimeAt]);
  return { isStopped: state === 'T' || state === 't', cpuMs: ticks * msPerTick };
}

const threadsMax = 256;
/** Half of what a record keeps of a log: the other half is the program's own last words. */
const dumpMax = 2048;
const framesMax = 5;

/**
 * Where the threads of a process are, as far as the kernel tells: state, the function of the kernel
 * in which they sleep, the call that they made, and the kernel's stack where that may be read.
 * Threads at the same place share a line, the fewest first.
 */
export function processDump(pid: number): string {
  const threads = list(`/proc/${pid}/task`).slice(0, threadsMax);
  const places = new Map<string, string[]>();
  for (const thread of threads) {
    const place = placeOf(`/proc/${pid}/task/${thread}`);
    places.set(place, [...(places.get(place) ?? []), thread]);
  }
  const groups = [...places].sort(([, one], [, other]) => one.length - other.length);
  const lines = groups.map(([place, ids]) => {
    const others = ids.length > 1 ? ` and ${ids.length - 1} more` : '';
    return `thread ${ids[0]}${others}: ${place}\n`;
  });
  return lines.join('').slice(0, dumpMax);
}

function placeOf(folder: string): string {
  const of = (name: string) => (read(`${folder}/${name}`) ?? '?').trim();
  const state = /^State:\s*(\S)/m.exec(of('status'))?.[1] ?? '?';
  const frames = [...(read(`${folder}/stack`) ?? '').matchAll(/^\[<\S+>\] (\w+)/gm)];
  const names = frames.slice(0, framesMax).map(([, name]) => name);
  const stack = names.length === 0 ? '' : `, stack ${names.join(' < ')}`;
  // Only the call's number: its arguments would tell threads apart that do the same.
  const [call = '?'] = of('syscall').split(' ');
  return `${of('comm')}, ${state}, in ${of('wchan')}, call ${call}${stack}`;
}

/** Into its own log, where its last lines are looked for. */
export function noteDump(pid: number, logPath: string, why: string): void {
  try {
    appendFileSync(logPath, `gnnd.dump ${pid} ${why}\n${processDump(pid)}`);
  } catch {
    // A full disk: the kill does not wait for it.
  }
}

function read(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}

function list(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
