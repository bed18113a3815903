import { expect, test } from 'vitest';
import { descriptorFacts, shareDescriptors } from '../../../src/base/descriptors.ts';

test('connections get what executors, the store and imports leave', () => {
  const { grpc, http } = shareDescriptors({ limit: 256, inUse: 30, devices: 2 });
  expect(grpc + http).toBeLessThanOrEqual(256 - 30 - 64);
  expect(grpc).toBeGreaterThanOrEqual(64);
  expect(http).toBeGreaterThanOrEqual(8);
  expect(shareDescriptors({ limit: 65_536, inUse: 30, devices: 64 })).toEqual({
    grpc: 1024,
    http: 64,
  });
});

test('a limit that leaves nothing for clients is refused with what it takes', () => {
  const share = () => shareDescriptors({ limit: 64, inUse: 30, devices: 2 });
  expect(share).toThrow(/at most 64 files .* needs 150: raise the limit \(ulimit -n/);
  expect(() => shareDescriptors({ limit: 150, inUse: 30, devices: 2 })).not.toThrow();
});

test('the facts are those of this process', () => {
  const { limit, inUse } = descriptorFacts();
  expect(inUse).toBeGreaterThan(3);
  expect(limit).toBeGreaterThan(inUse);
});
