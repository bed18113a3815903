#include <sched.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "core/feature/favoured.h"
#include "core/feature/host_tier.h"
#include "core/feature/hot_order.h"
#include "core/item/item_range.h"
#include "core/prepare/cache_report.h"
#include "core/prepare/hot_curve.h"
#include "core/prepare/presample.h"
#include "core/prepare/rank_nodes.h"
#include "core/sample/link_seeds.h"
#include "node/core/bindings.h"
#include "node/core/sample_work.h"

// Hotness. All functions sample whole epochs, so only child processes call them.

namespace gnnd::node {

struct FootprintOptions {
  DatasetLocation dataset;
  SamplingOptions sampling;
  Bits64 random_seed;
  int topology_fd = -1;
};

template <>
inline constexpr auto kTable<FootprintOptions> = StructOf(
    "FootprintOptions", "A dataset, and how a job samples it.",
    Field{"dataset", &FootprintOptions::dataset}, Field{"sampling", &FootprintOptions::sampling},
    Field{"randomSeed", &FootprintOptions::random_seed},
    Field{"topologyFd", &FootprintOptions::topology_fd});

template <>
inline constexpr auto kNames<CachePolicy> =
    NamesOf<CachePolicy>("CachePolicyName", {{"COMBINED", CachePolicy::kCombined},
                                             {"PRESC", CachePolicy::kPresc},
                                             {"PROBABILITY", CachePolicy::kProbability},
                                             {"DEGREE", CachePolicy::kDegree},
                                             {"RANDOM", CachePolicy::kRandom},
                                             {"OPTIMAL", CachePolicy::kOptimal}});

struct RankOptions : FootprintOptions {
  CachePolicy policy = CachePolicy::kCombined;
  uint32_t presample_epochs = 0;
  uint32_t epochs = 0;
  std::string order_path;
};

template <>
inline constexpr auto kTable<RankOptions> = Extending(
    kTable<FootprintOptions>.fields, "RankOptions", Field{"policy", &RankOptions::policy},
    Field{"presampleEpochs", &RankOptions::presample_epochs, "K."},
    Field{"epochs", &RankOptions::epochs, "Number of the job's epochs, for OPTIMAL."},
    Field{"orderPath", &RankOptions::order_path,
          "Receives the order: .npy, uint32 [2, nodes]: the node of each rank, the rank of "
          "each node."});

// Mean hotness of consecutive nodes in an order.
struct RankedRun {
  uint64_t rows = 0;
  double hotness = 0;
};

template <>
inline constexpr auto kTable<RankedRun> =
    StructOf("RankedRun", "Consecutive nodes in the hot order.", Field{"rows", &RankedRun::rows},
             Field{"hotness", &RankedRun::hotness, "Mean hotness that the policy gave them."});

struct Ranking {
  uint64_t presample_ns = 0;
  uint64_t estimate_ns = 0;
  std::vector<RankedRun> runs;
};

template <>
inline constexpr auto kTable<Ranking> =
    StructOf("Ranking", Field{"presampleNs", &Ranking::presample_ns},
             Field{"estimateNs", &Ranking::estimate_ns},
             Field{"runs", &Ranking::runs, "All nodes by rank; hotness never rises."});

struct FavourOptions {
  DatasetLocation dataset;
  int topology_fd = -1;
  std::string order_path;
  uint64_t rows = 0;
  uint32_t hops = 0;
  uint32_t hop_nodes = 0;
  std::string favoured_path;
};

template <>
inline constexpr auto kTable<FavourOptions> = StructOf(
    "FavourOptions", "Finds the nodes that locality-aware sampling favours in each hop.",
    Field{"dataset", &FavourOptions::dataset}, Field{"topologyFd", &FavourOptions::topology_fd},
    Field{"orderPath", &FavourOptions::order_path, "The file that `cacheRank` wrote."},
    Field{"rows", &FavourOptions::rows, "Number of first ranks whose rows count as held."},
    Field{"hops", &FavourOptions::hops, "Number of the sampler's hops."},
    Field{"hopNodes", &FavourOptions::hop_nodes,
          "Most favoured nodes of each hop before the last."},
    Field{"favouredPath", &FavourOptions::favoured_path,
          "Receives one byte per node, bit h for hop h: .npy, uint32, four nodes a word."});

struct HostTierOptions {
  DatasetLocation dataset;
  std::string order_path;
  uint64_t rows = 0;
  int fd = -1;
};

template <>
inline constexpr auto kTable<HostTierOptions> = StructOf(
    "HostTierOptions", "The hottest feature rows, for devices to read in the host's memory.",
    Field{"dataset", &HostTierOptions::dataset},
    Field{"orderPath", &HostTierOptions::order_path, "The file that `cacheRank` wrote."},
    Field{"rows", &HostTierOptions::rows, "Number of ranks, from 0, whose rows are copied."},
    Field{"fd", &HostTierOptions::fd, "The descriptor from `hostTierReserve`."});

struct HotCurveOptions : FootprintOptions {
  CachePolicy policy = CachePolicy::kCombined;
  uint32_t presample_epochs = 0;
  uint32_t epochs = 0;
};

template <>
inline constexpr auto kTable<HotCurveOptions> = Extending(
    kTable<FootprintOptions>.fields, "HotCurveOptions", Field{"policy", &HotCurveOptions::policy},
    Field{"presampleEpochs", &HotCurveOptions::presample_epochs, "K."},
    Field{"epochs", &HotCurveOptions::epochs, "Number of measured epochs, from 0."});

template <>
inline constexpr auto kTable<HotRun> =
    StructOf("NativeHotRun", "Consecutive nodes in the hot order.", Field{"rows", &HotRun::rows},
             Field{"hotness", &HotRun::hotness, "Mean hotness that the policy gave them."},
             Field{"partRows",
                   [](const HotRun& run) {
                     return std::vector<uint64_t>(run.part_rows.begin(), run.part_rows.end());
                   },
                   "Number of these nodes in each eighth of the ids."},
             Field{"partReads",
                   [](const HotRun& run) {
                     return std::vector<double>(run.part_reads.begin(), run.part_reads.end());
                   },
                   "Reads of these in an epoch; a batch counts once per node."});

template <>
inline constexpr auto kTable<HotCurve> =
    StructOf("NativeHotCurve", Field{"batchesPerEpoch", &HotCurve::batches_per_epoch},
             Field{"runs", &HotCurve::runs});

struct CacheReportOptions : FootprintOptions {
  uint32_t epochs = 0;
  std::vector<uint32_t> presample_epochs;
  std::vector<double> ratios;
  std::string dump_folder;
};

template <>
inline constexpr auto kTable<CacheReportOptions> = Extending(
    kTable<FootprintOptions>.fields, "CacheReportOptions",
    Field{"epochs", &CacheReportOptions::epochs, "Number of measured epochs, from 0."},
    Field{"presampleEpochs", &CacheReportOptions::presample_epochs, "Each K that is to be shown."},
    Field{"ratios", &CacheReportOptions::ratios},
    Field{"dumpFolder", &CacheReportOptions::dump_folder,
          "Receives nodes.npy and offsets.npy; empty: no dump."});

template <>
inline constexpr auto kTable<CacheCell> = StructOf(
    "CacheCell", Field{"ratio", &CacheCell::alpha}, Field{"cacheRows", &CacheCell::cache_rows},
    Field{"hitRate", &CacheCell::hit_rate}, Field{"bytesMoved", &CacheCell::bytes_moved});

template <>
inline constexpr auto kTable<PolicyReport> =
    StructOf("PolicyReport", Field{"policy", &PolicyReport::policy},
             Field{"presampleEpochs", &PolicyReport::presample_epochs,
                   "0 for policies that sample nothing in advance."},
             Field{"rankNs", &PolicyReport::rank_ns}, Field{"cells", &PolicyReport::cells});

template <>
inline constexpr auto kTable<CacheReport> = StructOf(
    "CacheReport", "Rates are shares; rows and bytes are means per epoch.",
    Field{"batchesPerEpoch", &CacheReport::batches_per_epoch},
    Field{"inputRows", &CacheReport::input_rows}, Field{"inputBytes", &CacheReport::input_bytes},
    Field{"similarity", &CacheReport::similarity}, Field{"epochNs", &CacheReport::epoch_ns},
    Field{"policies", &CacheReport::policies});

namespace {

// Number of cores that this process may run on.
uint32_t CoresOfProcess() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<uint32_t>(std::max(1, CPU_COUNT(&set)));
}

// Everything needed to sample epochs, opened. Not movable, because parts point at each other.
class Bench {
 public:
  // Opens it for at most `most_threads` threads.
  Status Open(const FootprintOptions& options, uint32_t most_threads) {
    Dataset dataset = GNND_VALUE(Dataset::Open(options.dataset.folder, options.dataset.counts));
    Topology topology = GNND_VALUE(Topology::Attach(options.topology_fd, dataset));
    const RecordLayout layout =
        GNND_VALUE(RecordLayout::Of(LimitsOf(options.dataset.counts, options.sampling)));
    topology_ = std::move(topology);
    for (const int64_t node : dataset.train()) train_.push_back(static_cast<uint32_t>(node));
    dataset_ = std::move(dataset);
    const LinkOptions& link_options = options.sampling.links;
    links_ = GNND_VALUE(TrainingLinks::Open(options.dataset.folder, link_options));
    const auto items =
        link_options.on() ? link_options.count : static_cast<uint32_t>(train_.size());
    const uint32_t batches = NumBatches(items, options.sampling.batch_size);
    // Calls of a plug-in may share state, so only one thread makes them.
    const uint32_t threads = options.sampling.algorithm == Algorithm::kPlugin
                                 ? 1
                                 : PresampleThreads(most_threads, dataset_.num_nodes(), batches);
    std::vector<SampleWork*> works;
    for (uint32_t i = 0; i < threads; ++i) {
      Topology for_sampler = GNND_VALUE(Topology::Attach(options.topology_fd, dataset_));
      works_.push_back(
          GNND_VALUE(SampleWorkOf(dataset_, links_, std::move(for_sampler), options.sampling,
                                  options.random_seed.value, layout)));
      works.push_back(works_.back().get());
    }
    presampler_ =
        std::make_unique<Presampler>(works, layout.slot_bytes(), dataset_.num_nodes(), batches);
    return Status::Ok();
  }

