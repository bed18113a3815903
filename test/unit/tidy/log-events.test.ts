import { describe, expect, it } from 'vitest';
import { eventsIn, eventsOfPage } from './log-events.ts';
import { readSources } from './sources.ts';

/** Written by native code, when nothing else may run any more. */
const fromNative = ['daemon.stop_timeout'];

const pages = readSources(/^docs\/logging\.md$/);
const events = readSources(/^src\/.*\.ts$/)
  .filter(({ path }) => !path.startsWith('src/cli/'))
  .flatMap(eventsIn);
const documented = eventsOfPage(pages[0]?.text ?? '');

describe('events of the log', () => {
  it('are those of docs/logging.md, with their fields', () => {
    expect(events.length).toBeGreaterThan(50);
    const names = [...new Set([...events.map(({ name }) => name), ...fromNative])].sort();
    expect([...documented.keys()].sort()).toEqual(names);
    const wrong = events.filter(({ name, level, fields, hasMore }) => {
      const row = documented.get(name);
      if (row === undefined || row.level !== level) return true;
      // Fields that are spread into the call are known only at run time.
      return hasMore
        ? fields.some((field) => !row.fields.includes(field))
        : fields.join() !== row.fields.join();
    });
    expect(wrong).toEqual([]);
  });

  it('are named alike: a subject, a dot, words with _ between them', () => {
    expect(events.filter(({ name }) => !/^[a-z]+\.[a-z]+(_[a-z]+)*$/.test(name))).toEqual([]);
  });

  it('are found with their fields, whatever stands around them', () => {
    const text = `
      log.info('a.b');
      this.#options.log.warn('a.c_d', { one, two: f(')', { x: 1 }), ...rest });
      log.error('a.e', fields);
      // log.info('a.comment', {});
      log[bad ? 'warn' : 'info']('a.f', { caller });`;
    const shown = eventsIn({ path: 'src/a.ts', text }).map(({ path: _, ...event }) => event);
    expect(shown).toEqual([
      { name: 'a.b', level: 'info', fields: [], hasMore: false },
      { name: 'a.c_d', level: 'warn', fields: ['one', 'two'], hasMore: true },
      { name: 'a.e', level: 'error', fields: [], hasMore: true },
      { name: 'a.f', level: 'info, warn', fields: ['caller'], hasMore: false },
    ]);
  });
});
