#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/executor/eval_scratch.h"
#include "core/executor/train_work.h"
#include "core/graph/topology_view.h"
#include "core/metric/link_rank.h"
#include "core/model/model_spec.h"
#include "train/evaluate/eval_plan.h"
#include "train/evaluate/known_pairs.h"
#include "train/evaluate/pair_phase.h"
#include "train/input/link_use.h"
#include "train/layers/link_head.h"

namespace gnnd {

// Ranks links among negatives, by the last layer's rows. It never holds the scores of more than a
// block of a group. Borrows options and topology.
class LinkRanking final : public PairPhase {
 public:
  LinkRanking(const LinkUse& use, const TopologyView& topology, const ModelSpec& spec,
              uint64_t random_seed);

  uint64_t items(EvalNodes which) const override { return SetOf(which).size(); }
  std::vector<uint32_t> NodesOf(EvalNodes which) const override;
  // Ranks the links of a chunk, and keeps the scores of each link and of one of its negatives.
  // Chunks are made of whole groups.
  Status Run(const EvalTask& task, uint32_t chunks, const Rows& rows, const Alive& alive,
             EvalResult* result) override;

  uint64_t work_bytes() const override { return memory_.reserved_bytes() + known_.bytes(); }

 private:
  // What is found out about a link.
  struct Standing {
    float score = 0;
    LinkRank rank{};
    float negative = 0;  // the score of one of its negatives
    bool has_negative = false;
  };
  // The links of a group, and their sources as the head takes them.
  struct Group {
    EvalNodes which;
    uint32_t number;
    std::vector<uint32_t> sources;
    std::vector<uint32_t> destinations;
    at::Tensor prepared;
    std::vector<Standing> standings;
  };

  const LinkSet& SetOf(EvalNodes which) const { return use_.sets[static_cast<uint32_t>(which)]; }
  uint64_t NumGroups(EvalNodes which) const { return (items(which) + kLinkGroup - 1) / kLinkGroup; }
  std::vector<uint32_t> Drawn(EvalNodes which, uint32_t group, uint32_t count) const;
  Group GroupOf(EvalNodes which, uint64_t number) const;

  Status RankDrawn(const Rows& rows, const Alive& alive, Group* group);
  Status RankAmongAll(const Rows& rows, const Alive& alive, Group* group);
  Status RankAmongGiven(const Rows& rows, const Alive& alive, Group* group);
  Status ScorePool(const EvalTask& task, const Rows& rows, const Alive& alive, Group* group);
  // Scores the links themselves and, in the same product, nodes, whose scores it returns, [nodes,
  // links].
  const float* Begin(const Rows& rows, std::span<const uint32_t> nodes, Group* group);
  at::Tensor Scores(const Rows& rows, std::span<const uint32_t> nodes, const Group& group);
  void MarkKnown(std::span<const uint32_t> nodes, const Group& group);
  void CountBlock(const float* scores, uint64_t nodes, Group* group) const;
  void PickNegatives(const float* scores, uint64_t nodes, Group* group) const;
  uint32_t BlockNodes(const Group& group) const;
  template <typename Take>
  Status ScorePairs(const Rows& rows, const Alive& alive, std::span<const uint32_t> ends,
                    const Take& take);
  void Add(const EvalTask& task, const Group& group, EvalResult* result) const;

  const LinkUse& use_;
  const TopologyView& topology_;
  const PairHead& head_;
  const uint64_t dim_;
  const uint64_t random_seed_;
  KnownPairs known_;
  Workspace memory_;  // of a block; `sources_` has what a group keeps
  Workspace sources_;
  std::vector<uint8_t> marks_;    // [block's nodes, links]: 1 = no negative of the link
  std::vector<uint64_t> places_;  // that are marked
};

}  // namespace gnnd
