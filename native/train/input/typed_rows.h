#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/batch/sample.h"
#include "core/executor/train_work.h"
#include "core/feature/feature_store.h"
#include "core/graph/topology_view.h"
#include "train/input/extraction.h"
#include "train/input/train_options.h"

// The input of a Trainer over several types of nodes, and extraction from it.

namespace gnnd {

// Everything that decides such a Trainer's computation. All memory is borrowed.
struct TypedOptions {
  // Of the nodes that are learnt, which are those of type 0: `features` are their input rows. Not
  // read: topology, in_dim, caches and devices.
  TrainOptions own;
  GraphView graph;
  std::vector<RowTable> rows;  // [types], each [nodes of the type, its in_dim]
};

// kInvalidArgument when options contradict each other.
Status CheckTypedOptions(const TypedOptions& options);

struct TypedInput {
  TypedOptions options;
  std::vector<FeatureStore> stores;  // by type

  static Result<TypedInput> Of(const TypedOptions& options);
};

// The input of one batch, kept until its gradient is computed.
struct TypedBuffer {
  ExtractBuffer seeds;           // the sample and what is known of its seeds
  std::vector<at::Tensor> rows;  // [types]: [nodes of the type, in_dim], input dropout applied;
                                 // undefined where the sample has none of the type
};

// Checks the sample and reads its nodes' rows. kShmCorrupted if the sample does not fit the model
// or the graph.
Status ExtractTyped(const TypedInput& input, const Sample& sample, TypedBuffer* buffer,
                    ExtractReport* report);

}  // namespace gnnd
