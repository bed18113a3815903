#include "core/prepare/propagate.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <set>
#include <utility>

#include "core/base/huge_array.h"
#include "core/graph/npy.h"
#include "core/kernels/spmm.h"
#include "core/vec/convert.h"

namespace gnnd {
namespace {

constexpr uint64_t kRowsOfRange = 512;
constexpr uint32_t kNowhere = std::numeric_limits<uint32_t>::max();

// What a block's state file begins with.
struct StateHeader {
  uint64_t magic = 0x31545350444E4E47;  // "GNNDPST1"
  uint64_t hop = 0;
};

// Columns [begin, begin + width) of all nodes.
struct Block {
  uint64_t begin = 0;
  uint64_t width = 0;
};

bool IsSeries(const PropagationOperator& op) {
  return op.kind == OperatorKind::kPpr || op.kind == OperatorKind::kHeat;
}

// Coefficients of the powers of the random walk's matrix.
std::vector<float> SeriesOf(const PropagationOperator& op) {
  std::vector<float> series(op.terms);
  double term = op.kind == OperatorKind::kPpr ? op.alpha : std::exp(-op.time);
  for (uint32_t i = 0; i < op.terms; ++i) {
    series[i] = static_cast<float>(term);
    term *= op.kind == OperatorKind::kPpr ? 1 - op.alpha : op.time / (i + 1);
  }
  return series;
}

class Propagation {
 public:
  Propagation(const Dataset& dataset, const PropagateOptions& options,
              const PropagationSizes& sizes, PropagateProgress* progress,
              const PropagateProbe& probe)
      : dataset_(dataset),
        options_(options),
        plan_(options.plan),
        sizes_(sizes),
        progress_(*progress),
        probe_(probe),
        num_nodes_(dataset.num_nodes()),
        order_(RowNodes(dataset, options.plan)),
        place_(num_nodes_, kNowhere),
        header_(RowHeader(plan_.row_type, order_.size(), dataset.num_features())) {
    for (size_t row = 0; row < order_.size(); ++row)
      place_[order_[row]] = static_cast<uint32_t>(row);
    for (uint64_t at = 0; at < dataset.num_features(); at += sizes.block_columns) {
      blocks_.push_back({at, std::min(sizes.block_columns, dataset.num_features() - at)});
    }
  }

  Result<PropagateReport> Run() {
    progress_.total.store(sizes_.steps / sizes_.blocks * dataset_.num_edges() *
                          dataset_.num_features());
    GNND_TRY(RemoveStrangers());
    GNND_TRY(WriteNodes());
    GNND_TRY(WriteHopZero());
    for (uint32_t op = 0; op < plan_.operators.size(); ++op) {
      GNND_TRY(RunOperator(op));
      GNND_TRY(Join(op));
    }
    return Finish();
  }

 private:
  // ---- names --------------------------------------------------------------------------------

  std::string Path(const std::string& name) const { return options_.folder + "/" + name; }
  std::string BlockName(uint32_t op, const Block& block) const {
    return "op" + std::to_string(op) + "-columns" + std::to_string(block.begin) + "-" +
           std::to_string(block.begin + block.width);
  }
  std::string PartName(uint32_t op, uint32_t hop, const Block& block) const {
    return BlockName(op, block) + "-hop" + std::to_string(hop) + ".part";
  }
  std::string StateName(uint32_t op, const Block& block) const {
    return BlockName(op, block) + ".state";
  }
  uint64_t PartBytes(const Block& block) const {
    return order_.size() * block.width * BytesOf(plan_.row_type);
  }
  uint64_t RowFileBytes() const { return header_.size() + PartBytes({0, dataset_.num_features()}); }
  uint64_t StateBytes(const Block& block) const {
    return sizeof(StateHeader) + num_nodes_ * block.width * sizeof(float);
  }
  bool HasRowFile(uint32_t op, uint32_t hop) const {
    return IsThere(Path(RowFile(op, hop)), RowFileBytes());
  }
  bool HasPart(uint32_t op, uint32_t hop, const Block& block) const {
    return HasRowFile(op, hop) || IsThere(Path(PartName(op, hop, block)), PartBytes(block));
  }

