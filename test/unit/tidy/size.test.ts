import { describe, expect, it } from 'vitest';
import { functionsOf, limits, pageViolations, sizeViolations } from './size-rules.ts';
import { listed, readSources, type Violation } from './sources.ts';

/** What is longer for a reason. A waiver that nothing needs any more fails, too. */
const waivers: readonly { path: string; what: RegExp; reason: string }[] = [
  {
    path: 'proto/grpc/reflection/v1/reflection.proto',
    what: /columns/,
    reason: 'buf format joins the line again',
  },
];

const files = [
  ...readSources(
    /^(src|test|bench|deploy|native|proto)\/.*\.(ts|tsx|mjs|h|cc|cuh?|proto)$|^[\w.]+\.ts$/,
  ),
  ...readSources(/^(src\/python|test\/e2e\/python\/package)\/.*\.py$/),
];

function isWaived({ path, message }: Violation): boolean {
  return waivers.some((waiver) => waiver.path === path && waiver.what.test(message));
}

describe('sizes', () => {
  it('of files, lines and functions stay within their limits', () => {
    expect(files.length).toBeGreaterThan(200);
    expect(files.map(({ path }) => path)).toContain('proto/gnnd/v1/job.proto');
    const violations = files.flatMap(sizeViolations).filter((violation) => !isWaived(violation));
    expect(listed(violations)).toBe('');
  });

  it('have no waiver that is not needed', () => {
    const violations = files.flatMap(sizeViolations);
    const idle = waivers.filter(
      ({ path, what }) => !violations.some((v) => v.path === path && what.test(v.message)),
    );
    expect(idle).toEqual([]);
  });

  it('are measured on functions that were found', () => {
    const found = files.flatMap((file) => (file.path.endsWith('.proto') ? [] : functionsOf(file)));
    expect(found.length).toBeGreaterThan(1500);
  });
});

