import { codeOnly, type Source } from './sources.ts';

/** What the daemon and its executors log, as it stands in the code and in docs/logging.md. */

export interface LogEvent {
  readonly name: string;
  readonly level: string;
  /** Names of fields that are written out; sorted. */
  readonly fields: readonly string[];
  /** Whether an object of others is spread among them, or stands for all of them. */
  readonly hasMore: boolean;
  readonly path: string;
}

const call = /\blog\.(debug|info|warn|error)\(\s*'([^']*)'|\blog\[([^\]]*)\]\(\s*'([^']*)'/g;

/** Levels in `log[bad ? 'warn' : 'info']`, or in a name that was given such a choice. */
function levelsIn(choice: string, text: string): string {
  const words = (from: string) => [...from.matchAll(/'(\w+)'/g)].map(([, word]) => word);
  const own = words(choice);
  const given = new RegExp(`const ${choice} = ([^;]*);`).exec(text)?.[1] ?? '';
  return [...new Set(own.length > 0 ? own : words(given))].sort().join(', ');
}

/** Every call of a log whose first argument is a text. */
export function eventsIn({ path, text }: Source): readonly LogEvent[] {
  // Strings are blanked there, at the same offsets: brackets in them do not count.
  const code = codeOnly(text, 'ts');
  return [...text.matchAll(call)]
    .filter(({ index }) => code.startsWith('log', index))
    .map((match) => {
      const after = match.index + match[0].length;
      const end = endOf(code, after);
      const fields = fieldsOf(code.slice(after, end).replace(/^,/, '').trim());
      const [, only, named = '', choice = '', chosen = ''] = match;
      const level = only ?? levelsIn(choice, text);
      const name = only === undefined ? chosen : named;
      return { name, level, path, ...fields };
    });
}

/** Where the bracket closes that is open at `start`. */
function endOf(code: string, start: number): number {
  let depth = 1;
  let at = start;
  for (; depth > 0 && at < code.length; at += 1) {
    const letter = code.charAt(at);
    if ('([{'.includes(letter)) depth += 1;
    else if (')]}'.includes(letter)) depth -= 1;
  }
  return at - 1;
}

function fieldsOf(argument: string): Pick<LogEvent, 'fields' | 'hasMore'> {
  const given = argument.replace(/,\s*$/, '');
  if (given === '') return { fields: [], hasMore: false };
  if (!given.startsWith('{')) return { fields: [], hasMore: true };
  const parts = topLevelParts(given.slice(1, -1));
  const fields = parts.filter((part) => !part.startsWith('...'));
  return {
    fields: fields.map((part) => /^\w+/.exec(part)?.[0] ?? part).sort(),
    hasMore: fields.length < parts.length,
  };
}

function topLevelParts(list: string): readonly string[] {
  const parts: string[] = [];
  let start = 0;
  let depth = 0;
  [...`${list},`].forEach((letter, at) => {
    if ('([{'.includes(letter)) depth += 1;
    else if (')]}'.includes(letter)) depth -= 1;
    else if (letter === ',' && depth === 0) {
      parts.push(list.slice(start, at).trim());
      start = at + 1;
    }
  });
  return parts.filter((part) => part !== '');
}

/** Rows of the page's tables: `event`, level, `field` … */
export function eventsOfPage(page: string): ReadonlyMap<string, Omit<LogEvent, 'path' | 'name'>> {
  const rows = page.matchAll(/^\| `([a-z]+\.[a-z_]+)` \| ([a-z, ]+) \| ([^|]*) \|/gm);
  return new Map(
    [...rows].map(([, name = '', level = '', cell = '']) => {
      const fields = [...cell.matchAll(/`(\w+)`/g)].map(([, field = '']) => field).sort();
      return [name, { level: level.trim(), fields, hasMore: false }];
    }),
  );
}