  // ---- what is there ------------------------------------------------------------------------

  // A run with other blocks, or one that was killed as it wrote.
  Status RemoveStrangers() {
    std::set<std::string> ours = {kNodesFile, kLabelsFile, RowFile(0, 0)};
    for (uint32_t op = 0; op < plan_.operators.size(); ++op) {
      for (uint32_t hop = 1; hop <= plan_.hops; ++hop) {
        ours.insert(RowFile(op, hop));
        for (const Block& block : blocks_) ours.insert(PartName(op, hop, block));
      }
      for (const Block& block : blocks_) ours.insert(StateName(op, block));
    }
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(options_.folder.c_str()), closedir);
    if (folder == nullptr) return SystemError(Code::kIo, "reading " + options_.folder);
    while (const dirent* entry = readdir(folder.get())) {
      const std::string name = entry->d_name;
      if (name != "." && name != ".." && !ours.contains(name)) unlink(Path(name).c_str());
    }
    return Status::Ok();
  }

  template <typename T>
  Status WriteArray(const char* name, NpyType type, const std::vector<T>& values) {
    const uint64_t shape[] = {values.size()};
    const std::string header = NpyHeader(type, shape);
    if (IsThere(Path(name), header.size() + values.size() * sizeof(T))) return Status::Ok();
    AtomicFile file(Path(name));
    GNND_TRY(file.Create());
    GNND_TRY(file.Write(std::as_bytes(std::span(header.data(), header.size()))));
    GNND_TRY(file.Write(std::as_bytes(std::span(values))));
    return file.Commit();
  }

  Status WriteNodes() {
    std::vector<int32_t> labels;
    labels.reserve(order_.size());
    for (const uint32_t node : order_) labels.push_back(dataset_.labels()[node]);
    GNND_TRY(WriteArray(kNodesFile, NpyType::kUint32, order_));
    return WriteArray(kLabelsFile, NpyType::kInt32, labels);
  }

  Status WriteHopZero() {
    if (HasRowFile(0, 0)) return Status::Ok();
    const Block all{0, dataset_.num_features()};
    const RowSource source{order_.size(), all.width, [&](uint64_t begin, uint64_t end, float* out) {
                             for (uint64_t row = begin; row < end; ++row, out += all.width) {
                               ReadFeatures(order_[row], all, out);
                             }
                           }};
    GNND_TRY(WriteRows(source, plan_.row_type, header_, Path(RowFile(0, 0)), options_.threads));
    Probe("hop0");
    return Status::Ok();
  }

  void ReadFeatures(uint32_t node, const Block& block, float* out) const {
    const RowTable table = dataset_.features();
    const uint64_t at = node * table.dim() + block.begin;
    if (table.type() == FeatureType::kFloat16) {
      Convert(table.values<Half>().data() + at, block.width, out);
    } else {
      std::memcpy(out, table.values<float>().data() + at, block.width * sizeof(float));
    }
  }

  // ---- an operator --------------------------------------------------------------------------

  uint64_t EdgeColumns(const PropagationOperator& op, const Block& block) const {
    return (IsSeries(op) ? op.terms - 1 : 1) * dataset_.num_edges() * block.width;
  }

  Status RunOperator(uint32_t op) {
    SetScale(plan_.operators[op]);
    for (const Block& block : blocks_) {
      bool missing = false;
      for (uint32_t hop = 1; hop <= plan_.hops; ++hop) missing |= !HasPart(op, hop, block);
      if (missing) {
        GNND_TRY(RunBlock(op, block));
      } else {
        FoundDone(plan_.hops * EdgeColumns(plan_.operators[op], block));
      }
      unlink(Path(StateName(op, block)).c_str());
    }
    return Status::Ok();
  }

