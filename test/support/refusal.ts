import { fromBinary } from '@bufbuild/protobuf';
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import type { ServiceError, status } from '@grpc/grpc-js';
import {
  BadRequestSchema,
  ErrorInfoSchema,
  ResourceInfoSchema,
} from '../../src/api/gen/google/rpc/error_details_pb.ts';
import { StatusSchema } from '../../src/api/gen/google/rpc/status_pb.ts';

export interface Refusal {
  readonly code: status;
  readonly reason: string;
  /** What is wrong, by field. */
  readonly fields: Readonly<Record<string, string>>;
  readonly resource: string;
}

/** How a call was refused; fails when it was not. */
export async function refusalOf(call: Promise<unknown>): Promise<Refusal> {
  const error = await call.then(
    () => null,
    (thrown: ServiceError) => thrown,
  );
  if (error === null) throw new Error('the call was not refused');
  const bytes = error.metadata.get('grpc-status-details-bin')[0];
  const { details } = fromBinary(StatusSchema, Buffer.from(bytes ?? ''));
  const unpacked = details.map((detail) => ({
    info: anyUnpack(detail, ErrorInfoSchema),
    badRequest: anyUnpack(detail, BadRequestSchema),
    resource: anyUnpack(detail, ResourceInfoSchema),
  }));
  const violations = unpacked.flatMap(({ badRequest }) => badRequest?.fieldViolations ?? []);
  return {
    code: error.code,
    reason: unpacked.find(({ info }) => info !== undefined)?.info?.reason ?? '',
    fields: Object.fromEntries(violations.map(({ field, description }) => [field, description])),
    resource: unpacked.find(({ resource }) => resource !== undefined)?.resource?.resourceName ?? '',
  };
}
