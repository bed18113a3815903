import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { configKeys } from '../../../src/config/daemon-config.ts';
import { specLeaves } from '../../../src/spec/spec-fields.ts';
import { type Advice, commandsIn, pythonTexts, textsOf } from '../../support/advice.ts';
import { optionNames, problemWith } from '../../support/commands.ts';
import { readSources, root } from './sources.ts';

/** What texts tell people to type is taken as it stands; test/e2e/advice.test.ts types some. */

const sources = readSources(/^src\/.*\.(tsx?|py)$|^deploy\/[^.]*\.mjs$/);
const told = sources.flatMap(({ path, text }) =>
  (path.endsWith('.py') ? pythonTexts(text) : textsOf(path, text)).map((said) => ({ path, said })),
);
const python = sources.filter(({ path }) => path.endsWith('.py')).map(({ text }) => text);
const { scripts }: { readonly scripts: Readonly<Record<string, string>> } = JSON.parse(
  readFileSync(join(root, 'package.json'), 'utf8'),
);
const options = new Set([...optionNames(), '--logdir', '--sim']);
const groups = new Set(specLeaves.map(({ path }) => path.split('.')[0] ?? ''));
const variables = new Set([
  ...configKeys.map(({ name }) => `GNND_${name.toUpperCase()}`),
  ...sources
    .flatMap(({ text }) => [...text.matchAll(/\b(?:env|environ)\b.*?(GNND_\w+)/g)])
    .map(([, name = '']) => name),
]);

/** Each kind of thing that a text tells people to use, and why one of it would fail. */
const kinds: readonly {
  readonly what: RegExp;
  readonly problem: (...found: readonly string[]) => string | null;
}[] = [
  {
    what: /\bnpm run (\S+?)(?=[;:,.)]|$| )/g,
    problem: (name) => (name in scripts ? null : `package.json has no script ${name}`),
  },
  {
    what: /(?<![\w-])(--[a-z][a-z-]+)(?=[ ,:;=)]|$)/g,
    problem: (flag) => (options.has(flag) ? null : `nothing here has an option ${flag}`),
  },
  {
    what: /\b(docs\/[\w-]+\.md)(?:, "([^"]+)")?/g,
    problem: (page, section) => pageProblem(page, section),
  },
  {
    what: /\b(GNND_[A-Z_]+)\b/g,
    problem: (name) => (variables.has(name) ? null : `nothing reads ${name}`),
  },
  {
    what: /\b(?:client|gnnd)\.([a-z]\w+)\(/g,
    problem: (name) =>
      python.some((text) => text.includes(`def ${name}(`)) ? null : `Python has no ${name}`,
  },
  {
    what: /\b(?:spec\.)?([a-z]+(?:\.[a-z_]+)+)(?![\w(/])(?<!\.(?:json|md|yaml|npy|log|test))/g,
    problem: (path) => fieldProblem(path),
  },
];

function pageProblem(page: string, section: string | undefined): string | null {
  if (!existsSync(join(root, page))) return `there is no ${page}`;
  const headings = readFileSync(join(root, page), 'utf8').match(/^#+ .*/gm) ?? [];
  const isThere = headings.some((line) => line.replace(/^#+ /, '') === section);
  return section === undefined || isThere ? null : `${page} has no section ${section}`;
}

function fieldProblem(path: string): string | null {
  if (!groups.has(path.split('.')[0] ?? '')) return null;
  const isThere = specLeaves.some((leaf) => `${leaf.path}.`.startsWith(`${path}.`));
  return isThere ? null : `the job spec has no ${path}`;
}

/** Why somebody who does what `text` says would be refused. */
function problemsIn(text: string): readonly string[] {
  const ofCommands = commandsIn(text).map((advice) => {
    const problem = problemWith(advice.line) ?? proseIn(advice);
    return problem === null ? null : `${advice.line}: ${problem}`;
  });
  // A flag alone is an argument for a program, and no sentence.
  const isSentence = text.trim().includes(' ');
  const ofOthers = kinds.flatMap(({ what, problem }) =>
    isSentence ? [...text.matchAll(what)].map(([, ...found]) => problem(...found)) : [],
  );
  return [...ofCommands, ...ofOthers].filter((problem) => problem !== null);
}

function proseIn({ bare }: Advice): string | null {
  return bare.length === 0 ? null : `${bare.join(', ')}: a sentence where an argument is expected`;
}

describe('texts of the sources', () => {
  it('advise what is taken as it is typed', () => {
    expect(told.flatMap(({ said }) => commandsIn(said)).length).toBeGreaterThan(40);
    const wrong = told.flatMap(({ path, said }) =>
      problemsIn(said).map((problem) => `${path}: ${problem}`),
    );
    expect(wrong.join('\n')).toBe('');
  });
});

describe('the check', () => {
  it.each([
    ['go on with: gnnctl job wach x', 'job has no command wach'],
    ['gnnctl jbo list shows them', 'gnnctl has no command jbo'],
    ['`gnnd token create NAME` makes one', 'create needs --role'],
    ['gnnctl predict makes an inference', 'a sentence where an argument'],
    ['gnnctl dataset import --task, or not', 'import'],
    ['start one: npx gnnd serv --listen unix:/a', 'gnnd has no command serv'],
    ['npm run set-up gets it', 'no script set-up'],
    ['expected a size (--memroy SIZE)', 'option --memroy'],
    ['see docs/api.md, "No such part"', 'no section'],
    ['set GNND_ADRESS to it', 'nothing reads GNND_ADRESS'],
    ['client.import_graph(path) reads it', 'no import_graph'],
    ['set training.epoch_count', 'no training.epoch_count'],
  ])('refuses: %s', (text, problem) => {
    expect(problemsIn(text).join('\n')).toContain(problem);
  });

  it.each([
    'gnnd reads no edge features',
    'watch it with: gnnctl job watch first; it goes on',
    'gnnctl shows what gnnd does',
    'set training.epochs, or spec.model.hidden_dim (docs/api.md, "Errors")',
  ])('lets pass: %s', (text) => {
    expect(problemsIn(text)).toEqual([]);
  });
});
