import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { readProbe, withTorch } from '../../src/base/device-probe.ts';
import { measureLinks, probeDevices } from '../../src/devices/probe-devices.ts';
import { repository } from '../support/daemon.ts';

const build = join(repository, 'build/native');
const plugins = ['sim', 'cuda'].filter((kind) => existsSync(join(build, `gnnd_${kind}.so`)));
const probeBinary = join(build, 'gnnd_probe');
const hasDriver = existsSync('/proc/driver/nvidia/version');

function probe(kind: string, env: Readonly<Record<string, string>> = {}) {
  const args = [join(build, `gnnd_${kind}.so`), '--open'];
  const options = { encoding: 'utf8', env: { ...process.env, ...env } } as const;
  return readProbe(execFileSync(probeBinary, args, options));
}

describe('device plug-ins', () => {
  it.each(plugins)(
    'gnnd_%s exports one function, and needs the C and C++ libraries alone',
    (kind) => {
      const path = join(build, `gnnd_${kind}.so`);
      const symbols = execFileSync('nm', ['-D', '--defined-only', path], { encoding: 'utf8' });
      expect(
        symbols
          .trim()
          .split('\n')
          .map((line) => line.split(' ').at(-1)),
      ).toEqual(['gnnd_device_plugin_get']);
      const dynamic = execFileSync('readelf', ['-d', path], { encoding: 'utf8' });
      const needed = [...dynamic.matchAll(/NEEDED.*\[([^\]]+)\]/g)].map((match) => match[1] ?? '');
      const allowed = /^(lib(stdc\+\+|gcc_s|m|c|dl|rt|pthread)\.so\.\d+|ld-linux-[\w-]+\.so\.\d)$/;
      expect(needed.filter((name) => !allowed.test(name))).toEqual([]);
    },
  );

  it('of simulated devices tell what there is, each opened and registered with', () => {
    const { answer, devices, links } = probe('sim', { GNND_SIM_DEVICES: '2' });
    expect(answer.code).toBe('OK');
    expect(devices.map(({ uuid }) => uuid.slice(-2))).toEqual(['00', '01']);
    for (const { opened, registered, freeBytes, totalBytes } of devices) {
      expect([opened?.code, registered?.code]).toEqual(['OK', 'OK']);
      expect(freeBytes).toBe(totalBytes);
    }
    expect(links).toEqual([]);
  });

  it('of simulated devices tell what links carry, which is kept for nobody', async () => {
    const env = {
      ...process.env,
      ...{ GNND_SIM_DEVICES: '3', GNND_SIM_PEERS: '0-2:PCIE', GNND_SIM_RATES: 'HOST:7,PCIE:30' },
    };
    const folder = join(build, 'no-such-folder');
    const linked = await probeDevices('SIM', env);
    expect(linked.links).toEqual([
      { from: 0, to: 2, kind: 'PCIE' },
      { from: 2, to: 0, kind: 'PCIE' },
    ]);
    const rates = await measureLinks('SIM', { probe: linked, env, folder });
    expect(rates).toEqual({ HOST: 7, PCIE: 30 });
    expect(existsSync(folder)).toBe(false);
    // There is no device to read from, so nothing is measured.
    const alone = { ...linked, links: [] };
    expect(await measureLinks('SIM', { probe: alone, env, folder })).toEqual({});
  });

  it.each([
    ['35', 'DRIVER_TOO_OLD'],
    ['46', 'UNAVAILABLE'],
    ['100', 'NO_DEVICE'],
    ['802', 'NOT_READY'],
    ['803', 'DRIVER_MISMATCH'],
  ])('that cannot be used answer CUDA error %s with %s and a remedy', (number, code) => {
    const { answer, devices } = probe('sim', { GNND_SIM_SYSTEM: number });
    expect(answer.code).toBe(code);
    expect(answer.remedy).not.toBe('');
    expect(devices).toEqual([]);
  });

  it('refuse to register where the host does, and say what happens instead', () => {
    const [device] = probe('sim', { GNND_SIM_FAULT: 'register:1' }).devices;
    expect(device?.opened?.code).toBe('OK');
    expect(device?.registered?.code).toBe('REGISTER_REFUSED');
    expect(device?.registered?.remedy).toContain('pinned ring');
  });

  it.skipIf(!plugins.includes('cuda') || hasDriver)(
    'of CUDA load without a driver, and decline',
    () => {
      const { answer, build: made, devices } = probe('cuda');
      expect(answer.code).toBe('NO_DRIVER');
      expect(answer.message).toContain('cudaErrorInsufficientDriver');
      expect(made).toMatch(/^CUDA \d+\.\d /);
      expect(devices).toEqual([]);
    },
  );
  if (!plugins.includes('cuda'))
    process.stdout.write('SKIPPED: gnnd_cuda (test/check.mjs has it)\n');

  it('of GPUs stand beside a libtorch that says what it computes on', () => {
    const text = execFileSync(join(build, 'gnnd_torch_probe'), { encoding: 'utf8' });
    const cache = readFileSync(join(build, 'CMakeCache.txt'), 'utf8');
    const python = /GNND_PYTHON:\w+=(.*)/.exec(cache)?.[1] ?? 'python3';
    const code = `import torch; print(torch.version.cuda, torch.cuda.device_count())`;
    const [cuda = '', count = ''] = execFileSync(python, ['-c', code], { encoding: 'utf8' })
      .trim()
      .split(' ');
    const { torch } = withTorch(probe('sim'), text);
    expect(torch?.cuda).toBe(cuda === 'None' ? 0 : Math.round(Number(cuda) * 1000));
    expect(torch?.devices).toHaveLength(Number(count));
  });

  it('that were not built are answered with what builds them', async () => {
    vi.stubEnv('GNND_ADDON_DIR', '/nowhere');
    const found = await probeDevices('SIM', process.env).finally(() => vi.unstubAllEnvs());
    expect(found.answer).toEqual({
      code: 'NOT_BUILT',
      message: 'gnnd was built without its simulated devices',
      remedy: 'npm run setup -- --sim',
    });
  });

  it('that are no plug-ins are answered, too', async () => {
    const text = execFileSync(probeBinary, ['/dev/null'], { encoding: 'utf8' });
    expect(readProbe(text).answer).toMatchObject({ code: 'FAILED' });
    expect(spawnSync(probeBinary, []).status).toBe(2);
    const found = await probeDevices('SIM', { ...process.env, GNND_SIM_DEVICES: '3' });
    expect(found.devices).toHaveLength(3);
  });
});
