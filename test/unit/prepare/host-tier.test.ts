import { fstatSync, openSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { counters, type ExecutorSnapshot } from '../../../src/native/contract.ts';
import { HostTier } from '../../../src/prepare/host-tier.ts';

const planned = { rows: 100, bytes: 8192, reason: '10.0 % of the rows, as the host has room' };
const inputs = { dataset: {} as never, orderPath: '/order', planned };
const task = {} as never;

function trainer(busRows: number, stagedRows: number): ExecutorSnapshot {
  const values = Array<number>(Object.keys(counters).length).fill(0);
  values[counters.busRows] = busRows;
  values[counters.stagedRows] = stagedRows;
  return { role: 'TRAINER', counters: values } as unknown as ExecutorSnapshot;
}

function isOpen(fd: number): boolean {
  try {
    fstatSync(fd);
    return true;
  } catch {
    return false;
  }
}

/** A tier whose task was done, in a descriptor that this test opened. */
async function made(availableBytes = 1e9) {
  const reserved: number[] = [];
  const native = {
    hostTierReserve: () => {
      reserved.push(openSync('/dev/null', 'r'));
      return reserved.at(-1) as number;
    },
  };
  const tier = new HostTier(native, { availableBytes: () => availableBytes, run: async () => {} });
  await tier.make(inputs, task);
  return { tier, reserved };
}

describe("the host's tier of features", () => {
  test('is made where there is memory, and given back once', async () => {
    const { tier, reserved } = await made();
    expect(tier.fd).toBe(reserved[0]);
    expect(tier.facts).toEqual(planned);
    tier.close();
    tier.close();
    expect(tier.fd).toBeNull();
    expect(isOpen(reserved[0] as number)).toBe(false);
  });

  test('is left out where others have the memory at present, and says so', async () => {
    const { tier, reserved } = await made(planned.bytes - 1);
    expect(reserved).toEqual([]);
    expect(tier.facts).toEqual({
      rows: 0,
      reason: 'none: it takes 8192 bytes, 8191 are free at present',
    });
  });

  test('goes where every Trainer keeps as many rows', async () => {
    const { tier, reserved } = await made();
    tier.tried([trainer(10, 3)], 99);
    expect(tier.facts).toEqual(planned);
    tier.tried([trainer(10, 3)], 100);
    expect(tier.fd).toBeNull();
    expect(isOpen(reserved[0] as number)).toBe(false);
    expect(tier.facts.reason).toBe(
      'none: devices keep 100 rows themselves, as many as there were pinned or more',
    );
  });

  test('says when a device refused it, and stays for the host to read', async () => {
    const { tier } = await made();
    tier.tried([trainer(0, 0)], 0);
    expect(tier.facts).toEqual(planned);
    tier.tried([trainer(0, 13)], 0);
    expect(tier.fd).not.toBeNull();
    expect(tier.facts.rows).toBe(100);
    expect(tier.facts.reason).toMatch(/refused to register them .* so they are staged$/);
    tier.close();
  });

  test('says once, in the midst of a run, that a device refused it', async () => {
    const { tier } = await made();
    expect(tier.noteRefusal([trainer(0, 0)], 0)).toBe(false);
    expect(tier.noteRefusal([trainer(5, 13)], 0)).toBe(false);
    // A device that keeps as many rows itself asks for none of these.
    expect(tier.noteRefusal([trainer(0, 13)], 100)).toBe(false);
    expect(tier.facts).toEqual(planned);
    expect(tier.noteRefusal([trainer(0, 13)], 0)).toBe(true);
    expect(tier.facts.reason).toMatch(/refused to register them/);
    expect(tier.noteRefusal([trainer(0, 26)], 0)).toBe(false);
    tier.close();
    expect(tier.noteRefusal([trainer(0, 26)], 0)).toBe(false);
  });
});