  void SetScale(const PropagationOperator& op) {
    scale_.assign(num_nodes_, 0.0F);
    const std::span<const int64_t> indptr = dataset_.indptr();
    for (uint32_t v = 0; v < num_nodes_; ++v) {
      const auto degree = static_cast<double>(indptr[v + 1] - indptr[v]) + (op.self_loops ? 1 : 0);
      if (degree == 0) continue;
      const double scale = op.kind == OperatorKind::kSymmetric ? 1 / std::sqrt(degree) : 1 / degree;
      scale_[v] = static_cast<float>(scale);
    }
  }

  // All hops of a block. Between hops `from_` is the state: the hop's rows, and under the symmetric
  // operator these times D^-1/2, so that no edge has a weight.
  Status RunBlock(uint32_t op, const Block& block) {
    Allocate(block);
    const PropagationOperator& the_operator = plan_.operators[op];
    uint32_t hop = GNND_VALUE(ReadState(op, block));
    FoundDone(hop * EdgeColumns(the_operator, block));
    if (hop == 0) GNND_TRY(LoadColumns(the_operator, block));
    uint64_t since_state = 0;
    progress_.op.store(op);
    progress_.column.store(block.begin);
    while (hop < plan_.hops) {
      progress_.hop.store(++hop);
      GNND_TRY(IsSeries(the_operator) ? RunSeries(the_operator, block)
                                      : RunStep(the_operator, block, nullptr));
      Probe("hop");
      if (!HasPart(op, hop, block)) GNND_TRY(WritePart(op, hop, block));
      Probe("part");
      since_state += EdgeColumns(the_operator, block);
      if (hop < plan_.hops && since_state >= options_.edges_per_state) {
        GNND_TRY(WriteState(op, hop, block));
        since_state = 0;
        Probe("state");
      }
    }
    return Status::Ok();
  }

  void Allocate(const Block& block) {
    const uint64_t size = num_nodes_ * block.width;
    const bool has_series = std::any_of(plan_.operators.begin(), plan_.operators.end(), IsSeries);
    if (from_.size() == size) return;
    // Given back before others are reserved.
    for (HugeArray<float>* each : {&from_, &to_, &sum_, &kept_}) *each = HugeArray<float>();
    from_ = HugeArray<float>(size);
    to_ = HugeArray<float>(size);
    if (has_series) sum_ = HugeArray<float>(size);
    kept_ = HugeArray<float>(order_.size() * block.width);
  }

  Status LoadColumns(const PropagationOperator& op, const Block& block) {
    return ForRanges(options_.threads, num_nodes_, kRowsOfRange, [&](uint64_t begin, uint64_t end) {
      for (uint64_t v = begin; v < end; ++v) {
        float* const row = from_.data() + v * block.width;
        ReadFeatures(static_cast<uint32_t>(v), block, row);
        if (op.kind == OperatorKind::kSymmetric) ScaleRow(v, block, row);
      }
      return Status::Ok();
    });
  }

  void ScaleRow(uint64_t v, const Block& block, float* row) const {
    const float scale = scale_[v];
    for (uint64_t c = 0; c < block.width; ++c) row[c] *= scale;
  }

  void Keep(uint64_t v, const Block& block, const float* row) {
    if (place_[v] == kNowhere) return;
    std::memcpy(kept_.data() + place_[v] * block.width, row, block.width * sizeof(float));
  }

  // to_ = B from_, which then change names. Rows that are kept are those of `sum` where there is
  // one, after coefficient * to_ was added to it.
  struct Sum {
    float coefficient;
    bool last;
  };
  Status RunStep(const PropagationOperator& op, const Block& block, const Sum* sum) {
    const auto range = [&](uint64_t begin, uint64_t end) {
      GNND_TRY(Multiply(op, block, begin, end));
      AfterRows(op, block, sum, begin, end);
      Probe("range");
      return Status::Ok();
    };
    GNND_TRY(ForRanges(options_.threads, num_nodes_, kRowsOfRange, range));
    std::swap(from_, to_);
    return Status::Ok();
  }

