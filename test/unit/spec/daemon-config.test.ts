import { expect, test } from 'vitest';
import { resolveConfig } from '../../../src/spec/daemon-config.ts';
import { nearestOf } from '../../../src/spec/nearest.ts';

const defaults = { stateDir: '/state', runDir: '/run/user/1/gnnd' };

test('everything has a default', () => {
  expect(resolveConfig({}, defaults)).toEqual({
    ok: {
      stateDir: '/state',
      listen: ['unix:/run/user/1/gnnd/gnnd.sock'],
      metricsListen: '127.0.0.1:9464',
      datasetsDir: '/state/datasets',
      cacheDir: '/state/cache',
      pluginsDir: '',
      cpuDevices: null,
      shareCores: false,
      maxQueued: 10_000,
      logLevel: 'info',
    },
  });
});

test('folders follow the state directory; lists may be written with commas', () => {
  const listen = 'unix:/a.sock, 127.0.0.1:7000';
  expect(resolveConfig({ state_dir: '/other', listen, cpu_devices: '4' }, defaults)).toMatchObject({
    ok: {
      datasetsDir: '/other/datasets',
      listen: ['unix:/a.sock', '127.0.0.1:7000'],
      cpuDevices: 4,
    },
  });
});

test('all problems are told at once', () => {
  const resolution = resolveConfig(
    {
      cpu_devices: 0,
      log_level: 'loud',
      share_cores: 'maybe',
      listen: ['nowhere'],
      max_queued: 1.5,
    },
    defaults,
  );
  expect('problems' in resolution ? resolution.problems : []).toHaveLength(5);
});

test('a misspelt key is answered with the nearest known one', () => {
  expect(nearestOf('batchsize', ['batch_size', 'epochs'])).toBe('batch_size');
  expect(nearestOf('statedir', ['state_dir', 'listen'])).toBe('state_dir');
  expect(nearestOf('zzz', ['state_dir', 'listen'])).toBe(null);
});
