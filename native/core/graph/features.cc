#include "core/graph/features.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "core/base/atomic_file.h"
#include "core/base/check.h"
#include "core/graph/npy.h"
#include "core/vec/convert.h"

namespace gnnd {
namespace {

struct ColumnMoments {
  std::vector<double> mean;   // [dim]
  std::vector<double> scale;  // [dim], standard deviation + 1e-12
};

// Rows of a table one after another, as float32.
class RowReader {
 public:
  explicit RowReader(const RowTable& table) : table_(table) {
    if (table.type() == FeatureType::kFloat16) widened_.resize(table.dim());
  }

  // Row `at`, valid until the next call.
  const float* operator()(uint64_t at) {
    if (widened_.empty()) return table_.values<float>().data() + at * table_.dim();
    Convert(table_.values<Half>().data() + at * table_.dim(), table_.dim(), widened_.data());
    return widened_.data();
  }

 private:
  const RowTable& table_;
  std::vector<float> widened_;  // the present row of a float16 table; empty for float32
};

// Adds in row order, so that the sums do not depend on how a compiler or host would split them.
ColumnMoments MomentsOf(const RowTable& table) {
  const uint64_t dim = table.dim();
  ColumnMoments moments{std::vector<double>(dim, 0.0), std::vector<double>(dim, 0.0)};
  const auto num_rows = static_cast<double>(table.num_rows());
  double* mean = moments.mean.data();
  double* scale = moments.scale.data();
  RowReader read(table);
  for (uint64_t r = 0; r < table.num_rows(); ++r) {
    const float* row = read(r);
    for (uint64_t c = 0; c < dim; ++c) mean[c] += static_cast<double>(row[c]);
  }
  for (uint64_t c = 0; c < dim; ++c) mean[c] /= num_rows;
  for (uint64_t r = 0; r < table.num_rows(); ++r) {
    const float* row = read(r);
    for (uint64_t c = 0; c < dim; ++c) {
      const double distance = static_cast<double>(row[c]) - mean[c];
      scale[c] += distance * distance;
    }
  }
  for (uint64_t c = 0; c < dim; ++c) scale[c] = std::sqrt(scale[c] / num_rows) + 1e-12;
  return moments;
}

// Reads moments from a file that StandardizeFeatures wrote.
Result<ColumnMoments> GivenMoments(const std::string& path, uint64_t dim) {
  ColumnMoments moments{std::vector<double>(dim), std::vector<double>(dim)};
  const auto bytes = static_cast<std::streamsize>(dim * sizeof(double));
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(moments.mean.data()), bytes);
  file.read(reinterpret_cast<char*>(moments.scale.data()), bytes);
  if (file && file.peek() == std::ifstream::traits_type::eof()) return moments;
  return Status(Code::kDatasetCorrupt,
                path + " does not hold the moments of " + std::to_string(dim) + " columns");
}

Status WriteStandardized(const RowTable& table, const ColumnMoments& moments, AtomicFile* output) {
  const uint64_t dim = table.dim();
  const uint64_t rows_per_write = std::max<uint64_t>(1, (uint64_t{1} << 20) / (dim * 4));
  std::vector<float> buffer(rows_per_write * dim);
  RowReader read(table);
  for (uint64_t from = 0; from < table.num_rows(); from += rows_per_write) {
    const uint64_t rows = std::min(rows_per_write, table.num_rows() - from);
    for (uint64_t r = 0; r < rows; ++r) {
      const float* row = read(from + r);
      float* out = buffer.data() + r * dim;
      for (uint64_t c = 0; c < dim; ++c) {
        const double distance = static_cast<double>(row[c]) - moments.mean[c];
        out[c] = static_cast<float>(distance / moments.scale[c]);
      }
    }
    GNND_TRY(output->Write(std::as_bytes(std::span(buffer.data(), rows * dim))));
  }
  return Status::Ok();
}

// The table of a features file whose type and shape have not been checked yet.
Result<RowTable> TableOf(const NpyArray& array) {
  const bool is_half = array.type() == NpyType::kFloat16;
  if ((!is_half && array.type() != NpyType::kFloat32) || array.shape().size() != 2 ||
      array.size() == 0) {
    return Status(Code::kDatasetCorrupt,
                  array.file() + ": expected a float32 or float16 matrix with rows");
  }
  const uint64_t dim = array.shape()[1];
  return is_half ? RowTable(array.values<Half>(), dim) : RowTable(array.values<float>(), dim);
}

constexpr uint64_t kLineBytes = 64;
// From this row size on, the processor's own prefetcher follows a row into the first cache once its
// first line is asked for; below it, every line is asked for (measured with rows of 400 B to 1
// KiB).
constexpr uint64_t kStreamedRowBytes = 1024;

// Calls put(row, i) to make row i of the result from a row of the table. Distances are measured:
// more than 6 rows gain nothing in the first cache, fewer than 12 lose some in the second.
template <PrefetchLevel kLevel, bool kAllLines, typename Put>
void Gather(const RowTable& table, std::span<const uint32_t> rows, const Put& put) {
  const uint64_t row_bytes = table.row_bytes();
  constexpr uint64_t kRowsAhead = kLevel == PrefetchLevel::kL2 ? 16 : (kAllLines ? 6 : 8);
  const auto prefetch = [&](uint32_t row) __attribute__((always_inline)) {
    const std::byte* first = table.row(row);
    if constexpr (kAllLines) {
      const uint64_t skew = reinterpret_cast<uintptr_t>(first) % kLineBytes;
      for (uint64_t at = 0; at < row_bytes + skew; at += kLineBytes) {
        Prefetch(kLevel, first - skew + at);
      }
    } else {
      Prefetch(kLevel, first);
    }
  };
  for (uint64_t i = 0; i < std::min<uint64_t>(kRowsAhead, rows.size()); ++i) prefetch(rows[i]);
  for (uint64_t i = 0; i < rows.size(); ++i) {
    GNND_DCHECK(rows[i] < table.num_rows());
    if (i + kRowsAhead < rows.size()) prefetch(rows[i + kRowsAhead]);
    put(table.row(rows[i]), i);
  }
}

template <typename Put>
void GatherAny(const RowTable& table, std::span<const uint32_t> rows, PrefetchLevel prefetch,
               const Put& put) {
  if (prefetch == PrefetchLevel::kL2) {
    Gather<PrefetchLevel::kL2, true>(table, rows, put);
  } else if (table.row_bytes() < kStreamedRowBytes) {
    Gather<PrefetchLevel::kL1, true>(table, rows, put);
  } else {
    Gather<PrefetchLevel::kL1, false>(table, rows, put);
  }
}

template <typename From, typename To>
void ConvertRows(const RowTable& table, std::span<const uint32_t> rows, PrefetchLevel prefetch,
                 std::span<To> out) {
  const uint64_t dim = table.dim();
  GNND_CHECK(dim > 0 && out.size() == rows.size() * dim);
  GatherAny(table, rows, prefetch, [=](const std::byte* row, uint64_t i) {
    Convert(reinterpret_cast<const From*>(row), dim, out.data() + i * dim);
  });
}

}  // namespace