  Status Multiply(const PropagationOperator& op, const Block& block, uint64_t begin, uint64_t end) {
    const std::span<const int64_t> indptr = dataset_.indptr();
    const auto edges = static_cast<uint64_t>(indptr[end] - indptr[begin]);
    if (edges > std::numeric_limits<uint32_t>::max()) {
      if (end - begin == 1) {
        return Status(Code::kDatasetCorrupt, "indptr.npy: node " + std::to_string(begin) + " has " +
                                                 std::to_string(edges) + " neighbours");
      }
      GNND_TRY(Multiply(op, block, begin, begin + (end - begin) / 2));
      return Multiply(op, block, begin + (end - begin) / 2, end);
    }
    std::vector<uint32_t> local(end - begin + 1);
    for (uint64_t v = begin; v <= end; ++v) {
      local[v - begin] = static_cast<uint32_t>(indptr[v] - indptr[begin]);
    }
    const auto rows = static_cast<uint32_t>(end - begin);
    SpmmFloat product;
    product.x = from_.data();
    product.x_stride = block.width;
    product.columns = static_cast<uint32_t>(block.width);
    product.indptr = local.data();
    product.index = dataset_.indices().data() + indptr[begin];
    product.self = from_.data() + begin * block.width;
    product.self_stride = block.width;
    product.self_rows = op.self_loops ? rows : 0;
    product.scale = scale_.data() + begin;
    product.out = to_.data() + begin * block.width;
    product.out_stride = block.width;
    RunSpmm(product, 0, rows);
    added_.fetch_add(edges * block.width, std::memory_order_relaxed);
    progress_.done.fetch_add(edges * block.width, std::memory_order_relaxed);
    return Status::Ok();
  }

  // While the rows are in the caches.
  void AfterRows(const PropagationOperator& op, const Block& block, const Sum* sum, uint64_t begin,
                 uint64_t end) {
    for (uint64_t v = begin; v < end; ++v) {
      float* const row = to_.data() + v * block.width;
      if (sum == nullptr) {
        Keep(v, block, row);
        if (op.kind == OperatorKind::kSymmetric) ScaleRow(v, block, row);
        continue;
      }
      float* const total = sum_.data() + v * block.width;
      for (uint64_t c = 0; c < block.width; ++c) total[c] += sum->coefficient * row[c];
      if (sum->last) Keep(v, block, total);
    }
  }

  Status RunSeries(const PropagationOperator& op, const Block& block) {
    const std::vector<float> series = SeriesOf(op);
    const auto first_term = [&](uint64_t begin, uint64_t end) {
      for (uint64_t v = begin; v < end; ++v) {
        const float* const row = from_.data() + v * block.width;
        float* const total = sum_.data() + v * block.width;
        for (uint64_t c = 0; c < block.width; ++c) total[c] = series[0] * row[c];
        if (series.size() == 1) Keep(v, block, total);
      }
      return Status::Ok();
    };
    GNND_TRY(ForRanges(options_.threads, num_nodes_, kRowsOfRange, first_term));
    for (size_t i = 1; i < series.size(); ++i) {
      const Sum sum{series[i], i + 1 == series.size()};
      GNND_TRY(RunStep(op, block, &sum));
    }
    std::swap(from_, sum_);
    return Status::Ok();
  }

  // ---- files --------------------------------------------------------------------------------

  Status WritePart(uint32_t op, uint32_t hop, const Block& block) {
    const bool whole = blocks_.size() == 1;
    const RowSource source{order_.size(), block.width,
                           [&](uint64_t begin, uint64_t end, float* out) {
                             std::memcpy(out, kept_.data() + begin * block.width,
                                         (end - begin) * block.width * sizeof(float));
                           }};
    const std::string name = whole ? RowFile(op, hop) : PartName(op, hop, block);
    return WriteRows(source, plan_.row_type, whole ? header_ : "", Path(name), options_.threads);
  }

  Status WriteState(uint32_t op, uint32_t hop, const Block& block) {
    const StateHeader header{.hop = hop};
    AtomicFile file(Path(StateName(op, block)));
    GNND_TRY(file.Create());
    GNND_TRY(file.Write(std::as_bytes(std::span(&header, 1))));
    GNND_TRY(file.Write(std::as_bytes(std::span(from_.data(), num_nodes_ * block.width))));
    return file.Commit();
  }

