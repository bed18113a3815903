import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import { type ConfigValues, resolveConfig } from '../../../src/config/daemon-config.ts';
import { nearestOf } from '../../../src/spec/nearest.ts';

const defaults = { stateDir: '/state', runDir: '/run/user/1/gnnd' };

test('everything has a default', () => {
  expect(resolveConfig({}, defaults)).toEqual({
    ok: {
      stateDir: '/state',
      listen: ['unix:/run/user/1/gnnd/gnnd.sock'],
      tlsCert: '',
      tlsKey: '',
      tlsClientCa: '',
      insecureLoopback: false,
      tokensFile: '/state/tokens.json',
      metricsListen: '127.0.0.1:9464',
      otlpEndpoint: '',
      page: 'AUTO',
      datasetsDir: '/state/datasets',
      cacheDir: '/state/cache',
      pluginsDir: '',
      sourcesDir: '',
      dumpsDir: '/state/dumps',
      cpuDevices: null,
      shareCores: false,
      cudaDevices: 'auto',
      shareGpus: false,
      simDevices: 'none',
      simMemoryBytes: 2 ** 30,
      linkRates: {},
      maxQueued: 10_000,
      topologyIdleMs: 10_000,
      stopTimeoutMs: 100_000,
      retention: {
        jobsDays: null,
        jobsCount: null,
        eventsDays: 7,
        eventsCount: 100_000,
        jobLogsBytes: 64 * 2 ** 20,
        logsBytes: 2 ** 30,
        derivedBytes: null,
      },
      logLevel: 'info',
    },
  });
});

test('folders follow the state directory; lists may be written with commas', () => {
  const listen = 'unix:/a.sock, 127.0.0.1:7000';
  const values = { state_dir: '/other', listen, cpu_devices: '4', insecure_loopback: 'true' };
  expect(resolveConfig(values, defaults)).toMatchObject({
    ok: {
      datasetsDir: '/other/datasets',
      listen: ['unix:/a.sock', '127.0.0.1:7000'],
      cpuDevices: 4,
    },
  });
});

test('limits of what is kept take days, numbers and bytes with binary units', () => {
  const values = {
    jobs_retain_days: '30',
    jobs_retain_count: 100,
    logs_max_bytes: '1.5GiB',
    cache_max_bytes: 2 ** 30,
  };
  expect(resolveConfig(values, defaults)).toMatchObject({
    ok: {
      retention: {
        jobsDays: 30,
        jobsCount: 100,
        logsBytes: 1.5 * 2 ** 30,
        derivedBytes: 2 ** 30,
      },
    },
  });
  const wrong = { jobs_retain_days: 0, logs_max_bytes: '5GB', cache_max_bytes: '3' };
  const resolution = resolveConfig(wrong, defaults);
  expect('problems' in resolution ? resolution.problems : []).toEqual([
    'jobs_retain_days must be an integer in 1..36500, not 0',
    'logs_max_bytes must be a number of bytes such as 512MiB, of at least 1MiB, not "5GB"',
    'cache_max_bytes must be a number of bytes such as 512MiB, of at least 1MiB, not "3"',
  ]);
});

