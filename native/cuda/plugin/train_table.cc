#include "cuda/operators.h"
#include "cuda/plugin/kernels.h"
#include "cuda/plugin/launch.h"

// Training without attention: sums over edges and rows, dropout, the loss.

namespace gnnd::cuda {
namespace {

constexpr uint32_t Pair(uint32_t element, uint32_t out_element) {
  return element * 16 + out_element;
}

template <typename T, typename Element, typename Out>
void RunSpmmAs(const Queue& queue, const gnnd_device_spmm& args) {
  Spmm<T, Element, Out> op;
  op.x = As<Element>(args.x);
  op.x_stride = args.x_stride;
  op.columns = args.columns;
  op.indptr = args.indptr;
  op.index = args.index;
  op.weight = As<T>(args.weight);
  op.self = As<Element>(args.self);
  op.self_stride = args.self_stride;
  op.self_index = args.self_index;
  op.self_weight = As<T>(args.self_weight);
  op.self_rows = args.self_rows;
  op.scale = As<T>(args.scale);
  op.out = As<Out>(args.out);
  op.out_stride = args.out_stride;
  RunSpmm(queue, op, 0, args.rows);
}

// The kernel for these types; null if there is none.
using SpmmOf = void (*)(const Queue& queue, const gnnd_device_spmm& args);
SpmmOf SpmmFor(uint32_t element, uint32_t out_element) {
  if (element > GNND_ELEMENT_FLOAT64 || out_element > GNND_ELEMENT_FLOAT64) return nullptr;
  switch (Pair(element, out_element)) {
    case Pair(GNND_ELEMENT_FLOAT32, GNND_ELEMENT_FLOAT32):
      return RunSpmmAs<float, float, float>;
    case Pair(GNND_ELEMENT_FLOAT16, GNND_ELEMENT_FLOAT32):
      return RunSpmmAs<float, Half, float>;
    case Pair(GNND_ELEMENT_FLOAT64, GNND_ELEMENT_FLOAT64):
      return RunSpmmAs<double, double, double>;
    case Pair(GNND_ELEMENT_BFLOAT16, GNND_ELEMENT_BFLOAT16):
      return RunSpmmAs<float, Bfloat16, Bfloat16>;
    case Pair(GNND_ELEMENT_FLOAT32, GNND_ELEMENT_BFLOAT16):
      return RunSpmmAs<float, float, Bfloat16>;
    case Pair(GNND_ELEMENT_FLOAT16, GNND_ELEMENT_BFLOAT16):
      return RunSpmmAs<float, Half, Bfloat16>;
    default:
      return nullptr;
  }
}

uint32_t SumEdges(gnnd_device_stream* stream, const gnnd_device_spmm* args,
                  gnnd_device_error* error) {
  const bool any = args->rows > 0 && args->columns > 0;
  const SpmmOf run = SpmmFor(args->element, args->out_element);
  Fields fields;
  fields
      .Want("element",
            args->element >= GNND_ELEMENT_FLOAT32 && args->element <= GNND_ELEMENT_FLOAT64)
      .Want("out_element", run != nullptr)
      .Need("indptr", args->indptr, any)
      .Want("x_stride", args->x_stride >= args->columns)
      .Want("self_stride", args->self == nullptr || args->self_stride >= args->columns)
      .Want("self_rows", args->self == nullptr || args->self_rows <= args->rows)
      .Want("out_stride", args->out_stride >= args->columns)
      .Need("out", args->out, any);
  return Enqueue(stream, error, "summing rows over edges", fields,
                 [&](const Queue& queue) { run(queue, *args); });
}

uint64_t TransposeWorkspaceBytes(uint32_t, uint32_t, uint64_t num_edges) {
  return Fits32(num_edges) ? TransposeWords(static_cast<uint32_t>(num_edges)) * sizeof(uint32_t)
                           : 0;
}

uint32_t TransposeEdges(gnnd_device_stream* stream, const gnnd_device_transpose* args,
                        gnnd_device_error* error) {
  const bool any = args->num_edges > 0;
  Fields fields;
  fields
      .Want("num_edges",
            Fits32(args->num_edges) && (!any || (args->num_dst > 0 && args->num_src > 0)))
      .Need("indptr", args->indptr, any)
      .Need("src", args->src, any)
      .Need("transposed_indptr", args->transposed_indptr)
      .Need("transposed_dst", args->transposed_dst, any)
      .Need("transposed_edge", args->transposed_edge, any)
      .Need("workspace", args->workspace, any);
  return Enqueue(stream, error, "transposing a block", fields, [&](const Queue& queue) {
    const TransposeTask task{args->indptr,
                             args->src,
                             args->num_dst,
                             args->num_src,
                             static_cast<uint32_t>(args->num_edges),
                             args->transposed_indptr,
                             args->transposed_dst,
                             args->transposed_edge};
    Transpose(queue, task, As<uint32_t>(args->workspace));
  });
}

uint32_t Take(gnnd_device_stream* stream, const gnnd_device_take* args, gnnd_device_error* error) {
  const bool any = args->count > 0;
  Fields fields;
  fields.Need("from", args->from, any).Need("index", args->index, any).Need("out", args->out, any);
  return Enqueue(stream, error, "taking weights", fields, [&](const Queue& queue) {
    TakeByIndex(queue, args->from, args->index, args->count, args->out);
  });
}

uint32_t WriteMeanScales(gnnd_device_stream* stream, const gnnd_device_mean_scales* args,
                         gnnd_device_error* error) {
  const bool any = args->num_dst > 0;
  Fields fields;
  fields.Need("indptr", args->indptr, any)
      .Need("scale", args->scale, any)
      .Need("weight", args->weight, args->scaled != nullptr);
  return Enqueue(stream, error, "scaling means", fields, [&](const Queue& queue) {
    MeanScales(queue, {args->indptr, args->weight, args->num_dst, args->scale, args->scaled});
  });
}

template <typename T, typename Scale>
void RunDropoutAs(const Queue& queue, const gnnd_device_dropout& args) {
  DropoutRows<T, Scale> op;
  op.key = {args.random_seed, args.epoch, args.batch, args.layer};
  op.nodes = args.nodes;
  op.rows = As<T>(args.in_out);
  op.stride = args.stride;
  op.columns = args.columns;
  op.threshold = args.threshold;
  op.scale = static_cast<Scale>(args.scale);
  op.relu = args.relu != 0;
  RunDropout(queue, op, 0, args.rows);
}

bool IsOfDropout(uint32_t element) {
  return element == GNND_ELEMENT_FLOAT32 || element == GNND_ELEMENT_FLOAT64 ||
         element == GNND_ELEMENT_BFLOAT16;
}

uint32_t Drop(gnnd_device_stream* stream, const gnnd_device_dropout* args,
              gnnd_device_error* error) {
  const bool any = args->rows > 0 && args->columns > 0;
  Fields fields;
  fields.Want("element", IsOfDropout(args->element))
      .Want("stride", args->stride >= args->columns)
      .Want("threshold", args->threshold <= uint64_t{1} << 32)
      .Need("nodes", args->nodes, any && args->threshold > 0)
      .Need("in_out", args->in_out, any);
  return Enqueue(stream, error, "dropout", fields, [&](const Queue& queue) {
    if (args->element == GNND_ELEMENT_FLOAT32) return RunDropoutAs<float, float>(queue, *args);
    if (args->element == GNND_ELEMENT_FLOAT64) return RunDropoutAs<double, double>(queue, *args);
    RunDropoutAs<Bfloat16, float>(queue, *args);
  });
}

template <typename T, typename Scale>
void RunDropoutGradientAs(const Queue& queue, const gnnd_device_dropout_gradient& args) {
  DropoutGradient(queue, As<T>(args.out), As<T>(args.grad), args.count,
                  static_cast<Scale>(args.scale), As<T>(args.grad_in));
}

uint32_t DropGradient(gnnd_device_stream* stream, const gnnd_device_dropout_gradient* args,
                      gnnd_device_error* error) {
  const bool any = args->count > 0;
  Fields fields;
  fields.Want("element", IsOfDropout(args->element))
      .Need("out", args->out, any)
      .Need("grad", args->grad, any)
      .Need("grad_in", args->grad_in, any);
  return Enqueue(stream, error, "dropout's gradient", fields, [&](const Queue& queue) {
    if (args->element == GNND_ELEMENT_FLOAT32) {
      RunDropoutGradientAs<float, float>(queue, *args);
    } else if (args->element == GNND_ELEMENT_FLOAT64) {
      RunDropoutGradientAs<double, double>(queue, *args);
    } else {
      RunDropoutGradientAs<Bfloat16, float>(queue, *args);
    }
  });
}

uint64_t SumWorkspaceBytes(uint32_t rows, uint64_t columns) {
  return SumFloats(rows, columns) * sizeof(float);
}

uint32_t AddRows(gnnd_device_stream* stream, const gnnd_device_sum_rows* args,
                 gnnd_device_error* error) {
  const bool any = args->count > 0 && args->columns > 0;
  const bool narrow = args->element == GNND_ELEMENT_BFLOAT16;
  Fields fields;
  fields.Want("element", narrow || args->element == GNND_ELEMENT_FLOAT32)
      .Need("rows", args->rows, any)
      .Need("workspace", args->workspace, any)
      .Need("out", args->out, args->columns > 0);
  return Enqueue(stream, error, "summing rows", fields, [&](const Queue& queue) {
    auto* const partial = As<float>(args->workspace);
    if (narrow) {
      SumRows(queue, As<Bfloat16>(args->rows), args->count, args->columns, partial, args->out);
    } else {
      SumRows(queue, As<float>(args->rows), args->count, args->columns, partial, args->out);
    }
  });
}

uint32_t Loss(gnnd_device_stream* stream, const gnnd_device_loss* args, gnnd_device_error* error) {
  const bool any = args->rows > 0;
  Fields fields;
  fields.Want("columns", args->columns > 0)
      .Want("stride", args->stride >= args->columns)
      .Need("logits", args->logits, any)
      .Need("labels", args->labels, any)
      .Need("exp_sums", args->exp_sums, any)
      .Need("margins", args->margins, any);
  return Enqueue(stream, error, "cross-entropy", fields, [&](const Queue& queue) {
    LossRows op;
    op.logits = args->logits;
    op.stride = args->stride;
    op.columns = args->columns;
    op.labels = args->labels;
    op.grad = args->grad;
    op.exp_sums = args->exp_sums;
    op.margins = args->margins;
    CrossEntropy(queue, op, 0, args->rows);
    if (args->best == nullptr) return;
    ArgMax(queue, args->logits, args->stride, args->columns, 0, args->rows, args->best);
  });
}

}  // namespace

void AddTraining(gnnd_device_plugin* table) {
  table->spmm = SumEdges;
  table->transpose_workspace_bytes = TransposeWorkspaceBytes;
  table->transpose = TransposeEdges;
  table->take = Take;
  table->mean_scales = WriteMeanScales;
  table->dropout = Drop;
  table->dropout_gradient = DropGradient;
  table->sum_workspace_bytes = SumWorkspaceBytes;
  table->sum_rows = AddRows;
  table->loss = Loss;
}

}  // namespace gnnd::cuda
