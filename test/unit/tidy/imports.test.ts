import { describe, expect, it } from 'vitest';
import { faces, importsOf, importViolations, ranks } from './import-rules.ts';
import { listed, readSources } from './sources.ts';

const files = readSources(/^src\/.*\.tsx?$/).map(({ path, text }) => ({
  path: path.slice('src/'.length),
  text,
}));

describe('imports of src/', () => {
  it('go down the ranks, and modules stay with their owner', () => {
    expect(files.length).toBeGreaterThan(50);
    expect(listed(files.flatMap(importViolations))).toBe('');
  });

  it('name files that exist, or generated ones', () => {
    const known = new Set(files.map(({ path }) => path));
    const missing = files.flatMap((file) =>
      importsOf(file)
        .filter(
          ({ isRelative, target }) => isRelative && !/^(api|native)\/gen\/|\.css$/.test(target),
        )
        .filter(({ target }) => !known.has(target))
        .map(({ line, target }) => ({ path: file.path, line, message: target })),
    );
    expect(listed(missing)).toBe('');
  });

  it('enter rooms by faces that are all needed', () => {
    const entered = new Set(
      files.flatMap((file) =>
        importsOf(file)
          .map(({ target }) => target)
          .filter((target) => target.split('/')[0] !== file.path.split('/')[0]),
      ),
    );
    const listedFaces = Object.entries(faces).flatMap(([room, names]) =>
      names.map((name) => `${room}/${name}`),
    );
    expect(listedFaces.filter((face) => !entered.has(face))).toEqual([]);
  });

  it('start from rooms that all have a rank', () => {
    const rooms = new Set(files.map(({ path }) => path.split('/')[0]));
    const ranked = [...rooms].filter((room) => room !== 'web');
    expect(ranked.sort()).toEqual(Object.keys(ranks).sort());
  });
});

/** The messages for one made-up file. */
function judge(path: string, ...lines: string[]): string {
  return listed(importViolations({ path, text: lines.join('\n') }));
}

describe('the import rules', () => {
  it.each([
    ['an upward import', 'store/a.ts', "import { x } from '../jobs/jobs.ts';", 'upward'],
    ['a sideways one', 'store/a.ts', "import { x } from '../metrics/metrics.ts';", 'sideways'],
    ['a type counts', 'spec/a.ts', "import type { X } from '../store/store.ts';", 'spec/ may'],
    ['a re-export counts', 'base/a.ts', "export { x } from '../spec/limits.ts';", 'upward'],
    ['a dynamic import', 'base/a.ts', "const x = await import('../spec/limits.ts');", 'upward'],
    ['a side-effect import', 'base/a.ts', "import '../spec/limits.ts';", 'upward'],
    ['an entry point of others', 'supervisor/a.ts', "import '../executor/main.ts';", 'entry point'],
    ['more than the protocol', 'supervisor/a.ts', "import '../executor/task.ts';", 'protocol.ts'],
    ['a way past a face', 'work/a.ts', "import { x } from '../plan/infer.ts';", 'plan/ by plan.ts'],
    ['a type past a face', 'api/a.ts', "import type { X } from '../jobs/tally.ts';", 'jobs.ts'],
    [
      'generated code in jobs',
      'jobs/a.ts',
      "import '../api/gen/a_pb.ts';",
      'only api/, cli/, spec/ and web/',
    ],
    ['the daemon from cli', 'cli/a.ts', "import '../jobs/jobs.ts';", 'cli/ may import only'],
    [
      'the daemon from cli',
      'cli/show/a.ts',
      "import '../../jobs/jobs.ts';",
      'cli/ may import only',
    ],
    ['sideways in cli', 'cli/show/a.ts', "import '../read/pages.ts';", 'sideways'],
    ['upward in cli', 'cli/session/a.ts', "import '../show/output.ts';", 'upward'],
    ['the daemon from web', 'web/a.tsx', "import '../jobs/jobs.ts';", 'web/ may import only'],
    ['Node in web', 'web/a.ts', "import { join } from 'node:path';", 'web'],
    ['web from the daemon', 'api/a.ts', "import '../web/thinned.ts';", 'nobody but its own room'],
    ['an unranked room', 'new/a.ts', "import '../base/ids.ts';", 'has no rank'],
    ['an entry point', 'daemon.ts', "import './main.ts';", 'entry point'],
    ['SQLite outside store', 'jobs/a.ts', "import Sqlite from 'better-sqlite3';", 'store'],
    ['prom-client in api', 'api/a.ts', "import { Registry } from 'prom-client';", 'metrics'],
    ['spawning in jobs', 'jobs/a.ts', "import { spawn } from 'node:child_process';", 'supervisor'],
    ['loading an addon', 'store/a.ts', "import { createRequire } from 'node:module';", 'load'],
    ['Node in the scheduler', 'scheduler/a.ts', "import { join } from 'node:path';", 'scheduler'],
    ['Node in placement', 'placement/a.ts', "import { join } from 'node:path';", 'placement'],
    ['Node in spec', 'spec/a.ts', "import { join } from 'node:path';", 'spec'],
    ['an unknown package', 'base/a.ts', "import x from 'left-pad';", 'without an owner'],
    ['the wall clock', 'jobs/a.ts', 'const now = Date.now();', 'base/clock.ts'],
    ['a date of now', 'jobs/a.ts', 'const now = new Date();', 'base/clock.ts'],
    ['a performance clock', 'jobs/a.ts', 'const now = performance.now();', 'base/clock.ts'],
    ['hrtime', 'jobs/a.ts', 'const now = process.hrtime.bigint();', 'base/clock.ts'],
  ])('refuse %s', (_, path, line, message) => {
    expect(judge(path, line)).toContain(message);
  });

  it('see an import that spans lines', () => {
    expect(judge('base/a.ts', 'import {', '  one,', '  type Two,', "} from '../api/api.ts';")).toBe(
      'base/a.ts:1: imports api/api.ts: upward, from rank 0 to rank 13',
    );
  });

  it('take no import from comments or strings', () => {
    expect(
      judge('base/a.ts', "// import '../api/api.ts';", 'const x = "import \'../a.ts\'";'),
    ).toBe('');
  });

  it('accept what is meant', () => {
    expect(judge('jobs/a.ts', "import { decide } from '../scheduler/scheduler.ts';")).toBe('');
    expect(judge('executor/main.ts', 'const startedNs = process.hrtime.bigint();')).toBe('');
    expect(judge('cli/a.ts', "import { JobSchema } from '../api/gen/gnnd/v1/job_pb.ts';")).toBe('');
    expect(judge('store/a.ts', 'const time = new Date(atMs);')).toBe('');
    expect(judge('daemon.ts', "import { createDrained } from './jobs/drained-devices.ts';")).toBe(
      '',
    );
    expect(judge('plan/a.ts', "import { layoutOf } from './job-layout.ts';")).toBe('');
  });
});
