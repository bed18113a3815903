#include "cuda/operators.h"
#include "cuda/plugin/kernels.h"
#include "cuda/plugin/launch.h"

// Activations and normalisation after hidden layers.

namespace gnnd::cuda {
namespace {

uint32_t ActivateRows(gnnd_device_stream* stream, const gnnd_device_activation_rows* args,
                      gnnd_device_error* error) {
  Fields fields;
  fields
      .Want("activation", args->activation >= GNND_ACTIVATION_RELU &&
                              args->activation <= GNND_ACTIVATION_LEAKY_RELU)
      .Need("values", args->values, args->count > 0);
  return Enqueue(stream, error, "an activation", fields, [&](const Queue& queue) {
    const auto activation = static_cast<Activated>(args->activation);
    if (args->out == nullptr) return Activate(queue, activation, args->values, args->count);
    ActivationGradient(queue, activation, args->out, args->inverse_scale, args->count,
                       args->values);
  });
}

uint64_t NormWorkspaceBytes(uint32_t rows, uint32_t columns) {
  return LayerNormFloats(rows, columns) * sizeof(float);
}

uint32_t NormRows(gnnd_device_stream* stream, const gnnd_device_norm_rows* args,
                  gnnd_device_error* error) {
  const bool any = args->rows > 0;
  const bool is_layer = args->norm == GNND_NORM_LAYER;
  const bool is_backward = args->grad != nullptr;
  Fields fields;
  fields.Want("norm", is_layer || args->norm == GNND_NORM_L2)
      .Want("columns", args->columns > 0)
      .Need("x", args->x, any)
      .Need("out", args->out, any)
      .Need("scale", args->scale, is_layer)
      .Need("shift", args->shift, is_layer && !is_backward)
      .Need("grad_scale", args->grad_scale, is_layer && is_backward)
      .Need("workspace", args->workspace, any && is_layer && is_backward);
  return Enqueue(stream, error, "normalising rows", fields, [&](const Queue& queue) {
    const NormTask task{args->x,     args->rows, args->columns, args->scale,
                        args->shift, args->grad, args->out,     args->grad_scale};
    if (!is_layer) return NormalizeL2(queue, task);
    LayerNorm(queue, task, As<float>(args->workspace));
  });
}

}  // namespace

void AddLayerEnds(gnnd_device_plugin* table) {
  table->activation = ActivateRows;
  table->norm_workspace_bytes = NormWorkspaceBytes;
  table->norm = NormRows;
}

}  // namespace gnnd::cuda
