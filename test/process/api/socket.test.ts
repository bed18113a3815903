import { once } from 'node:events';
import {
  closeSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { JobService } from '../../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { loadCore } from '../../../src/native/load.ts';
import { until } from '../../support/until.ts';
import { startApi as start } from './server.ts';

/** The file of a unix socket, which others want, too. */

const job = JobService.method;
const mine = { name: 'jobs/mine' };

/** Path of a socket whose process died. */
async function stalePath(): Promise<string> {
  const path = join(mkdtempSync(join(tmpdir(), 'gnnd-stale-')), 'gnnd.sock');
  const dead = createServer().listen(path);
  await once(dead, 'listening');
  renameSync(path, `${path}.kept`);
  dead.close();
  await once(dead, 'close');
  renameSync(`${path}.kept`, path);
  return path;
}

describe('the socket', () => {
  it('belongs to its owner and group', async () => {
    const { folder } = await start();
    expect(statSync(join(folder, 'gnnd.sock')).mode & 0o777).toBe(0o660);
  });

  it('replaces one that nobody listens on any more', async () => {
    const path = await stalePath();
    const { client } = await start({}, () => `unix:${path}`);
    expect((await client.call(job.getJob, mine)).name).toBe('jobs/mine');
    rmSync(dirname(path), { recursive: true, force: true });
  });

  it('is had by one of those who want to replace it at once', async () => {
    const path = await stalePath();
    const tries = await Promise.allSettled(
      Array.from({ length: 8 }, () => start({}, () => `unix:${path}`)),
    );
    const served = tries.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
    expect(served).toHaveLength(1);
    const lost = tries.flatMap((each) => (each.status === 'rejected' ? [each.reason] : []));
    expect(lost.map(({ cause }) => cause.code)).toEqual(Array(7).fill('EADDRINUSE'));
    expect((await served[0]?.client.call(job.getJob, mine))?.name).toBe('jobs/mine');
    expect(readdirSync(dirname(path))).toEqual(['gnnd.sock']);
    rmSync(dirname(path), { recursive: true, force: true });
  });

  it('is replaced by nobody while another looks at it', async () => {
    const path = await stalePath();
    const lock = loadCore().hostLock(`${path}.lock`) ?? -1;
    const asks = vi.spyOn(loadCore(), 'hostLock');
    const starting = start({}, () => `unix:${path}`);
    const served = vi.fn();
    starting.then(served, () => {});
    // Each ask is refused.
    await until(() => asks.mock.calls.length >= 3);
    expect(served).not.toHaveBeenCalled();
    asks.mockRestore();
    // The other process takes the path meanwhile.
    rmSync(path);
    const other = createServer().listen(path);
    await once(other, 'listening');
    closeSync(lock);
    await expect(starting).rejects.toThrow('another process listens there');
    other.close();
    rmSync(dirname(path), { recursive: true, force: true });
  });

  it('that another one took is not removed with the one that was there', async () => {
    const { api, folder } = await start();
    const path = join(folder, 'gnnd.sock');
    rmSync(path);
    const second = await start({}, () => `unix:${path}`);
    await api.close(0);
    expect(statSync(path).isSocket()).toBe(true);
    expect((await second.client.call(job.getJob, mine)).name).toBe('jobs/mine');
    await second.api.close(0);
    expect(existsSync(path)).toBe(false);
  });

  it('does not take the place of one that is listened on, nor of a file', async () => {
    const first = await start();
    const path = join(first.folder, 'gnnd.sock');
    await expect(start({}, () => `unix:${path}`)).rejects.toThrow(
      `cannot listen on unix:${path}: another process listens there`,
    );
    expect((await first.client.call(job.getJob, mine)).name).toBe('jobs/mine');
    const file = join(first.folder, 'file');
    writeFileSync(file, 'precious');
    await expect(start({}, () => `unix:${file}`)).rejects.toThrow('no socket');
    expect(existsSync(file)).toBe(true);
  });

  it('says what is wrong with an address', async () => {
    for (const address of [`unix:/${'x'.repeat(200)}`, 'nonsense', '127.0.0.1:99999', ':1']) {
      await expect(start({}, () => address)).rejects.toThrow(`cannot listen on ${address}: `);
    }
  });

  it('is gone after the end, and the end may come twice', async () => {
    const { api, folder } = await start();
    await Promise.all([api.close(2000), api.close(0)]);
    await api.close(0);
    expect(existsSync(join(folder, 'gnnd.sock'))).toBe(false);
    expect(api.connectionCount()).toBe(0);
  });
});
