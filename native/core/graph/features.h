#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/base/bfloat16.h"
#include "core/base/prefetch.h"
#include "core/base/status.h"
#include "core/graph/row_table.h"

// Feature rows: the derived standardised file, and the gathers that extraction consists of.

namespace gnnd {

// Writes `output_path`: the features of `input_path` (float32 or float16, [N, F]) standardised per
// column over all nodes, (x - mean) / (std + 1e-12) with the population's standard deviation. Mean
// and variance are accumulated in float64 in two passes in row order and the result is rounded to
// float32 once, so that the file's bits are the same on every host and for either type of the same
// values. The output appears whole or not at all: it is written beside its place (`output_path` +
// ".tmp-XXXXXX", which only a killed process leaves there), synced, then renamed. Before it appears
// `output_path` + ".moments": F means, then the F divisors (std + 1e-12), little-endian float64.
// Errors: those of NpyArray::Open; kDatasetCorrupt for a column with a non-finite value; kIo, with
// the system's reason, when writing fails (a full disk), leaving nothing behind.
//
// With `moments_path`, a file in the format of those moments, columns are standardised by its
// values instead of their own: kDatasetCorrupt when it has another number of columns.
Status StandardizeFeatures(const std::string& input_path, const std::string& output_path,
                           const std::string& moments_path = "");

// out[i] = row rows[i] of `table`, widened to float32: out is [rows.size(), table.dim()].
// Rows may repeat and come in any order; each must be below table.num_rows() (not checked in
// release builds).
void GatherRows(const RowTable& table, std::span<const uint32_t> rows, std::span<float> out,
                PrefetchLevel prefetch = BestPrefetchLevel());

// Like GatherRows, for a table whose two-byte elements are bfloat16, whatever its type says.
void GatherBfloat16Rows(const RowTable& table, std::span<const uint32_t> rows, std::span<float> out,
                        PrefetchLevel prefetch = BestPrefetchLevel());

// Like GatherRows, rounded to bfloat16.
void GatherRows(const RowTable& table, std::span<const uint32_t> rows, std::span<Bfloat16> out,
                PrefetchLevel prefetch = BestPrefetchLevel());

// Like GatherRows, in the table's own type: out has room for rows.size() * table.row_bytes() bytes.
void CopyRows(const RowTable& table, std::span<const uint32_t> rows, std::byte* out,
              PrefetchLevel prefetch = BestPrefetchLevel());

// Like CopyRows, with row rows[i] at place to[i] of `out`.
void CopyRowsTo(const RowTable& table, std::span<const uint32_t> rows, std::span<const uint32_t> to,
                std::byte* out, PrefetchLevel prefetch = BestPrefetchLevel());

}  // namespace gnnd
