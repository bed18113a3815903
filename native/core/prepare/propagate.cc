#include "core/prepare/propagate.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "core/base/huge_array.h"
#include "core/base/memfd.h"
#include "core/graph/npy.h"
#include "core/kernels/spmm.h"
#include "core/prepare/device_product.h"
#include "core/prepare/propagation_folder.h"
#include "core/prepare/range_moments.h"
#include "core/vec/convert.h"

namespace gnnd {
namespace {

constexpr uint64_t kRowsOfRange = RangeMoments::kRows;
constexpr uint32_t kNowhere = std::numeric_limits<uint32_t>::max();

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
        all_{0, dataset.num_features()},
        order_(RowNodes(dataset, options.plan)),
        place_(num_nodes_, kNowhere),
        blocks_(BlocksOf(dataset.num_features(), sizes.block_columns)),
        folder_(options.folder, plan_, blocks_, {num_nodes_, order_.size(), all_.width}) {
    for (size_t row = 0; row < order_.size(); ++row)
      place_[order_[row]] = static_cast<uint32_t>(row);
  }

  Result<PropagateReport> Run() {
    progress_.total.store(sizes_.steps / sizes_.blocks * dataset_.num_edges() *
                          dataset_.num_features());
    GNND_TRY(folder_.RemoveStrangers());
    GNND_TRY(WriteNodes());
    GNND_TRY(WriteHopZero());
    if (!options_.device.plugin.empty()) OpenDevice();
    for (uint32_t op = 0; op < plan_.operators.size(); ++op) {
      GNND_TRY(RunOperator(op));
      GNND_TRY(folder_.Join(op, [&] { Probe("join"); }));
    }
    return Finish();
  }

 private:
  Status WriteNodes() {
    GNND_TRY(folder_.WriteArray(kNodesFile, NpyType::kUint32, std::span<const uint32_t>(order_)));
    if (!dataset_.label_bits().empty()) {
      return WriteTargets(dataset_.label_bits(), NpyType::kUint8);
    }
    if (!dataset_.targets().empty()) return WriteTargets(dataset_.targets(), NpyType::kFloat32);
    std::vector<int32_t> labels;
    labels.reserve(order_.size());
    for (const uint32_t node : order_) labels.push_back(dataset_.labels()[node]);
    return folder_.WriteArray(kLabelsFile, NpyType::kInt32, std::span<const int32_t>(labels));
  }

  // Writes the labels or targets of the rows' nodes in the dataset's format.
  template <typename T>
  Status WriteTargets(std::span<const T> all, NpyType type) {
    const uint64_t columns = all.size() / num_nodes_;
    std::vector<T> rows;
    rows.reserve(order_.size() * columns);
    for (const uint32_t node : order_) {
      const auto row = all.subspan(node * columns, columns);
      rows.insert(rows.end(), row.begin(), row.end());
    }
    return folder_.WriteTable(kLabelsFile, type, columns, std::span<const T>(rows));
  }

  Status WriteHopZero() {
    if (folder_.HasRows(0, 0)) return Status::Ok();
    Moments moments;
    if (plan_.standardize) {
      moments = options_.moments_from.empty() ? GNND_VALUE(MomentsOfFeatures())
                                              : GNND_VALUE(GivenMoments(0, 0, all_));
      GNND_TRY(folder_.WriteMoments(moments, 0, 0, all_));
    }
    const auto read = [&](uint64_t begin, uint64_t end, float* out) {
      for (uint64_t row = begin; row < end; ++row) {
        ReadFeatures(order_[row], all_, out + (row - begin) * all_.width);
      }
      if (plan_.standardize) Standardize(moments, end - begin, out);
    };
    const RowSource source{order_.size(), all_.width, read};
    GNND_TRY(WriteRows(source, plan_.row_type, folder_.header(), folder_.Path(RowFile(0, 0)),
                       options_.threads));
    Probe("hop0");
    return Status::Ok();
  }

