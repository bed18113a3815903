#include "train/ops/after_layer.h"

#include <torch/csrc/autograd/custom_function.h>

#include "train/ops/operators.h"

namespace gnnd {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// In-place changes of a hidden layer's rows, kept from forward to backward.
struct ActivationSite final : torch::CustomClassHolder {
  DropoutSite dropout;
  Activation activation = Activation::kRelu;
  bool activate = true;  // else only dropout
  Workspace* workspace = nullptr;

  template <typename T>
  const FinishOperators<T>& operators() const {
    return workspace->operators().finish<T>();
  }
};

template <typename T>
ActivationRows<T> ActivationOf(const ActivationSite& site, const at::Tensor& rows) {
  ActivationRows<T> op;
  op.activation = site.activation;
  op.activate = site.activate;
  op.dropout = DropoutOf<T>(site.dropout, rows);
  op.inverse_scale = T{1} - static_cast<T>(site.dropout.p);
  op.rows = static_cast<uint32_t>(rows.size(0));
  return op;
}

class ActivationFunction : public torch::autograd::Function<ActivationFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, at::Tensor z,
                            const c10::intrusive_ptr<ActivationSite>& site) {
    context->saved_data["site"] = c10::IValue::make_capsule(site);
    InTypeOf(z, [&]<typename T>(T) {
      site->operators<T>().activate(ActivationOf<T>(*site, z), site->workspace);
    });
    context->mark_dirty({z});
    context->save_for_backward({z});
    return z;
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const auto capsule = context->saved_data["site"].toCapsule();
    const auto& site = *static_cast<ActivationSite*>(capsule.get());
    const at::Tensor out = context->get_saved_variables()[0];
    at::Tensor grad = EmptyIn(site.workspace, out, out.size(0), out.size(1));
    grad.copy_(grads[0]);
    InTypeOf(out, [&]<typename T>(T) {
      site.operators<T>().activation_gradient(ActivationOf<T>(site, grad), out.const_data_ptr<T>(),
                                              site.workspace);
    });
    return {grad, at::Tensor()};
  }
};

void SaveWorkspace(AutogradContext* context, Workspace* workspace) {
  context->saved_data["workspace"] = reinterpret_cast<int64_t>(workspace);
}

Workspace* SavedWorkspace(AutogradContext* context) {
  return reinterpret_cast<Workspace*>(context->saved_data["workspace"].toInt());
}

template <typename T>
NormRows<T> NormOf(const at::Tensor& x) {
  NormRows<T> op;
  op.x = x.const_data_ptr<T>();
  op.rows = static_cast<uint32_t>(x.size(0));
  op.columns = static_cast<uint32_t>(x.size(1));
  return op;
}

class LayerNormFunction : public torch::autograd::Function<LayerNormFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& scale,
                            const at::Tensor& shift, Workspace* workspace) {
    SaveWorkspace(context, workspace);
    context->save_for_backward({x, scale});
    at::Tensor out = EmptyIn(workspace, x, x.size(0), x.size(1));
    InTypeOf(x, [&]<typename T>(T) {
      NormRows<T> op = NormOf<T>(x);
      op.scale = scale.const_data_ptr<T>();
      op.shift = shift.const_data_ptr<T>();
      workspace->operators().finish<T>().layer_norm(op, workspace, out.data_ptr<T>());
    });
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    Workspace* workspace = SavedWorkspace(context);
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor grad = grads[0].contiguous();
    at::Tensor grad_in = EmptyIn(workspace, x, x.size(0), x.size(1));
    at::Tensor sums = EmptyIn(workspace, x, 2, x.size(1));
    InTypeOf(x, [&]<typename T>(T) {
      NormRows<T> op = NormOf<T>(x);
      op.scale = saved[1].const_data_ptr<T>();
      op.grad = grad.const_data_ptr<T>();
      workspace->operators().finish<T>().layer_norm_gradient(op, workspace, grad_in.data_ptr<T>(),
                                                             sums.data_ptr<T>());
    });
    return {grad_in, sums[0], sums[1], at::Tensor()};
  }
};

