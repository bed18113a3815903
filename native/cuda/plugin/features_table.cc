#include <algorithm>

#include "cuda/operators.h"
#include "cuda/plugin/kernels.h"
#include "cuda/plugin/launch.h"

// Feature rows: gathering them from their tiers into a batch's matrix.

namespace gnnd::cuda {
namespace {

bool IsEven(const void* memory) { return reinterpret_cast<uintptr_t>(memory) % 2 == 0; }

// Whether the places of every line exist and have even addresses.
bool AreLines(const gnnd_device_row_tiers& tiers) {
  if (tiers.lines > GNND_DEVICE_ROW_LINES) return false;
  return std::all_of(tiers.line, tiers.line + tiers.lines, [&](const gnnd_device_row_line& line) {
    return line.from <= line.to && line.hands > 0 && line.place <= tiers.places &&
           line.hands <= tiers.places - line.place;
  });
}

bool ArePlaces(const gnnd_device_row_tiers& tiers) {
  return tiers.places <= GNND_DEVICE_ROW_PLACES &&
         std::all_of(tiers.place, tiers.place + tiers.places, IsEven);
}

uint32_t Gather(gnnd_device_stream* stream, const gnnd_device_gather* args,
                gnnd_device_error* error) {
  const bool any = args->count > 0;
  Fields fields;
  fields.Want("count", Fits32(args->count))
      .Want("row_bytes", args->row_bytes > 0 && args->row_bytes % 2 == 0)
      .Want("out_stride", args->out_stride >= args->row_bytes && args->out_stride % 2 == 0)
      .Want("tiers.place", ArePlaces(args->tiers))
      .Want("tiers.line", AreLines(args->tiers))
      .Want("tiers.by_node", IsEven(args->tiers.by_node))
      .Need("nodes", args->nodes, any && args->tiers.by_node != nullptr)
      .Need("out", args->out, any)
      .Want("out", IsEven(args->out));
  return Enqueue(stream, error, "gathering rows", fields, [&](Queue queue) {
    if (args->blocks != 0) queue.max_blocks = std::min(queue.max_blocks, args->blocks);
    CopyRows(queue, {args->nodes, args->ranks, args->positions, args->tiers}, 0, args->count,
             args->row_bytes, args->out, args->out_stride);
  });
}

uint32_t Scatter(gnnd_device_stream* stream, const gnnd_device_scatter* args,
                 gnnd_device_error* error) {
  const bool any = args->count > 0;
  Fields fields;
  fields.Want("count", Fits32(args->count))
      .Want("row_bytes", args->row_bytes > 0 && args->row_bytes % 2 == 0)
      .Want("out_stride", args->out_stride >= args->row_bytes && args->out_stride % 2 == 0)
      .Need("positions", args->positions, any)
      .Need("rows", args->rows, any)
      .Need("out", args->out, any)
      .Want("rows", IsEven(args->rows))
      .Want("out", IsEven(args->out));
  return Enqueue(stream, error, "scattering rows", fields, [&](const Queue& queue) {
    ScatterRows(queue, args->rows, args->positions, args->count, args->row_bytes, args->out,
                args->out_stride);
  });
}

constexpr uint32_t Pair(uint32_t element, uint32_t out_element) {
  return element * 16 + out_element;
}
constexpr uint32_t kFloatToBfloat = Pair(GNND_ELEMENT_FLOAT32, GNND_ELEMENT_BFLOAT16);
constexpr uint32_t kBfloatToFloat = Pair(GNND_ELEMENT_BFLOAT16, GNND_ELEMENT_FLOAT32);
constexpr uint32_t kHalfToFloat = Pair(GNND_ELEMENT_FLOAT16, GNND_ELEMENT_FLOAT32);
constexpr uint32_t kHalfToBfloat = Pair(GNND_ELEMENT_FLOAT16, GNND_ELEMENT_BFLOAT16);

bool IsElement(uint32_t element) {
  return element >= GNND_ELEMENT_FLOAT32 && element <= GNND_ELEMENT_FLOAT64;
}

uint32_t ConvertElements(gnnd_device_stream* stream, const gnnd_device_convert* args,
                         gnnd_device_error* error) {
  const bool any = args->count > 0;
  const uint32_t pair = IsElement(args->element) && IsElement(args->out_element)
                            ? Pair(args->element, args->out_element)
                            : 0;
  Fields fields;
  fields.Want("element", IsElement(args->element))
      .Want("out_element", pair == kFloatToBfloat || pair == kBfloatToFloat ||
                               pair == kHalfToFloat || pair == kHalfToBfloat)
      .Need("from", args->from, any)
      .Need("out", args->out, any);
  return Enqueue(stream, error, "converting rows", fields, [&](const Queue& queue) {
    const uint64_t count = args->count;
    switch (pair) {
      case kFloatToBfloat:
        return Convert(queue, As<float>(args->from), count, As<Bfloat16>(args->out));
      case kBfloatToFloat:
        return Convert(queue, As<Bfloat16>(args->from), count, As<float>(args->out));
      case kHalfToFloat:
        return Convert(queue, As<Half>(args->from), count, As<float>(args->out));
      default:
        return Convert(queue, As<Half>(args->from), count, As<Bfloat16>(args->out));
    }
  });
}

}  // namespace

void AddFeatures(gnnd_device_plugin* table) {
  table->gather = Gather;
  table->scatter = Scatter;
  table->convert = ConvertElements;
}

}  // namespace gnnd::cuda
