#include "cuda/operators.h"
#include "cuda/plugin/kernels.h"
#include "cuda/plugin/launch.h"

// Models over rows of propagated features.

namespace gnnd::cuda {
namespace {

uint64_t BatchNormBytes(uint32_t rows, uint64_t columns) {
  return BatchNormFloats(rows, columns) * sizeof(float);
}

uint32_t NormalizeBatch(gnnd_device_stream* stream, const gnnd_device_batch_norm_rows* args,
                        gnnd_device_error* error) {
  const bool any = args->rows > 0;
  const bool is_given = args->pass == GNND_BATCH_NORM_GIVEN;
  const bool is_backward = args->pass == GNND_BATCH_NORM_GRADIENT;
  Fields fields;
  fields.Want("pass", args->pass <= GNND_BATCH_NORM_GRADIENT)
      .Want("columns", args->columns > 0)
      .Need("x", args->x, any)
      .Need("scale", args->scale)
      .Need("shift", args->shift, !is_backward)
      .Need("moments", args->moments)
      .Need("inverse", args->inverse)
      .Need("grad", args->grad, any && is_backward)
      .Need("out", args->out, any)
      .Need("grad_scale", args->grad_scale, is_backward)
      .Need("workspace", args->workspace, any && !is_given);
  return Enqueue(stream, error, "batch normalisation", fields, [&](const Queue& queue) {
    const BatchNormTask task{
        args->x,     args->rows,      args->columns, args->scale,
        args->shift, args->moments,   args->inverse, is_backward ? args->grad : nullptr,
        args->out,   args->grad_scale};
    BatchNorm(queue, task, is_given, As<float>(args->workspace));
  });
}

uint32_t PReluOfRows(gnnd_device_stream* stream, const gnnd_device_prelu_rows* args,
                     gnnd_device_error* error) {
  const bool any = args->rows > 0 && args->columns > 0;
  const bool is_backward = args->grad != nullptr;
  Fields fields;
  fields.Need("x", args->x, any)
      .Need("slope", args->slope)
      .Need("out", args->out, any)
      .Need("grad_slope", args->grad_slope, is_backward)
      .Need("workspace", args->workspace, any && is_backward);
  return Enqueue(stream, error, "PReLU", fields, [&](const Queue& queue) {
    PRelu(
        queue,
        {args->x, args->rows, args->columns, args->slope, args->grad, args->out, args->grad_slope},
        As<float>(args->workspace));
  });
}

uint32_t AttendTokens(gnnd_device_stream* stream, const gnnd_device_tokens* args,
                      gnnd_device_error* error) {
  const bool any = args->rows > 0;
  const bool is_backward = args->grad != nullptr;
  const bool is_drawn = args->mask != nullptr && !is_backward;
  Fields fields;
  fields.Want("queries", args->queries > 0)
      .Want("tokens", args->tokens > 0)
      .Want("heads", args->heads > 0)
      .Want("head_width", args->head_width > 0)
      .Need("query", args->query, any)
      .Need("key", args->key, any)
      .Need("value", args->value, any)
      .Need("probability", args->probability, any)
      .Need("out", args->out, any && !is_backward)
      .Need("nodes", args->nodes, any && is_drawn)
      .Want("threshold", !is_drawn || args->threshold <= uint64_t{1} << 32)
      .Need("grad_query", args->grad_query, any && is_backward)
      .Need("grad_key", args->grad_key, any && is_backward)
      .Need("grad_value", args->grad_value, any && is_backward)
      .Need("workspace", args->workspace, any && is_backward);
  return Enqueue(stream, error, "attention over tokens", fields, [&](const Queue& queue) {
    TokensTask task;
    task.rows = args->rows;
    task.queries = args->queries;
    task.tokens = args->tokens;
    task.heads = args->heads;
    task.head_width = args->head_width;
    task.query = args->query;
    task.key = args->key;
    task.value = args->value;
    task.probability = args->probability;
    task.mask = args->mask;
    task.out = args->out;
    task.grad = args->grad;
    task.grad_query = args->grad_query;
    task.grad_key = args->grad_key;
    task.grad_value = args->grad_value;
    task.along = args->workspace;
    if (is_drawn) {
      const DropoutKey key{args->random_seed, args->epoch, args->batch, args->layer};
      TokenMasks(queue, task, key, args->nodes, args->threshold, args->scale);
    }
    TokenAttention(queue, task);
  });
}

}  // namespace

void AddRowModels(gnnd_device_plugin* table) {
  table->batch_norm_workspace_bytes = BatchNormBytes;
  table->batch_norm = NormalizeBatch;
  table->prelu = PReluOfRows;
  table->token_attention = AttendTokens;
}

}  // namespace gnnd::cuda
