#include "core/prepare/cache_report.h"

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <numeric>
#include <utility>

#include "core/base/atomic_file.h"
#include "core/base/check.h"
#include "core/base/clock.h"
#include "core/draw/philox.h"
#include "core/feature/footprint.h"
#include "core/feature/hot_order.h"
#include "core/graph/npy.h"

namespace gnnd {
namespace {

// The input nodes of all batches, for the dump.
struct Dump {
  std::vector<uint32_t> nodes;
  std::vector<int64_t> offsets = {0};

  Status Add(std::span<const uint32_t> batch) {
    nodes.insert(nodes.end(), batch.begin(), batch.end());
    offsets.push_back(static_cast<int64_t>(nodes.size()));
    return Status::Ok();
  }

  template <typename T>
  static Status Write(const std::string& path, NpyType type, const std::vector<T>& values) {
    AtomicFile file(path);
    GNND_TRY(file.Create());
    const std::string header = NpyHeader(type, std::array<uint64_t, 1>{values.size()});
    GNND_TRY(file.Write(std::as_bytes(std::span(header.data(), header.size()))));
    GNND_TRY(file.Write(std::as_bytes(std::span<const T>(values))));
    return file.Commit();
  }
};

class Reporter {
 public:
  Reporter(const CacheReportRequest& request, const TopologyView& topology,
           std::span<const uint32_t> train_nodes, Presampler* presampler)
      : request_(request), topology_(topology), train_nodes_(train_nodes), presampler_(presampler) {
    if (!request.dump_folder.empty()) {
      on_batch_ = [this](std::span<const uint32_t> nodes) { return dump_.Add(nodes); };
    }
  }

  Result<CacheReport> Run() {
    GNND_TRY(Presample());
    GNND_TRY(Measure());
    AddOptimal();
    for (const uint32_t epochs : request_.presample_epochs) AddPresampled(epochs);
    if (HasEstimate(request_.reach.sampler)) {
      AddStatic(CachePolicy::kProbability, estimate_ns_, estimate_);
    }
    AddStatic(CachePolicy::kDegree, [this] { return DegreeHotness(topology_); });
    AddStatic(CachePolicy::kRandom,
              [this] { return RandomHotness(request_.random_seed, topology_.num_nodes()); });
    if (!request_.dump_folder.empty()) {
      const std::string& folder = request_.dump_folder;
      GNND_TRY(Dump::Write(folder + "/nodes.npy", NpyType::kUint32, dump_.nodes));
      GNND_TRY(Dump::Write(folder + "/offsets.npy", NpyType::kInt64, dump_.offsets));
    }
    return std::move(report_);
  }

 private:
  // Samples each pre-sampling epoch once, however often it is used.
  Status Presample() {
    const uint32_t most =
        request_.presample_epochs.empty()
            ? 0
            : *std::max_element(request_.presample_epochs.begin(), request_.presample_epochs.end());
    for (uint32_t k = 0; k < most; ++k) {
      presampled_.push_back(NewFootprint());
      GNND_TRY(presampler_->AddEpoch(kFirstPresampleEpoch - k, &presampled_.back(), on_batch_));
    }
    if (!HasEstimate(request_.reach.sampler)) return Status::Ok();
    const uint64_t start_ns = MonotonicNs();
    estimate_ = ProbabilityHotness(topology_, train_nodes_, request_.reach);
    estimate_ns_ = MonotonicNs() - start_ns;
    return Status::Ok();
  }