describe('pages', () => {
  const pages = readSources(/^(docs\/.*|[A-Z]+)\.md$/);

  it('wrap their prose at 100 columns', () => {
    expect(pages.length).toBeGreaterThan(90);
    expect(listed(pages.flatMap(pageViolations))).toBe('');
  });

  it('of docs/ begin with what they are for', () => {
    const guides = pages.filter(({ path }) => /^docs\/[\w-]+\.md$/.test(path));
    const silent = guides.filter(({ text }) => !/^# .+\n\nThis page /.test(text));
    expect(silent.map(({ path }) => path)).toEqual([]);
  });

  it('have at most 150 lines where they are the first one', () => {
    const readme = pages.find(({ path }) => path === 'README.md')?.text ?? '';
    expect(readme.split('\n').length).toBeLessThanOrEqual(151);
  });

  it('may hold wide tables and code', () => {
    const wide = 'word '.repeat(25);
    const page = (text: string) => listed(pageViolations({ path: 'docs/a.md', text }));
    expect(page(`| ${wide} |\n\n    ${wide}\n\n\`\`\`\n${wide}\n\`\`\`\n`)).toBe('');
    expect(page(`# A\n\n${wide}`)).toContain('docs/a.md:3: 125 columns');
  });
});

const filler = (count: number) => Array.from({ length: count }, (_, i) => `  f(${i});`).join('\n');
const judge = (path: string, text: string) => listed(sizeViolations({ path, text }));

describe('the size rules', () => {
  it('refuse a long file and name it as a whole', () => {
    expect(judge('src/a.ts', 'x;\n'.repeat(limits.fileLines + 1))).toBe(
      'src/a.ts: 501 lines, at most 500',
    );
    expect(judge('src/a.ts', 'x;\n'.repeat(limits.fileLines))).toBe('');
    expect(judge('proto/a.proto', '// x\n'.repeat(501))).toBe(
      'proto/a.proto: 501 lines, at most 500',
    );
  });

  it('refuse a wide line, but not one that is a single text', () => {
    const words = 'word '.repeat(25);
    expect(judge('src/a.ts', `const x = ${words};`)).toContain('src/a.ts:1: ');
    expect(judge('src/a.ts', `  // ${words}`)).toContain('columns');
    expect(judge('src/a.ts', `    '${words}',`)).toBe('');
  });

  it('count characters, not bytes', () => {
    expect(judge('src/a.ts', `// ${'─'.repeat(97)}`)).toBe('');
    expect(judge('src/a.ts', `// ${'─'.repeat(98)}`)).toContain('101 columns');
  });

  it.each([
    ['src/a.ts', 'function long(a: number): Map<string, { b: number }> {'],
    ['src/a.ts', '  async long(a: number): Promise<void> {'],
    ['src/a.ts', '  get #long(): number {'],
    ['src/a.ts', 'const long = (a: number) => {'],
    ['src/a.ts', "it('does a thing', () => {"],
    ['src/a.ts', 'function long(): { a: 1 } {'],
    ['src/a.ts', 'function long(\n  a: number,\n): void {'],
    ['src/a.ts', 'function long(): {\n  a: number;\n} {'],
    ['native/a.cc', 'Status Long(int a) {'],
    ['native/a.cc', 'Result<bool> Steps::Long(uint64_t a,\n                    int b) const {'],
    ['native/a.cc', 'Long::Long(int a)\n    : a_(a),\n      b_(Twice(a)) {'],
    ['native/a.cc', 'const auto f = [&](int a) {'],
    ['native/a.cc', 'TEST_CASE("does a thing; with {braces}") {'],
  ])('refuse a function that is too long: %s %s', (path, opening) => {
    const text = `${opening}\n${filler(69)}\n}`;
    expect(judge(path, text)).toContain('the function has 71 lines');
    expect(judge(path, text.replace('  f(0);\n', ''))).toBe('');
  });

  it.each([
    ['src/a.ts', 'class A extends B(C) {'],
    ['src/a.ts', 'interface A {'],
    ['src/a.ts', 'const table = {'],
    ['src/a.ts', "describe('a thing', () => {"],
    ['src/a.ts', 'if (\n  a &&\n  b\n) {'],
    ['native/a.h', 'namespace gnnd {'],
    ['native/a.h', 'struct alignas(64) Row {'],
    ['native/a.h', 'constexpr int kTable[] = {'],
  ])('let a long %s block that is no function pass: %s', (path, opening) => {
    expect(judge(path, `${opening}\n${filler(80)}\n}`)).toBe('');
  });

  it('find functions of Python by their indentation, without docstrings', () => {
    const said = '    """Says.\n\n    Much.\n    """\n';
    const first = `def a(\n    b: int,\n) -> None:\n${said}    x = 1\n`;
    const second = 'class B:\n    async def c(self):\n        y = 2\n\n        z = 3\n';
    const text = `${first}\n\n${second}`;
    expect(functionsOf({ path: 'src/python/a.py', text })).toEqual([
      { line: 1, lines: 4 },
      { line: 12, lines: 4 },
    ]);
    const long = `def a():\n${'    x = 1\n'.repeat(70)}`;
    expect(judge('src/python/a.py', long)).toContain('the function has 71 lines');
  });

  it('count the lines of a nested function as its own', () => {
    const method = `  const inner = () => {\n${filler(40)}\n  };\n`;
    expect(judge('src/a.ts', `function outer() {\n${method.repeat(3)}}\n`)).toBe('');
    const text = `function outer() {\n${method}${filler(67)}\n}\n`;
    expect(judge('src/a.ts', text)).toBe('src/a.ts:1: the function has 71 lines, at most 70');
  });

  it('do not count braces in literals', () => {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the text that is judged.
    const text = 'function a() {\n  return ["{", `}${`{${{ b: "}" }}`}{`, /[}/]{2}/];\n}\n';
    expect(functionsOf({ path: 'src/a.ts', text })).toEqual([{ line: 1, lines: 3 }]);
  });
});
