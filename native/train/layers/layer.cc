#include "train/layers/layer.h"

#include <utility>

#include "core/base/check.h"
#include "core/model/manifest.h"
#include "train/ops/operators.h"

namespace gnnd {
namespace {

// Cost of moving one element through the aggregation, in multiply-adds of a GEMM (0.2 to 0.5 ns
// against 0.03 to 0.05 ns, depending on where the rows lie).
constexpr uint64_t kMultiplyAddsPerGather = 8;

}  // namespace

Model::Model(const ModelSpec& of, bool with_shares) : spec(of), shares(with_shares) {
  auto described = ManifestOf(of);
  GNND_CHECK(described.ok());
  manifest = std::move(*described);
}

bool AggregatesFeatures(const ModelSpec& spec) {
  const ModelKind& kind = KindOf(spec.type);
  // A residual needs own rows, which only layers that read them have.
  return kind.gathers_features && (kind.reads_self() || !spec.residual);
}

Reduction ReductionOf(const ModelSpec& spec, bool shares) {
  if (KindOf(spec.type).gathering == Gathering::kSum) return Reduction::kSum;
  const bool weighs = shares || KindOf(spec.type).gathering == Gathering::kNormalized;
  return weighs ? Reduction::kWeightedSum : Reduction::kMean;
}

bool TransformFirst(uint64_t num_dst, uint64_t num_src, uint64_t num_edges, uint64_t in,
                    uint64_t out) {
  const uint64_t gathers = num_edges * kMultiplyAddsPerGather;
  return num_src * in * out + gathers * out < num_dst * in * out + gathers * in;
}

LayerParameters ParametersOf(const Model& model, std::span<const at::Tensor> parameters,
                             uint32_t layer) {
  LayerParameters mine;
  for (size_t t = 0; t < parameters.size(); ++t) {
    const ParameterTensor& tensor = model.manifest.tensors[t];
    if (tensor.layer == layer) mine[tensor.role] = parameters[t];
  }
  return mine;
}

at::Tensor Widened(const at::Tensor& rows, Workspace* workspace) {
  return rows.scalar_type() == at::kBFloat16 ? AsRowsOf(at::kFloat, rows, workspace) : rows;
}

at::Tensor Layer::ForwardFused(const LayerContext&, const BottomInput&) const {
  GNND_CHECK(false);
  return {};
}

void ExactRows::Affine(const AffineOp& op) { memory()->operators().affine(op, memory()); }

}  // namespace gnnd
