import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { root } from './sources.ts';

/** A commit's title and body (CONTRIBUTING.md): only of those that were made on top of `base`. */

const base = '652539e241d1caaa701c9bae5f716c05e7b1c454';

interface Commit {
  readonly id: string;
  readonly title: string;
  readonly body: string;
}

function git(...args: readonly string[]): { readonly ok: boolean; readonly text: string } {
  const { status, stdout } = spawnSync('git', args, { cwd: root, encoding: 'utf8' });
  return { ok: status === 0, text: stdout ?? '' };
}

/** Commits that descend from `base`, without merges; null where that history is not there. */
function newCommits(): readonly Commit[] | null {
  if (!git('merge-base', '--is-ancestor', base, 'HEAD').ok) return null;
  const descend = ['--no-merges', '--ancestry-path', `${base}..HEAD`];
  const { text } = git('log', '--format=%h%x00%s%x00%b%x01', ...descend);
  return text
    .split('\x01')
    .map((entry) => entry.trim().split('\0'))
    .filter(([id]) => id !== undefined && id !== '')
    .map(([id = '', title = '', body = '']) => ({ id, title, body }));
}

function problemsOf({ title, body }: Omit<Commit, 'id'>): readonly string[] {
  const isSearchable = /^[a-z][\w., -]*: \S+( \S+){2,}$/.test(title);
  const words = body.split(/\s+/).filter((word) => word !== '');
  return [
    ...(isSearchable ? [] : ['a title is `area: what changes`, in three words or more']),
    ...(title.length <= 120 ? [] : [`the title has ${title.length} columns, at most 120`]),
    ...(words.length >= 8 ? [] : ['a body says why, in a sentence or more']),
  ];
}

describe('commits', () => {
  const commits = newCommits();
  const without = commits === null ? ` (skipped: a clone without ${base}, or no clone)` : '';

  it.skipIf(commits === null)(`say what changes, and why${without}`, () => {
    const wrong = (commits ?? []).flatMap((commit) =>
      problemsOf(commit).map((problem) => `${commit.id} ${commit.title}: ${problem}`),
    );
    expect(wrong.join('\n')).toBe('');
  });
});

describe('the check', () => {
  const body = 'Lines of 130 columns could not be read beside code.';

  it.each([
    ['merge things', body, 'area: what changes'],
    ['docs: words', body, 'three words'],
    [`docs: ${'long '.repeat(30)}title`, body, 'at most 120'],
    ['docs: decisions wrap at 100 columns', '', 'says why'],
    ['docs: decisions wrap at 100 columns', 'Also this.', 'says why'],
  ])('refuses: %s', (title, said, problem) => {
    expect(problemsOf({ title, body: said }).join('\n')).toContain(problem);
  });

  it('lets pass what says both', () => {
    expect(problemsOf({ title: 'docs: decisions wrap at 100 columns', body })).toEqual([]);
  });
});
