#include "cuda/operators.h"
#include "cuda/plugin/kernels.h"
#include "cuda/plugin/launch.h"

// Graph attention.

namespace gnnd::cuda {
namespace {

AttentionRows<float> RowsOf(const gnnd_device_attention& args) {
  AttentionRows<float> op;
  op.indptr = args.indptr;
  op.index = args.index;
  op.self_index = args.self_index;
  op.num_dst = args.num_dst;
  op.num_edges = args.num_edges;
  op.num_src = args.num_src;
  op.heads = args.heads;
  op.columns = args.columns;
  op.source = args.source;
  op.source_score = args.source_score;
  op.destination_score = args.destination_score;
  op.destination = args.destination;
  op.attention = args.attention;
  op.alpha = args.alpha;
  op.weight = args.weight;
  op.weight_scale = static_cast<float>(args.weight_scale);
  op.grad_out = args.grad_out;
  op.grad_score = args.grad_score;
  op.grad_destination = args.grad_destination;
  op.grad_attention = args.grad_attention;
  op.transposed_indptr = args.transposed_indptr;
  op.transposed_dst = args.transposed_dst;
  op.transposed_edge = args.transposed_edge;
  op.grad_source = args.grad_source;
  return op;
}

// Checks the fields that all passes read.
void WantBlock(const gnnd_device_attention& args, Fields* fields) {
  const bool any = args.num_dst > 0;
  fields->Want("num_edges", Fits32(args.num_edges))
      .Want("num_src",
            Fits32(args.num_src) && (args.self_index != nullptr || args.num_src >= args.num_dst))
      .Want("heads", args.heads > 0)
      .Need("indptr", args.indptr, any)
      .Need("index", args.index, args.num_edges > 0)
      .Need("alpha", args.alpha, any);
}

void WantScores(const gnnd_device_attention& args, Fields* fields) {
  const bool any = args.num_dst > 0;
  const bool is_sum = args.source_score == nullptr;  // GATv2
  fields->Need("destination_score", args.destination_score, any && !is_sum)
      .Need("source", args.source, any && is_sum)
      .Need("destination", args.destination, any && is_sum)
      .Need("attention", args.attention, any && is_sum);
}

void WantBackward(const gnnd_device_attention& args, Fields* fields) {
  const bool any = args.num_dst > 0;
  const bool is_sum = args.source_score == nullptr;
  fields->Need("source", args.source, any)
      .Need("weight", args.weight, any)
      .Need("grad_out", args.grad_out, any)
      .Need("grad_score", args.grad_score, any)
      .Need("grad_destination", args.grad_destination, any && is_sum)
      .Need("grad_attention", args.grad_attention, is_sum)
      .Need("workspace", args.workspace, any && is_sum);
}

void WantBackwardSource(const gnnd_device_attention& args, Fields* fields) {
  const bool any = args.num_src > 0;
  fields->Want("source_score", args.source_score == nullptr)
      .Need("source", args.source, any)
      .Need("grad_score", args.grad_score, args.num_dst > 0)
      .Need("transposed_indptr", args.transposed_indptr, any)
      .Need("transposed_dst", args.transposed_dst, args.num_edges > 0)
      .Need("transposed_edge", args.transposed_edge, args.num_edges > 0)
      .Need("grad_source", args.grad_source, any);
}

uint32_t Attention(gnnd_device_stream* stream, const gnnd_device_attention* args,
                   gnnd_device_error* error) {
  const auto pass = static_cast<AttentionPass>(args->pass);
  Fields fields;
  fields.Want("pass", args->pass <= static_cast<uint32_t>(AttentionPass::kBackwardSrc));
  WantBlock(*args, &fields);
  WantScores(*args, &fields);
  if (pass == AttentionPass::kBackward) WantBackward(*args, &fields);
  if (pass == AttentionPass::kBackwardSrc) WantBackwardSource(*args, &fields);
  return Enqueue(stream, error, "attention", fields, [&](const Queue& queue) {
    const AttentionRows<float> op = RowsOf(*args);
    const bool of_sources = pass == AttentionPass::kBackwardSrc;
    RunAttention(queue, op, pass, 0,
                 of_sources ? static_cast<uint32_t>(args->num_src) : args->num_dst);
    if (pass != AttentionPass::kBackward || args->source_score != nullptr) return;
    AttentionVector(queue, op, As<float>(args->workspace));
  });
}

uint32_t DropWeights(gnnd_device_stream* stream, const gnnd_device_drop_attention* args,
                     gnnd_device_error* error) {
  const bool any = args->attention.num_dst > 0;
  Fields fields;
  WantBlock(args->attention, &fields);
  fields.Want("threshold", args->threshold <= uint64_t{1} << 32)
      .Need("nodes", args->nodes, any)
      .Need("weight", args->weight, any);
  return Enqueue(stream, error, "dropout of attention", fields, [&](const Queue& queue) {
    const DropoutKey key{args->random_seed, args->epoch, args->batch, args->layer};
    DropAttention(queue, RowsOf(args->attention), key, args->nodes, args->threshold, 0,
                  args->attention.num_dst, args->weight);
  });
}

uint32_t ScoreSums(gnnd_device_stream* stream, const gnnd_device_score_sums* args,
                   gnnd_device_error* error) {
  const bool any = args->rows > 0 && args->heads > 0;
  Fields fields;
  fields.Want("num_edges", Fits32(args->num_edges))
      .Need("grad_score", args->grad_score, any && args->num_dst + args->num_edges > 0)
      .Need("indptr", args->indptr, any)
      .Need("out", args->out, any);
  return Enqueue(stream, error, "gradients of scores", fields, [&](const Queue& queue) {
    SumScores(queue, {args->grad_score, args->rows, args->num_dst, args->num_edges, args->heads,
                      args->indptr, args->edge, args->out});
  });
}

uint32_t Heads(gnnd_device_stream* stream, const gnnd_device_heads* args,
               gnnd_device_error* error) {
  const bool is_sum = args->operation == GNND_HEADS_VECTORS;
  const bool any = args->num_rows > 0 && args->heads > 0;
  Fields fields;
  fields.Want("operation", args->operation <= GNND_HEADS_VECTORS)
      .Want("columns", args->columns > 0)
      .Need("rows", args->rows, any)
      .Need("vectors", args->vectors, any || is_sum)
      .Need("scores", args->scores, any)
      .Need("workspace", args->workspace, any && is_sum);
  return Enqueue(stream, error, "vectors of heads", fields, [&](const Queue& queue) {
    const HeadsTask task{args->rows,     args->vectors, args->scores,
                         args->num_rows, args->heads,   args->columns};
    switch (args->operation) {
      case GNND_HEADS_SCORES:
        return ScoresOfHeads(queue, task);
      case GNND_HEADS_OUTER:
        return AddOuter(queue, task);
      default:
        return VectorsOfHeads(queue, task, As<float>(args->workspace));
    }
  });
}

}  // namespace

void AddAttention(gnnd_device_plugin* table) {
  table->attention = Attention;
  table->drop_attention = DropWeights;
  table->score_sums = ScoreSums;
  table->heads = Heads;
}

}  // namespace gnnd::cuda
