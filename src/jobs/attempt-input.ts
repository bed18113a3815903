import { join } from 'node:path';
import { hostMemoryBytes } from '../base/host-memory.ts';
import { dataOf, jobDataOf } from '../datasets/ready-dataset.ts';
import type { CrewDevice } from '../devices/seat.ts';
import { imagesFolderOf } from '../files/image-files.ts';
import type { JobRecord } from '../records/job-record.ts';
import { adapts } from '../spec/rules/locality.ts';
import type { Store } from '../store/store.ts';
import type { AttemptInput } from '../supervisor/supervisor.ts';

/** What an attempt works with, from the job's record and the host. */

interface Host {
  readonly store: Store;
  readonly devices: readonly CrewDevice[];
  readonly jobsFolder: string;
  readonly cacheFolder: string;
}

interface Opened {
  /** The scheduler's number of the attempt. */
  readonly attempt: number;
  /** The store's number of the attempt. */
  readonly number: number;
  readonly devices: readonly string[];
  readonly failuresLeft: number;
}

/** Path of the attempt's timeline, beside its logs. */
export function timelineFileOf(jobFolder: string, attempt: number): string {
  return join(jobFolder, 'attempts', String(attempt), 'timeline.json');
}

/** Throws when the dataset or a device is gone. */
export function attemptInputOf(
  { store, devices, jobsFolder, cacheFolder }: Host,
  job: JobRecord,
  opened: Opened,
): AttemptInput {
  const { effectiveSpec: spec, datasetDigest, id: jobId, uid } = job;
  const { trainedOn } = spec.inference;
  const dataset = store.getDataset(spec.dataset);
  if (dataset === null) throw new Error(`dataset ${spec.dataset} is gone`);
  const folder = join(jobsFolder, uid);
  const { attempt: ordinal, number, failuresLeft } = opened;
  return {
    ...{ jobId, uid, number, ordinal, failuresLeft, spec, datasetDigest, cacheFolder },
    dataset: jobDataOf(dataset, spec),
    devices: opened.devices.map((name) => {
      const device = devices.find((known) => known.name === name);
      if (device === undefined) throw new Error(`device ${name} is unknown`);
      return device;
    }),
    hostBytes: hostMemoryBytes(),
    logFolder: join(folder, 'attempts', String(number), 'log'),
    timelineFile: timelineFileOf(folder, number),
    jobFolder: folder,
    checkpointFolder: join(folder, 'checkpoint'),
    inferenceFolder: join(folder, 'inference'),
    predictionsFolder: join(folder, 'predictions'),
    trainedDataset: trainedOn === '' ? null : datasetOf(store, trainedOn),
    imagesFolder: imagesFolderOf(jobsFolder, uid),
    epochsReported: store.epochsBefore(jobId, number),
    scalesRecorded: adapts(spec) ? store.scalesOf(jobId) : [],
  };
}

const lookedThroughMax = 1000;

/** The first with this digest. */
function datasetOf(store: Store, digest: string): AttemptInput['trainedDataset'] {
  const known = store.listDatasets({ limit: lookedThroughMax, afterId: null });
  const found = known.find((each) => each.state === 'READY' && each.digest === digest);
  return found === undefined ? null : dataOf(found);
}
