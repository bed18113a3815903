#include "core/kernels/attention.h"
#include "core/kernels/exp.h"
#include "cuda/groups.cuh"
#include "cuda/operators.h"

// Graph attention, the twin of core/kernels/attention_loops.cc. Eight lanes work on a row: its sums
// over columns in eight parts become lanes here, and sums over edges run in their order.

namespace gnnd::cuda {
namespace {

using Rows = AttentionRows<float>;

GNND_DEVICE float Slope() { return static_cast<float>(kAttentionSlope); }
GNND_DEVICE float LeakyScore(float x) { return x > 0.0F ? x : Slope() * x; }

// Sums term(c) over columns: whole eights in parts, the rest one by one.
template <typename Term>
GNND_DEVICE float SumOfColumns(uint32_t columns, const Term& term) {
  const uint32_t whole = columns / kParts * kParts;
  float sum = 0;
  for (uint32_t c = Part(); c < whole; c += kParts) sum += term(c);
  float rest = 0;
  for (uint32_t c = whole; c < columns; ++c) rest += term(c);
  return SumOfParts(sum) + rest;
}

// The slots that a destination attends to: itself, then its edges.
struct Slots {
  uint32_t row;
  uint32_t self;
  uint32_t first;  // first edge
  uint32_t count;  // number of edges

