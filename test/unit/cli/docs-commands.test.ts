import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readSpec } from '../../../src/cli/read/spec-file.ts';
import { problemWith } from '../../support/commands.ts';

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
