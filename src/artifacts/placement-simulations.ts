import type { FieldViolation } from '../base/errors.ts';
import { createLine } from '../base/line.ts';
import { requireOneType } from '../datasets/ready-dataset.ts';
import {
  type LinkLayout,
  linkLayouts,
  type SimulatedLayout,
  simulatePlacements,
} from '../placement/placement.ts';
import { type Pool, poolTask } from '../pool/pool.ts';
import { featureBytes } from '../records/dataset-record.ts';
import type { JobSpec, JobSpecInput } from '../spec/job-spec.ts';
import { resolveJobSpec } from '../spec/resolve-job-spec.ts';
import type { ResolveContext } from '../spec/rules/rule.ts';
import { show } from '../spec/spec-checker.ts';
import type { Store } from '../store/store.ts';
import { contextOf, invalid, type SampleEpochsOptions, sampleEpochs } from './sample-epochs.ts';

/** What a dataset's rows, spread over linked devices, would be worth to jobs. */

export interface PlacementSimulationRequest {
  readonly dataset: string;
  readonly sampling: JobSpecInput['sampling'];
  readonly batchSize: number | undefined;
  readonly epochs: number | undefined;
  readonly randomSeed: string | undefined;
  readonly deviceCounts: readonly number[];
  readonly links: readonly LinkLayout[];
  readonly ratios: readonly number[];
  /** Bytes a second; 0: the default. */
  readonly hostRate: number;
  readonly peerRate: number;
}

export interface DatasetPlacements {
  readonly dataset: string;
  readonly digest: string;
  readonly sampling: JobSpec['sampling'];
  readonly batchesPerEpoch: number;
  readonly inputRows: number;
  readonly rowBytes: number;
  readonly hostRate: number;
  readonly peerRate: number;
  readonly layouts: readonly SimulatedLayout[];
}

export interface PlacementSimulations {
  /** Throws a GnndError that names every wrong field. Stops early on `signal`, leaving nothing. */
  simulate(request: PlacementSimulationRequest, signal: AbortSignal): Promise<DatasetPlacements>;
}

export interface PlacementSimulationsOptions extends SampleEpochsOptions {
  readonly store: Store;
  readonly pool: Pool;
}

const simulation = poolTask(
  import.meta.url,
  '../placement/simulate.ts',
  'LONG',
  simulatePlacements,
);

/** The parts of the ids that are counted apart can be shared by so many. */
const deviceCounts = [1, 2, 4, 8];
const ratiosMax = 20;
const epochsMax = 100;
/** PCIe 4 with random rows, and NVLink bridges: to be measured where there are devices. */
const defaults = {
  epochs: 3,
  deviceCounts: [2, 4, 8],
  ratios: [0.1],
  hostRate: 1e10,
  peerRate: 5e10,
};

export function createPlacementSimulations(
  options: PlacementSimulationsOptions,
): PlacementSimulations {
  // Each samples whole epochs on all cores: one at a time, in the order of arrival.
  const line = createLine();
  return {
    async simulate(asked, signal) {
      const request = withDefaults(asked);
      const dataset = requireOneType(options.store, request.dataset);
      const spec = specOf(request, contextOf(options, dataset));
      const part = { dataset, spec, signal, log: 'placement', samplingPath: 'sampling' };
      const leave = await line.enter(signal);
      try {
        const answer = await sampleEpochs(options, part, (inputs) => ({
          role: 'HOT_CURVE',
          options: {
            ...inputs,
            policy: spec.cache.policy,
            presampleEpochs: spec.cache.presampleEpochs,
            epochs: spec.training.epochs,
          },
        }));
        if (answer.role !== 'HOT_CURVE') {
          throw new Error(`a hot curve was answered with ${answer.role}`);
        }
        const rowBytes = dataset.numFeatures * featureBytes[dataset.featureDtype];
        const { runs, batchesPerEpoch } = answer.value;
        const { deviceCounts: counts, links, ratios, hostRate, peerRate } = request;
        const scenarios = { counts, links, ratios, rowBytes, hostRate, peerRate };
        const found = await options.pool.run(simulation, { runs, scenarios }, signal);
        const about = { dataset: dataset.id, digest: dataset.digest, sampling: spec.sampling };
        return { ...about, ...found, batchesPerEpoch, rowBytes, hostRate, peerRate };
      } finally {
        leave();
      }
    },
  };
}

function withDefaults(asked: PlacementSimulationRequest): PlacementSimulationRequest {
  const orDefault = <T>(given: readonly T[], fallback: readonly T[]) =>
    given.length === 0 ? fallback : given;
  return {
    ...asked,
    epochs: asked.epochs ?? defaults.epochs,
    deviceCounts: orDefault(asked.deviceCounts, defaults.deviceCounts),
    links: orDefault(asked.links, linkLayouts),
    ratios: orDefault(asked.ratios, defaults.ratios),
    hostRate: asked.hostRate === 0 ? defaults.hostRate : asked.hostRate,
    peerRate: asked.peerRate === 0 ? defaults.peerRate : asked.peerRate,
  };
}

/** The spec of a job that samples so. */
function specOf(request: PlacementSimulationRequest, context: ResolveContext): JobSpec {
  const violations = [...violationsOf(request)];
  const resolution = resolveJobSpec(
    {
      dataset: request.dataset,
      sampling: request.sampling ?? {},
      training: {
        epochs: request.epochs,
        batchSize: request.batchSize,
        randomSeed: request.randomSeed,
      },
    },
    context,
  );
  if ('ok' in resolution && violations.length === 0) return resolution.ok;
  const others = 'ok' in resolution ? [] : resolution.violations;
  throw invalid([
    ...violations,
    ...others.map(({ path, description }) => ({
      path: path.replace(/^spec\.(training\.)?/, ''),
      description,
    })),
  ]);
}

function violationsOf(request: PlacementSimulationRequest): readonly FieldViolation[] {
  const violations: FieldViolation[] = [];
  const check = (isFine: boolean, path: string, given: unknown, expected: string) => {
    if (!isFine) violations.push({ path, description: `${show(given)}: expected ${expected}` });
  };
  const atMost = (path: string, list: readonly unknown[], max: number) => {
    if (list.length <= max) return;
    violations.push({ path, description: `${list.length} given: expected at most ${max}` });
  };
  const { ratios, links, epochs } = request;
  atMost('device_counts', request.deviceCounts, deviceCounts.length);
  atMost('links', links, linkLayouts.length);
  atMost('ratios', ratios, ratiosMax);
  request.deviceCounts.slice(0, deviceCounts.length).forEach((count, i) => {
    check(deviceCounts.includes(count), `device_counts[${i}]`, count, '1, 2, 4 or 8');
  });
  ratios.slice(0, ratiosMax).forEach((ratio, i) => {
    check(ratio >= 0 && ratio <= 1, `ratios[${i}]`, ratio, 'a finite number in [0, 1]');
  });
  links.slice(0, linkLayouts.length).forEach((layout, i) => {
    check(linkLayouts.includes(layout), `links[${i}]`, layout, linkLayouts.join(', '));
  });
  const isEpochs =
    Number.isInteger(epochs) && epochs !== undefined && epochs >= 1 && epochs <= epochsMax;
  check(isEpochs, 'epochs', epochs, `an integer from 1 to ${epochsMax}`);
  for (const [path, rate] of [
    ['host_rate', request.hostRate],
    ['peer_rate', request.peerRate],
  ] as const) {
    check(rate > 0 && rate < Infinity, path, rate, 'a positive number of bytes a second');
  }
  return violations;
}
