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

// Feature propagation: multiplies all nodes' features by the operators, hop by hop, and writes the
// rows of labelled nodes. It works out of core: one block of columns is in memory for all its hops,
// and each hop reads the topology once. Blocks, threads and kills decide no bit: each column is
// summed by itself, in the order of a row's entries. A device with memory of its own may multiply.

namespace gnnd {

struct PropagateOptions {
  PropagationPlan plan;
  // Receives the files. Files that a killed run left there are reused if they belong to the same
  // plan and dataset; the caller keeps other files apart.
  std::string folder;
  // Folder of another propagation with the same operators and hops, by whose moments columns are
  // standardised; empty: by those of this dataset.
  std::string moments_from;
  uint64_t memory_bytes = uint64_t{1} << 30;  // for a block of columns
  uint64_t columns = 0;                       // per block; 0: as many as fit
  uint32_t threads = 1;
  // A block's state is saved after this many additions (edges times columns), so that a kill
  // between two hops of a block loses no more.
  uint64_t edges_per_state = uint64_t{1} << 37;
  // The device that multiplies, if any; the host's cores do the rest. Decides no bit. After a
  // failure the cores multiply instead, and `left_device` is told the reason, once.
  PropagateDevice device;
  std::function<void(const Status& why)> left_device;
};

// Progress of a propagation, read by other threads.
struct PropagateProgress {
  std::atomic<uint64_t> done = 0;     // edges times columns, added now or found done
  std::atomic<uint64_t> resumed = 0;  // the part of `done` that was found done
  std::atomic<uint64_t> total = 0;    // 0: not known yet
  std::atomic<uint32_t> op = 0;
  std::atomic<uint32_t> hop = 0;
  std::atomic<uint64_t> column = 0;     // first column of the present block
  std::atomic<bool> finishing = false;  // joining and digesting
};

struct PropagateReport {
  std::vector<DigestedFile> files;
  uint64_t rows = 0;
  uint64_t edge_columns = 0;         // edges times columns that this run added
  uint64_t device_edge_columns = 0;  // the part of it that a device added
  std::string device_problem;        // why the device was given up; empty: it was not
  uint64_t memory_bytes = 0;
  uint64_t block_columns = 0;
  uint64_t blocks = 0;
};

// For tests that kill: called with the name of each finished step, by the thread that did it.
using PropagateProbe = std::function<void(const char* point)>;

// kInvalidArgument: CheckPlan's errors, or no room for a block. kDatasetCorrupt: a number has no
// float16. kDiskFull, kIo: files that are complete stay, and the next run goes on from there.
Result<PropagateReport> Propagate(const Dataset& dataset, const PropagateOptions& options,
                                  PropagateProgress* progress, const PropagateProbe& probe = {});

}  // namespace gnnd