Status StandardizeFeatures(const std::string& input_path, const std::string& output_path,
                           const std::string& moments_path) {
  const NpyArray input = GNND_VALUE(NpyArray::Open(input_path));
  const RowTable table = GNND_VALUE(TableOf(input));
  const ColumnMoments moments =
      moments_path.empty() ? MomentsOf(table) : GNND_VALUE(GivenMoments(moments_path, table.dim()));
  for (uint64_t c = 0; c < table.dim(); ++c) {
    if (!std::isfinite(moments.scale[c])) {
      return Status(Code::kDatasetCorrupt, input.file() + ": column " + std::to_string(c) +
                                               " holds a value that is not finite");
    }
  }
  AtomicFile moments_file(output_path + ".moments");
  GNND_TRY(moments_file.Create());
  GNND_TRY(moments_file.Write(std::as_bytes(std::span(moments.mean))));
  GNND_TRY(moments_file.Write(std::as_bytes(std::span(moments.scale))));
  AtomicFile output(output_path);
  GNND_TRY(output.Create());
  const std::string header = NpyHeader(NpyType::kFloat32, input.shape());
  GNND_TRY(output.Write(std::as_bytes(std::span(header.data(), header.size()))));
  GNND_TRY(WriteStandardized(table, moments, &output));
  GNND_TRY(moments_file.Commit());
  return output.Commit();
}

void GatherRows(const RowTable& table, std::span<const uint32_t> rows, std::span<float> out,
                PrefetchLevel prefetch) {
  if (table.type() == FeatureType::kFloat16) return ConvertRows<Half>(table, rows, prefetch, out);
  GNND_CHECK(out.size() == rows.size() * table.dim());
  CopyRows(table, rows, std::as_writable_bytes(out).data(), prefetch);
}

void GatherRows(const RowTable& table, std::span<const uint32_t> rows, std::span<Bfloat16> out,
                PrefetchLevel prefetch) {
  if (table.type() == FeatureType::kFloat16) return ConvertRows<Half>(table, rows, prefetch, out);
  ConvertRows<float>(table, rows, prefetch, out);
}

void GatherBfloat16Rows(const RowTable& table, std::span<const uint32_t> rows, std::span<float> out,
                        PrefetchLevel prefetch) {
  GNND_CHECK(BytesOf(table.type()) == sizeof(Bfloat16));
  ConvertRows<Bfloat16>(table, rows, prefetch, out);
}

void CopyRows(const RowTable& table, std::span<const uint32_t> rows, std::byte* out,
              PrefetchLevel prefetch) {
  const uint64_t bytes = table.row_bytes();
  GatherAny(table, rows, prefetch,
            [=](const std::byte* row, uint64_t i) { std::memcpy(out + i * bytes, row, bytes); });
}

void CopyRowsTo(const RowTable& table, std::span<const uint32_t> rows, std::span<const uint32_t> to,
                std::byte* out, PrefetchLevel prefetch) {
  GNND_CHECK(rows.size() == to.size());
  const uint64_t bytes = table.row_bytes();
  GatherAny(table, rows, prefetch, [=](const std::byte* row, uint64_t i) {
    std::memcpy(out + to[i] * bytes, row, bytes);
  });
}

}  // namespace gnnd
