#pragma once

#include <cstdint>
#include <vector>

#include "core/executor/train_work.h"
#include "core/graph/row_table.h"
#include "train/layers/exact.h"

namespace gnnd {

// What is done with the last layer's rows of nodes once these are there: a head scores pairs of
// them. For use by one thread; uses the team's threads.
class PairPhase {
 public:
  virtual ~PairPhase() = default;

  // What it works up, one after the other: links, pairs or nodes. 0: nothing is evaluated.
  virtual uint64_t items(EvalNodes which) const = 0;
  // The nodes whose rows it needs, ascending.
  virtual std::vector<uint32_t> NodesOf(EvalNodes which) const = 0;
  // Chunks that it is cut into, where the rows were computed in `planned` of them.
  virtual uint32_t ChunksOf(EvalNodes, uint32_t planned) const { return planned; }

  struct Rows {
    RowTable table;  // float32 rows by node id
    const LayerParameters& head;
  };
  // Works up the items of one of `chunks` chunks. No bit depends on their number.
  virtual Status Run(const EvalTask& task, uint32_t chunks, const Rows& rows, const Alive& alive,
                     EvalResult* result) = 0;

  virtual uint64_t work_bytes() const = 0;
};

}  // namespace gnnd
