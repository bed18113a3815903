#include "core/table/edge_text.h"

#include <cstddef>
#include <span>
#include <utility>

namespace gnnd {
namespace {

void SwapPairs(std::span<uint32_t> values) {
  for (size_t at = 1; at < values.size(); at += 2) std::swap(values[at - 1], values[at]);
}

}  // namespace

Result<TextBatch> ReadEdgeText(TextRows* rows, std::string_view piece, bool is_last,
                               const EdgeForm& form, EdgeSorter* sorter) {
  TextBatch batch = rows->Read(piece, is_last);
  if (form.target_first) SwapPairs(batch.wholes);
  if (batch.broken || !batch.odd.empty()) return batch;
  const uint64_t first_line = form.lines_before + batch.first_line;
  batch.taken =
      sorter->Add({batch.wholes, batch.numbers, batch.lines, static_cast<uint32_t>(first_line)});
  batch.broken = !batch.taken;
  batch.wholes.clear();
  batch.numbers.clear();
  batch.lines.clear();
  if (sorter->NumHeld() >= form.entries_max) GNND_TRY(sorter->Settle());
  return batch;
}

}  // namespace gnnd
