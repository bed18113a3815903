import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type LogChunk, type LogQuery, streamLogs } from '../../../src/api/logs.ts';
import type { LogFile } from '../../../src/jobs/jobs.ts';
import { createFakeJobs } from '../../support/api-fakes.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gnnd-logs-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const all: LogQuery = {
  id: 'mine',
  attempt: 0,
  role: null,
  device: '',
  tailLines: 0,
  follow: false,
};

function logFile(role: LogFile['role'], device: string, text?: string): LogFile {
  const log = `${role}@${device}#1`;
  const path = join(folder, `${log}.log`);
  if (text !== undefined) writeFileSync(path, text);
  return { log, role, device, path };
}

/** Reads a job's logs; `onPoll` runs each time the reader waits for more. */
async function read(
  files: readonly LogFile[],
  query: Partial<LogQuery>,
  onPoll: (jobs: ReturnType<typeof createFakeJobs>) => void = () => {},
): Promise<readonly LogChunk[]> {
  const jobs = createFakeJobs();
  const deps = {
    jobs: { ...jobs, get: jobs.get, logs: () => files },
    sleep: async () => onPoll(jobs),
  };
  const chunks: LogChunk[] = [];
  const signal = new AbortController().signal;
  for await (const chunk of streamLogs(deps, { ...all, ...query }, signal)) chunks.push(chunk);
  return chunks;
}

const linesOf = (chunks: readonly LogChunk[]) => chunks.flatMap((chunk) => chunk.lines);

describe('StreamLogs', () => {
  it('sends the lines of every executor', async () => {
    const files = [
      logFile('SAMPLER', 'cpu:0', 'one\ntwo\n'),
      logFile('TRAINER', 'cpu:1', 'three\nfour'),
    ];
    expect(await read(files, {})).toEqual([
      { log: 'SAMPLER@cpu:0#1', role: 'SAMPLER', device: 'cpu:0', lines: ['one', 'two'] },
      { log: 'TRAINER@cpu:1#1', role: 'TRAINER', device: 'cpu:1', lines: ['three', 'four'] },
    ]);
  });

  it('sends those of one role or one device when asked to', async () => {
    const files = [logFile('SAMPLER', 'cpu:0', 'a\n'), logFile('STANDBY', 'cpu:0', 'b\n')];
    expect(linesOf(await read(files, { role: 'STANDBY' }))).toEqual(['b']);
    expect(linesOf(await read(files, { device: 'cpu:1' }))).toEqual([]);
  });

  it('takes a file that does not exist yet for an empty one', async () => {
    expect(await read([logFile('SAMPLER', 'cpu:0')], {})).toEqual([]);
  });

  it.each([
    [1, ['z']],
    [2, ['', 'z']],
    [3, ['y', '', 'z']],
    [99, ['x', 'y', '', 'z']],
  ])('starts %i lines before the end', async (tailLines, expected) => {
    for (const end of ['', '\n']) {
      const files = [logFile('TRAINER', 'cpu:0', `x\ny\n\nz${end}`)];
      expect(linesOf(await read(files, { tailLines }))).toEqual(expected);
    }
  });

  it('finds the tail of a file of many blocks', async () => {
    const lines = Array.from({ length: 50_000 }, (_, index) => `line ${index}`);
    const files = [logFile('TRAINER', 'cpu:0', `${lines.join('\n')}\n`)];
    expect(linesOf(await read(files, { tailLines: 30_000 }))).toEqual(lines.slice(-30_000));
    expect(linesOf(await read(files, {}))).toEqual(lines);
  });

  it('sends whole lines in chunks of at most 64 KiB, and pieces of longer lines', async () => {
    const files = [logFile('TRAINER', 'cpu:0', `${'a'.repeat(150_000)}\n${'b\n'.repeat(60_000)}`)];
    const chunks = await read(files, {});
    for (const chunk of chunks) {
      expect(Buffer.byteLength(chunk.lines.join('\n'))).toBeLessThanOrEqual(64 * 1024);
    }
    const text = linesOf(chunks);
    expect(text.filter((line) => line === 'b')).toHaveLength(60_000);
    expect(text.filter((line) => line.startsWith('a')).join('')).toBe('a'.repeat(150_000));
  });

  it('follows until the job is terminal, a line only when it is whole', async () => {
    const file = logFile('TRAINER', 'cpu:0', 'one\nhalf a ');
    let polls = 0;
    const chunks = await read([file], { follow: true }, (jobs) => {
      polls += 1;
      if (polls === 1) appendFileSync(file.path, 'line\ntwo\nlast words');
      if (polls === 2) jobs.transition('SUCCEEDED');
    });
    expect(chunks.map((chunk) => chunk.lines)).toEqual([
      ['one'],
      ['half a line', 'two'],
      ['last words'],
    ]);
  });

  it('follows into files that come later', async () => {
    const files = [logFile('TRAINER', 'cpu:0', 'one\n')];
    let polls = 0;
    const chunks = await read(files, { follow: true, tailLines: 1 }, (jobs) => {
      polls += 1;
      if (polls === 1) files.push(logFile('TRAINER', 'cpu:1', 'two\nthree\n'));
      else jobs.transition('FAILED');
    });
    expect(linesOf(chunks)).toEqual(['one', 'two', 'three']);
  });

  it('reads a file anew that became shorter', async () => {
    const file = logFile('TRAINER', 'cpu:0', 'a long first line\n');
    let polls = 0;
    const chunks = await read([file], { follow: true }, (jobs) => {
      polls += 1;
      if (polls === 1) writeFileSync(file.path, 'new\n');
      else jobs.transition('FAILED');
    });
    expect(linesOf(chunks)).toEqual(['a long first line', 'new']);
  });

  it('ends with the reason of its signal', async () => {
    const jobs = createFakeJobs();
    const controller = new AbortController();
    const reason = new Error('gone');
    const deps = {
      jobs: { ...jobs, get: jobs.get, logs: () => [] },
      sleep: async () => controller.abort(reason),
    };
    const chunks = streamLogs(deps, { ...all, follow: true }, controller.signal);
    await expect(chunks.next()).rejects.toBe(reason);
  });
});