  GNND_DEVICE uint64_t At(const Rows& op, uint32_t k) const {
    return k == 0 ? row : uint64_t{op.num_dst} + first + k - 1;
  }
  GNND_DEVICE uint32_t SourceAt(const Rows& op, uint32_t k) const {
    return k == 0 ? self : op.index[first + k - 1];
  }
};

GNND_DEVICE Slots SlotsOf(const Rows& op, uint32_t row) {
  const uint32_t first = op.indptr[row];
  return {row, op.self_index == nullptr ? row : op.self_index[row], first,
          op.indptr[row + 1] - first};
}

GNND_DEVICE void ScoreSlots(const Rows& op, const Slots& slots, uint32_t h) {
  float* const to = op.alpha + h * op.stride();
  if (op.source_score != nullptr) {
    const float* const source = op.source_score + h * op.num_src;
    const float own = op.destination_score[uint64_t{h} * op.num_dst + slots.row];
    for (uint32_t k = Part(); k <= slots.count; k += kParts) {
      to[slots.At(op, k)] = LeakyScore(source[slots.SourceAt(op, k)] + own);
    }
    return;
  }
  const uint64_t width = uint64_t{op.heads} * op.columns;
  const uint64_t at = uint64_t{h} * op.columns;
  const float* const own = op.destination + slots.row * width + at;
  const float* const vector = op.attention + at;
  for (uint32_t k = 0; k <= slots.count; ++k) {
    const float* const source = op.source + slots.SourceAt(op, k) * width + at;
    const float score = SumOfColumns(
        op.columns, [&](uint32_t c) { return vector[c] * LeakyScore(source[c] + own[c]); });
    if (Part() == 0) to[slots.At(op, k)] = score;
  }
}

// Whether slot k is an edge to the destination itself, which does not count.
GNND_DEVICE bool IsRepeated(const Rows& op, const Slots& slots, uint32_t k) {
  return k > 0 && slots.SourceAt(op, k) == slots.self;
}

GNND_DEVICE float LargestScore(const Rows& op, const Slots& slots, const float* scores) {
  float largest = scores[slots.row];
  for (uint32_t k = Part(); k <= slots.count; k += kParts) {
    const float score = scores[slots.At(op, k)];
    if (!IsRepeated(op, slots, k) && score > largest) largest = score;
  }
  GNND_UNROLL
  for (uint32_t bits = 1; bits < kParts; bits *= 2) {
    const float other = ShuffleXor(PartsMask(), largest, bits, kParts);
    if (other > largest) largest = other;
  }
  return largest;
}

// Adds up value(k) over all slots, in their order.
template <typename Value>
GNND_DEVICE float SumOfSlots(const Slots& slots, const Value& value) {
  float sum = 0;
  for (uint32_t from = 0; from <= slots.count; from += kParts) {
    const uint32_t k = from + Part();
    const float mine = k <= slots.count ? value(k) : 0.0F;
    for (uint32_t p = 0; p < kParts && from + p <= slots.count; ++p) {
      const float next = Shuffle(PartsMask(), mine, p, kParts);
      sum = from + p == 0 ? next : sum + next;
    }
  }
  return sum;
}

GNND_KERNEL Forward(Rows op, uint32_t begin, uint32_t end) {
  for (uint64_t r = begin + GridThread() / kParts; r < end; r += GridThreads() / kParts) {
    const Slots slots = SlotsOf(op, static_cast<uint32_t>(r));
    for (uint32_t h = 0; h < op.heads; ++h) {
      ScoreSlots(op, slots, h);
      WarpSync(PartsMask());
      float* const head = op.alpha + h * op.stride();
      const float largest = LargestScore(op, slots, head);
      WarpSync(PartsMask());
      const float sum = SumOfSlots(slots, [&](uint32_t k) {
        float& alpha = head[slots.At(op, k)];
        alpha = IsRepeated(op, slots, k) ? 0.0F : ExpOfNonPositive(alpha - largest);
        return alpha;
      });
      const float inverse = 1.0F / sum;
      for (uint32_t k = Part(); k <= slots.count; k += kParts) head[slots.At(op, k)] *= inverse;
    }
  }
}

// Turns the gradients of the weights into gradients of the scores.
GNND_DEVICE void SoftmaxGradient(const Rows& op, const Slots& slots, uint32_t h) {
  const float* const alpha = op.alpha + h * op.stride();
  const float* const weight = op.weight + h * op.stride();
  float* const grad = op.grad_score + h * op.stride();
  float mean = 0;
  // Starts from 0 as the twin does: 0 + the first, and so on.
  for (uint32_t from = 0; from <= slots.count; from += kParts) {
    const uint32_t k = from + Part();
    float share = 0;
    if (k <= slots.count) {
      const uint64_t at = slots.At(op, k);
      grad[at] = weight[at] == 0.0F ? 0.0F : op.weight_scale * grad[at];
      share = alpha[at] * grad[at];
    }
    for (uint32_t p = 0; p < kParts && from + p <= slots.count; ++p) {
      mean += Shuffle(PartsMask(), share, p, kParts);
    }
  }
  for (uint32_t k = Part(); k <= slots.count; k += kParts) {
    const uint64_t at = slots.At(op, k);
    const float inner = alpha[at] * (grad[at] - mean);
    if (op.source_score == nullptr) {
      grad[at] = inner;
    } else {
      const float x = op.source_score[h * op.num_src + slots.SourceAt(op, k)] +
                      op.destination_score[uint64_t{h} * op.num_dst + slots.row];
      grad[at] = (x > 0.0F ? 1.0F : Slope()) * inner;
    }
  }
}

// The share of column c in a score's gradient: grad * leaky' at a[c] + b[c].
struct ColumnSlope {
  float slope;
  float x;
};
GNND_DEVICE ColumnSlope SlopeAt(float grad, const float* a, const float* b, uint32_t c,
                                uint32_t columns) {
  const float x = a[c] + b[c];
  const float slope = x > 0.0F ? grad : Slope() * grad;
  // The twin's vectors begin as 0, which turns -0 into 0.
  return {c < columns / kParts * kParts ? 0.0F + slope : slope, x};
}

GNND_KERNEL Backward(Rows op, uint32_t begin, uint32_t end) {
  const uint64_t width = uint64_t{op.heads} * op.columns;
  for (uint64_t r = begin + GridThread() / kParts; r < end; r += GridThreads() / kParts) {
    const Slots slots = SlotsOf(op, static_cast<uint32_t>(r));
    for (uint32_t h = 0; h < op.heads; ++h) {
      const uint64_t at = uint64_t{h} * op.columns;
      const float* const grad_out = op.grad_out + r * width + at;
      float* const grad = op.grad_score + h * op.stride();
      for (uint32_t k = 0; k <= slots.count; ++k) {
        const float* const source = op.source + slots.SourceAt(op, k) * width + at;
        const float dot =
            SumOfColumns(op.columns, [&](uint32_t c) { return grad_out[c] * source[c]; });
        if (Part() == 0) grad[slots.At(op, k)] = dot;
      }
      WarpSync(PartsMask());
      SoftmaxGradient(op, slots, h);
      WarpSync(PartsMask());
      if (op.source_score != nullptr) continue;
      const float* const own = op.destination + r * width + at;
      for (uint32_t c = Part(); c < op.columns; c += kParts) {
        float sum = 0;
        for (uint32_t k = 0; k <= slots.count; ++k) {
          const float* const source = op.source + slots.SourceAt(op, k) * width + at;
          const ColumnSlope column = SlopeAt(grad[slots.At(op, k)], source, own, c, op.columns);
          sum += column.slope * op.attention[at + c];
        }
        op.grad_destination[r * width + at + c] = sum;
      }
    }
  }
}

// One thread per column of a group of rows.
GNND_KERNEL VectorOfGroups(Rows op, float* partial) {
  const uint64_t width = uint64_t{op.heads} * op.columns;
  const uint64_t groups = GroupsOf(op.num_dst);
  for (uint64_t i = GridThread(); i < groups * width; i += GridThreads()) {
    const uint64_t column = i % width;
    const auto h = static_cast<uint32_t>(column / op.columns);
    const auto c = static_cast<uint32_t>(column % op.columns);
    const uint64_t at = uint64_t{h} * op.columns;
    const float* const grad = op.grad_score + h * op.stride();
    const uint64_t begin = i / width * kGroupRows;
    const uint64_t end = begin + kGroupRows < op.num_dst ? begin + kGroupRows : op.num_dst;
    float sum = 0;
    for (uint64_t r = begin; r < end; ++r) {
      const Slots slots = SlotsOf(op, static_cast<uint32_t>(r));
      for (uint32_t k = 0; k <= slots.count; ++k) {
        const float* const source = op.source + slots.SourceAt(op, k) * width + at;
        const ColumnSlope slope =
            SlopeAt(grad[slots.At(op, k)], source, op.destination + r * width + at, c, op.columns);
        sum += slope.slope * slope.x;
      }
    }
    partial[i] = sum;
  }
}

// One thread per column of a source.
GNND_KERNEL BackwardSource(Rows op, uint32_t begin, uint32_t end) {
  const uint64_t width = uint64_t{op.heads} * op.columns;
  const uint64_t columns = (end - begin) * width;
  for (uint64_t i = GridThread(); i < columns; i += GridThreads()) {
    const uint64_t u = begin + i / width;
    const uint64_t column = i % width;
    const auto h = static_cast<uint32_t>(column / op.columns);
    const auto c = static_cast<uint32_t>(column % op.columns);
    const uint64_t at = uint64_t{h} * op.columns;
    const float* const grad = op.grad_score + h * op.stride();
    const float* const source = op.source + u * width + at;
    float sum = op.grad_source[u * width + column];
    const auto add = [&](uint64_t slot, uint64_t v) {
      const ColumnSlope slope =
          SlopeAt(grad[slot], source, op.destination + v * width + at, c, op.columns);
      sum += slope.slope * op.attention[column];
    };
    if (u < op.num_dst) add(u, u);
    for (uint32_t k = op.transposed_indptr[u]; k < op.transposed_indptr[u + 1]; ++k) {
      add(uint64_t{op.num_dst} + op.transposed_edge[k], op.transposed_dst[k]);
    }
    op.grad_source[u * width + column] = sum;
  }
}

GNND_KERNEL Drop(Rows op, DropoutKey key, const uint32_t* nodes, uint64_t threshold, uint32_t begin,
                 uint32_t end, float* weight) {
  const DrawStream stream = DropoutStream(key, Purpose::kAttentionDropout);
  for (uint64_t r = begin + GridThread() / kParts; r < end; r += GridThreads() / kParts) {
    const Slots slots = SlotsOf(op, static_cast<uint32_t>(r));
    const uint64_t draws = (uint64_t{slots.count} + 1) * op.heads;
    for (uint64_t draw = Part(); draw < draws; draw += kParts) {
      const auto k = static_cast<uint32_t>(draw / op.heads);
      const uint64_t at = draw % op.heads * op.stride() + slots.At(op, k);
      const PhiloxWords words = LongRowWords(stream, nodes[r], draw / 4);
      const bool survives = WordAt(words, static_cast<uint32_t>(draw % 4)) >= threshold;
      weight[at] = survives ? op.weight_scale * op.alpha[at] : 0.0F;
    }
  }
}

}  // namespace

void RunAttention(const Queue& queue, const AttentionRows<float>& op, AttentionPass pass,
                  uint32_t begin, uint32_t end) {
  const uint64_t threads = uint64_t{end - begin} * kParts;
  const uint64_t columns = (end - begin) * uint64_t{op.heads} * op.columns;
  switch (pass) {
    case AttentionPass::kForward:
      return LaunchFor(queue, threads, Forward, op, begin, end);
    case AttentionPass::kBackward:
      return LaunchFor(queue, threads, Backward, op, begin, end);
    case AttentionPass::kBackwardSrc:
      return LaunchFor(queue, columns, BackwardSource, op, begin, end);
  }
}

uint64_t AttentionVectorFloats(uint32_t num_dst, uint64_t width) {
  return GroupsOf(num_dst) * width;
}

void AttentionVector(const Queue& queue, const AttentionRows<float>& op, float* partial) {
  const uint64_t width = uint64_t{op.heads} * op.columns;
  LaunchFor(queue, AttentionVectorFloats(op.num_dst, width), VectorOfGroups, op, partial);
  LaunchFor(queue, width, SumGroups<float>, partial, GroupsOf(op.num_dst), width,
            op.grad_attention);
}

void DropAttention(const Queue& queue, const AttentionRows<float>& op, const DropoutKey& key,
                   const uint32_t* nodes, uint64_t threshold, uint32_t begin, uint32_t end,
                   float* weight) {
  LaunchFor(queue, uint64_t{end - begin} * kParts, Drop, op, key, nodes, threshold, begin, end,
            weight);
}

}  // namespace gnnd::cuda