  Result<Moments> MomentsOfFeatures() {
    Moments all;
    for (const ColumnBlock& block : blocks_) {
      moments_.Reset(num_nodes_, block.width);
      const auto add = [&](uint64_t begin, uint64_t end) {
        std::vector<float> rows((end - begin) * block.width);
        for (uint64_t v = begin; v < end; ++v) {
          ReadFeatures(static_cast<uint32_t>(v), block, rows.data() + (v - begin) * block.width);
        }
        moments_.Add(begin, end, rows.data());
        return Status::Ok();
      };
      GNND_TRY(ForRanges(options_.threads, num_nodes_, kRowsOfRange, add));
      const Moments some = GNND_VALUE(FinishMoments(0, block));
      all.mean.insert(all.mean.end(), some.mean.begin(), some.mean.end());
      all.divisor.insert(all.divisor.end(), some.divisor.begin(), some.divisor.end());
    }
    return all;
  }

  // Reads another propagation's moments: means of all columns, then their divisors.
  Result<Moments> GivenMoments(uint32_t op, uint32_t hop, const ColumnBlock& block) const {
    const std::string path = options_.moments_from + "/" + MomentsFile(op, hop);
    const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    Moments moments;
    moments.mean.resize(block.width);
    moments.divisor.resize(block.width);
    const size_t bytes = block.width * sizeof(double);
    const auto read = [&](uint64_t first, std::vector<double>* into) {
      const auto at = static_cast<off_t>(first * sizeof(double));
      return fd.valid() && pread(fd.get(), into->data(), bytes, at) == static_cast<ssize_t>(bytes);
    };
    if (read(block.begin, &moments.mean) && read(all_.width + block.begin, &moments.divisor)) {
      return moments;
    }
    return Status(Code::kDatasetCorrupt, path + " has no moments of these columns");
  }

  Result<Moments> FinishMoments(uint32_t hop, const ColumnBlock& block) const {
    Moments moments = moments_.Finish();
    for (uint64_t c = 0; c < block.width; ++c) {
      if (std::isfinite(moments.divisor[c])) continue;
      return Status(Code::kDatasetCorrupt,
                    "features.npy: column " + std::to_string(block.begin + c) +
                        " holds a value that is not finite after " + std::to_string(hop) + " hops");
    }
    return moments;
  }

  void ReadFeatures(uint32_t node, const ColumnBlock& block, float* out) const {
    const RowTable table = dataset_.features();
    const uint64_t at = node * table.dim() + block.begin;
    if (table.type() == FeatureType::kFloat16) {
      Convert(table.values<Half>().data() + at, block.width, out);
    } else {
      std::memcpy(out, table.values<float>().data() + at, block.width * sizeof(float));
    }
  }

  // ---- an operator --------------------------------------------------------------------------

  uint64_t EdgeColumns(const PropagationOperator& op, const ColumnBlock& block) const {
    return (IsSeries(op) ? op.terms - 1 : 1) * dataset_.num_edges() * block.width;
  }