  TopologyView topology() const { return topology_.view(); }
  std::span<const uint32_t> train_nodes() const { return train_; }
  // How the job's batches reach nodes.
  Reach ReachOf(const SamplingOptions& sampling) const {
    Reach reach{sampling, sampling.batch_size};
    if (sampling.links.on()) {
      reach.seed_shares = LinkSeedShares(sampling.links, links_.values(), sampling.batch_size,
                                         topology_.view().num_nodes());
      reach.items = sampling.links.count;
    }
    return reach;
  }
  Presampler* presampler() { return presampler_.get(); }

 private:
  Dataset dataset_;
  Topology topology_;
  TrainingLinks links_;
  std::vector<uint32_t> train_;
  std::vector<std::unique_ptr<SampleWork>> works_;
  std::unique_ptr<Presampler> presampler_;
};

// The request of RankOptions or HotCurveOptions; its reach is told by the Bench.
template <typename Options>
RankRequest RequestOf(const Options& options) {
  RankRequest request;
  request.policy = options.policy;
  request.presample_epochs = options.presample_epochs;
  request.epochs = options.epochs;
  request.random_seed = options.random_seed.value;
  return request;
}

Result<Ranking> RankAndWrite(const RankOptions& options) {
  RankRequest request = RequestOf(options);
  Bench bench;
  GNND_TRY(bench.Open(options, CoresOfProcess()));
  request.reach = bench.ReachOf(options.sampling);
  RankResult ranked =
      GNND_VALUE(RankNodes(request, bench.topology(), bench.train_nodes(), bench.presampler()));
  const std::vector<uint32_t> order = OrderByHotness(ranked.hotness);
  GNND_TRY(WriteHotOrder(order, options.order_path));
  Ranking ranking{ranked.presample_ns, ranked.estimate_ns, {}};
  const std::vector<uint32_t> unread(order.size());
  for (const HotRun& run : HotRunsOf(order, ranked.hotness, unread, 1)) {
    ranking.runs.push_back({run.rows, run.hotness});
  }
  return ranking;
}

Result<CacheReport> MakeReport(const CacheReportOptions& options) {
  CacheReportRequest request;
  request.epochs = options.epochs;
  request.presample_epochs = options.presample_epochs;
  request.alphas = options.ratios;
  request.random_seed = options.random_seed.value;
  const DatasetCounts& counts = options.dataset.counts;
  request.row_bytes = counts.num_features * BytesOf(counts.feature_type);
  request.dump_folder = options.dump_folder;
  Bench bench;
  // The report reads batches in order, so one thread samples.
  GNND_TRY(bench.Open(options, 1));
  request.reach = bench.ReachOf(options.sampling);
  return ReportCache(request, bench.topology(), bench.train_nodes(), bench.presampler());
}

Result<HotCurve> MeasureCurve(const HotCurveOptions& options) {
  RankRequest request = RequestOf(options);
  Bench bench;
  GNND_TRY(bench.Open(options, CoresOfProcess()));
  request.reach = bench.ReachOf(options.sampling);
  return MeasureHotCurve(request, bench.topology(), bench.train_nodes(), bench.presampler());
}

Task<Ranking> Rank(const RankOptions& options) {
  return {[options] { return RankAndWrite(options); }};
}

Task<CacheReport> Report(const CacheReportOptions& options) {
  return {[options] { return MakeReport(options); }};
}

Result<int> ReserveTier() { return GNND_VALUE(ReserveHostTier()).Release(); }

Task<void> FillTier(const HostTierOptions& options) {
  return {[options]() -> Status {
    const DatasetLocation& location = options.dataset;
    Dataset dataset =
        GNND_VALUE(Dataset::Open(location.folder, location.counts, location.features_path));
    const HotOrder hot = GNND_VALUE(HotOrder::Open(options.order_path, dataset.num_nodes()));
    return FillHostTier(options.fd, {dataset.features(), hot.order(), options.rows});
  }};
}

uint64_t RowsOfTier(uint64_t budget_bytes, uint64_t row_bytes, uint64_t num_nodes) {
  return HostTierRows(budget_bytes, row_bytes, num_nodes);
}

Task<void> Favour(const FavourOptions& options) {
  return {[options]() -> Status {
    const DatasetLocation& location = options.dataset;
    Dataset dataset = GNND_VALUE(Dataset::Open(location.folder, location.counts));
    Topology topology = GNND_VALUE(Topology::Attach(options.topology_fd, dataset));
    const HotOrder hot = GNND_VALUE(HotOrder::Open(options.order_path, dataset.num_nodes()));
    const std::span<const uint32_t> held =
        hot.order().first(std::min<uint64_t>(options.rows, dataset.num_nodes()));
    return WriteFavoured(FavouredHops(topology.view(), held, options.hops, options.hop_nodes),
                         options.favoured_path);
  }};
}

Task<HotCurve> Curve(const HotCurveOptions& options) {
  return {[options] { return MeasureCurve(options); }};
}

}  // namespace

void DefineCache(Subject& subject) {
  subject.Enum<CachePolicy>()
      .Struct<FootprintOptions>()
      .Struct<RankOptions>()
      .Struct<RankedRun>()
      .Struct<Ranking>()
      .Struct<CacheReportOptions>()
      .Struct<CacheCell>()
      .Struct<PolicyReport>()
      .Struct<CacheReport>()
      .Struct<HotCurveOptions>()
      .Struct<HotRun>()
      .Struct<HotCurve>()
      .Function("cacheRank", Rank, {"options"}, "Samples whole epochs: for child processes.")
      .Function("cacheReport", Report, {"options"}, "Likewise.")
      .Function("hotCurve", Curve, {"options"}, "Likewise.")
      .Struct<FavourOptions>()
      .Function("cacheFavour", Favour, {"options"}, "Reads the graph: for child processes.")
      .Struct<HostTierOptions>()
      .Function("hostTierRows", RowsOfTier, {"budgetBytes", "rowBytes", "numNodes"},
                "That fit, at most all of them.")
      .Function("hostTierReserve", ReserveTier, {}, "An empty memfd, the caller's to close.")
      .Function("hostTierFill", FillTier, {"options"}, "Reads rows, so it is for child processes.");
}

}  // namespace gnnd::node
