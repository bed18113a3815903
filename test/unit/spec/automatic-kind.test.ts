import { describe, expect, test } from 'vitest';
import { automaticKind, kindText } from '../../../src/spec/automatic-kind.ts';
import type { JobSpec, JobSpecInput } from '../../../src/spec/job-spec.ts';
import { someSpec } from '../store/job-values.ts';

const cpus = ['cpu:0', 'cpu:1'];
const alike = new Map([
  ['cuda:0', 'sm_90'],
  ['cuda:1', 'sm_90'],
]);
const unlike = new Map([
  ['cuda:0', 'sm_90'],
  ['cuda:1', 'sm_80'],
]);
const gpus = [...cpus, 'cuda:0', 'cuda:1'];

type Host = readonly [names: readonly string[], bits?: ReadonlyMap<string, string>];

describe('the kind of devices that a job leaves open', () => {
  const table: readonly (readonly [string, Host, Partial<JobSpecInput>, 'CPU' | 'CUDA'])[] = [
    ['no GPU', [cpus], {}, 'CPU'],
    ['simulated devices are never chosen', [[...cpus, 'sim:0']], {}, 'CPU'],
    ['a GPU', [[...cpus, 'cuda:0']], {}, 'CUDA'],
    ['logical devices of a GPU', [['cpu:0', 'cuda:0/0', 'cuda:0/1']], {}, 'CUDA'],
    ['as many GPUs as asked for', [gpus, alike], { resources: { devices: 2 } }, 'CUDA'],
    ['more devices than GPUs', [gpus, alike], { resources: { devices: 3 } }, 'CPU'],
    ['strict on unlike GPUs', [gpus, unlike], { resources: { devices: 2 } }, 'CPU'],
    ['one of unlike GPUs', [gpus, unlike], {}, 'CUDA'],
    [
      'relaxed on unlike GPUs',
      [gpus, unlike],
      { resources: { devices: 2 }, training: { epochs: 1, determinism: 'RELAXED' } },
      'CUDA',
    ],
    ['a sampler of the user', [gpus], { sampling: { algorithm: 'KHOP_PLUGIN' } }, 'CPU'],
    ['LABOR', [gpus], { sampling: { algorithm: 'LABOR' } }, 'CUDA'],
    ['random walks', [gpus], { sampling: { algorithm: 'RANDOM_WALK' } }, 'CUDA'],
    ['portable bits', [gpus], { training: { epochs: 1, determinism: 'PORTABLE' } }, 'CPU'],
    ['a model of the user', [gpus], { model: { type: 'TORCHSCRIPT' } }, 'CPU'],
    ['SIGN, over rows', [gpus], { model: { type: 'SIGN' } }, 'CUDA'],
    ['links', [gpus], { task: 'LINKS' }, 'CPU'],
    ['GAT', [gpus], { model: { type: 'GAT' } }, 'CUDA'],
    ['an inference', [gpus], { kind: 'INFERENCE', model: { type: 'GCN' } }, 'CUDA'],
    ['an inference over rows', [gpus], { kind: 'INFERENCE', model: { type: 'SGC' } }, 'CPU'],
    ['PinSAGE', [gpus], { model: { type: 'PINSAGE' } }, 'CUDA'],
  ];

  test.each(table)('%s', (_, [deviceNames, deviceBits], asked, kind) => {
    const host = deviceBits === undefined ? { deviceNames } : { deviceNames, deviceBits };
    expect(automaticKind({ dataset: 'cora', ...asked }, host)).toBe(kind);
  });
});

describe('how it came about', () => {
  const given = (resources: JobSpecInput['resources']): JobSpecInput => ({
    dataset: 'cora',
    resources,
  });
  const frozen = (
    deviceKind: JobSpec['resources']['deviceKind'],
    changes: Partial<JobSpec> = {},
  ): JobSpec => ({
    ...someSpec,
    model: { ...someSpec.model, type: 'GCN' },
    sampling: { ...someSpec.sampling, algorithm: 'KHOP_UNIFORM' },
    ...changes,
    resources: { ...someSpec.resources, deviceKind, deviceNames: [] },
  });

  test('is said of what was chosen and of what was asked for', () => {
    expect(kindText(given({ deviceKind: 'SIM' }), frozen('SIM'))).toBe('SIM, as asked for');
    expect(kindText(given({}), frozen('CUDA'))).toBe(
      'CUDA, chosen: the host has GPUs on which all of the job runs',
    );
    expect(kindText(given({ deviceKind: 'AUTO' }), frozen('CPU'))).toMatch(
      /^CPU, chosen: the host had no fit GPU/,
    );
    const plugin = { sampling: { ...someSpec.sampling, algorithm: 'KHOP_PLUGIN' } } as const;
    expect(kindText(given({}), frozen('CPU', plugin))).toBe(
      'CPU, chosen: KHOP_PLUGIN runs on CPU devices alone',
    );
  });

  test('is nothing to say of devices by name', () => {
    const named = frozen('CUDA');
    const resources = { ...named.resources, deviceNames: ['cuda:0'] };
    expect(kindText(given({ deviceNames: ['cuda:0'] }), { ...named, resources })).toBe('');
  });
});
