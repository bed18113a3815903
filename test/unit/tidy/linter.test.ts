import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { root } from './sources.ts';

/** What the structure tests leave to the linter, tried on made-up offenders. */

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gnnd-linter-'));
  mkdirSync(join(folder, 'src'));
  copyFileSync(join(root, 'biome.json'), join(folder, 'biome.json'));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

/** The rules that these files of src/ break, each once. */
function rulesBrokenBy(files: Readonly<Record<string, string>>): readonly string[] {
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, 'src', name), text);
  const biome = join(root, 'node_modules/.bin/biome');
  const args = ['lint', '--vcs-enabled=false', '--reporter=json', 'src'];
  const { stdout } = spawnSync(biome, args, { cwd: folder, encoding: 'utf8' });
  const { diagnostics } = JSON.parse(stdout) as { diagnostics: readonly { category: string }[] };
  return [...new Set(diagnostics.map(({ category }) => category))];
}

const b = "import type { A } from './a.ts';\nexport type B = { a: A | null };\n";

describe('the linter', () => {
  it('refuses a cycle of imports, also one of types', () => {
    const a = "import type { B } from './b.ts';\nexport type A = { b: B | null };\n";
    expect(rulesBrokenBy({ 'a.ts': a, 'b.ts': b })).toEqual(['lint/suspicious/noImportCycles']);
    expect(rulesBrokenBy({ 'a.ts': 'export type A = number;\n', 'b.ts': b })).toEqual([]);
  });

  it('refuses a promise that nobody waits for', () => {
    const work = 'async function work(): Promise<void> {}\n';
    const floating = `${work}export function a(): void {\n  work();\n}\n`;
    expect(rulesBrokenBy({ 'a.ts': floating })).toEqual(['lint/nursery/noFloatingPromises']);
    expect(rulesBrokenBy({ 'a.ts': floating.replace('  work()', '  void work()') })).toEqual([]);
  });
});
