#include "core/prepare/mean_rows.h"

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "core/base/prefetch.h"
#include "core/graph/npy.h"
#include "core/graph/row_table.h"
#include "core/prepare/relation_edges.h"
#include "core/prepare/row_files.h"
#include "core/vec/convert.h"

namespace gnnd {
namespace {

constexpr uint64_t kRowsAhead = 4;  // source rows that are asked for before they are added
constexpr uint64_t kLineBytes = 64;

class MeanRows {
 public:
  MeanRows(std::span<const int64_t> indptr, std::span<const uint32_t> indices, RowTable sources)
      : indptr_(indptr), indices_(indices), sources_(sources) {}

  // Fills out[end - begin, dim] with the rows of nodes [begin, end). Called by several threads.
  void Fill(uint64_t begin, uint64_t end, float* out) const {
    const uint64_t dim = sources_.dim();
    std::vector<double> sum(dim);
    std::vector<float> widened(dim);
    for (uint64_t v = begin; v < end; ++v) {
      const auto first = static_cast<uint64_t>(indptr_[v]);
      const auto last = static_cast<uint64_t>(indptr_[v + 1]);
      std::fill(sum.begin(), sum.end(), 0.0);
      for (uint64_t e = first; e < last; ++e) {
        if (e + kRowsAhead < indices_.size()) Ask(indices_[e + kRowsAhead]);
        const float* const row = ReadRow(indices_[e], widened.data());
        for (uint64_t c = 0; c < dim; ++c) sum[c] += static_cast<double>(row[c]);
      }
      const auto degree = static_cast<double>(std::max<uint64_t>(1, last - first));
      float* const mean = out + (v - begin) * dim;
      for (uint64_t c = 0; c < dim; ++c) mean[c] = static_cast<float>(sum[c] / degree);
    }
  }

 private:
  void Ask(uint32_t source) const {
    const std::byte* const row = sources_.row(source);
    for (uint64_t at = 0; at < sources_.row_bytes(); at += kLineBytes) {
      Prefetch(PrefetchLevel::kL1, row + at);
    }
  }

  const float* ReadRow(uint32_t source, float* widened) const {
    const uint64_t at = source * sources_.dim();
    if (sources_.type() == FeatureType::kFloat32) return sources_.values<float>().data() + at;
    Convert(sources_.values<Half>().data() + at, sources_.dim(), widened);
    return widened;
  }

  std::span<const int64_t> indptr_;
  std::span<const uint32_t> indices_;
  RowTable sources_;
};

Result<RowTable> TableOf(const NpyArray& rows, const NodeType& type) {
  const uint64_t columns = rows.shape().size() == 2 ? rows.shape()[1] : 0;
  GNND_TRY(rows.Expect({NpyType::kFloat32, NpyType::kFloat16}, {type.num_nodes, columns}));
  if (columns == 0) {
    return Status(Code::kDatasetCorrupt, rows.file() + ": expected a matrix with columns");
  }
  return rows.type() == NpyType::kFloat16 ? RowTable(rows.values<Half>(), columns)
                                          : RowTable(rows.values<float>(), columns);
}

}  // namespace

Status WriteMeanRows(const MeanRowsOptions& options) {
  const Schema& schema = options.schema;
  const RelationEdges edges =
      GNND_VALUE(RelationEdges::Open(options.folder, schema, options.relation));
  if (options.threads == 0) return Status(Code::kInvalidArgument, "mean rows on no threads");
  const NodeType& source = schema.types[schema.relations[options.relation].source];
  const std::string imported = options.folder + "/" + FolderOf(source) + "features.npy";
  const NpyArray input =
      GNND_VALUE(NpyArray::Open(options.source_rows.empty() ? imported : options.source_rows));
  const RowTable table = GNND_VALUE(TableOf(input, source));
  const MeanRows means(edges.indptr(), edges.indices(), table);
  const auto fill = [&means](uint64_t begin, uint64_t end, float* out) {
    means.Fill(begin, end, out);
  };
  const uint64_t shape[] = {edges.num_rows(), table.dim()};
  return WriteRows({edges.num_rows(), table.dim(), fill}, RowType::kFloat32,
                   NpyHeader(NpyType::kFloat32, shape), options.output, options.threads);
}

}  // namespace gnnd
