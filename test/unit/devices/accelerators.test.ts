import { describe, expect, it } from 'vitest';
import { withTorch } from '../../../src/base/device-probe.ts';
import { type AcceleratorRequest, acceleratorsOf } from '../../../src/devices/accelerators.ts';
import { deviceProbe, probedDevice } from '../../support/probes.ts';

const options = {
  kind: 'CUDA',
  mayShare: false,
  own: new Set<number>(),
  cores: [0, 1],
  rates: {},
} as const;

function found(probe = deviceProbe([probedDevice(0)]), request: AcceleratorRequest = 'auto') {
  return acceleratorsOf(probe, { ...options, request });
}

const names = (devices: readonly { readonly name: string }[]) => devices.map(({ name }) => name);

describe('GPUs as devices', () => {
  it('are all that are fit, by default, each with its free memory', () => {
    const { devices, unused, notes, problems } = found(
      deviceProbe([probedDevice(0), probedDevice(1)], {
        links: [{ from: 0, to: 1, kind: 'NVLINK' }],
      }),
    );
    expect(names(devices)).toEqual(['cuda:0', 'cuda:1']);
    expect(devices[0]?.accelerator).toMatchObject({
      ...{ kind: 'CUDA', uuid: 'GPU-0', budgetBytes: 140e9 },
      peers: [{ name: 'cuda:1', link: 'NVLINK' }],
    });
    expect(devices[1]?.accelerator?.peers).toEqual([]);
    expect([unused, notes, problems]).toEqual([[], [], []]);
  });

  it('named n times are n logical devices with an equal part of its memory', () => {
    const { devices } = found(deviceProbe([probedDevice(0), probedDevice(1)]), [0, 'GPU-0', 1]);
    expect(names(devices)).toEqual(['cuda:0/0', 'cuda:0/1', 'cuda:1']);
    expect(devices.map(({ accelerator }) => accelerator?.budgetBytes)).toEqual([70e9, 70e9, 140e9]);
    expect(new Set(devices.slice(0, 2).map(({ accelerator }) => accelerator?.uuid)).size).toBe(1);
  });

  it('that others use are left alone unless told, and ours are no others', () => {
    const used = probedDevice(0, { processes: [{ pid: 7, bytes: null }] });
    const probe = deviceProbe([used]);
    const { devices, unused, notes } = found(probe);
    expect(devices).toEqual([]);
    expect(names(unused)).toEqual(['cuda:0']);
    expect(notes).toEqual([
      'cuda:0 is not used: others use it: process 7; ' +
        'end them, or set share_gpus in the configuration',
    ]);
    const shared = acceleratorsOf(probe, { ...options, request: 'auto', mayShare: true });
    expect(names(shared.devices)).toEqual(['cuda:0']);
    const own = acceleratorsOf(probe, { ...options, request: 'auto', own: new Set([7]) });
    expect(names(own.devices)).toEqual(['cuda:0']);
  });

  it('that are MIG instances are all told, with what to do for those that CUDA hides', () => {
    const instance = (uuid: string) => ({ uuid, name: 'H200 MIG 1g.18gb', totalBytes: 18e9 });
    const instances = [instance('MIG-a'), instance('MIG-b'), instance('MIG-c')];
    const { devices, unused } = found(
      deviceProbe([probedDevice(0, { uuid: 'MIG-b', mig: 1, instances })]),
    );
    expect(names(devices)).toEqual(['cuda:0']);
    expect(names(unused)).toEqual(['cuda:MIG-a', 'cuda:MIG-c']);
    expect(unused[0]).toMatchObject({
      probed: { uuid: 'MIG-a', name: 'H200 MIG 1g.18gb', totalBytes: 18e9 },
      why:
        'a MIG instance that CUDA does not show this daemon; ' +
        'a daemon of its own with CUDA_VISIBLE_DEVICES=MIG-a has it',
    });
  });

  it.each([
    [{ mig: 2 }, /MIG is on/],
    [{ computeMode: 2 }, /allows no process; sudo nvidia-smi -i 0 -c DEFAULT/],
    [{ opened: { code: 'UNAVAILABLE', message: 'taken', remedy: 'free it' } }, /^taken; free it$/],
    [{ answer: { code: 'NO_KERNEL_IMAGE', message: 'old', remedy: '' } }, /^old$/],
  ])('that cannot be used say why: %j', (change, why) => {
    const { devices, unused } = found(deviceProbe([probedDevice(0, change)]));
    expect(devices).toEqual([]);
    expect(unused[0]?.why).toMatch(why);
  });

  it.each([
    [{ computeMode: 3 }, /no standby Trainer/],
    [{ mps: 1 }, /MPS/],
    [{ registered: { code: 'REGISTER_REFUSED', message: 'no', remedy: '' } }, /^cuda:0: no$/],
  ])('that work with a limit are used, and the limit is told: %j', (change, note) => {
    const { devices, notes } = found(deviceProbe([probedDevice(0, change)]));
    expect(names(devices)).toEqual(['cuda:0']);
    expect(notes).toHaveLength(1);
    expect(notes[0]).toMatch(note);
  });

  it('that are wanted by name and cannot be had are problems, all of them', () => {
    const probe = deviceProbe([probedDevice(0, { mig: 2 }), probedDevice(1)]);
    const { problems, notes } = found(probe, [0, 5, 'GPU-x']);
    expect(problems).toHaveLength(3);
    expect(problems[0]).toMatch(/CUDA device 5: unknown; there are 0 \(GPU-0\), 1 \(GPU-1\)/);
    expect(problems[2]).toMatch(/^cuda:0: MIG is on/);
    expect(notes).toEqual([]);
  });

  it('that libtorch does not compute on are not used, so that no job is given them', () => {
    const probe = withTorch(
      deviceProbe([probedDevice(0), probedDevice(1)]),
      JSON.stringify({ torch: '2.13.0', cuda: 0, devices: [] }),
    );
    const { devices, unused, notes } = found(probe);
    expect(devices).toEqual([]);
    expect(names(unused)).toEqual(['cuda:0', 'cuda:1']);
    expect(unused[0]?.why).toContain('without CUDA');
    expect(notes[0]).toContain('cuda:0 is not used: PyTorch 2.13.0');
    expect(found(probe, [1]).problems).toHaveLength(1);
  });

  it('without a driver are none, and a sentence; wanted by name, a problem', () => {
    const answer = { code: 'NO_DRIVER', message: 'no driver', remedy: 'install one' };
    const probe = deviceProbe([], { answer });
    expect(found(probe).notes).toEqual(['no CUDA devices: no driver; install one']);
    expect(found(probe, [0]).problems).toEqual(['no CUDA devices: no driver; install one']);
    expect(found(probe, 'none')).toMatchObject({ notes: [], problems: [], devices: [] });
  });

  it('without NVML are used, and that others may be there is told', () => {
    const { devices, notes } = found(
      deviceProbe([probedDevice(0, { processes: null })], { monitor: 'no libnvidia-ml.so.1' }),
    );
    expect(devices).toHaveLength(1);
    expect(notes).toEqual(['who else uses the GPUs is unknown: no libnvidia-ml.so.1']);
  });

  it('make the same bits only with one architecture, size, slice and plug-in', () => {
    const probe = deviceProbe([
      probedDevice(0),
      probedDevice(1),
      probedDevice(2, { multiprocessors: 114 }),
      probedDevice(3, { architecture: 80 }),
      probedDevice(4, { mig: 1 }),
    ]);
    const bits = found(probe).devices.map(({ accelerator }) => accelerator?.bits);
    expect(bits[0]).toBe(bits[1]);
    expect(new Set(bits).size).toBe(4);
    const rebuilt = found({ ...probe, build: 'CUDA 13.1 90 abc' }).devices[0];
    expect(rebuilt?.accelerator?.bits).not.toBe(bits[0]);
  });

  it('that were not opened count with all of their memory', () => {
    const device = probedDevice(0, { freeBytes: null, opened: null, registered: null });
    expect(found(deviceProbe([device])).devices[0]?.accelerator?.budgetBytes).toBe(150e9);
  });
});
