import {
  SamplingAlgorithm,
  SamplingAlgorithmSchema,
  type SamplingSpec,
} from '../../api/gen/gnnd/v1/sampling_pb.ts';
import { shortName } from '../../spec/enum-names.ts';

/** `KHOP_UNIFORM 10, 10`. */
export function samplingName(sampling: SamplingSpec | undefined): string {
  if (sampling === undefined) return '';
  const name = shortName(SamplingAlgorithmSchema, sampling.algorithm);
  const { walk } = sampling;
  return sampling.algorithm === SamplingAlgorithm.RANDOM_WALK
    ? `${name} ${walk?.walks} x ${walk?.length}`
    : `${name} ${sampling.fanouts.join(', ')}`;
}
