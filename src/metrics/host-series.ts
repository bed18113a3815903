import { jobStates } from '../records/job-record.ts';
import type { daemonFamilies } from './families.ts';
import { datasetStates, deviceStates, segmentKinds } from './labels.ts';
import type { HostMetricsInput } from './metrics-types.ts';
import type { SeriesTable } from './series.ts';

/** Writes what the daemon says about itself and its host into its series. */
export function setHost(table: SeriesTable<typeof daemonFamilies>, input: HostMetricsInput): void {
  table.set('gnnd_ready', {}, input.ready ? 1 : 0);
  table.set('gnnd_store_revision', {}, input.store.revision);
  table.set('gnnd_store_db_bytes', {}, input.store.dbBytes);
  table.set('gnnd_store_wal_bytes', {}, input.store.walBytes);
  table.set('gnnd_state_dir_free_bytes', {}, input.stateDirFreeBytes);
  table.set('gnnd_watches', {}, input.watches);
  table.set('gnnd_dataset_bytes', {}, input.datasetBytes);
  for (const state of jobStates) table.set('gnnd_jobs', { state }, input.jobs[state]);
  for (const state of datasetStates) table.set('gnnd_datasets', { state }, input.datasets[state]);
  for (const kind of segmentKinds) {
    const segments = input.segments.filter((segment) => segment.kind === kind);
    const bytes = segments.reduce((sum, segment) => sum + segment.bytes, 0);
    table.set('gnnd_shm_segments', { kind }, segments.length);
    table.set('gnnd_shm_bytes', { kind }, bytes);
  }
  for (const { device, kind, uuid, model, driver, state: current } of input.devices) {
    table.set('gnnd_device_info', { device, uuid, model, driver, kind }, 1);
    for (const state of deviceStates) {
      table.set('gnnd_device_state', { device, state }, state === current ? 1 : 0);
    }
  }
}
