import { create, type MessageInitShape } from '@bufbuild/protobuf';
import type {
  CheckpointRecord,
  Checkpoints,
  ExportPart,
  ExportRequest,
  FilePart,
} from '../artifacts/checkpoints.ts';
import { type FieldViolation, unreachable } from '../base/errors.ts';
import { int64 } from './convert.ts';
import {
  type Checkpoint,
  CheckpointKind,
  CheckpointSchema,
  type CheckpointService,
  type ExportCheckpointRequest,
  ExportCheckpointResponseSchema,
  ExportPredictionsResponseSchema,
  ListCheckpointsResponseSchema,
  PredictionNodes,
} from './gen/gnnd/v1/checkpoint_service_pb.ts';
import { idOfName, invalidRequest } from './requests.ts';
import type { Handlers, MethodsOf } from './rpc.ts';

export interface CheckpointDeps {
  readonly checkpoints: Checkpoints;
  /** Throws while the daemon takes no changes. */
  readonly admit: () => void;
}

export function checkpointHandlers({
  checkpoints,
  admit,
}: CheckpointDeps): Handlers<MethodsOf<typeof CheckpointService>> {
  return {
    async listCheckpoints(request) {
      const found = await checkpoints.list(idOfName('jobs', request.name));
      return create(ListCheckpointsResponseSchema, { checkpoints: found.map(checkpointToProto) });
    },
    async *exportCheckpoint(request, call) {
      admit();
      const parts = checkpoints.export(exportFromProto(request), call.signal);
      let isSent = true;
      for await (const part of parts) {
        const { files } = request;
        if (part.kind === 'file') isSent = files.length === 0 || files.includes(part.name);
        if (!isSent && (part.kind === 'file' || part.kind === 'data')) continue;
        yield create(ExportCheckpointResponseSchema, { part: partToProto(part) });
      }
    },
    async *exportPredictions(request) {
      admit();
      for await (const part of checkpoints.predictions(idOfName('jobs', request.name))) {
        yield create(ExportPredictionsResponseSchema, { part: filePart(part) });
      }
    },
  };
}

const kinds = new Map<number, ExportRequest['kind']>([
  [CheckpointKind.UNSPECIFIED, 'BEST'],
  [CheckpointKind.BEST, 'BEST'],
  [CheckpointKind.LAST, 'LAST'],
]);
const nodes = new Map<number, ExportRequest['predictions']>([
  [PredictionNodes.UNSPECIFIED, 'NONE'],
  [PredictionNodes.NONE, 'NONE'],
  [PredictionNodes.ALL, 'ALL'],
  [PredictionNodes.VAL, 'VAL'],
  [PredictionNodes.TEST, 'TEST'],
]);

function exportFromProto(request: ExportCheckpointRequest): ExportRequest {
  const jobId = idOfName('jobs', request.name);
  const memoryBytes = Number(request.memoryBytes);
  const kind = kinds.get(request.kind);
  const predictions = nodes.get(request.predictions);
  if (kind !== undefined && predictions !== undefined) {
    const { foldStandardization } = request;
    return { jobId, kind, predictions, memoryBytes, foldStandardization };
  }
  const violations: FieldViolation[] = [];
  if (kind === undefined) {
    violations.push({ path: 'kind', description: `${request.kind}: unknown kind` });
  }
  if (predictions === undefined) {
    const description = `${request.predictions}: unknown set of nodes`;
    violations.push({ path: 'predictions', description });
  }
  throw invalidRequest(violations);
}

function checkpointToProto({ jobId, kind, file, ...accuracies }: CheckpointRecord): Checkpoint {
  return create(CheckpointSchema, {
    job: `jobs/${jobId}`,
    kind: CheckpointKind[kind],
    ...accuracies,
    valMetrics: [...accuracies.valMetrics],
    testMetrics: [...accuracies.testMetrics],
    path: file.path,
    bytes: int64(file.size),
    sha256: file.sha256,
    parametersSha256: file.parametersSha256,
    tensors: file.tensors.map(({ name, shape }) => ({ name, shape: shape.map(int64) })),
  });
}

function filePart(part: FilePart) {
  return part.kind === 'data'
    ? ({ case: 'data', value: part.bytes } as const)
    : ({ case: 'file', value: { name: part.name, bytes: int64(part.bytes) } } as const);
}

function partToProto(
  part: ExportPart,
): NonNullable<MessageInitShape<typeof ExportCheckpointResponseSchema>['part']> {
  switch (part.kind) {
    case 'checkpoint':
      return { case: 'checkpoint', value: checkpointToProto(part.checkpoint) };
    case 'progress':
      return { case: 'progress', value: { progress: part.share, message: part.message } };
    case 'file':
    case 'data':
      return filePart(part);
    default:
      return unreachable(part);
  }
}
