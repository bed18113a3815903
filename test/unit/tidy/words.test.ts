import { describe, expect, it } from 'vitest';
import { listed, readSources } from './sources.ts';
import { lockViolations, wordRules, wordViolations, wordWaivers } from './word-rules.ts';

// The rules and their tests are about the words themselves.
const files = readSources(/./).filter(({ path }) => !path.startsWith('test/unit/tidy/word'));

describe('words', () => {
  it('that mislead are in no file', () => {
    expect(files.length).toBeGreaterThan(300);
    const violations = files
      .flatMap(wordViolations)
      .filter(
        ({ path, message }) =>
          !wordWaivers.some((waiver) => waiver.path === path && message.startsWith(waiver.word)),
      );
    expect(listed(violations)).toBe('');
  });

  it('have no waiver that is not needed', () => {
    const violations = files.flatMap(wordViolations);
    const idle = wordWaivers.filter(
      (waiver) =>
        !violations.some((v) => v.path === waiver.path && v.message.startsWith(waiver.word)),
    );
    expect(idle).toEqual([]);
  });

  it('of registries are not in the lockfile', () => {
    const locks = files.filter(({ path }) => path === 'package-lock.json');
    expect(locks).toHaveLength(1);
    expect(listed(locks.flatMap(lockViolations))).toBe('');
  });
});

describe('the word rules', () => {
  const guilty = [
    '// TODO later',
    "const data = '/root/data';",
    "cd /work/here; ls '/home/me'",
    'https://registry.example.org/x',
    'pip install --index-url https://pypi.example.org/simple',
    'run gnndctl',
    'GET /healthz',
    'service NodeService {',
    'rpc GetNode(GetNodeRequest)',
    'reason NODE_DRAINED',
    '$ gnnctl node list',
    'gnnd_sampled_vertices_total',
    'spill_oversize: true',
    'queue.slot_bytes: 1',
    'role LOADER',
    '--device cpu-0',
    'eslint.config.js',
  ];

  it.each(guilty)('refuse: %s', (text) => {
    expect(wordViolations({ path: 'docs/a.md', text })).not.toEqual([]);
  });

  it('are each tried', () => {
    const untried = wordRules.filter(({ word }) => !guilty.some((text) => word.test(text)));
    expect(untried).toEqual([]);
  });

  it.each([
    'mkdtemp("name.XXXXXX")',
    'WorkingDirectory=/var/lib/gnnd',
    'src/work/a.ts',
    'node 17 of the graph',
    'gnnd_queue_slot_bytes',
  ])('let pass: %s', (text) => {
    expect(wordViolations({ path: 'docs/a.md', text })).toEqual([]);
  });

  it('refuse a lockfile that names its registry', () => {
    const text = '{\n  "resolved": "https://example.org/a.tgz",\n}';
    expect(listed(lockViolations({ path: 'package-lock.json', text }))).toContain(':2: ');
  });
});
