#include "train/ops/row_ops.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include "train/ops/operators.h"

namespace gnnd {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

void SaveWorkspace(AutogradContext* context, Workspace* workspace) {
  context->saved_data["workspace"] = reinterpret_cast<int64_t>(workspace);
}

Workspace* SavedWorkspace(AutogradContext* context) {
  return reinterpret_cast<Workspace*>(context->saved_data["workspace"].toInt());
}

uint32_t RowsOf(const at::Tensor& x) { return static_cast<uint32_t>(x.size(0)); }

// ---- batch normalisation ----------------------------------------------------------------------

template <typename T>
BatchNormRows<T> BatchNormOf(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& shift,
                             const at::Tensor& moments, const at::Tensor& inverse) {
  BatchNormRows<T> op;
  op.x = x.const_data_ptr<T>();
  op.rows = RowsOf(x);
  op.columns = static_cast<uint64_t>(x.size(1));
  op.scale = scale.const_data_ptr<T>();
  if (shift.defined()) op.shift = shift.const_data_ptr<T>();
  op.moments = moments.data_ptr<T>();
  op.inverse = inverse.data_ptr<T>();
  return op;
}

class BatchNormFunction : public torch::autograd::Function<BatchNormFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& scale,
                            const at::Tensor& shift, const at::Tensor& moments,
                            Workspace* workspace) {
    SaveWorkspace(context, workspace);
    const at::Tensor inverse = EmptyIn(workspace, x, 0, x.size(1));
    at::Tensor out = EmptyIn(workspace, x, x.size(0), x.size(1));
    InTypeOf(x, [&]<typename T>(T) {
      workspace->operators().row_models<T>().batch_norm(
          BatchNormOf<T>(x, scale, shift, moments, inverse), workspace, out.data_ptr<T>());
    });
    context->save_for_backward({x, scale, moments, inverse});
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    Workspace* const workspace = SavedWorkspace(context);
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor grad = grads[0].contiguous();
    const at::Tensor grad_in = EmptyIn(workspace, x, x.size(0), x.size(1));
    const at::Tensor sums = EmptyIn(workspace, x, 2, x.size(1));
    InTypeOf(x, [&]<typename T>(T) {
      BatchNormRows<T> op = BatchNormOf<T>(x, saved[1], at::Tensor(), saved[2], saved[3]);
      op.grad = grad.const_data_ptr<T>();
      workspace->operators().row_models<T>().batch_norm_gradient(
          op, workspace, grad_in.data_ptr<T>(), sums.data_ptr<T>());
    });
    return {grad_in, sums[0], sums[1], at::Tensor(), at::Tensor()};
  }
};

// ---- PReLU ------------------------------------------------------------------------------------

template <typename T>
PReluRows<T> PReluOf(const at::Tensor& x, const at::Tensor& slope) {
  return {x.const_data_ptr<T>(), RowsOf(x), static_cast<uint64_t>(x.size(1)),
          slope.const_data_ptr<T>(), nullptr};
}

class PReluFunction : public torch::autograd::Function<PReluFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& slope,
                            Workspace* workspace) {
    SaveWorkspace(context, workspace);
    context->save_for_backward({x, slope});
    const at::Tensor out = EmptyIn(workspace, x, x.size(0), x.size(1));
    InTypeOf(x, [&]<typename T>(T) {
      workspace->operators().row_models<T>().prelu(PReluOf<T>(x, slope), workspace,
                                                   out.data_ptr<T>());
    });
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    Workspace* const workspace = SavedWorkspace(context);
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor grad = grads[0].contiguous();
    const at::Tensor grad_in = EmptyIn(workspace, x, x.size(0), x.size(1));
    const at::Tensor grad_slope = EmptyIn(workspace, x, 0, 1);
    InTypeOf(x, [&]<typename T>(T) {
      PReluRows<T> op = PReluOf<T>(x, saved[1]);
      op.grad = grad.const_data_ptr<T>();
      workspace->operators().row_models<T>().prelu_gradient(op, workspace, grad_in.data_ptr<T>(),
                                                            grad_slope.data_ptr<T>());
    });
    return {grad_in, grad_slope, at::Tensor()};
  }
};

// ---- attention --------------------------------------------------------------------------------

template <typename T>
TokenRows<T> TokensOf(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                      int64_t heads) {
  TokenRows<T> op;
  op.rows = RowsOf(query);
  op.queries = static_cast<uint32_t>(query.size(1));
  op.tokens = static_cast<uint32_t>(key.size(1));
  op.heads = static_cast<uint32_t>(heads);
  op.head_width = static_cast<uint32_t>(query.size(2) / heads);
  op.query = query.const_data_ptr<T>();
  op.key = key.const_data_ptr<T>();
  op.value = value.const_data_ptr<T>();
  return op;
}

