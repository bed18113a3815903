// All of core/draw in a kernel, for a compiler of device code (test/process/draw-device).

#include "core/draw/alias.h"
#include "core/draw/dropout.h"
#include "core/draw/floyd.h"
#include "core/draw/gcn.h"
#include "core/draw/labor.h"
#include "core/draw/locality.h"
#include "core/draw/permutation.h"
#include "core/draw/walk.h"
#include "core/kernels/exp.h"

namespace gnnd {

__global__ void DrawAll(BatchKey key, uint32_t n, const AliasEntry* row, uint64_t degree,
                        uint64_t* whole, float* real) {
  const uint32_t node = blockIdx.x * blockDim.x + threadIdx.x;
  const DrawStream stream = DrawStreamOf(key, 1, Purpose::kSample, 2);
  PhiloxWords words{};
  whole[0] = UniformDraw(stream, node, WordsPerDraw(degree), 0, degree, &words);
  const AliasDraw draw = AliasDrawAt(stream, node, degree, 3);
  const auto slot = static_cast<uint32_t>(draw.slot);
  whole[1] = IsWeightless(row[0], 0) ? WeightedCandidates(5) : ChosenOf(row[slot], slot, draw.word);
  whole[2] = PermutedIndex(KeyOf(key.random_seed), key.epoch, n, node);
  whole[3] = LaborNumber(LaborKeysOf(key, 1, 4), node) < LaborThreshold(10, degree) ? 1 : 0;
  whole[4] = words.word[2] < RestartThreshold(0.5) ? WalkBlock(1, 2, 3) : 0;
  whole[5] = WalkPosition(words.word[0], words.word[1], degree);
  const DrawStream mask = DropoutStream({1, 2, 3, 4}, Purpose::kAttentionDropout);
  const PhiloxWords far = LongRowWords(mask, uint64_t{node} << 8, uint64_t{node} << 12);
  whole[6] = far.word[0] >= DropoutThreshold(0.5F) ? 1 : 0;
  real[0] = GcnWeight(GcnInverse(2.0), GcnRowFactor(0.5, 2.0, 3)) + GcnSelfWeight(2.0);
  const LocalityRow local{degree, 1, 1, kScaleMost};
  const uint32_t favoured = 0;
  uint32_t pick = 0;
  whole[7] = PickLocally(stream, node, local, &favoured, &pick) + pick;
  real[2] = FavouredWeight(local) + OtherWeight(local);
  real[1] = LaborWeight(10, degree) + ExpOfNonPositive(-1.5F) + UnitDraw(words.word[3]);
}

}  // namespace gnnd