// Backward reads x: rows shorter than epsilon have a constant divisor.
class NormalizeFunction : public torch::autograd::Function<NormalizeFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, Workspace* workspace) {
    SaveWorkspace(context, workspace);
    context->save_for_backward({x});
    at::Tensor out = EmptyIn(workspace, x, x.size(0), x.size(1));
    InTypeOf(x, [&]<typename T>(T) {
      workspace->operators().finish<T>().normalize(NormOf<T>(x), workspace, out.data_ptr<T>());
    });
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    Workspace* workspace = SavedWorkspace(context);
    const at::Tensor x = context->get_saved_variables()[0];
    const at::Tensor grad = grads[0].contiguous();
    at::Tensor grad_in = EmptyIn(workspace, x, x.size(0), x.size(1));
    InTypeOf(x, [&]<typename T>(T) {
      NormRows<T> op = NormOf<T>(x);
      op.grad = grad.const_data_ptr<T>();
      workspace->operators().finish<T>().normalize_gradient(op, workspace, grad_in.data_ptr<T>());
    });
    return {grad_in, at::Tensor()};
  }
};

at::Tensor ActivateAndDrop(const at::Tensor& z, Activation activation, bool activate,
                           const DropoutSite& dropout, Workspace* workspace) {
  if (activate && activation == Activation::kRelu) return ReluDropout(z, dropout, workspace);
  auto site = c10::make_intrusive<ActivationSite>();
  site->dropout = dropout;
  site->activation = activation;
  site->activate = activate;
  site->workspace = workspace;
  return ActivationFunction::apply(z, site);
}

}  // namespace

at::Tensor FinishLayer(const ModelSpec& spec, const at::Tensor& given, const at::Tensor& scale,
                       const at::Tensor& shift, const DropoutSite& site, Workspace* workspace) {
  const Activation activation = spec.activation;
  const bool narrow = given.scalar_type() == at::kBFloat16;
  const bool plain =
      NormalizationOf(spec) == Normalization::kNone && activation == Activation::kRelu;
  const at::Tensor z = narrow && !plain ? AsRowsOf(at::kFloat, given, workspace) : given;
  switch (NormalizationOf(spec)) {
    case Normalization::kLayer:
      return ActivateAndDrop(LayerNormFunction::apply(z, scale, shift, workspace), activation, true,
                             site, workspace);
    case Normalization::kL2: {
      DropoutSite none = site;
      none.p = 0;
      const at::Tensor active = ActivateAndDrop(z, activation, true, none, workspace);
      const at::Tensor unit = NormalizeFunction::apply(active, workspace);
      if (site.p == 0.0F) return unit;
      return ActivateAndDrop(unit, activation, false, site, workspace);
    }
    case Normalization::kNone:
      break;
  }
  return ActivateAndDrop(z, activation, true, site, workspace);
}

void FinishLayerInPlace(const ModelSpec& spec, const at::Tensor& z, const at::Tensor& scale,
                        const at::Tensor& shift, Workspace* workspace) {
  const FinishOperators<float>& finish = workspace->operators().finish<float>();
  const Normalization normalization = NormalizationOf(spec);
  auto* const values = z.data_ptr<float>();
  NormRows<float> norm = NormOf<float>(z);
  if (normalization == Normalization::kLayer) {
    norm.scale = scale.const_data_ptr<float>();
    norm.shift = shift.const_data_ptr<float>();
    finish.layer_norm(norm, workspace, values);
  }
  ActivationSite site;
  site.activation = spec.activation;
  finish.activate(ActivationOf<float>(site, z), workspace);
  if (normalization == Normalization::kL2) finish.normalize(norm, workspace, values);
}

at::Tensor DropRows(const at::Tensor& rows, const DropoutSite& site, Workspace* workspace) {
  if (site.p == 0.0F) return rows;
  // Rows in bfloat16 come from a ReLU, which a second ReLU does not change.
  if (rows.scalar_type() == at::kBFloat16) return ReluDropout(rows, site, workspace);
  return ActivateAndDrop(rows, Activation::kRelu, false, site, workspace);
}

at::Tensor LayerNorm(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& shift,
                     Workspace* workspace) {
  return LayerNormFunction::apply(x, scale, shift, workspace);
}

at::Tensor Normalize(const at::Tensor& x, Workspace* workspace) {
  return NormalizeFunction::apply(x, workspace);
}

}  // namespace gnnd
