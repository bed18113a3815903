import { create } from '@bufbuild/protobuf';
import type { CacheReportRequest, DatasetCacheReport } from '../artifacts/cache-reports.ts';
import { messageOf, plainOf } from '../spec/spec-codec.ts';
import { int64 } from './convert.ts';
import {
  type CacheReport,
  CacheReportSchema,
  type ReportCacheRequest,
} from './gen/gnnd/v1/dataset_service_pb.ts';
import { CachePolicy } from './gen/gnnd/v1/features_pb.ts';
import { SamplingSpecSchema } from './gen/gnnd/v1/sampling_pb.ts';
import { idOfName } from './requests.ts';

/** Cache reports, both ways. */

export function cacheRequestFromProto(request: ReportCacheRequest): CacheReportRequest {
  return {
    dataset: idOfName('datasets', request.name),
    samplings: request.samplings.map((sampling) => plainOf(SamplingSpecSchema, sampling)),
    batchSize: request.batchSize,
    epochs: request.epochs,
    presampleEpochs: request.presampleEpochs,
    ratios: request.ratios,
    randomSeed: request.randomSeed?.toString(),
    dumpDir: request.dumpDir,
  };
}

export function cacheReportToProto(report: DatasetCacheReport): CacheReport {
  return create(CacheReportSchema, {
    dataset: `datasets/${report.dataset}`,
    digest: report.digest,
    samplings: report.samplings.map(({ sampling, report: found }) => ({
      sampling: messageOf(SamplingSpecSchema, sampling),
      batchesPerEpoch: int64(found.batchesPerEpoch),
      inputRows: found.inputRows,
      inputBytes: found.inputBytes,
      similarity: found.similarity,
      epochNs: int64(found.epochNs),
      policies: found.policies.map(({ policy, presampleEpochs, rankNs, cells }) => ({
        policy: CachePolicy[policy],
        presampleEpochs,
        rankNs: int64(rankNs),
        cells: cells.map(({ ratio, cacheRows, hitRate, bytesMoved }) => ({
          ratio,
          rows: int64(cacheRows),
          hitRate,
          bytesMoved,
        })),
      })),
    })),
  });
}
