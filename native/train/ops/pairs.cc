#include "train/ops/pairs.h"

#include <ATen/ops/mul.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "train/ops/device_stream.h"
#include "train/ops/parallel.h"

namespace gnnd {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr uint32_t kGrainRows = 64;

// Numbers of the host in memory that operators of the workspace read.
const uint32_t* Given(std::span<const uint32_t> numbers, Workspace* workspace) {
  auto* const to = workspace->Get<uint32_t>(numbers.size());
  if (workspace->device().context == nullptr) {
    std::ranges::copy(numbers, to);
  } else {
    TrainStream::Of(workspace->device()).CopyIn(to, numbers.data(), numbers.size_bytes());
  }
  return to;
}

Workspace* SavedWorkspace(AutogradContext* context) {
  return reinterpret_cast<Workspace*>(context->saved_data["workspace"].toInt());
}

// The shapes and places of DotsOfRows, on the processor.
template <typename T>
struct Dots {
  Dots(const at::Tensor& left, const at::Tensor& right, int64_t of_each)
      : a(left.const_data_ptr<T>()),
        b(right.const_data_ptr<T>()),
        rows(static_cast<uint32_t>(left.size(0))),
        each(static_cast<uint32_t>(of_each)),
        columns(static_cast<uint32_t>(left.size(1))) {}

  template <typename Body>
  void ForRows(const Body& body) const {
    ParallelRows(rows, std::max(1U, kGrainRows / std::max(1U, each)),
                 [&](uint32_t begin, uint32_t end) {
                   for (uint32_t r = begin; r < end; ++r) body(r);
                 });
  }
  const T* A(uint32_t row) const { return a + uint64_t{row} * columns; }
  const T* B(uint32_t row, uint32_t j) const { return b + (uint64_t{row} * each + j) * columns; }

  void Write(T* out) const {
    ForRows([&](uint32_t r) {
      for (uint32_t j = 0; j < each; ++j) {
        out[uint64_t{r} * each + j] = DotOfRows(A(r), B(r, j), columns);
      }
    });
  }

  void WriteGradients(const T* grad, T* grad_a, T* grad_b) const {
    ForRows([&](uint32_t r) {
      T* const to = grad_a + uint64_t{r} * columns;
      std::fill_n(to, columns, T{});
      for (uint32_t j = 0; j < each; ++j) {
        const uint64_t at = uint64_t{r} * each + j;
        for (uint32_t c = 0; c < columns; ++c) {
          to[c] += grad[at] * B(r, j)[c];
          grad_b[at * columns + c] = grad[at] * A(r)[c];
        }
      }
    });
  }

  const T* a;
  const T* b;
  uint32_t rows;
  uint32_t each;
  uint32_t columns;
};

class DotsFunction : public torch::autograd::Function<DotsFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& left,
                            const at::Tensor& right, int64_t each, Workspace* workspace) {
    context->saved_data["workspace"] = reinterpret_cast<int64_t>(workspace);
    context->saved_data["each"] = each;
    context->save_for_backward({left, right});
    const at::Tensor out = EmptyIn(workspace, left, left.size(0), each);
    InTypeOf(left, [&]<typename T>(T) { Dots<T>(left, right, each).Write(out.data_ptr<T>()); });
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    Workspace* const workspace = SavedWorkspace(context);
    const int64_t each = context->saved_data["each"].toInt();
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& left = saved[0];
    const at::Tensor& right = saved[1];
    const at::Tensor grad = grads[0].contiguous();
    const at::Tensor to_left = EmptyIn(workspace, left, left.size(0), left.size(1));
    const at::Tensor to_right = EmptyIn(workspace, right, right.size(0), right.size(1));
    InTypeOf(left, [&]<typename T>(T) {
      Dots<T>(left, right, each)
          .WriteGradients(grad.const_data_ptr<T>(), to_left.data_ptr<T>(), to_right.data_ptr<T>());
    });
    return {to_left, to_right, at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor RowsAt(const at::Tensor& x, std::span<const uint32_t> places, Workspace* workspace) {
  const auto count = static_cast<uint32_t>(places.size());
  std::vector<uint32_t> starts(uint64_t{count} + 1);
  for (uint32_t i = 0; i <= count; ++i) starts[i] = i;
  BlockView block;
  block.num_dst = count;
  block.num_src = static_cast<uint32_t>(x.size(0));
  block.indptr = {Given(starts, workspace), starts.size()};
  block.src = {Given(places, workspace), places.size()};
  return Aggregate(x, block, Reduction::kSum, /*with_self=*/false, workspace).first;
}

at::Tensor DotsOfRows(const at::Tensor& left, const at::Tensor& right, int64_t each,
                      Workspace* workspace) {
  // Devices that the processor cannot read sum as torch does there.
  if (!left.is_cpu()) {
    return left.unsqueeze(1).mul(right.view({left.size(0), each, left.size(1)})).sum(-1);
  }
  return DotsFunction::apply(left, right, each, workspace);
}

}  // namespace gnnd
