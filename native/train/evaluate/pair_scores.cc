#include "train/evaluate/pair_scores.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>
#include <utility>

#include "core/executor/eval_scratch.h"
#include "train/evaluate/pair_outputs.h"
#include "train/tasks/eval_targets.h"

namespace gnnd {
namespace {

// Rows round by the height of their block in heads with a matrix, so that blocks follow from the
// list alone.
constexpr uint64_t kBlockPairs = 4096;

uint64_t BlocksOf(uint64_t pairs) { return (pairs + kBlockPairs - 1) / kBlockPairs; }

}  // namespace

PairScores::PairScores(const LinkQuestion& question, const ModelSpec& spec, uint32_t num_nodes)
    : question_(question), head_(HeadOf(*spec.head)), num_nodes_(num_nodes) {}

Result<std::unique_ptr<PairScores>> PairScores::Open(const LinkQuestion& question,
                                                     const ModelSpec& spec, uint32_t num_nodes,
                                                     const std::string& folder) {
  std::unique_ptr<PairScores> scores(new PairScores(question, spec, num_nodes));
  const uint64_t pairs = question.pairs.size() / 2;
  std::vector<uint64_t> shape{pairs};
  if (spec.head_outputs > 1) shape.push_back(spec.head_outputs);
  const ChunkArray arrays[] = {{"scores.npy", NpyType::kFloat32, shape}};
  scores->files_ = std::make_shared<ChunkFiles>(GNND_VALUE(ChunkFiles::Open(folder, arrays)));
  const std::array ends = {pairs, uint64_t{2}};
  GNND_TRY(WriteIdsOnce(folder + "/out/pairs.npy", ends, question.pairs));
  return scores;
}

uint64_t PairScores::items(EvalNodes which) const {
  return which == EvalNodes::kValidation ? question_.pairs.size() / 2 : 0;
}

std::vector<uint32_t> PairScores::NodesOf(EvalNodes which) const {
  if (items(which) == 0) return {};
  return EndsOf(question_.pairs, num_nodes_);
}

uint32_t PairScores::ChunksOf(EvalNodes which, uint32_t planned) const {
  return std::max(planned, PairChunks(BlocksOf(items(which))));
}

Status PairScores::Run(const EvalTask& task, uint32_t chunks, const Rows& rows, const Alive& alive,
                       EvalResult* result) {
  *result = EvalResult{};
  const uint64_t pairs = items(task.run.nodes);
  const uint64_t blocks = BlocksOf(pairs);
  const uint64_t last = blocks * (task.chunk + 1) / chunks;
  for (uint64_t block = blocks * task.chunk / chunks; block < last; ++block) {
    if (!alive()) return EvaluationAborted();
    const uint64_t first = block * kBlockPairs;
    const uint64_t end = std::min(pairs, first + kBlockPairs);
    GNND_TRY(ScoreBlock(rows, first, end));
    result->rows += end - first;
  }
  return Status::Ok();
}

Status PairScores::ScoreBlock(const Rows& rows, uint64_t first, uint64_t end) {
  memory_.Reset();
  const std::span<const uint32_t> all = question_.pairs;
  const at::Tensor found =
      OutputsOfPairs(head_, rows, all.subspan(2 * first, 2 * (end - first)), &memory_);
  const auto width = static_cast<uint64_t>(found.size(1));
  const std::span<const float> scores(found.const_data_ptr<float>(), (end - first) * width);
  const auto wrong = std::ranges::find_if(scores, [](float one) { return !std::isfinite(one); });
  if (wrong != scores.end()) {
    const uint64_t pair = first + static_cast<uint64_t>(wrong - scores.begin()) / width;
    return Status(Code::kNumericDivergence,
                  "the score of pair " + std::to_string(pair) + " is not finite");
  }
  return files_->WriteRows(0, first, std::as_bytes(scores));
}

}  // namespace gnnd
