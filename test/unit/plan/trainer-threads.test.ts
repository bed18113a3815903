import { describe, expect, it } from 'vitest';
import { trainerThreads } from '../../../src/plan/trainer-threads.ts';
import { someSpec } from '../store/job-values.ts';

type Training = Partial<typeof someSpec.training>;

const spec = (training: Training) => ({
  ...someSpec,
  training: {
    ...someSpec.training,
    ...{ threadsPerTrainer: 0, staleness: 0, batchesPerStep: 1 },
    ...training,
  },
});
const threadsOf = (job: ReturnType<typeof spec>, of: ReturnType<typeof devices>, device: number) =>
  trainerThreads(job, of, device, (job.training.staleness + 1) * job.training.batchesPerStep);
const devices = (count: number, coresEach: number) =>
  Array.from({ length: count }, (_, i) => ({
    name: `cpu:${i}`,
    node: 0,
    cores: Array.from({ length: coresEach }, (_, core) => i * coresEach + core),
  }));

describe('threads of a Trainer', () => {
  it.each([
    // Without a delay one batch is computed at a time, on all cores.
    ['two devices', {}, 2, 1, { threads: 2, cores: [0, 1] }],
    ['one device', {}, 1, 2, { threads: 2, cores: [0, 1] }],
    ['four', {}, 4, 2, { threads: 8, cores: [0, 1, 2, 3, 4, 5, 6, 7] }],
    ['a delay', { staleness: 1 }, 2, 1, { threads: 1, cores: [0] }],
    ['a group', { batchesPerStep: 2 }, 2, 1, { threads: 1, cores: [0] }],
    ['a short delay', { staleness: 1 }, 4, 1, { threads: 2, cores: [0, 1, 2, 3] }],
    ['a long delay', { staleness: 8 }, 4, 1, { threads: 1, cores: [0] }],
    ['as asked', { threadsPerTrainer: 1 }, 2, 1, { threads: 1, cores: [0] }],
    ['more asked', { threadsPerTrainer: 2 }, 2, 1, { threads: 2, cores: [0, 1] }],
  ])('%s', (_, training, count, coresEach, expected) => {
    expect(threadsOf(spec(training), devices(count, coresEach), 0)).toEqual(expected);
  });

  it('are not more than a batch has work for', () => {
    const { threads, cores } = threadsOf(spec({}), devices(4, 32), 1);
    expect([threads, cores.length]).toEqual([16, 32]);
  });

  it('share cores that devices share', () => {
    const shared = devices(1, 1).concat(devices(1, 1), devices(1, 1));
    expect(threadsOf(spec({}), shared, 2)).toEqual({ threads: 1, cores: [0] });
  });
});
