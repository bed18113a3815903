#pragma once

#include <cstdint>
#include <string>

#include "core/base/status.h"
#include "core/graph/schema.h"

// Input rows of a type that has no features of its own: what its neighbours have, on average.

namespace gnnd {

struct MeanRowsOptions {
  std::string folder;  // of the dataset
  Schema schema;       // its types and relations, or some of them
  uint32_t relation = 0;
  // The input rows of the relation's source type, float32 or float16 [nodes, columns]. Empty:
  // features.npy of its folder.
  std::string source_rows;
  std::string output;    // a path; its folder exists
  uint32_t threads = 1;  // decides no bit
};

// Writes float32 [nodes of the destination type, columns of the source rows]: row v is the mean of
// the source rows over v's in-neighbours along the relation, each as often as the row lists it, 0
// where it has none. Sums are in float64 in the order of the row, divided and rounded to float32
// once, so that neither threads nor instruction sets decide a bit. Reads the source rows at random
// and holds no more of the output than 4 MiB a thread. The output appears whole or not at all, as
// StandardizeFeatures' does, and what it makes of the output is the standardised mean.
// kInvalidArgument: no such relation, or no threads. kDatasetCorrupt: an array has another type or
// shape than the schema says, or a row lists what is no node. kNotFound, kIo, kDiskFull.
Status WriteMeanRows(const MeanRowsOptions& options);

}  // namespace gnnd
