#pragma once

#include <string>
#include <vector>

#include "core/dataset/dataset.h"
#include "core/model/model_spec.h"
#include "core/sample/layout.h"
#include "node/convert.h"

// The structs of contract.ts that more than one binding reads.

namespace gnnd::node {

// DatasetLocation
struct DatasetLocation {
  std::string folder;
  DatasetCounts counts;
  std::string features_path;  // empty: the imported features
};

inline DatasetCounts CountsOf(const Fields& fields) {
  DatasetCounts counts;
  counts.num_nodes = fields.Uint64("numNodes");
  counts.num_edges = fields.Uint64("numEdges");
  counts.num_features = fields.Uint64("numFeatures");
  counts.num_classes = fields.Uint64("numClasses");
  counts.train = fields.Uint64("train");
  counts.val = fields.Uint64("val");
  counts.test = fields.Uint64("test");
  return counts;
}

inline DatasetLocation LocationOf(const Fields& fields) {
  return {fields.String("folder"), CountsOf(fields.Object("counts")), fields.String("featuresPath")};
}

// SamplingOptions
struct SamplingOptions {
  std::vector<int32_t> fanouts;
  uint32_t batch_size;
  bool gcn_weights;
  bool hot_ranks;
};

inline SamplingOptions SamplingOf(const Fields& fields) {
  return {fields.Int32List("fanouts"), fields.Uint32("batchSize"), fields.Bool("gcnWeights"),
          fields.Bool("hotRanks")};
}

inline SampleLimits LimitsOf(const DatasetCounts& counts, const SamplingOptions& sampling) {
  SampleLimits limits;
  limits.num_nodes = static_cast<uint32_t>(counts.num_nodes);
  limits.num_edges = counts.num_edges;
  limits.batch_size = sampling.batch_size;
  limits.fanouts = sampling.fanouts;
  limits.edge_weights = sampling.gcn_weights;
  limits.hot_ranks = sampling.hot_ranks;
  return limits;
}

// ModelOptions
inline ModelSpec ModelOf(const Fields& fields) {
  ModelSpec spec;
  spec.type = fields.String("type") == "GCN" ? ModelType::kGcn : ModelType::kGraphSage;
  spec.num_layers = fields.Uint32("layers");
  spec.in_dim = fields.Uint32("inDim");
  spec.hidden_dim = fields.Uint32("hiddenDim");
  spec.out_dim = fields.Uint32("outDim");
  spec.dropout = static_cast<float>(fields.Double("dropout"));
  spec.input_dropout = static_cast<float>(fields.Double("inputDropout"));
  return spec;
}

}  // namespace gnnd::node
