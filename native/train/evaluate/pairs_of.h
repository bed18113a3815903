#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/executor/chunk_files.h"
#include "core/graph/topology_view.h"
#include "core/model/model_spec.h"
#include "train/evaluate/nearest.h"
#include "train/evaluate/pair_phase.h"
#include "train/input/link_use.h"
#include "train/tasks/judging.h"

namespace gnnd {

// What is done with pairs of nodes' rows, and the files that receive it, if any.
struct PairsOfRows {
  std::unique_ptr<PairPhase> phase;
  std::shared_ptr<ChunkFiles> files;
};

struct PairsRequest {
  const LinkUse& use;
  const TopologyView& topology;
  const ModelSpec& spec;
  uint64_t random_seed;
  Nearest::Of nearest_of;     // read where the nearest are asked for
  const std::string& folder;  // of an inference
};

// What becomes of evaluations of links. Borrows the options.
std::unique_ptr<Judging> JudgingOf(const LinkUse& use);

// The only place that chooses it: links are ranked, or compared with what is known of them, or a
// question is answered. The phase borrows all but the folder.
Result<PairsOfRows> ChoosePairs(const PairsRequest& of);

}  // namespace gnnd
