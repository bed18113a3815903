import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ExecutorRole } from '../../src/api/gen/gnnd/v1/executor_pb.ts';
import type { Job } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { StandbyPolicy } from '../../src/api/gen/gnnd/v1/resources_pb.ts';
import { SamplingAlgorithm } from '../../src/api/gen/gnnd/v1/sampling_pb.ts';
import { temporaryFolder } from '../support/at-end.ts';
import { crew, midEpoch, modelsOf, pair, type SpecInit, signal } from '../support/crews.ts';
import { TestDaemon } from '../support/daemon.ts';
import { options, specOf } from '../support/options.ts';
import { findPython, runPython } from '../support/python.ts';
import { ringGraph } from '../support/ring-graph.ts';
import { compileTutorialSampler, tutorialCode } from '../support/tutorial.ts';

/** Each sampler, model and optimizer, those of users, too: no crew and no death changes a bit. */

const folder = temporaryFolder('gnnd-crews-');
const pluginsDir = join(folder, 'plugins');
const python = await findPython('torch');
let daemon: TestDaemon;

beforeAll(async () => {
  mkdirSync(pluginsDir);
  compileTutorialSampler(pluginsDir);
  const module = join(folder, 'sage.py');
  writeFileSync(module, tutorialCode('python'));
  if (python === null) throw new Error('no Python has torch');
  // Cora's columns and classes.
  const sizes = ['1433', '16', '7', '2'];
  await runPython(python, [module, ...sizes, join(pluginsDir, 'sage.pt')]);
  const env = { GNND_PLUGINS_DIR: pluginsDir };
  daemon = await TestDaemon.start({ cpuDevices: 4, datasets: ['cora'], env });
  const ring = join(folder, 'ring');
  mkdirSync(ring);
  for (const [name, bytes] of Object.entries(ringGraph.files)) {
    writeFileSync(join(ring, name), bytes);
  }
  await daemon.import('ring', ring);
});

afterAll(async () => {
  await daemon.stop();
});

const ofUsers: Readonly<Record<string, SpecInit>> = {
  'a sampler of the user': specOf({
    model: { type: ModelType.GRAPHSAGE },
    sampling: {
      algorithm: SamplingAlgorithm.KHOP_PLUGIN,
      fanouts: [10, 5],
      plugin: { path: join(pluginsDir, 'few_hubs.so'), options: 'cap=4', weights: true },
    },
  }),
  'a model of the user': {
    ...specOf({ model: {} }),
    model: {
      type: ModelType.TORCHSCRIPT,
      layers: 2,
      script: { path: join(pluginsDir, 'sage.pt') },
    },
  },
};
const builtIn = Object.entries(options).map(([name, option]) => [name, specOf(option)] as const);

let serial = 0;

function train(spec: SpecInit): Promise<Job> {
  serial += 1;
  return daemon.train(`job-${serial}`, spec);
}

/** On an idle machine a short job may be over before the signal: then another one is tried. */
async function trainWithKill(spec: SpecInit): Promise<Job> {
  for (let attempt = 1; attempt <= 6; attempt += 1) {
    serial += 1;
    const id = `job-${serial}`;
    await daemon.createJob(id, { ...spec, ...pair });
    await midEpoch(daemon, id).then(
      (pids) => signal(pids.get(ExecutorRole.TRAINER), 'SIGKILL'),
      () => {},
    );
    const job = await daemon.succeeded(id);
    if ((job.attempts[0]?.exits.length ?? 0) > 0) return job;
  }
  throw new Error('no job was met in mid-epoch');
}

test.each([...builtIn, ...Object.entries(ofUsers)])(
  '%s trains the same with every crew',
  async (_, given) => {
    const epochs = given.dataset === 'ring' ? 200 : (given.training?.epochs ?? 0);
    const spec = { ...given, training: { ...given.training, epochs } } as SpecInit;
    const models = modelsOf(await train({ ...spec, ...pair }));
    expect(models).toHaveLength(epochs);
    const many = await train({ ...spec, ...crew(2, 2, StandbyPolicy.ALWAYS) });
    expect(modelsOf(many)).toEqual(models);
    const killed = await trainWithKill(spec);
    expect(killed.attempts[0]?.exits.map(({ signal: name }) => name)).toEqual(['SIGKILL']);
    expect(modelsOf(killed)).toEqual(models);
  },
  600_000,
);
