#include "train/input/train_options.h"

#include <string>

namespace gnnd {
namespace {

Status Invalid(const std::string& what) { return Status(Code::kInvalidArgument, what); }

Status CheckEvalNodes(const TrainOptions& options, std::span<const int64_t> nodes) {
  for (const int64_t node : nodes) {
    GNND_TRY(CheckInGraph(options, node));
    if (!options.targets.Has(static_cast<uint64_t>(node))) {
      return Status(Code::kDatasetCorrupt,
                    "evaluation node " + std::to_string(node) + " has " + options.targets.what());
    }
  }
  return Status::Ok();
}

Status CheckData(const TrainOptions& options) {
  const uint64_t num_nodes = options.num_nodes();
  if (num_nodes == 0 || num_nodes > UINT32_MAX) return Invalid("number of nodes");
  if (options.features.dim() != options.model.in_dim) {
    return Invalid("features are not [num_nodes, in_dim]");
  }
  if (options.topology.indptr.size() != num_nodes + 1) {
    return Invalid("topology and features differ in their number of nodes");
  }
  if (!options.edge_weights.empty() &&
      options.edge_weights.size() != options.topology.num_edges()) {
    return Invalid("edge_weights are not [num_edges]");
  }
  return Status::Ok();
}

}  // namespace

Status CheckTargets(const TrainOptions& options) {
  if (options.targets.rows() != options.num_nodes()) return Invalid("targets are not [num_nodes]");
  const bool predicts = !options.predictions.folder.empty();
  if (!predicts && options.targets.width != options.model.out_dim) {
    return Invalid("targets and the model's outputs differ in number");
  }
  GNND_TRY(CheckEvalNodes(options, options.val_nodes));
  return CheckEvalNodes(options, options.test_nodes);
}

Status CheckInGraph(const TrainOptions& options, int64_t node) {
  if (node >= 0 && static_cast<uint64_t>(node) < options.num_nodes()) return Status::Ok();
  return Invalid("evaluation node " + std::to_string(node) + " is not in the graph");
}

Status CheckOptions(const TrainOptions& options) {
  GNND_TRY(CheckOptimizer(options.optimizer));
  if (options.threads == 0) return Invalid("threads must be at least 1");
  if (options.device.device != nullptr && options.cache_rows > 0) {
    return Invalid("cache_rows of host memory beside a device, whose cache is device.cache_bytes");
  }
  const bool shares = options.history.config.cache_rows > 0;
  if (shares && (options.device.device != nullptr || options.cache_rows > 0)) {
    return Invalid("cached rows in history's memory beside another cache");
  }
  GNND_TRY(CheckHistory(options.history, options.model, options.precision, options.num_nodes()));
  return CheckData(options);
}

}  // namespace gnnd