test('TCP needs encryption, or to be knowingly open to this host', () => {
  const problems = (values: ConfigValues) => {
    const resolution = resolveConfig(values, defaults);
    return 'problems' in resolution ? resolution.problems : [];
  };
  const tls = { tls_cert: '/c.pem', tls_key: '/k.pem' };
  const open = { insecure_loopback: true };
  for (const listen of ['127.0.0.1:1', 'localhost:1', '[::1]:1']) {
    expect(problems({ listen })).toEqual([expect.stringMatching(/TCP without .*or insecure_/)]);
    expect(problems({ listen, ...open })).toEqual([]);
    expect(problems({ listen, ...tls, tls_client_ca: '/ca.pem' })).toEqual([]);
  }
  for (const listen of ['0.0.0.0:1', '[::]:1', 'gpu-host:1', '127.0.0.1.example.org:1']) {
    expect(problems({ listen, ...open })).toEqual([expect.stringMatching(/open to the network/)]);
    expect(problems({ listen, ...tls })).toEqual([]);
  }
  expect(problems({ ...tls, ...open })).toEqual([expect.stringMatching(/^insecure_loopback/)]);
  expect(problems({ tls_key: '/k.pem', tls_client_ca: '/ca.pem' })).toEqual([
    'tls_cert and tls_key: expected both or neither',
    'tls_client_ca: expected tls_cert and tls_key beside it',
  ]);
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

test('folders are absolute, whatever the working directory was', () => {
  const values = { state_dir: 'here', sources_dir: '../there' };
  expect(resolveConfig(values, defaults)).toMatchObject({
    ok: {
      stateDir: resolve('here'),
      datasetsDir: resolve('here/datasets'),
      sourcesDir: resolve('../there'),
      pluginsDir: '',
    },
  });
});

test('a misspelt key is answered with the nearest known one', () => {
  expect(nearestOf('batchsize', ['batch_size', 'epochs'])).toBe('batch_size');
  expect(nearestOf('statedir', ['state_dir', 'listen'])).toBe('state_dir');
  expect(nearestOf('zzz', ['state_dir', 'listen'])).toBe(null);
});

const devicesIn = (values: object) => {
  const resolution = resolveConfig(values, defaults);
  return 'ok' in resolution ? resolution.ok : { problems: resolution.problems };
};

test('GPUs are all that are fit, none, or a list in which one may stand twice', () => {
  expect(devicesIn({})).toMatchObject({ cudaDevices: 'auto', simDevices: 'none' });
  expect(devicesIn({ cuda_devices: 'none' })).toMatchObject({ cudaDevices: 'none' });
  expect(devicesIn({ cuda_devices: [0, 0, 'GPU-1a-2b'] })).toMatchObject({
    cudaDevices: [0, 0, 'GPU-1a-2b'],
  });
  expect(devicesIn({ cuda_devices: '1, 0' })).toMatchObject({ cudaDevices: [1, 0] });
  expect(devicesIn({ cuda_devices: [0, 'first', -1] })).toEqual({
    problems: [expect.stringContaining('"first"'), expect.stringContaining('"-1"')],
  });
});

test('simulated devices are a number of them, or a list as of GPUs', () => {
  expect(devicesIn({ sim_devices: 2 })).toMatchObject({ simDevices: [0, 1] });
  expect(devicesIn({ sim_devices: '0,0' })).toMatchObject({ simDevices: [0, 0] });
  expect(devicesIn({ sim_devices: [3] })).toMatchObject({ simDevices: [3] });
  expect(devicesIn({ sim_devices: 0 })).toMatchObject({ simDevices: 'none' });
  for (const wrong of [65, -1, 'many', [64]]) {
    expect(devicesIn({ sim_devices: wrong })).toMatchObject({ problems: [expect.any(String)] });
  }
});

test('the page is on, off or as the address allows, as YAML and the environment spell it', () => {
  const pageOf = (page: unknown) => {
    const resolved = resolveConfig({ page }, defaults);
    return 'ok' in resolved ? resolved.ok.page : resolved.problems;
  };
  expect(['auto', 'on', true, 'true', 'off', false].map(pageOf)).toEqual([
    ...['AUTO', 'ON', 'ON', 'ON', 'OFF', 'OFF'],
  ]);
  expect(pageOf('maybe')).toEqual(['page must be auto, on or off, not "maybe"']);
});

test('rates of links are configured by class, and all that cannot be is told', () => {
  expect(devicesIn({ link_rates: 'HOST:8, NVLINK:42.5' })).toMatchObject({
    linkRates: { HOST: 8, NVLINK: 42.5 },
  });
  expect(devicesIn({ link_rates: ['PCIE:12'] })).toMatchObject({ linkRates: { PCIE: 12 } });
  expect(devicesIn({ link_rates: 'HOST:0,BUS:3,PCIE' })).toEqual({
    problems: ['"HOST:0"', '"BUS:3"', '"PCIE"'].map((part) =>
      expect.stringContaining(`link_rates: ${part}: expected HOST, NVLINK, PCIE, HOST_BUS`),
    ),
  });
});

test('what only a shell understands is refused, and a path is not taken for an address', () => {
  const values = { state_dir: '~/gnnd', listen: ['unix:~/a.sock', '/run/b.sock'] };
  const resolved = resolveConfig(values, defaults);
  if ('ok' in resolved) throw new Error('accepted');
  const tilde = 'begins with ~, which only shells replace: write the path in full';
  expect(resolved.problems).toEqual([
    `state_dir: "~/gnnd" ${tilde}`,
    `listen: "unix:~/a.sock" ${tilde}`,
    'listen: "/run/b.sock" is neither unix:/path nor host:port; did you mean unix:/run/b.sock?',
  ]);
});
