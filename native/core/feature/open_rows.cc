#include "core/feature/open_rows.h"

#include <utility>

#include "core/base/check.h"
#include "core/feature/disk_rows.h"
#include "core/graph/features.h"
#include "core/graph/npy.h"
#include "core/graph/row_table.h"

namespace gnnd {
namespace {

std::span<const std::byte> BytesOf(const NpyArray& array) {
  switch (array.type()) {
    case NpyType::kFloat32:
      return std::as_bytes(array.values<float>());
    case NpyType::kFloat16:
      return std::as_bytes(array.values<Half>());
    default:
      return std::as_bytes(array.values<Bfloat16>());
  }
}

class MappedRows final : public RowReader {
 public:
  MappedRows(std::vector<NpyArray> files, uint64_t columns, uint64_t row_bytes)
      : RowReader(static_cast<uint32_t>(files.size()), row_bytes),
        files_(std::move(files)),
        columns_(columns) {
    for (const NpyArray& file : files_) {
      const bool is_wide = file.type() == NpyType::kFloat32;
      const FeatureType type = is_wide ? FeatureType::kFloat32 : FeatureType::kFloat16;
      tables_.emplace_back(type, BytesOf(file), columns);
    }
  }

  Status Stage(std::span<const RowRun> runs, const NextRuns&) override {
    size_t count = 0;
    for (const RowRun& run : runs) count += run.count;
    rows_.resize(count);
    size_t at = 0;
    for (const RowRun& run : runs) {
      for (uint32_t i = 0; i < run.count; ++i) rows_[at++] = run.first + i;
    }
    return Status::Ok();
  }

  void Copy(uint32_t token, uint32_t begin, uint32_t end, float* out) const override {
    const std::span rows = std::span(rows_).subspan(begin, end - begin);
    const std::span floats(out, rows.size() * columns_);
    if (files_[token].type() == NpyType::kUint16) {
      GatherBfloat16Rows(tables_[token], rows, floats);
    } else {
      GatherRows(tables_[token], rows, floats);
    }
  }

  std::string Describe() const override { return "mapped files"; }

 private:
  const std::vector<NpyArray> files_;
  const uint64_t columns_;
  std::vector<RowTable> tables_;
  std::vector<uint32_t> rows_;
};

}  // namespace

Result<std::unique_ptr<RowReader>> OpenRows(const RowReaderOptions& options) {
  std::vector<NpyArray> files;
  for (const std::string& path : options.paths) {
    files.push_back(GNND_VALUE(NpyArray::Open(path)));
    GNND_TRY(files.back().Expect({NpyType::kFloat32, NpyType::kFloat16, NpyType::kUint16},
                                 {options.rows, options.columns}));
    if (files.back().type() != files[0].type()) {
      return Status(Code::kDatasetCorrupt,
                    files.back().file() + " has another type than " + files[0].file());
    }
  }
  GNND_CHECK(!files.empty());
  const uint64_t value_bytes = files[0].type() == NpyType::kFloat32 ? sizeof(float) : sizeof(Half);
  const uint64_t row_bytes = options.columns * value_bytes;
  if (options.tier == RowTier::kDisk) return DiskRows::Open(options, std::move(files));
  return std::unique_ptr<RowReader>(
      std::make_unique<MappedRows>(std::move(files), options.columns, row_bytes));
}

}  // namespace gnnd
