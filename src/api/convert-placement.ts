import { create } from '@bufbuild/protobuf';
import type {
  DatasetPlacements,
  PlacementSimulationRequest,
} from '../artifacts/placement-simulations.ts';
import type {
  LinkLayout as LinkLayoutName,
  Simulated,
  SimulatedLayout,
} from '../placement/placement.ts';
import { messageOf, plainOf } from '../spec/spec-codec.ts';
import { enumName, int64 } from './convert.ts';
import {
  LinkLayout,
  type PlacementSimulation,
  PlacementSimulationSchema,
  PlacementWay,
  type SimulatePlacementRequest,
} from './gen/gnnd/v1/placement_pb.ts';
import { SamplingSpecSchema } from './gen/gnnd/v1/sampling_pb.ts';
import { idOfName } from './requests.ts';

/** Simulated placements, both ways. */

export function simulationFromProto(request: SimulatePlacementRequest): PlacementSimulationRequest {
  const { sampling, batchSize, epochs, deviceCounts, ratios, hostRate, peerRate } = request;
  return {
    ...{ batchSize, epochs, deviceCounts, ratios, hostRate, peerRate },
    dataset: idOfName('datasets', request.name),
    sampling: sampling === undefined ? undefined : plainOf(SamplingSpecSchema, sampling),
    randomSeed: request.randomSeed?.toString(),
    // What is no layout is refused with all else that is wrong.
    links: request.links.map(
      (value) => enumName<LinkLayoutName>(LinkLayout, value) ?? ('0' as LinkLayoutName),
    ),
  };
}

export function placementsToProto(found: DatasetPlacements): PlacementSimulation {
  return create(PlacementSimulationSchema, {
    dataset: `datasets/${found.dataset}`,
    digest: found.digest,
    sampling: messageOf(SamplingSpecSchema, found.sampling),
    batchesPerEpoch: int64(found.batchesPerEpoch),
    inputRows: found.inputRows,
    rowBytes: int64(found.rowBytes),
    hostRate: found.hostRate,
    peerRate: found.peerRate,
    layouts: found.layouts.map((layout) => layoutToProto(layout, found)),
  });
}

function layoutToProto(
  { devices, layout, ratio, deviceRows, placements }: SimulatedLayout,
  found: DatasetPlacements,
) {
  return {
    ...{ devices, ratio },
    links: LinkLayout[layout],
    deviceRows: int64(deviceRows),
    placements: placements.map((placement) => placementToProto(placement, found)),
  };
}

/** Any device takes any batch: each reads its share of an epoch's rows as its load says. */
function placementToProto(
  { way, devices, pieces }: Simulated,
  { inputRows, batchesPerEpoch, rowBytes }: DatasetPlacements,
) {
  const share = (rows: number) => (inputRows === 0 ? 0 : rows / inputRows);
  const extractNs = (cost: number) => (batchesPerEpoch === 0 ? 0 : cost / batchesPerEpoch);
  const mean = (rows: readonly number[]) =>
    rows.reduce((sum, one) => sum + one, 0) / Math.max(1, rows.length);
  return {
    way: PlacementWay[way],
    hostBytes: mean(devices.map(({ load }) => load.host)) * rowBytes,
    peerBytes: mean(devices.map(({ load }) => load.peer)) * rowBytes,
    extractNs: Math.max(...devices.map(({ load }) => extractNs(load.cost))),
    devices: devices.map(({ copiedRows, dealtRows, load }) => ({
      copiedRows: int64(copiedRows),
      dealtRows: int64(dealtRows),
      ownShare: share(load.own),
      peerShare: share(load.peer),
      hostShare: share(load.host),
      extractNs: extractNs(load.cost),
    })),
    pieces: pieces.map(({ from, to, holders, isDealt }) => ({
      from: int64(from),
      to: int64(to),
      devices: holders.map(({ device }) => device),
      dealt: isDealt,
    })),
  };
}
