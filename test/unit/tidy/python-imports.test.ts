import { describe, expect, it } from 'vitest';
import { cyclesOf } from './cycles.ts';
import { readSources, type Source } from './sources.ts';

/** Modules of the Python package, by their dotted names, and the modules that each imports. */
function pythonImports(files: readonly Source[]): ReadonlyMap<string, ReadonlySet<string>> {
  const nameOf = (path: string) =>
    path
      .replace(/^src\/python\//, '')
      .replace(/(\/__init__)?\.py$/, '')
      .replaceAll('/', '.');
  const known = new Set(files.map(({ path }) => nameOf(path)));
  const within = /^[ \t]*(?:from ([\w.]+) import (\([^)]*\)|[^\n]*)|import ([\w.]+))/gm;
  return new Map(
    files.map(({ path, text }) => {
      const imported = [...text.matchAll(within)].flatMap(([, from, names = '', plain = '']) => {
        if (from === undefined) return [plain];
        // A name of a package may be one of its modules.
        const each = [...names.matchAll(/(\w+)(?: as \w+)?/g)].map(([, name]) => `${from}.${name}`);
        return each.map((full) => (known.has(full) ? full : from));
      });
      return [nameOf(path), new Set(imported.filter((name) => known.has(name)))];
    }),
  );
}

describe('imports of the Python package', () => {
  it('go round in no circle, for types neither', () => {
    const imports = pythonImports(readSources(/^src\/python\/gnnd.*\.py$/));
    expect(imports.size).toBeGreaterThan(40);
    expect(imports.get('gnnd.client')).toContain('gnnd.job');
    expect(cyclesOf(imports)).toEqual([]);
  });

  it('are found wherever they stand', () => {
    const made = [
      { path: 'src/python/gnnd/__init__.py', text: 'from gnnd.a import A\n' },
      { path: 'src/python/gnnd/a.py', text: 'from gnnd import (\n    b,\n)\nimport os\n' },
      { path: 'src/python/gnnd/b.py', text: 'def f():\n    import gnnd.c\n' },
      { path: 'src/python/gnnd/c.py', text: 'if TYPE_CHECKING:\n    from gnnd.a import A as B\n' },
    ];
    expect(cyclesOf(pythonImports(made))).toEqual(['gnnd.a <-> gnnd.b <-> gnnd.c']);
  });
});
