#include <memory>
#include <utility>
#include <vector>

#include "core/cache/hot_order.h"
#include "core/run/cache_report.h"
#include "core/run/presample.h"
#include "core/run/rank_nodes.h"
#include "core/sample/batch_seeds.h"
#include "node/core/bindings.h"
#include "node/core/sample_work.h"

// Hotness: mirrors `cache*` of contract.ts. Both functions sample whole epochs, so they are for
// child processes.

namespace gnnd::node {
namespace {

// FootprintOptions: a dataset and how a job would sample it.
struct FootprintOptions {
  DatasetLocation dataset;
  SamplingOptions sampling;
  uint64_t random_seed = 0;
  int topology_fd = -1;
};

FootprintOptions FootprintOptionsOf(const Fields& fields) {
  return {LocationOf(fields.Object("dataset")), SamplingOf(fields.Object("sampling")),
          fields.Bits64("randomSeed"), static_cast<int>(fields.Uint32("topologyFd"))};
}

// Everything that sampling epochs needs, opened. Not movable: parts point at each other.
class Bench {
 public:
  Status Open(const FootprintOptions& options) {
    Result<Dataset> dataset = Dataset::Open(options.dataset.folder, options.dataset.counts);
    if (!dataset.ok()) return dataset.status();
    Result<Topology> topology = Topology::Attach(options.topology_fd);
    if (!topology.ok()) return topology.status();
    Result<Topology> for_sampler = Topology::Attach(options.topology_fd);
    if (!for_sampler.ok()) return for_sampler.status();
    const Result<RecordLayout> layout =
        RecordLayout::Of(LimitsOf(options.dataset.counts, options.sampling));
    if (!layout.ok()) return layout.status();
    topology_ = std::move(*topology);
    for (const int64_t node : dataset->train()) train_.push_back(static_cast<uint32_t>(node));
    dataset_ = std::move(*dataset);
    Result<std::unique_ptr<SampleWork>> work = SampleWorkOf(
        dataset_, std::move(*for_sampler), options.sampling, options.random_seed, *layout);
    if (!work.ok()) return work.status();
    work_ = std::move(*work);
    const uint32_t batches =
        NumBatches(static_cast<uint32_t>(train_.size()), options.sampling.batch_size);
    presampler_ = std::make_unique<Presampler>(work_.get(), layout->slot_bytes(),
                                               dataset_.num_nodes(), batches);
    return Status::Ok();
  }

  TopologyView topology() const { return topology_.view(); }
  std::span<const uint32_t> train_nodes() const { return train_; }
  Presampler* presampler() { return presampler_.get(); }

