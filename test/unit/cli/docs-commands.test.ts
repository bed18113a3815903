import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { addCommands } from '../../../src/cli/program.ts';
import { readSpec } from '../../../src/cli/read/spec-file.ts';
import { program as gnnd } from '../../../src/serve.ts';

/** Every command that a page shows is there, with the flags and values that it is given. */

const root = new URL('../../../', import.meta.url).pathname;
const pages = [
  'README.md',
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md') && !name.startsWith('decisions'))
    .map((name) => join('docs', name)),
].map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }));

/** Indented lines that run gnnctl or gnnd, joined, without comments; no synopses. */
function commandsIn(text: string): readonly string[] {
  const joined = text.replaceAll(/\\\n\s*/g, ' ');
  const found = joined.matchAll(/^ {4}(?:exec )?(?:npx )?(gnnctl|gnnd) ([^[\n]+)$/gm);
  return [...found].map(([, name, rest = '']) =>
    `${name} ${rest.split(/ +# | \| | 2?> /)[0]}`.trim(),
  );
}

/** As a shell splits them; nothing on our pages has more than quotes. */
function wordsOf(line: string): readonly string[] {
  return [...line.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(
    ([, single, double, plain]) => single ?? double ?? plain ?? '',
  );
}

/** Null where `command` takes these words. */
function problemOf(command: Command, words: readonly string[]): string | null {
  command.exitOverride().configureOutput({ writeErr: () => {} });
  try {
    const { operands, unknown } = command.parseOptions([...words]);
    const [first = '', ...others] = operands;
    const sub = command.commands.find((each) => each.name() === first);
    if (sub !== undefined) return problemOf(sub, [...others, ...unknown]);
    if (command.commands.length > 0) return `${command.name()} has no command ${first}`;
    if (unknown.length > 0) return `${command.name()} has no option ${unknown[0]}`;
    const takes = command.registeredArguments;
    const least = takes.filter(({ required }) => required).length;
    const most = takes.at(-1)?.variadic === true ? Number.POSITIVE_INFINITY : takes.length;
    const isRight = operands.length >= least && operands.length <= most;
    return isRight ? null : `${command.name()} takes ${least} to ${most} arguments`;
  } catch (error) {
    return String(error);
  }
}

function problemWith(line: string): string | null {
  const [name, ...words] = wordsOf(line);
  const program = name === 'gnnd' ? gnnd : addCommands(new Command('gnnctl'), () => async () => {});
  return problemOf(program, words);
}

describe('pages', () => {
  it('show commands that there are', () => {
    const lines = pages.flatMap(({ path, text }) =>
      commandsIn(text).map((line) => ({ path, line })),
    );
    expect(lines.length).toBeGreaterThan(40);
    const wrong = lines.map((shown) => ({ ...shown, problem: problemWith(shown.line) }));
    expect(wrong.filter(({ problem }) => problem !== null)).toEqual([]);
  });

  it('show spec files that are read', () => {
    const files = pages.flatMap(({ path, text }) =>
      [...text.matchAll(/```yaml\n(.*?)```/gs)].map(([, block = '']) => ({ path, block })),
    );
    expect(files.length).toBeGreaterThan(6);
    for (const { path, block } of files) {
      expect(readSpec({ file: path, text: block }), `${path}\n${block}`).toHaveProperty('ok');
    }
  });
});

describe('the check', () => {
  it('refuses a command, a flag, a value and an argument that is not there', () => {
    for (const [line, problem] of [
      ['gnnctl job creat -f job.yaml', 'job has no command creat'],
      ['gnnctl job create -f job.yaml --dry', 'create has no option --dry'],
      ['gnnctl predict JOB --nodes some', "'some' is invalid"],
      ['gnnctl checkpoint export JOB', 'export takes 2 to 2 arguments'],
      ['gnnd serve --port 1', 'serve has no option --port'],
    ] as const) {
      expect(problemWith(line), line).toContain(problem);
    }
    expect(problemWith('gnnctl --address unix:/a job list -o json')).toBe(null);
  });
});
