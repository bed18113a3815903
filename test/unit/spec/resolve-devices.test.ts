import { describe, expect, it } from 'vitest';
import type { JobSpec, JobSpecInput } from '../../../src/spec/job-spec.ts';
import { resolveJobSpec } from '../../../src/spec/resolve-job-spec.ts';
import type { ResolveContext } from '../../../src/spec/rules/rule.ts';
import { noPlugins, okOf, violationsIn } from '../../support/spec-context.ts';

const least: JobSpecInput = { dataset: 'cora', training: { epochs: 1 } };
const context: ResolveContext = {
  deviceNames: [],
  deviceCores: [],
  matrixLibrary: 'ONEDNN',
  ...{ numNodes: 100_000, trainNodes: 34_693, valNodes: 500, hasEdgeWeights: true },
  numEdges: 900_000,
  pluginFile: noPlugins,
};

function resolved(input: JobSpecInput, where: ResolveContext): JobSpec {
  return okOf(resolveJobSpec(input, where));
}

function violations(input: JobSpecInput, where: ResolveContext = mixed) {
  return violationsIn(resolveJobSpec(input, where));
}

const mixed: ResolveContext = {
  ...context,
  deviceNames: ['cpu:0', 'cpu:1', 'cuda:0/0', 'cuda:0/1', 'cuda:1', 'sim:0'],
  deviceCores: [2, 2, 4, 4, 4, 4],
  deviceBits: new Map([
    ...(['cuda:0/0', 'cuda:0/1'] as const).map((name) => [name, 'sm_90'] as const),
    ['cuda:1', 'sm_80'],
  ]),
};
const resourcesOf = (resources: JobSpecInput['resources'], training = {}) =>
  violations({ dataset: 'cora', training: { epochs: 1, ...training }, resources }, mixed).map(
    ({ path, description }) => `${path.slice('spec.resources.'.length)}: ${description}`,
  );

const cpuOnly: ResolveContext = { ...context, deviceNames: ['cpu:0'], deviceCores: [2] };