 private:
  Dataset dataset_;
  Topology topology_;
  std::vector<uint32_t> train_;
  std::unique_ptr<SampleWork> work_;
  std::unique_ptr<Presampler> presampler_;
};

constexpr const char* kPolicyNames[] = {"COMBINED", "PRESC",  "PROBABILITY",
                                        "DEGREE",   "RANDOM", "OPTIMAL"};

CachePolicy PolicyOf(const std::string& name) {
  for (uint32_t i = 0; i < std::size(kPolicyNames); ++i) {
    if (name == kPolicyNames[i]) return static_cast<CachePolicy>(i);
  }
  return CachePolicy::kCombined;
}

struct RankTimes {
  uint64_t presample_ns;
  uint64_t estimate_ns;
};

Result<RankTimes> RankAndWrite(const FootprintOptions& options, const RankRequest& request,
                               const std::string& path) {
  Bench bench;
  GNND_TRY(bench.Open(options));
  Result<RankResult> ranked =
      RankNodes(request, bench.topology(), bench.train_nodes(), bench.presampler());
  if (!ranked.ok()) return ranked.status();
  GNND_TRY(WriteHotOrder(OrderByHotness(ranked->hotness), path));
  return RankTimes{ranked->presample_ns, ranked->estimate_ns};
}

// cacheRank(options): Promise<RankTimes>
Napi::Value Rank(const Napi::CallbackInfo& info) {
  const Fields fields(info[0], "options");
  const FootprintOptions options = FootprintOptionsOf(fields);
  RankRequest request;
  request.policy = PolicyOf(fields.String("policy"));
  request.presample_epochs = fields.Uint32("presampleEpochs");
  request.epochs = fields.Uint32("epochs");
  request.random_seed = options.random_seed;
  request.reach = {options.sampling.sampler, options.sampling.batch_size};
  const std::string path = fields.String("orderPath");
  return RunOnThread<RankTimes>(
      info.Env(), [=] { return RankAndWrite(options, request, path); },
      [](Napi::Env env, RankTimes& times) -> Napi::Value {
        Napi::Object result = Napi::Object::New(env);
        result.Set("presampleNs", NumberOf(env, times.presample_ns));
        result.Set("estimateNs", NumberOf(env, times.estimate_ns));
        return result;
      });
}

Napi::Value PolicyValue(Napi::Env env, const PolicyReport& policy) {
  Napi::Object result = Napi::Object::New(env);
  result.Set("policy", kPolicyNames[static_cast<uint32_t>(policy.policy)]);
  result.Set("presampleEpochs", policy.presample_epochs);
  result.Set("rankNs", NumberOf(env, policy.rank_ns));
  Napi::Array cells = Napi::Array::New(env);
  for (const CacheCell& cell : policy.cells) {
    Napi::Object entry = Napi::Object::New(env);
    entry.Set("ratio", cell.alpha);
    entry.Set("cacheRows", NumberOf(env, cell.cache_rows));
    entry.Set("hitRate", cell.hit_rate);
    entry.Set("bytesMoved", cell.bytes_moved);
    cells.Set(cells.Length(), entry);
  }
  result.Set("cells", cells);
  return result;
}

Napi::Value ReportValue(Napi::Env env, CacheReport& report) {
  Napi::Object result = Napi::Object::New(env);
  result.Set("batchesPerEpoch", report.batches_per_epoch);
  result.Set("inputRows", report.input_rows);
  result.Set("inputBytes", report.input_bytes);
  result.Set("similarity", report.similarity);
  result.Set("epochNs", NumberOf(env, report.epoch_ns));
  Napi::Array policies = Napi::Array::New(env);
  for (const PolicyReport& policy : report.policies) {
    policies.Set(policies.Length(), PolicyValue(env, policy));
  }
  result.Set("policies", policies);
  return result;
}

// cacheReport(options): Promise<CacheReport>
Napi::Value Report(const Napi::CallbackInfo& info) {
  const Fields fields(info[0], "options");
  const FootprintOptions options = FootprintOptionsOf(fields);
  CacheReportRequest request;
  request.epochs = fields.Uint32("epochs");
  request.presample_epochs.clear();
  for (const int32_t k : fields.Int32List("presampleEpochs")) {
    request.presample_epochs.push_back(static_cast<uint32_t>(k));
  }
  request.alphas = fields.DoubleList("ratios");
  request.random_seed = options.random_seed;
  const DatasetCounts& counts = options.dataset.counts;
  request.row_bytes = counts.num_features * BytesOf(counts.feature_type);
  request.reach = {options.sampling.sampler, options.sampling.batch_size};
  request.dump_folder = fields.String("dumpFolder");
  return RunOnThread<CacheReport>(
      info.Env(),
      [options, request]() -> Result<CacheReport> {
        Bench bench;
        GNND_TRY(bench.Open(options));
        return ReportCache(request, bench.topology(), bench.train_nodes(), bench.presampler());
      },
      ReportValue);
}

}  // namespace

void DefineCache(Napi::Env env, Napi::Object exports) {
  exports.Set("cacheRank", Napi::Function::New(env, Rank));
  exports.Set("cacheReport", Napi::Function::New(env, Report));
}

}  // namespace gnnd::node
