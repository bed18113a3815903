#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/executor/chunk_files.h"
#include "core/model/model_spec.h"
#include "train/evaluate/pair_phase.h"
#include "train/input/link_use.h"
#include "train/layers/link_head.h"

namespace gnnd {

// Scores listed pairs, in blocks of their order that no number of chunks changes. Borrows the
// question.
class PairScores final : public PairPhase {
 public:
  // Opens out/scores.npy in the folder, float32 [pairs], or [pairs, outputs] of a head that has
  // several, and writes out/pairs.npy, int64 [pairs,
  // 2].
  static Result<std::unique_ptr<PairScores>> Open(const LinkQuestion& question,
                                                  const ModelSpec& spec, uint32_t num_nodes,
                                                  const std::string& folder);

  uint64_t items(EvalNodes which) const override;
  std::vector<uint32_t> NodesOf(EvalNodes which) const override;
  uint32_t ChunksOf(EvalNodes which, uint32_t planned) const override;
  Status Run(const EvalTask& task, uint32_t chunks, const Rows& rows, const Alive& alive,
             EvalResult* result) override;
  uint64_t work_bytes() const override { return memory_.reserved_bytes(); }

  const std::shared_ptr<ChunkFiles>& files() const { return files_; }

 private:
  PairScores(const LinkQuestion& question, const ModelSpec& spec, uint32_t num_nodes);
  Status ScoreBlock(const Rows& rows, uint64_t first, uint64_t end);

  const LinkQuestion& question_;
  const PairHead& head_;
  const uint32_t num_nodes_;
  std::shared_ptr<ChunkFiles> files_;
  Workspace memory_;
};

}  // namespace gnnd
