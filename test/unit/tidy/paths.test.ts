import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  backtickViolations,
  commentViolations,
  expanded,
  linkViolations,
  Paths,
} from './path-rules.ts';
import { listed, ownPaths, readSources, root } from './sources.ts';

const paths = new Paths(ownPaths());
const pages = readSources(/^(docs\/.*|bench\/.*|src\/python\/.*|[A-Z]+)\.md$/);
const texts = new Map(pages.map(({ path, text }) => [path, text]));

describe('pages', () => {
  it('name files that exist', () => {
    expect(pages.length).toBeGreaterThan(90);
    expect(listed(pages.flatMap((page) => backtickViolations(page, paths)))).toBe('');
  });

  it('link to files and headings that exist', () => {
    expect(listed(pages.flatMap((page) => linkViolations(page, paths, texts)))).toBe('');
  });
});

describe('the walk of docs/architecture.md', () => {
  const rows = (texts.get('docs/architecture.md') ?? '').matchAll(
    /^\| (\d+) \| `([^`]+)` \| .* \| (.*) \|$/gm,
  );
  const walk = [...rows].map(([, number, file = '', calls = '']) => ({
    number: Number(number),
    file,
    calls: [...calls.matchAll(/`([^`]+)`/g)].map(([, call = '']) => call),
  }));

  it('has at most 18 files', () => {
    expect(walk.length).toBeGreaterThan(10);
    expect(walk.length).toBeLessThanOrEqual(18);
    expect(walk.map(({ number }) => number)).toEqual(walk.map((_, index) => index + 1));
  });

  it.each(walk)('leaves $file by the calls that it says', ({ file, calls }) => {
    expect(calls).not.toEqual([]);
    const text = readFileSync(join(root, file), 'utf8');
    expect(calls.filter((call) => !text.includes(call))).toEqual([]);
  });
});

describe('comments of sources', () => {
  it('name files that exist', () => {
    const sources = readSources(
      /^(src|native|test|bench|deploy|proto)\/.*\.(ts|tsx|mjs|py|h|cc|cuh?|proto)$/,
    );
    const own = sources.filter(({ path }) => !/^test\/unit\/tidy\/(path|exports)/.test(path));
    expect(own.length).toBeGreaterThan(500);
    expect(listed(own.flatMap((source) => commentViolations(source, paths)))).toBe('');
  });
});

describe('the check', () => {
  const few = new Paths(['src/a.ts', 'docs/b.md', 'native/core/draw/c.h']);
  const page = (text: string) => ({ path: 'docs/b.md', text });

  it.each([
    ['`src/none.ts`', 'there is no src/none.ts'],
    ['`src/{a,d}.ts`', 'there is no src/d.ts'],
    ['`src/*.cc`', 'there is no src/*.cc'],
    ['`none_test.cc`', 'there is no none_test.cc'],
    ['`node src/none.mjs --x`', 'there is no src/none.mjs'],
  ])('refuses %s', (text, message) => {
    expect(listed(backtickViolations(page(text), few))).toBe(`docs/b.md:1: ${message}`);
  });

  it.each(['`src/a.ts`', '`src/`', '`src/<name>.ts`', '`src/*.ts`', '`c.h`', '`model.npy`'])(
    'lets pass %s',
    (text) => {
      expect(backtickViolations(page(text), few)).toEqual([]);
    },
  );

  it('refuses links to files and headings that are not there', () => {
    const text = '# One thing\n[a](#one-thing) [b](../src/a.ts) [c](#two) [d](none.md)';
    const found = linkViolations(page(text), few, new Map([['docs/b.md', text]]));
    expect(found.map(({ message }) => message)).toEqual([
      'docs/b.md has no #two',
      'there is no docs/none.md',
    ]);
  });

  it('refuses comments that name files that are not there', () => {
    const text = '// core/draw/c.h has it\nint x;  // as core/draw/gone.h\n" src/none.ts"';
    const found = commentViolations({ path: 'native/x.cc', text }, few);
    expect(listed(found)).toBe('native/x.cc:2: there is no core/draw/gone.h');
  });

  it('reads braces as choices', () => {
    expect(expanded('a/{b,c}_{d,e}.ts')).toHaveLength(4);
  });
});
