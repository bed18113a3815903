import { describe, expect, it } from 'vitest';
import { exportViolations } from './export-rules.ts';
import { listed, readSources } from './sources.ts';

describe('exports of src/', () => {
  it('are used by src/ or a benchmark', () => {
    const files = readSources(/^src\/.*\.tsx?$/);
    const users = [...files, ...readSources(/^bench\/.*\.ts$/)];
    expect(files.length).toBeGreaterThan(300);
    expect(listed(exportViolations(files, users))).toBe('');
  });
});

describe('the export rule', () => {
  const exporter = {
    path: 'src/a/a.ts',
    text: 'export function made() {}\nexport interface Shape {}\n',
  };

  it.each([
    ['nobody', '', 'src/a/a.ts:1: nobody uses made\nsrc/a/a.ts:2: nobody uses Shape'],
    [
      'a comment',
      '// made, Shape',
      'src/a/a.ts:1: nobody uses made\nsrc/a/a.ts:2: nobody uses Shape',
    ],
    ['an import', "import { made as other } from '../a/a.ts';", 'src/a/a.ts:2: nobody uses Shape'],
    ['a type', "import { made, type Shape } from '../a/a.ts';", ''],
    ['a re-export', "export { made, type Shape } from '../a/a.ts';", ''],
    ['all of it', "import * as a from '../a/a.ts';", ''],
    ['a dynamic import', "const a = await import('../a/a.ts');", ''],
  ])('sees what %s uses', (_, text, expected) => {
    const files = [exporter, { path: 'src/b/b.ts', text }];
    expect(listed(exportViolations(files, files))).toBe(expected);
  });

  it('counts a use in the same file, and refuses a waiver that nobody needs', () => {
    const file = {
      path: 'src/a/a.ts',
      text: 'export const one = 1;\nexport const two = 2 * one;\n',
    };
    const waived = { 'src/a/a.ts#one': 'why', 'src/a/a.ts#two': 'why' };
    expect(listed(exportViolations([file], [file], waived))).toBe(
      'src/a/a.ts:1: one has a user: no waiver is needed',
    );
  });
});