  Status Measure() {
    all_ = NewFootprint();
    std::vector<uint64_t> sample_ns;
    EpochFootprint before;
    double similarity_sum = 0;
    for (uint32_t epoch = 0; epoch < request_.epochs; ++epoch) {
      EpochFootprint now = NewFootprint();
      GNND_TRY(presampler_->AddEpoch(epoch, &now, on_batch_));
      for (size_t v = 0; v < now.counts.size(); ++v) all_.counts[v] += now.counts[v];
      sample_ns.push_back(now.sample_ns);
      if (epoch > 0) similarity_sum += Similarity(before.counts, now.counts);
      before = std::move(now);
    }
    std::nth_element(sample_ns.begin(), sample_ns.begin() + request_.epochs / 2, sample_ns.end());
    report_.epoch_ns = sample_ns[request_.epochs / 2];
    report_.similarity = request_.epochs == 1 ? 1.0 : similarity_sum / (request_.epochs - 1);
    report_.batches_per_epoch = presampler_->batches_per_epoch();
    total_rows_ = std::accumulate(all_.counts.begin(), all_.counts.end(), uint64_t{0});
    report_.input_rows = static_cast<double>(total_rows_) / request_.epochs;
    report_.input_bytes = report_.input_rows * static_cast<double>(request_.row_bytes);
    return Status::Ok();
  }

  EpochFootprint NewFootprint() const {
    EpochFootprint footprint;
    footprint.counts.resize(topology_.num_nodes());
    return footprint;
  }

  void AddOptimal() {
    PolicyReport policy;
    AddCells(PresampledHotness(all_.counts, request_.epochs), &policy);
    report_.policies.push_back(std::move(policy));
  }

  void AddPresampled(uint32_t epochs) {
    EpochFootprint sum = NewFootprint();
    uint64_t presample_ns = 0;
    for (uint32_t k = 0; k < epochs; ++k) {
      for (size_t v = 0; v < sum.counts.size(); ++v) sum.counts[v] += presampled_[k].counts[v];
      presample_ns += presampled_[k].total_ns;
    }
    PolicyReport presc{CachePolicy::kPresc, epochs, presample_ns, {}};
    AddCells(PresampledHotness(sum.counts, epochs), &presc);
    report_.policies.push_back(std::move(presc));
    if (!HasEstimate(request_.reach.sampler)) return;
    PolicyReport combined{CachePolicy::kCombined, epochs, presample_ns + estimate_ns_, {}};
    AddCells(CombinedHotness(sum.counts, epochs, estimate_), &combined);
    report_.policies.push_back(std::move(combined));
  }

  void AddStatic(CachePolicy policy, uint64_t rank_ns, const Hotness& hotness) {
    PolicyReport added{policy, 0, rank_ns, {}};
    AddCells(hotness, &added);
    report_.policies.push_back(std::move(added));
  }

  void AddStatic(CachePolicy policy, const std::function<Hotness()>& make) {
    const uint64_t start_ns = MonotonicNs();
    const Hotness hotness = make();
    AddStatic(policy, MonotonicNs() - start_ns, hotness);
  }

  void AddCells(const Hotness& hotness, PolicyReport* policy) const {
    const std::vector<uint32_t> order = OrderByHotness(hotness);
    for (const double alpha : request_.alphas) {
      CacheCell cell;
      cell.alpha = alpha;
      cell.cache_rows = CacheRows(alpha, topology_.num_nodes());
      const uint64_t hits = HitsOf(all_.counts, order, cell.cache_rows);
      cell.hit_rate =
          total_rows_ == 0 ? 0.0 : static_cast<double>(hits) / static_cast<double>(total_rows_);
      cell.bytes_moved = static_cast<double>(total_rows_ - hits) *
                         static_cast<double>(request_.row_bytes) / request_.epochs;
      policy->cells.push_back(cell);
    }
  }

  const CacheReportRequest& request_;
  const TopologyView& topology_;
  std::span<const uint32_t> train_nodes_;
  Presampler* presampler_;
  OnBatch on_batch_;
  Dump dump_;
  std::vector<EpochFootprint> presampled_;  // one per pre-sampling epoch
  EpochFootprint all_;                      // sum over the measured epochs
  uint64_t total_rows_ = 0;
  Hotness estimate_;
  uint64_t estimate_ns_ = 0;
  CacheReport report_;
};

}  // namespace

Result<CacheReport> ReportCache(const CacheReportRequest& request, const TopologyView& topology,
                                std::span<const uint32_t> train_nodes, Presampler* presampler) {
  GNND_CHECK(request.epochs > 0);
  return Reporter(request, topology, train_nodes, presampler).Run();
}

}  // namespace gnnd