  Status RunOperator(uint32_t op) {
    SetScale(plan_.operators[op]);
    for (const ColumnBlock& block : blocks_) {
      bool missing = false;
      for (uint32_t hop = 1; hop <= plan_.hops; ++hop) missing |= !folder_.HasPart(op, hop, block);
      if (missing) {
        GNND_TRY(RunBlock(op, block));
      } else {
        FoundDone(plan_.hops * EdgeColumns(plan_.operators[op], block));
      }
      folder_.RemoveState(op, block);
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

  // Computes all hops of a block. Between hops `from_` is the state: the hop's rows, which the
  // symmetric operator multiplies by D^-1/2, so that no edge has a weight.
  Status RunBlock(uint32_t op, const ColumnBlock& block) {
    Allocate(block);
    const PropagationOperator& the_operator = plan_.operators[op];
    uint32_t hop = GNND_VALUE(folder_.ReadState(op, block, from_.data()));
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
      if (!folder_.HasPart(op, hop, block)) {
        if (plan_.standardize) GNND_TRY(StandardizeKept(op, hop, block));
        GNND_TRY(WritePart(op, hop, block));
      }
      Probe("part");
      since_state += EdgeColumns(the_operator, block);
      if (hop < plan_.hops && since_state >= options_.edges_per_state) {
        GNND_TRY(folder_.WriteState(op, hop, block, from_.data()));
        since_state = 0;
        Probe("state");
      }
    }
    return Status::Ok();
  }

  void Allocate(const ColumnBlock& block) {
    const uint64_t size = num_nodes_ * block.width;
    const bool has_series = std::any_of(plan_.operators.begin(), plan_.operators.end(), IsSeries);
    if (plan_.standardize) moments_.Reset(num_nodes_, block.width);
    if (from_.size() == size) return;
    // Frees the old arrays before new ones are reserved.
    for (HugeArray<float>* each : {&from_, &to_, &sum_, &kept_}) *each = HugeArray<float>();
    from_ = HugeArray<float>(size);
    to_ = HugeArray<float>(size);
    if (has_series) sum_ = HugeArray<float>(size);
    kept_ = HugeArray<float>(order_.size() * block.width);
  }

  Status LoadColumns(const PropagationOperator& op, const ColumnBlock& block) {
    return ForRanges(options_.threads, num_nodes_, kRowsOfRange, [&](uint64_t begin, uint64_t end) {
      for (uint64_t v = begin; v < end; ++v) {
        float* const row = from_.data() + v * block.width;
        ReadFeatures(static_cast<uint32_t>(v), block, row);
        if (op.kind == OperatorKind::kSymmetric) ScaleRow(v, block, row);
      }
      return Status::Ok();
    });
  }

  void ScaleRow(uint64_t v, const ColumnBlock& block, float* row) const {
    const float scale = scale_[v];
    for (uint64_t c = 0; c < block.width; ++c) row[c] *= scale;
  }

  void Keep(uint64_t v, const ColumnBlock& block, const float* row) {
    if (place_[v] == kNowhere) return;
    std::memcpy(kept_.data() + place_[v] * block.width, row, block.width * sizeof(float));
  }

  // Computes to_ = B from_, then swaps the two. Kept are the rows of the product or, with `sum`,
  // those of sum_ after coefficient * to_ was added to it.
  struct Sum {
    float coefficient;
    bool last;
  };
  Status RunStep(const PropagationOperator& op, const ColumnBlock& block, const Sum* sum) {
    const bool is_multiplied = device_ != nullptr && MultiplyOnDevice(op, block);
    const auto range = [&](uint64_t begin, uint64_t end) {
      if (!is_multiplied) GNND_TRY(Multiply(op, block, begin, end));
      AfterRows(op, block, sum, begin, end);
      Probe("range");
      return Status::Ok();
    };
    GNND_TRY(ForRanges(options_.threads, num_nodes_, kRowsOfRange, range));
    std::swap(from_, to_);
    return Status::Ok();
  }

  void OpenDevice() {
    Result<std::unique_ptr<DeviceProduct>> opened =
        DeviceProduct::Open(options_.device, dataset_, blocks_[0].width, options_.threads);
    if (!opened.ok()) return LeaveDevice(opened.status());
    device_ = std::move(*opened);
  }

  // Multiplies all rows. False: the device failed and is given up for good; from_ is unchanged.
  bool MultiplyOnDevice(const PropagationOperator& op, const ColumnBlock& block) {
    const DeviceProduct::Task task{from_.data(), block.width, scale_.data(), op.self_loops,
                                   to_.data()};
    const uint64_t done = progress_.done.load();
    const Status status = device_->Multiply(task, &progress_.done);
    const uint64_t all = dataset_.num_edges() * block.width;
    if (status.ok()) {
      added_.fetch_add(all);
      device_added_ += all;
      return true;
    }
    progress_.done.store(done);
    LeaveDevice(status);
    return false;
  }

  void LeaveDevice(const Status& status) {
    device_.reset();
    device_problem_ = status.message();
    if (options_.left_device) options_.left_device(status);
  }

  Status Multiply(const PropagationOperator& op, const ColumnBlock& block, uint64_t begin,
                  uint64_t end) {
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

  // Processes rows of the product while they are in the caches.
  void AfterRows(const PropagationOperator& op, const ColumnBlock& block, const Sum* sum,
                 uint64_t begin, uint64_t end) {
    if (plan_.standardize && sum == nullptr) {
      moments_.Add(begin, end, to_.data() + begin * block.width);
    }
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
    if (plan_.standardize && sum != nullptr && sum->last) {
      moments_.Add(begin, end, sum_.data() + begin * block.width);
    }
  }

  Status RunSeries(const PropagationOperator& op, const ColumnBlock& block) {
    const std::vector<float> series = SeriesOf(op);
    const auto first_term = [&](uint64_t begin, uint64_t end) {
      for (uint64_t v = begin; v < end; ++v) {
        const float* const row = from_.data() + v * block.width;
        float* const total = sum_.data() + v * block.width;
        for (uint64_t c = 0; c < block.width; ++c) total[c] = series[0] * row[c];
        if (series.size() == 1) Keep(v, block, total);
      }
      if (plan_.standardize && series.size() == 1) {
        moments_.Add(begin, end, sum_.data() + begin * block.width);
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

  // Writes moments before the part: a part without moments counts as missing.
  Status StandardizeKept(uint32_t op, uint32_t hop, const ColumnBlock& block) {
    const Moments moments = options_.moments_from.empty()
                                ? GNND_VALUE(FinishMoments(hop, block))
                                : GNND_VALUE(GivenMoments(op, hop, block));
    GNND_TRY(folder_.WriteMoments(moments, op, hop, block));
    const auto range = [&](uint64_t begin, uint64_t end) {
      Standardize(moments, end - begin, kept_.data() + begin * block.width);
      return Status::Ok();
    };
    return ForRanges(options_.threads, order_.size(), kRowsOfRange, range);
  }

  Status WritePart(uint32_t op, uint32_t hop, const ColumnBlock& block) {
    const RowSource source{order_.size(), block.width,
                           [&](uint64_t begin, uint64_t end, float* out) {
                             std::memcpy(out, kept_.data() + begin * block.width,
                                         (end - begin) * block.width * sizeof(float));
                           }};
    const bool whole = blocks_.size() == 1;
    return WriteRows(source, plan_.row_type, whole ? folder_.header() : "",
                     folder_.PartPath(op, hop, block), options_.threads);
  }

  Result<PropagateReport> Finish() {
    progress_.finishing.store(true);
    PropagateReport report;
    report.files = GNND_VALUE(folder_.Digest(options_.threads));
    report.rows = order_.size();
    report.edge_columns = added_.load();
    report.device_edge_columns = device_added_;
    report.device_problem = device_problem_;
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
  const ColumnBlock all_;
  const std::vector<uint32_t> order_;  // the node of each row
  std::vector<uint32_t> place_;        // [num_nodes], the row of each node
  const std::vector<ColumnBlock> blocks_;
  const PropagationFolder folder_;
  std::vector<float> scale_;  // [num_nodes], for the present operator
  HugeArray<float> from_;     // [num_nodes, width]
  HugeArray<float> to_;       // [num_nodes, width]
  HugeArray<float> sum_;      // [num_nodes, width], the sum of a series
  HugeArray<float> kept_;     // [rows, width], in the order of rows
  RangeMoments moments_;      // all nodes' columns, if rows are standardised
  std::atomic<uint64_t> added_ = 0;
  std::unique_ptr<DeviceProduct> device_;  // null: the host's cores multiply
  uint64_t device_added_ = 0;
  std::string device_problem_;
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
