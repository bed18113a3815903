#pragma once

#include <vector>

#include "core/model/model_spec.h"
#include "train/evaluate/pair_phase.h"
#include "train/input/link_use.h"
#include "train/layers/link_head.h"

namespace gnnd {

// Compares what the head gives of links with what is known of them. Borrows the options.
class KnownLinkLabels final : public PairPhase {
 public:
  // REQUIRES: use.labels.
  KnownLinkLabels(const LinkUse& use, const ModelSpec& spec, uint32_t num_nodes)
      : use_(use), head_(HeadOf(*spec.head)), num_nodes_(num_nodes) {}

  uint64_t items(EvalNodes which) const override { return SetOf(which).size(); }
  std::vector<uint32_t> NodesOf(EvalNodes which) const override;
  // Chunks are made of whole blocks, whose outputs are all that is held.
  Status Run(const EvalTask& task, uint32_t chunks, const Rows& rows, const Alive& alive,
             EvalResult* result) override;
  uint64_t work_bytes() const override { return memory_.reserved_bytes(); }

 private:
  const LinkSet& SetOf(EvalNodes which) const { return use_.sets[static_cast<uint32_t>(which)]; }

  const LinkUse& use_;
  const PairHead& head_;
  const uint32_t num_nodes_;
  Workspace memory_;
};

}  // namespace gnnd