class AttentionFunction : public torch::autograd::Function<AttentionFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& query,
                            const at::Tensor& key, const at::Tensor& value, int64_t heads,
                            const DropoutSite& site, Workspace* workspace) {
    SaveWorkspace(context, workspace);
    context->saved_data["heads"] = heads;
    const int64_t scores = heads * query.size(1) * key.size(1);
    const at::Tensor probability = EmptyIn(workspace, query, query.size(0), scores);
    at::Tensor mask;
    if (site.p != 0.0F) mask = EmptyIn(workspace, query, query.size(0), scores);
    at::Tensor out = at::empty_like(query);
    InTypeOf(query, [&]<typename T>(T) {
      TokenRows<T> op = TokensOf<T>(query, key, value, heads);
      op.probability = probability.data_ptr<T>();
      if (mask.defined()) op.mask = mask.data_ptr<T>();
      op.out = out.data_ptr<T>();
      const TokenDropout dropout{site.key, site.nodes, site.p};
      workspace->operators().row_models<T>().attend(op, dropout, workspace);
    });
    variable_list kept = {query, key, value, probability};
    if (mask.defined()) kept.push_back(mask);
    context->save_for_backward(kept);
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    Workspace* const workspace = SavedWorkspace(context);
    const variable_list saved = context->get_saved_variables();
    const at::Tensor grad = grads[0].contiguous();
    at::Tensor grad_query = at::empty_like(saved[0]);
    at::Tensor grad_key = at::empty_like(saved[1]);
    at::Tensor grad_value = at::empty_like(saved[2]);
    InTypeOf(saved[0], [&]<typename T>(T) {
      const int64_t heads = context->saved_data["heads"].toInt();
      TokenRows<T> op = TokensOf<T>(saved[0], saved[1], saved[2], heads);
      op.probability = saved[3].data_ptr<T>();
      if (saved.size() > 4) op.mask = saved[4].data_ptr<T>();
      op.grad = grad.const_data_ptr<T>();
      op.grad_query = grad_query.data_ptr<T>();
      op.grad_key = grad_key.data_ptr<T>();
      op.grad_value = grad_value.data_ptr<T>();
      workspace->operators().row_models<T>().attend_gradient(op, workspace);
    });
    return {grad_query, grad_key, grad_value, at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor BatchNorm(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& shift,
                     BatchMoments* moments, Workspace* workspace) {
  const at::Tensor found = EmptyIn(workspace, x, 2, x.size(1));
  at::Tensor out = BatchNormFunction::apply(x, scale, shift, found, workspace);
  const auto rows = static_cast<double>(x.size(0));
  moments->mean = found[0];
  moments->variance = found[1].mul(rows > 1 ? rows / (rows - 1) : 1.0);
  return out;
}

at::Tensor BatchNormBy(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& shift,
                       const BatchMoments& moments, Workspace* workspace) {
  const at::Tensor inverse = EmptyIn(workspace, x, 0, x.size(1));
  at::Tensor out = EmptyIn(workspace, x, x.size(0), x.size(1));
  const at::Tensor given = EmptyIn(workspace, x, 2, x.size(1));
  given[0].copy_(moments.mean);
  given[1].copy_(moments.variance);
  InTypeOf(x, [&]<typename T>(T) {
    workspace->operators().row_models<T>().batch_norm_by(
        BatchNormOf<T>(x, scale, shift, given, inverse), workspace, out.data_ptr<T>());
  });
  return out;
}

at::Tensor PRelu(const at::Tensor& x, const at::Tensor& slope, Workspace* workspace) {
  return PReluFunction::apply(x, slope, workspace);
}

at::Tensor Dropout(const at::Tensor& x, const DropoutSite& site, Workspace* workspace) {
  if (site.p == 0.0F) return x;
  const at::Tensor mask = at::ones_like(x.detach()).view({x.size(0), -1});
  InTypeOf(x, [&]<typename T>(T) {
    workspace->operators().rows<T>().dropout(DropoutOf<T>(site, mask), RowsOf(mask), workspace);
  });
  return x.mul(mask.view(x.sizes()));
}

at::Tensor AttendTokens(const TokenAttention& input, Workspace* workspace) {
  return AttentionFunction::apply(input.query.contiguous(), input.key.contiguous(),
                                  input.value.contiguous(), static_cast<int64_t>(input.heads),
                                  input.dropout, workspace);
}

}  // namespace gnnd
