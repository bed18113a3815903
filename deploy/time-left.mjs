// How long a native build has to go, for people who wait for it.

/**
 * Processor time of a step beside that of one that includes no library, as measured: what includes
 * torch or Node's C++, or unrolls loops for wide vectors, takes several times as long.
 */
const weights = [
  { having: /spmm_loops/, weight: 8 },
  { having: /_addon[.]dir/, weight: 3 },
  { having: /gnnd_train|torch_probe/, weight: 3 },
];
const weightOf = (step) => weights.find(({ having }) => having.test(step))?.weight ?? 1;

/**
 * Listens to a build, of which `commands` are all commands, of a first build or of a later one:
 * what it printed last becomes how far it is.
 */
export function timeLeft(commands) {
  const all = commands.split('\n').map(weightOf);
  const mean = all.reduce((sum, weight) => sum + weight, 0) / all.length;
  let rest = '';
  let done = 0;
  return {
    hear(text) {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) if (line.startsWith('[')) done += weightOf(line);
    },
    words(line, ms) {
      const [, finished, steps] = /^\[(\d+)\/(\d+)\] /.exec(line) ?? [];
      if (steps === undefined || done === 0) return line;
      const seconds = (Math.max(0, Number(steps) * mean - done) * ms) / done / 1000;
      const left =
        seconds < 90 ? `${Math.ceil(seconds / 10)}0 s` : `${Math.round(seconds / 60)} min`;
      return `${finished} of ${steps} steps, about ${left} left`;
    },
  };
}
