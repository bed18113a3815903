import { create } from '@bufbuild/protobuf';
import type { AskedPropagation } from '../artifacts/propagation-requests.ts';
import type { PropagationRecord } from '../records/propagation-record.ts';
import type { PropagationInput } from '../spec/rules/propagation.ts';
import { messageOf, plainOf } from '../spec/spec-codec.ts';
import { int64 } from './convert.ts';
import * as pb from './gen/gnnd/v1/dataset_service_pb.ts';
import { PropagationSpecSchema } from './gen/gnnd/v1/propagation_pb.ts';
import { idOfName, requestIdOf } from './requests.ts';

/** Propagations as messages. */

export function propagationToProto(record: PropagationRecord): pb.Propagation {
  const { source } = record;
  return create(pb.PropagationSchema, {
    name: `propagations/${record.id}`,
    dataset: `datasets/${source.dataset}`,
    datasetDigest: source.datasetDigest,
    propagation: messageOf(PropagationSpecSchema, source.propagation),
    standardize: source.standardize,
    complete: record.complete,
    rows: int64(record.rows),
    bytes: int64(record.bytes),
    peakBytes: int64(record.peakBytes),
    memoryBytes: int64(record.memoryBytes),
    blockColumns: record.blockColumns,
    path: record.path,
    digest: record.digest,
  });
}

export function propagationFromProto(request: pb.PropagateDatasetRequest): AskedPropagation {
  const { propagation, standardize, memoryBytes, threads, device } = request;
  return {
    dataset: idOfName('datasets', request.name),
    propagation:
      propagation === undefined
        ? {}
        : plainOf<PropagationInput>(PropagationSpecSchema, propagation),
    standardize,
    memoryBytes: Number(memoryBytes),
    threads,
    device,
    requestId: requestIdOf(request.requestId),
  };
}
