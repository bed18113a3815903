#include "core/prepare/timed_rows.h"

#include <algorithm>
#include <tuple>

#include "core/base/atomic_file.h"
#include "core/graph/npy.h"
#include "core/prepare/relation_edges.h"

namespace gnnd {
namespace {

constexpr uint64_t kEdgesPerWrite = uint64_t{1} << 18;

// The times of a relation's edges, from their own and those of their sources.
class EdgeTimes {
 public:
  static Result<EdgeTimes> Open(const TimedRowsOptions& options) {
    const Relation& relation = options.schema.relations[options.relation];
    if (options.edge_times.empty() && options.source_times.empty()) {
      return Status(Code::kInvalidArgument, relation.name + ": no times are named");
    }
    EdgeTimes times;
    if (!options.edge_times.empty()) {
      times.edges_ = GNND_VALUE(NpyArray::Open(options.edge_times));
      GNND_TRY(times.edges_.Expect({NpyType::kInt64}, {relation.num_edges}));
    }
    if (!options.source_times.empty()) {
      const uint64_t sources = options.schema.types[relation.source].num_nodes;
      times.sources_ = GNND_VALUE(NpyArray::Open(options.source_times));
      GNND_TRY(times.sources_.Expect({NpyType::kInt64}, {sources}));
    }
    times.of_edges_ = !options.edge_times.empty();
    times.of_sources_ = !options.source_times.empty();
    return times;
  }

  int64_t of(uint64_t edge, uint32_t source) const {
    if (!of_sources_) return edges_.values<int64_t>()[edge];
    const int64_t there = sources_.values<int64_t>()[source];
    return of_edges_ ? std::max(there, edges_.values<int64_t>()[edge]) : there;
  }

 private:
  NpyArray edges_;
  NpyArray sources_;
  bool of_edges_ = false;
  bool of_sources_ = false;
};

// A file of one array that is written in parts.
template <typename T>
class ArrayFile {
 public:
  explicit ArrayFile(const std::string& path) : file_(path) {}

  Status Create(uint64_t size) {
    GNND_TRY(file_.Create());
    const uint64_t shape[] = {size};
    const std::string header = NpyHeader(NpyTypeOf<T>::kType, shape);
    return file_.Write(std::as_bytes(std::span(header.data(), header.size())));
  }
  Status Write(std::span<const T> values) { return file_.Write(std::as_bytes(values)); }
  Status Commit() { return file_.Commit(); }

 private:
  AtomicFile file_;
};

}  // namespace

void RowTimeSorter::Sort(std::span<const uint32_t> sources, std::span<const int64_t> times,
                         uint32_t* sorted_sources, int64_t* sorted_times) {
  row_.clear();
  for (size_t i = 0; i < sources.size(); ++i) row_.push_back({times[i], sources[i]});
  std::sort(row_.begin(), row_.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.time, a.source) < std::tie(b.time, b.source);
  });
  for (size_t i = 0; i < row_.size(); ++i) {
    sorted_sources[i] = row_[i].source;
    sorted_times[i] = row_[i].time;
  }
}

Status WriteTimedRows(const TimedRowsOptions& options) {
  const RelationEdges edges =
      GNND_VALUE(RelationEdges::Open(options.folder, options.schema, options.relation));
  const EdgeTimes edge_times = GNND_VALUE(EdgeTimes::Open(options));
  ArrayFile<uint32_t> indices_file(options.output + "/indices.npy");
  ArrayFile<int64_t> times_file(options.output + "/times.npy");
  GNND_TRY(indices_file.Create(edges.indices().size()));
  GNND_TRY(times_file.Create(edges.indices().size()));
  RowTimeSorter sorter;
  std::vector<uint32_t> sources;
  std::vector<int64_t> times;
  const auto flush = [&]() -> Status {
    GNND_TRY(indices_file.Write(sources));
    GNND_TRY(times_file.Write(times));
    sources.clear();
    times.clear();
    return Status::Ok();
  };
  for (uint64_t v = 0; v < edges.num_rows(); ++v) {
    const size_t at = sources.size();
    for (auto e = static_cast<uint64_t>(edges.indptr()[v]);
         e < static_cast<uint64_t>(edges.indptr()[v + 1]); ++e) {
      sources.push_back(edges.indices()[e]);
      times.push_back(edge_times.of(e, edges.indices()[e]));
    }
    sorter.Sort(std::span(sources).subspan(at), std::span(times).subspan(at), sources.data() + at,
                times.data() + at);
    if (sources.size() >= kEdgesPerWrite) GNND_TRY(flush());
  }
  GNND_TRY(flush());
  GNND_TRY(indices_file.Commit());
  return times_file.Commit();
}

}  // namespace gnnd
