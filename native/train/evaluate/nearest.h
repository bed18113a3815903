#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/executor/chunk_files.h"
#include "core/graph/topology_view.h"
#include "core/model/model_spec.h"
#include "train/evaluate/known_pairs.h"
#include "train/evaluate/pair_phase.h"
#include "train/input/link_use.h"
#include "train/layers/link_head.h"

namespace gnnd {

// Finds of each node the k nodes with which its links would have the highest scores, exactly: all
// are scored, and no more scores are held than a block of them for a group of nodes. The higher
// score comes first, of equal ones the lower node. Never a node itself; nodes that it is linked to
// (KnownPairs) where the question asks for them. Borrows all.
class Nearest final : public PairPhase {
 public:
  struct Of {
    std::span<const uint32_t> nodes{};  // ascending
    bool are_all = false;
  };
  // Opens out/nearest.npy in the folder, int64 [nodes, k], -1 where there are fewer, and
  // out/scores.npy, float32 [nodes, k], NaN there; out/nodes.npy unless the nodes are all.
  static Result<std::unique_ptr<Nearest>> Open(const LinkUse& use, const TopologyView& topology,
                                               const ModelSpec& spec, const Of& of,
                                               const std::string& folder);

  uint64_t items(EvalNodes which) const override;
  std::vector<uint32_t> NodesOf(EvalNodes which) const override;
  uint32_t ChunksOf(EvalNodes which, uint32_t planned) const override;
  Status Run(const EvalTask& task, uint32_t chunks, const Rows& rows, const Alive& alive,
             EvalResult* result) override;
  uint64_t work_bytes() const override { return memory_.reserved_bytes() + known_.bytes(); }

  const std::shared_ptr<ChunkFiles>& files() const { return files_; }

 private:
  struct Found {
    float score;
    uint32_t node;

    bool operator<(const Found& other) const {  // comes before it
      return score > other.score || (score == other.score && node < other.node);
    }
  };
  // A node's best so far, a heap with the last of them in front.
  using Best = std::vector<Found>;

  Nearest(const LinkUse& use, const TopologyView& topology, const ModelSpec& spec,
          std::span<const uint32_t> nodes);
  Status FindGroup(const Rows& rows, const Alive& alive, std::span<const uint32_t> sources,
                   uint64_t first);
  at::Tensor Scores(const Rows& rows, const at::Tensor& prepared, std::span<const uint32_t> nodes);
  Status Take(const float* scores, std::span<const uint32_t> nodes,
              std::span<const uint32_t> sources);
  void TakeRow(const float* scores, const uint8_t* marks, uint32_t node, uint32_t begin,
               uint32_t end);
  Status Write(uint64_t first);
  uint64_t num_candidates() const;

  const LinkQuestion& question_;
  const TopologyView& topology_;
  const PairHead& head_;
  const uint64_t dim_;
  const std::span<const uint32_t> nodes_;
  KnownPairs known_;
  std::shared_ptr<ChunkFiles> files_;
  Workspace memory_;  // of a block; `sources_` has what a group keeps
  Workspace sources_;
  std::vector<uint8_t> marks_;  // [block's nodes, sources]: 1 = is not to be found
  std::vector<uint64_t> places_;
  std::vector<Best> best_;   // by source of the group
  std::vector<float> bars_;  // scores above these are among the best so far
};

}  // namespace gnnd