  // The hop that from_ holds afterwards; 0: none. Rows up to that hop must have been written.
  Result<uint32_t> ReadState(uint32_t op, const Block& block) {
    const std::string path = Path(StateName(op, block));
    if (!IsThere(path, StateBytes(block))) return 0U;
    const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd.valid()) return SystemError(Code::kIo, "opening " + path);
    const Mapping file = GNND_VALUE(Mapping::Map(fd.get(), false));
    StateHeader header;
    std::memcpy(&header, file.data(), sizeof(header));
    if (header.magic != StateHeader{}.magic || header.hop >= plan_.hops) return 0U;
    for (uint32_t hop = 1; hop <= header.hop; ++hop) {
      if (!HasPart(op, hop, block)) return 0U;
    }
    std::memcpy(from_.data(), file.data() + sizeof(header), file.size() - sizeof(header));
    return static_cast<uint32_t>(header.hop);
  }

  Status Join(uint32_t op) {
    for (uint32_t hop = 1; hop <= plan_.hops; ++hop) {
      std::vector<RowPart> parts;
      for (const Block& block : blocks_) {
        parts.push_back({Path(PartName(op, hop, block)), block.width * BytesOf(plan_.row_type)});
      }
      if (!HasRowFile(op, hop)) {
        GNND_TRY(JoinParts(parts, order_.size(), header_, Path(RowFile(op, hop))));
        Probe("join");
      }
      for (const RowPart& part : parts) unlink(part.path.c_str());
    }
    return Status::Ok();
  }

  Result<PropagateReport> Finish() {
    progress_.finishing.store(true);
    std::vector<std::string> names = {kNodesFile, kLabelsFile, RowFile(0, 0)};
    for (uint32_t op = 0; op < plan_.operators.size(); ++op) {
      for (uint32_t hop = 1; hop <= plan_.hops; ++hop) names.push_back(RowFile(op, hop));
    }
    PropagateReport report;
    report.files.resize(names.size());
    const auto digest = [&](uint64_t i, uint64_t) -> Status {
      report.files[i] = GNND_VALUE(DigestFile(options_.folder, names[i]));
      return Status::Ok();
    };
    GNND_TRY(ForRanges(options_.threads, names.size(), 1, digest));
    report.rows = order_.size();
    report.edge_columns = added_.load();
    report.memory_bytes = sizes_.memory_bytes;
    report.block_columns = sizes_.block_columns;
    report.blocks = blocks_.size();
    return report;
  }

  void FoundDone(uint64_t edge_columns) {
    progress_.done.fetch_add(edge_columns);
    progress_.resumed.fetch_add(edge_columns);
  }
  void Probe(const char* point) const {
    if (probe_) probe_(point);
  }

  const Dataset& dataset_;
  const PropagateOptions& options_;
  const PropagationPlan& plan_;
  const PropagationSizes sizes_;
  PropagateProgress& progress_;
  const PropagateProbe& probe_;
  const uint64_t num_nodes_;
  const std::vector<uint32_t> order_;  // the node of each row
  std::vector<uint32_t> place_;        // [num_nodes], the row of each node
  const std::string header_;           // of files of rows
  std::vector<Block> blocks_;
  std::vector<float> scale_;  // [num_nodes], of the present operator
  HugeArray<float> from_;     // [num_nodes, width]
  HugeArray<float> to_;       // [num_nodes, width]
  HugeArray<float> sum_;      // [num_nodes, width], of a series
  HugeArray<float> kept_;     // [rows, width], in the order of rows
  std::atomic<uint64_t> added_ = 0;
};

}  // namespace

Result<PropagateReport> Propagate(const Dataset& dataset, const PropagateOptions& options,
                                  PropagateProgress* progress, const PropagateProbe& probe) {
  GNND_TRY(CheckPlan(options.plan));
  const PropagationSizes sizes =
      GNND_VALUE(SizesOf(dataset.counts(), options.plan, options.memory_bytes, options.columns));
  return Propagation(dataset, options, sizes, progress, probe).Run();
}

}  // namespace gnnd
