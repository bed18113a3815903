#include "core/kernels/row_tiers.h"
#include "cuda/elements.cuh"
#include "cuda/operators.h"

// Feature rows, from their tiers into a batch's own matrix. Threads take words instead of rows, so
// that no row length leaves lanes idle, and neighbouring lanes read neighbouring words.

namespace gnnd::cuda {
namespace {

GNND_KERNEL MarkRanks(const uint32_t* ranks, uint32_t largest_cache, const uint32_t* nodes,
                      uint32_t first, uint32_t count, uint32_t* out) {
  for (uint64_t i = GridThread(); i < count; i += GridThreads()) {
    const uint32_t rank = LoadConst(ranks + nodes[first + i]);
    out[first + i] = rank < largest_cache ? rank : 0xFFFFFFFF;
  }
}

// Divides a flat number by the words of a row, in 32 bits if it fits: 64-bit divisions are slow.
struct Split {
  uint64_t row;
  uint32_t word;
};
GNND_DEVICE Split SplitOf(uint64_t flat, uint32_t row_words) {
  if (flat >> 32 == 0) {
    const auto low = static_cast<uint32_t>(flat);
    return {low / row_words, low % row_words};
  }
  return {flat / row_words, static_cast<uint32_t>(flat % row_words)};
}

// Address of row i of a batch; null: a miss that the device cannot read, which the host must bring.
template <typename Word>
GNND_DEVICE const Word* SourceOf(const RowSource& source, uint64_t i, uint32_t row_words) {
  const gnnd_device_row_tiers& tiers = source.tiers;
  if (source.ranks != nullptr) {
    const RowSpot spot = SpotOf(tiers, source.ranks[i]);
    if (spot.index != kNoSpot) {
      return static_cast<const Word*>(tiers.place[spot.index]) + uint64_t{spot.row} * row_words;
    }
  }
  if (tiers.by_node == nullptr) return nullptr;
  return static_cast<const Word*>(tiers.by_node) + uint64_t{source.nodes[i]} * row_words;
}

template <typename Word>
GNND_KERNEL CopyRowWords(RowSource source, uint64_t first, uint64_t words, uint32_t row_words,
                         uint64_t stride_words, Word* out) {
  for (uint64_t at = first + GridThread(); at < words; at += GridThreads()) {
    const Split split = SplitOf(at, row_words);
    const uint64_t row = source.positions == nullptr ? split.row : source.positions[split.row];
    const Word* const from = SourceOf<Word>(source, row, row_words);
    if (from == nullptr) continue;
    StoreStreaming(out + row * stride_words + split.word, LoadConst(from + split.word));
  }
}

template <typename Element, typename Out>
GNND_KERNEL ConvertRowElements(RowSource source, uint64_t elements, uint32_t dim, Out* out) {
  for (uint64_t at = GridThread(); at < elements; at += GridThreads()) {
    const Split split = SplitOf(at, dim);
    const Element* const from = SourceOf<Element>(source, split.row, dim);
    if (from != nullptr) StoreAs(out + at, LoadConstAs(from + split.word));
  }
}

template <typename Word>
GNND_KERNEL ScatterRowWords(const Word* rows, const uint32_t* places, uint64_t words,
                            uint32_t row_words, uint64_t stride_words, Word* out) {
  for (uint64_t at = GridThread(); at < words; at += GridThreads()) {
    const Split split = SplitOf(at, row_words);
    out[places[split.row] * stride_words + split.word] = rows[at];
  }
}

// The widest word that divides rows and all addresses.
uint32_t WordBytes(const RowSource& source, uint64_t row_bytes, const void* out) {
  const gnnd_device_row_tiers& tiers = source.tiers;
  uint64_t bits =
      row_bytes | reinterpret_cast<uintptr_t>(out) | reinterpret_cast<uintptr_t>(tiers.by_node);
  for (uint32_t p = 0; p < tiers.places; ++p) bits |= reinterpret_cast<uintptr_t>(tiers.place[p]);
  return bits % 16 == 0 ? 16 : bits % 4 == 0 ? 4 : 2;
}

// Calls run(word) with a value of the widest word type.
template <typename Run>
void WithWord(uint32_t word_bytes, const Run& run) {
  if (word_bytes == 16) {
    run(Bytes16{});
  } else if (word_bytes == 4) {
    run(uint32_t{});
  } else {
    run(uint16_t{});
  }
}

}  // namespace

void MarkHotRanks(const Queue& queue, const uint32_t* ranks, uint32_t largest_cache,
                  const uint32_t* nodes, uint32_t first, uint32_t count, uint32_t* out) {
  LaunchFor(queue, count, MarkRanks, ranks, largest_cache, nodes, first, count, out);
}

void CopyRows(const Queue& queue, const RowSource& source, uint64_t first, uint64_t count,
              uint64_t row_bytes, void* out, uint64_t out_stride) {
  const uint64_t stride = out_stride == 0 ? row_bytes : out_stride;
  const uint32_t word_bytes = WordBytes(source, row_bytes | stride, out);
  WithWord(word_bytes, [&]<typename Word>(Word) {
    const auto row_words = static_cast<uint32_t>(row_bytes / sizeof(Word));
    LaunchFor(queue, count * row_words, CopyRowWords<Word>, source, first * row_words,
              (first + count) * row_words, row_words, stride / sizeof(Word),
              static_cast<Word*>(out));
  });
}

void ConvertRows(const Queue& queue, const RowSource& source, uint64_t count, uint32_t dim,
                 RowType from, RowType to, void* out) {
  const uint64_t elements = count * dim;
  auto* const narrow = static_cast<Bfloat16*>(out);
  if (from == RowType::kFloat16 && to == RowType::kFloat32) {
    LaunchFor(queue, elements, ConvertRowElements<Half, float>, source, elements, dim,
              static_cast<float*>(out));
  } else if (from == RowType::kFloat16) {
    LaunchFor(queue, elements, ConvertRowElements<Half, Bfloat16>, source, elements, dim, narrow);
  } else if (to == RowType::kBfloat16) {
    LaunchFor(queue, elements, ConvertRowElements<float, Bfloat16>, source, elements, dim, narrow);
  } else {
    CopyRows(queue, source, 0, count, uint64_t{dim} * sizeof(float), out);
  }
}

void ScatterRows(const Queue& queue, const void* rows, const uint32_t* places, uint64_t count,
                 uint64_t row_bytes, void* out, uint64_t out_stride) {
  const uint64_t stride = out_stride == 0 ? row_bytes : out_stride;
  RowSource source;
  source.tiers.by_node = rows;
  WithWord(WordBytes(source, row_bytes | stride, out), [&]<typename Word>(Word) {
    const auto row_words = static_cast<uint32_t>(row_bytes / sizeof(Word));
    const uint64_t words = count * row_words;
    LaunchFor(queue, words, ScatterRowWords<Word>, static_cast<const Word*>(rows), places, words,
              row_words, stride / sizeof(Word), static_cast<Word*>(out));
  });
}

}  // namespace gnnd::cuda
