#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/graph/dataset.h"
#include "core/prepare/device_product.h"
#include "core/prepare/propagation.h"
#include "core/prepare/row_files.h"

// Feature propagation: all nodes' features go through the operators, hop by hop, and the rows of
// labelled nodes are written. Out of core: a block of columns at a time is in memory, for all its
// hops, and each hop reads the topology once. Blocks, threads and kills decide no bit: a column is
// summed by itself, in the order of a row's entries. A device with memory of its own may multiply.

namespace gnnd {

struct PropagateOptions {
  PropagationPlan plan;
  // Receives the files. What a killed run left there is used, if it was one of the same plan and
  // dataset; the caller keeps others apart.
  std::string folder;
  // Columns are standardised by the moments that another propagation of the same operators and hops
  // left in this folder; empty: by those of this dataset.
  std::string moments_from;
  uint64_t memory_bytes = uint64_t{1} << 30;  // of a block of columns
  uint64_t columns = 0;                       // of a block; 0: as many as have room
  uint32_t threads = 1;
  // A block's state goes to the disk once so many edges times columns were added since, so that a
  // kill between two hops of one block costs no more.
  uint64_t edges_per_state = uint64_t{1} << 37;
  // Multiplies, where there is one; the rest stays with the host's cores. Decides no bit. What it
  // cannot do the cores do from then on: `left_device` is told why, once.
  PropagateDevice device;
  std::function<void(const Status& why)> left_device;
};

// How far a propagation is, for another thread.
struct PropagateProgress {
  std::atomic<uint64_t> done = 0;     // edges times columns: added, or found done
  std::atomic<uint64_t> resumed = 0;  // of them found done
  std::atomic<uint64_t> total = 0;    // 0: not known yet
  std::atomic<uint32_t> op = 0;
  std::atomic<uint32_t> hop = 0;
  std::atomic<uint64_t> column = 0;     // the first of the block
  std::atomic<bool> finishing = false;  // joining and digesting
};

struct PropagateReport {
  std::vector<DigestedFile> files;
  uint64_t rows = 0;
  uint64_t edge_columns = 0;         // edges times columns that this run added
  uint64_t device_edge_columns = 0;  // of them, on a device
  std::string device_problem;        // why a device was left; empty: none was
  uint64_t memory_bytes = 0;
  uint64_t block_columns = 0;
  uint64_t blocks = 0;
};

// Where a test kills: called with the name of what was just done, by the thread that did it.
using PropagateProbe = std::function<void(const char* point)>;

// kInvalidArgument: CheckPlan's, and a block that has no room. kDatasetCorrupt: float16 lacks a
// number. kDiskFull, kIo: what is complete stays, and the next run goes on from there.
Result<PropagateReport> Propagate(const Dataset& dataset, const PropagateOptions& options,
                                  PropagateProgress* progress, const PropagateProbe& probe = {});

}  // namespace gnnd