describe('devices of several kinds', () => {
  it('are GPUs where a job leaves the kind open and they do, else of the CPU', () => {
    expect(resolved(least, mixed).resources).toMatchObject({ deviceKind: 'CUDA', devices: 1 });
    const plain = { ...mixed, deviceNames: ['cpu:0', 'cpu:1', 'sim:0'], deviceCores: [2, 2, 4] };
    expect(resolved(least, plain).resources).toMatchObject({ deviceKind: 'CPU', devices: 2 });
    // Once it is chosen it stays.
    expect(resolved(resolved(least, plain), mixed)).toEqual(resolved(least, plain));
  });

  it('are no more than there are', () => {
    // The host has neither so many GPUs nor so many CPU devices.
    expect(resourcesOf({ devices: 4 })).toEqual([expect.stringMatching(/^devices: 4: expected/)]);
  });

  it('of other kinds are taken by kind or by name, where the host has them', () => {
    const ofKind = resolved({ ...least, resources: { deviceKind: 'SIM' } }, mixed).resources;
    expect(ofKind).toMatchObject({ deviceKind: 'SIM', devices: 1, deviceNames: [] });
    const named = resolved({ ...least, resources: { deviceNames: ['sim:0'] } }, mixed).resources;
    expect(named).toMatchObject({ deviceKind: 'SIM', devices: 1, deviceNames: ['sim:0'] });
    expect(violations({ ...least, resources: { deviceKind: 'CUDA' } }, cpuOnly)).toEqual([
      {
        path: 'spec.resources.device_kind',
        description: 'CUDA: this host has no such device (gnnctl doctor says why)',
      },
    ]);
  });

  it('of several kinds are refused by strict jobs: by name, by bits and by number', () => {
    expect(resourcesOf({ deviceNames: ['cpu:0', 'sim:0'] })).toContainEqual(
      expect.stringContaining('they differ in bits (CPU; SIM): expected those that train'),
    );
    const unlike = { deviceNames: ['cuda:0/0', 'cuda:1'] };
    expect(resourcesOf(unlike)).toContainEqual(expect.stringContaining('(sm_90; sm_80)'));
    expect(resourcesOf(unlike, { determinism: 'RELAXED' })).toEqual([]);
    expect(resourcesOf({ deviceKind: 'CUDA', devices: 2 })).toContainEqual(
      expect.stringMatching(/^devices: 2: CUDA devices here differ in bits/),
    );
    expect(resourcesOf({ deviceKind: 'CPU', deviceNames: ['sim:0'] })).toContainEqual(
      'device_kind: CPU: expected the kind of device_names, or unset beside them',
    );
  });

  it('compute products in TF32 where GPUs train, of simulated ones as well', () => {
    const tf32 = { precision: 'TF32' } as const;
    const refused = [{ path: 'spec.training.precision', description: expect.anything() }];
    const of = (resources: JobSpecInput['resources'], placement?: JobSpecInput['placement']) =>
      violations({ dataset: 'cora', training: { epochs: 1, ...tf32 }, resources, placement });
    expect(of({ deviceKind: 'CUDA' })).toEqual([]);
    expect(of({ deviceKind: 'SIM' })).toEqual([]);
    expect(of({ deviceKind: 'CPU' })).toEqual(refused);
    const onlySample = { policy: 'FIXED', samplers: 1, standby: 'OFF' } as const;
    expect(of({ deviceNames: ['cpu:0', 'cuda:1'] }, onlySample)).toEqual([]);
    expect(of({ deviceNames: ['cuda:1', 'cpu:0'] }, onlySample)).toEqual(refused);
  });

  it('named by their GPU are its logical devices, each once', () => {
    expect(resourcesOf({ deviceNames: ['cuda:0', 'cuda:0', 'cuda:0'] })).toContainEqual(
      'device_names[2]: "cuda:0": named more often than its 2 logical devices',
    );
    expect(resourcesOf({ deviceNames: ['cuda:0', 'cuda:0/0'] })).toContainEqual(
      'device_names[1]: "cuda:0/0": named twice',
    );
    expect(resourcesOf({ deviceNames: ['cuda:0', 'cuda:0'] })).toEqual([]);
  });

  it('may differ where those that come first only sample', () => {
    const named = (deviceNames: string[], placement: JobSpecInput['placement']) =>
      violations({ ...least, resources: { deviceNames }, placement }, mixed);
    const split = { policy: 'FIXED', samplers: 1, standby: 'OFF' } as const;
    expect(named(['sim:0', 'cpu:0'], split)).toEqual([]);
    expect(named(['cpu:0', 'cpu:1', 'sim:0'], { ...split, samplers: 2 })).toEqual([]);
    expect(named(['sim:0', 'cpu:0', 'cuda:1'], split)).toHaveLength(1);
    expect(named(['sim:0', 'cpu:0'], { ...split, standby: 'AUTO' })).toHaveLength(1);
    expect(named(['sim:0', 'cpu:0'], { ...split, samplers: 2 })).toHaveLength(1);
  });

  it('other than CPUs refuse what runs there alone, naming each field', () => {
    const wanted = {
      ...least,
      sampling: { algorithm: 'KHOP_PLUGIN', plugin: { path: '/plugin.so' } },
      model: { type: 'TORCHSCRIPT', script: { path: '/model.pt' } },
      training: { epochs: 1, threadsPerTrainer: 1 },
    } as const;
    const paths = (resources: JobSpecInput['resources']) =>
      violations({ ...wanted, resources }, { ...mixed, pluginFile: () => ({ sha256: 'a' }) })
        .filter(({ description }) => description.includes('CPU devices only'))
        .map(({ path }) => path);
    expect(paths({ deviceKind: 'CPU' })).toEqual([]);
    expect(paths({ deviceKind: 'CUDA' })).toEqual(['spec.model.type', 'spec.sampling.algorithm']);
    expect(paths({ deviceNames: ['sim:0'] })).toHaveLength(2);
  });
});
