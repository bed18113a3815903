#include "train/evaluate/script_eval_layer.h"

#include <algorithm>
#include <cstring>

#include "core/graph/features.h"
#include "train/ops/ops.h"

namespace gnnd {
namespace {

// Floats of a block's neighbours, chosen so that it takes some 10 ms and 16 MB. A larger row is a
// block of its own.
constexpr uint64_t kBlockFloats = uint64_t{1} << 22;

}  // namespace

ScriptEvalLayer::ScriptEvalLayer(const TrainOptions& options, ScriptModel* script)
    : options_(options), script_(script), relabel_(options.topology.num_nodes()) {}

uint64_t ScriptEvalLayer::BlockEnd(const LayerTask& task, std::span<const uint32_t> nodes,
                                   uint64_t begin) const {
  const uint64_t columns = ShapeOf(script_->spec(), task.layer).in;
  uint64_t end = begin;
  for (uint64_t floats = 0; end < nodes.size(); ++end) {
    floats += (task.graph->topology.degree(nodes[end]) + 1) * columns;
    if (floats > kBlockFloats && end > begin) break;
  }
  return end;
}

void ScriptEvalLayer::Run(const LayerTask& task, std::span<const uint32_t> nodes, float* to) {
  const TopologyView& graph = task.graph->topology;
  block_.Reset();
  const auto rows = static_cast<uint32_t>(nodes.size());
  uint32_t* indptr = block_.Get<uint32_t>(uint64_t{rows} + 1);
  indptr[0] = 0;
  for (uint32_t r = 0; r < rows; ++r) {
    indptr[r + 1] = indptr[r] + static_cast<uint32_t>(graph.degree(nodes[r]));
  }
  const uint32_t edges = indptr[rows];
  uint32_t* sources = block_.Get<uint32_t>(uint64_t{rows} + edges + 1);
  uint32_t* local = block_.Get<uint32_t>(std::max(rows, edges));
  float* weight = task.graph->edge_weights.empty() ? nullptr : block_.Get<float>(edges);
  relabel_.Begin(rows + edges);
  uint32_t count = relabel_.InsertAll(nodes.data(), rows, sources, 0, local);
  for (uint32_t r = 0; r < rows; ++r) {
    const uint64_t start = graph.indptr[nodes[r]];
    const uint32_t degree = indptr[r + 1] - indptr[r];
    count =
        relabel_.InsertAll(graph.indices.data() + start, degree, sources, count, local + indptr[r]);
    if (weight != nullptr) {
      std::copy_n(task.graph->edge_weights.data() + start, degree, weight + indptr[r]);
    }
  }
  relabel_.End(count);

  const uint64_t columns = ShapeOf(script_->spec(), task.layer).in;
  float* x = block_.Get<float>(count * columns);
  GatherRows(task.in, {sources, count}, {x, count * columns});
  const at::Tensor out =
      script_
          ->Layer(task.layer, ViewOf(x, static_cast<int64_t>(count), static_cast<int64_t>(columns)),
                  {{indptr, uint64_t{rows} + 1}, {local, edges}, weight})
          .contiguous();
  std::copy_n(out.const_data_ptr<float>(), out.numel(), to);
}

}  // namespace gnnd
