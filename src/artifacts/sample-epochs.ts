import { join } from 'node:path';
import { type FieldViolation, GnndError, messageOf, someOf } from '../base/errors.ts';
import { countsOf, dataOf, hasEdgeWeights } from '../datasets/ready-dataset.ts';
import { type Task, type TaskAnswer, topologyFd } from '../executor/protocol.ts';
import type { CoreAddon, FootprintOptions } from '../native/contract.ts';
import { nativeCodeOf } from '../native/load.ts';
import { taskTopologyPlace } from '../plan/plan.ts';
import {
  type DataWitness,
  loadDataset,
  type SharedTopology,
  type Topologies,
} from '../prepare/prepare.ts';
import type { DatasetRecord } from '../records/dataset-record.ts';
import type { JobSpec } from '../spec/job-spec.ts';
import type { ResolveContext } from '../spec/rules/rule.ts';
import { runTask } from '../supervisor/supervisor.ts';
import { workOf } from '../work/work.ts';

/** Reports that sample whole epochs as a job would: the child that does, and what it needs. */

export interface SampleEpochsOptions {
  readonly native: CoreAddon;
  readonly topologies: Topologies;
  readonly witness: DataWitness;
  readonly host: Pick<
    ResolveContext,
    'deviceNames' | 'deviceCores' | 'deviceBits' | 'matrixLibrary' | 'pluginFile'
  >;
  /** The state folder, whose log folder takes the children's logs. */
  readonly stateDir: string;
}

export interface SampleEpochsRequest {
  readonly dataset: DatasetRecord;
  /** Spec of a job that samples in the wanted way. */
  readonly spec: JobSpec;
  /** Name of the child's log in the log folder, without `.log`. */
  readonly log: string;
  /** The field that is wrong when a sampler cannot do this. */
  readonly samplingPath: string;
  readonly signal: AbortSignal;
}

/** What a job's spec is resolved with, here and on this dataset. */
export function contextOf({ host }: SampleEpochsOptions, dataset: DatasetRecord): ResolveContext {
  return {
    ...host,
    trainNodes: dataset.numTrain,
    numNodes: dataset.numNodes,
    numEdges: dataset.numEdges,
    valNodes: dataset.numVal,
    hasEdgeWeights: hasEdgeWeights(dataset),
  };
}

/** The answer of a child that has the dataset's topology; throws a GnndError for what it lacks. */
export async function sampleEpochs(
  { native, topologies, witness, stateDir }: SampleEpochsOptions,
  { dataset, spec, log, samplingPath, signal }: SampleEpochsRequest,
  taskOf: (inputs: FootprintOptions) => Task,
): Promise<TaskAnswer> {
  let topology: SharedTopology | null = null;
  const task = {
    cores: [],
    logPath: join(stateDir, 'log', `${log}.log`),
    threads: 1,
    instructionSet: native.hostInstructionSet(),
    signal,
  };
  const alias = spec.sampling.algorithm === 'KHOP_WEIGHTED';
  try {
    const loaded = await loadDataset(
      { topologies, witness },
      {
        dataset: dataOf(dataset),
        datasetDigest: dataset.digest,
        standardizedFolder: null,
        place: taskTopologyPlace(native, countsOf(dataset), alias),
        alias,
        node: null,
      },
      task,
    );
    topology = loaded.topology;
    const { location } = loaded;
    const inputs = {
      dataset: location,
      sampling: workOf(spec).layout(native, location.counts).sampling,
      randomSeed: BigInt(spec.training.randomSeed),
      topologyFd,
    };
    return await runTask(taskOf(inputs), { ...task, topologyFd: topology.fd });
  } catch (error) {
    throw failureOf(error, samplingPath);
  } finally {
    topology?.release();
  }
}

/** What a child's failure means to the caller. */
function failureOf(error: unknown, samplingPath: string): unknown {
  const description = messageOf(error);
  switch (nativeCodeOf(error)) {
    case 'SPEC_INVALID':
    case 'PLUGIN_FAILED':
      return invalid([{ path: samplingPath, description }]);
    case 'DATASET_CORRUPT':
    case 'DATASET_NOT_FOUND':
      return new GnndError('DATASET_CORRUPT', description);
    default:
      return error;
  }
}

/** A refusal that names every wrong field. */
export function invalid(violations: readonly FieldViolation[]): GnndError {
  const message = `invalid request: ${someOf(violations.map(({ path }) => path))}`;
  return new GnndError('SPEC_INVALID', message, { violations });
}
