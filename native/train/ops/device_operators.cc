#include "train/ops/device_operators.h"

#include <ATen/Functions.h>

#include <cstdlib>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/kernels/loss.h"
#include "train/ops/ops.h"

namespace gnnd {
namespace {

using Table = gnnd_device_plugin;

TrainStream& StreamOf(Workspace* workspace) { return TrainStream::Of(workspace->device()); }

template <typename T>
constexpr uint32_t kElement = GNND_ELEMENT_FLOAT32;
template <>
constexpr uint32_t kElement<Half> = GNND_ELEMENT_FLOAT16;
template <>
constexpr uint32_t kElement<Bfloat16> = GNND_ELEMENT_BFLOAT16;

template <typename T, typename Element>
void SumEdges(const Spmm<float, Element, T>& op, uint32_t rows, Workspace* workspace) {
  Launch(workspace, &Table::spmm,
         {.element = kElement<Element>,
          .out_element = kElement<T>,
          .rows = rows,
          .columns = op.columns,
          .x = op.x,
          .x_stride = op.x_stride,
          .indptr = op.indptr,
          .index = op.index,
          .weight = op.weight,
          .self = op.self,
          .self_stride = op.self_stride,
          .self_index = op.self_index,
          .self_weight = op.self_weight,
          .scale = op.scale,
          .self_rows = op.self_rows,
          .reserved = 0,
          .out = op.out,
          .out_stride = op.out_stride});
}

void WriteMeanScales(const MeanScales<float>& op, Workspace* workspace) {
  Launch(workspace, &Table::mean_scales, {op.indptr, op.weight, op.num_dst, 0, op.scale, nullptr});
}

// The scales are computed again beside them, with the same bits.
void ScaleWeights(const MeanScales<float>& op, Workspace* workspace) {
  Launch(workspace, &Table::mean_scales,
         {op.indptr, op.weight, op.num_dst, 0, op.scale, op.scaled});
}

void Transpose(const TransposeInput<float>& in, Workspace* workspace, uint32_t* indptr,
               uint32_t* dst, float* weight) {
  const auto num_dst = static_cast<uint32_t>(in.indptr.size() - 1);
  const uint64_t num_edges = in.src.size();
  auto* const edge = workspace->Get<uint32_t>(num_edges);
  Launch(workspace, &Table::transpose,
         {.indptr = in.indptr.data(),
          .src = in.src.data(),
          .num_dst = num_dst,
          .num_src = in.num_src,
          .num_edges = num_edges,
          .transposed_indptr = indptr,
          .transposed_dst = dst,
          .transposed_edge = edge,
          .workspace = WorkOf(workspace, &Table::transpose_workspace_bytes, num_dst, in.num_src,
                              num_edges)});
  const uint32_t* const from = in.weight_per_destination ? dst : edge;
  Launch(workspace, &Table::take, {in.weight, from, num_edges, weight});
}

const float* WeightsAs(std::span<const float> weights, Workspace*) { return weights.data(); }

template <typename T>
void Drop(const DropoutRows<T, float>& op, uint32_t rows, Workspace* workspace) {
  const DropoutKey& key = op.key;
  Launch(workspace, &Table::dropout,
         {.element = kElement<T>,
          .rows = rows,
          .columns = op.columns,
          .relu = op.relu ? 1U : 0U,
          .random_seed = key.random_seed,
          .epoch = key.epoch,
          .batch = key.batch,
          .layer = key.layer,
          .reserved = 0,
          .nodes = op.nodes,
          .in_out = op.rows,
          .stride = op.stride,
          .threshold = op.threshold,
          .scale = static_cast<double>(op.scale)});
}

template <typename T>
void DropGradient(const DropoutGradient<T>& op, Workspace* workspace) {
  Launch(workspace, &Table::dropout_gradient,
         {.element = kElement<T>,
          .reserved = 0,
          .count = op.rows * op.columns,
          .out = op.out,
          .grad = op.grad,
          .scale = static_cast<double>(op.scale),
          .grad_in = op.grad_in});
}

template <typename T>
void SumRows(const T* rows, uint32_t count, uint64_t columns, Workspace* workspace, float* out) {
  Launch(workspace, &Table::sum_rows,
         {.element = kElement<T>,
          .count = count,
          .columns = columns,
          .rows = rows,
          .out = out,
          .workspace = WorkOf(workspace, &Table::sum_workspace_bytes, count, columns)});
}

template <typename From, typename To>
void ConvertRows(const From* from, uint32_t rows, uint64_t columns, Workspace* workspace, To* to) {
  Launch(workspace, &Table::convert, {kElement<From>, kElement<To>, rows * columns, from, to});
}

// A matrix, or one that is seen transposed, in another type; in the workspace.
at::Tensor Typed(const at::Tensor& matrix, at::ScalarType type, Workspace* workspace) {
  if (matrix.is_contiguous()) return AsRowsOf(type, matrix, workspace);
  return AsRowsOf(type, matrix.t(), workspace).t();
}

}  // namespace

bool SimulatesProductsOfTorch() {
  static const bool simulates = [] {
    const char* const products = std::getenv("GNND_SIM_PRODUCTS");
    return products != nullptr && std::string_view(products) == "TORCH";
  }();
  return simulates;
}

// Sums are made where they end, and what lies between in the workspace, so that torch allocates
// nothing but cuBLAS's own memory. Of rows in bfloat16 a product is rounded before what is added to
// it, and once more after. The addend may be `out` itself, so it is read before `out` is written.
void AffineOfTorch(const AffineOp& op, Workspace* workspace) {
  const at::Tensor& out = op.out;
  const at::ScalarType type = op.x.scalar_type();
  const bool is_wider = type != out.scalar_type();
  const bool adds_to_out =
      op.addend.defined() && op.addend.const_data_ptr() == out.const_data_ptr();
  at::Tensor sum = is_wider ? EmptyIn(workspace, op.x, out.size(0), out.size(1)) : out;
  const at::Tensor weight = Typed(op.weight, type, workspace).t();
  if (adds_to_out && !is_wider) {
    at::addmm_out(sum, sum, op.x, weight);
  } else {
    at::mm_out(sum, op.x, weight);
  }
  if (op.x_self.defined()) {
    at::addmm_out(sum, sum, op.x_self, Typed(op.weight_self, type, workspace).t());
  }
  if (is_wider && adds_to_out) out.add_(sum);
  if (is_wider && !adds_to_out) out.copy_(sum);
  if (op.addend.defined() && !adds_to_out) out.add_(op.addend);
  if (op.bias.defined()) out.add_(op.bias);
}

void TransposedOfTorch(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& out,
                       Workspace* workspace) {
  const bool is_wider = x.scalar_type() != out.scalar_type();
  at::Tensor sum = is_wider ? EmptyIn(workspace, x, out.size(0), out.size(1)) : out;
  at::mm_out(sum, grad.t(), x);
  if (is_wider) out.copy_(sum);
}

namespace {

// Whether the processor's own kernels multiply, which follow pointers to a simulated device's
// memory.
bool MultipliesOnHost(Workspace* workspace) {
  StreamOf(workspace).BeginTorch();
  return StreamOf(workspace).on_host() && !SimulatesProductsOfTorch();
}

void MultiplyAffine(const AffineOp& op, Workspace* workspace) {
  if (MultipliesOnHost(workspace)) return RunAffine(op, workspace);
  AffineOfTorch(op, workspace);
}

void MultiplyTransposed(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& out,
                        Workspace* workspace) {
  if (MultipliesOnHost(workspace)) return TransposedProductInto(grad, x, out);
  TransposedOfTorch(grad, x, out, workspace);
}

// Whatever is no plain cross-entropy: a batch's logits are few beside its rows, and the processor's
// loss has the processor's bits.
LossSums LossesOnHost(const LossRows& op, TrainStream* stream) {
  const uint64_t count = op.rows * op.classes;
  std::vector<float> logits(count);
  std::vector<float> grad(count);
  std::vector<uint32_t> labels(op.task == Task::kClassification ? op.rows : 0);
  stream->CopyOut(logits.data(), op.logits, count * sizeof(float));
  if (!labels.empty()) stream->CopyOut(labels.data(), op.labels, op.rows * sizeof(uint32_t));
  stream->Synchronize();
  LossRows here = op;
  here.logits = logits.data();
  here.labels = labels.data();
  here.grad = grad.data();
  Workspace memory;
  const LossSums sums = CpuOperators().loss(here, &memory);
  stream->CopyIn(op.grad, grad.data(), count * sizeof(float));
  stream->Synchronize();
  return sums;
}

LossSums Losses(const LossRows& op, Workspace* workspace) {
  TrainStream& stream = StreamOf(workspace);
  if (op.task != Task::kClassification || op.weights != nullptr) return LossesOnHost(op, &stream);
  gnnd_device_loss args{};
  args.rows = op.rows;
  args.columns = static_cast<uint32_t>(op.classes);
  args.logits = op.logits;
  args.stride = op.classes;
  args.labels = op.labels;
  args.grad = op.grad;
  args.exp_sums = workspace->Get<double>(op.rows);
  args.margins = workspace->Get<float>(op.rows);
  args.best = workspace->Get<uint32_t>(op.rows);
  Launch(workspace, &Table::loss, args);
  std::vector<double> exp_sums(op.rows);
  std::vector<float> margins(op.rows);
  std::vector<uint32_t> best(op.rows);
  std::vector<uint32_t> labels(op.rows);
  stream.CopyOut(exp_sums.data(), args.exp_sums, op.rows * sizeof(double));
  stream.CopyOut(margins.data(), args.margins, op.rows * sizeof(float));
  stream.CopyOut(best.data(), args.best, op.rows * sizeof(uint32_t));
  stream.CopyOut(labels.data(), op.labels, op.rows * sizeof(uint32_t));
  stream.Synchronize();
  LossSums sums;
  for (uint32_t i = 0; i < op.rows; ++i) {
    sums.loss += LossOf(exp_sums[i], static_cast<double>(margins[i]));
    sums.correct += best[i] == labels[i] ? 1 : 0;
  }
  return sums;
}

template <typename T>
RowOperators<T> DeviceRows() {
  return {.sum_edges = &SumEdges<T, T>,
          .sum_floats = &SumEdges<T, float>,
          .sum_halves = &SumEdges<T, Half>,
          .mean_scales = &WriteMeanScales,
          .scale_weights = &ScaleWeights,
          .transpose = &Transpose,
          .weights = &WeightsAs,
          .dropout = &Drop<T>,
          .dropout_gradient = &DropGradient<T>,
          .sum_rows = &SumRows<T>};
}

}  // namespace

const Operators& DeviceOperators() {
  static const Operators operators = [] {
    Operators made{};
    made.of_float = DeviceRows<float>();
    made.of_bfloat16 = DeviceRows<Bfloat16>();
    made.attention_of_float = DeviceAttention();
    made.finish_of_float = DeviceFinish();
    made.row_models_of_float = DeviceRowModels();
    made.narrow = &ConvertRows<float, Bfloat16>;
    made.widen = &ConvertRows<Bfloat16, float>;
    made.affine = &MultiplyAffine;
    made.transposed_product = &MultiplyTransposed;
    made.loss = &Losses;
    made.update = CpuOperators().update;
    return made;
  }();
  return operators;
}

}  // namespace gnnd
