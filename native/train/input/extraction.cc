#include "train/input/extraction.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "core/base/check.h"
#include "core/graph/features.h"
#include "train/ops/ops.h"
#include "train/ops/parallel.h"

namespace gnnd {
namespace {

constexpr uint32_t kGrainRows = 256;

// With more edges per source than this, rows are gathered once instead of once per edge (measured:
// up to there, reading the feature store per edge is faster).
constexpr double kFuseEdgesPerSource = 1.5;

Status CheckSample(const TrainOptions& options, const Sample& sample) {
  if (!sample.homogeneous()) {
    return Status(Code::kShmCorrupted, "record has several types of nodes or relations");
  }
  if (sample.num_hops() != options.model.num_layers) {
    return Status(Code::kShmCorrupted, "record has " + std::to_string(sample.num_hops()) +
                                           " blocks, the model " +
                                           std::to_string(options.model.num_layers) + " layers");
  }
  const ModelKind& kind = KindOf(options.model.type);
  if (kind.gathering == Gathering::kNormalized && sample.block(0).self_weight.empty()) {
    return Status(Code::kShmCorrupted,
                  std::string("record lacks the edge weights that ") + kind.name + " needs");
  }
  uint32_t largest = 0;
  for (const uint32_t node : sample.nodes()) largest = std::max(largest, node);
  if (largest >= options.num_nodes()) {
    return Status(Code::kShmCorrupted, "record names a node beyond the graph");
  }
  return Status::Ok();
}

// The extraction of one batch.
class Extraction {
 public:
  Extraction(const TrainOptions& options, const RowTable& table, const Sample& sample,
             ExtractBuffer* buffer)
      : options_(options), table_(table), sample_(sample), buffer_(buffer) {}

  // Extracts rows of T: float or Bfloat16. `rows_at` are the nodes' places in the table.
  template <typename T>
  void Run(std::span<const uint32_t> rows_at) const;

 private:
  template <typename T>
  void Fused(const BlockView& bottom, std::span<const uint32_t> rows_at) const;
  template <typename T>
  void Rows(std::span<const uint32_t> rows_at) const;

  const TrainOptions& options_;
  const RowTable& table_;
  const Sample& sample_;
  ExtractBuffer* buffer_;
};

// Aggregates the bottom block straight from the feature store: only destinations' own rows are
// copied, for layers that multiply them by a matrix.
template <typename T>
void Extraction::Fused(const BlockView& bottom, std::span<const uint32_t> rows_at) const {
  GNND_CHECK(rows_at.size() == bottom.num_src);
  const auto dim = static_cast<int64_t>(options_.model.in_dim);
  uint32_t* index = buffer_->memory.Get<uint32_t>(bottom.src.size());
  ParallelRows(static_cast<uint32_t>(bottom.src.size()), kGrainRows,
               [&](uint32_t begin, uint32_t end) {
                 for (uint32_t e = begin; e < end; ++e) index[e] = rows_at[bottom.src[e]];
               });
  T* sum = buffer_->memory.Get<T>(uint64_t{bottom.num_dst} * options_.model.in_dim);
  const BlockOperand<T> operand(bottom, ReductionOf(options_.model, options_.shares),
                                &buffer_->memory);
  operand.AggregateFromTable(table_, index, rows_at.data(), sum);
  buffer_->input.aggregated = ViewOf(sum, bottom.num_dst, dim);
  if (KindOf(options_.model.type).reads_self()) {
    buffer_->input.self = GatheredRows<T>(table_, rows_at.first(bottom.num_dst), &buffer_->memory);
  }
}

template <typename T>
void Extraction::Rows(std::span<const uint32_t> rows_at) const {
  const BatchKey& key = buffer_->key;
  const DropoutSite site{{key.random_seed, key.epoch, key.batch, /*layer=*/0},
                         sample_.nodes().data(),
                         options_.model.input_dropout};
  buffer_->input.x = GatheredRows<T>(table_, rows_at, &buffer_->memory);
  const auto dropout = DropoutOf<T>(site, buffer_->input.x);
  ParallelRows(static_cast<uint32_t>(rows_at.size()), kGrainRows,
               [&dropout](uint32_t begin, uint32_t end) { RunDropout(dropout, begin, end); });
}

template <typename T>
void Extraction::Run(std::span<const uint32_t> rows_at) const {
  if (FusesBottom(options_, sample_)) {
    Fused<T>(sample_.block(sample_.num_hops() - 1), rows_at);
  } else {
    Rows<T>(rows_at);
  }
}

// Copies the sample's rows into memory, packed, in the type of the file. This is for rows on disk,
// which later code may read twice, when their pages may have left the page cache; and for stores
// whose tiers do not form one table.
RowTable CopiedRows(const FeatureStore& store, const RowTable& features, const Sample& sample,
                    Workspace* workspace) {
  const std::span<const uint32_t> nodes = sample.nodes();
  const uint64_t row_bytes = features.row_bytes();
  std::byte* copies = workspace->Get<std::byte>(nodes.size() * row_bytes);
  ReadRows(store, nodes, sample.ranks(), row_bytes, copies);
  return {features.type(), {copies, nodes.size() * row_bytes}, features.dim()};
}

}  // namespace

bool FusesBottom(const TrainOptions& options, const Sample& sample) {
  const BlockView& bottom = sample.block(sample.num_hops() - 1);
  const uint32_t width = SizeOf(KindOf(options.model.type).transformed, options.model, 0);
  return options.model.input_dropout == 0.0F && AggregatesFeatures(options.model) &&
         static_cast<double>(bottom.src.size()) <= kFuseEdgesPerSource * bottom.num_src &&
         !TransformFirst(bottom.num_dst, bottom.num_src, bottom.src.size(), options.model.in_dim,
                         width);
}

void ReadRows(const FeatureStore& store, std::span<const uint32_t> nodes,
              std::span<const uint32_t> ranks, uint64_t row_bytes, std::byte* out) {
  const auto part = [](std::span<const uint32_t> of, uint64_t begin, uint64_t end) {
    return of.empty() ? of : of.subspan(begin, end - begin);
  };
  ReadInParts(
      nodes.size(),
      [&](uint64_t begin, uint64_t end) {
        store.Ask(part(nodes, begin, end), part(ranks, begin, end));
      },
      [&](uint64_t begin, uint64_t end) {
        // Each thread waits for its own pages.
        ParallelRows(
            static_cast<uint32_t>(end - begin), kGrainRows, [&](uint32_t from, uint32_t to) {
              store.Read(part(nodes, begin + from, begin + to),
                         part(ranks, begin + from, begin + to), out + (begin + from) * row_bytes);
            });
      });
}

Status BeginExtraction(const TrainOptions& options, const Sample& sample, ExtractBuffer* buffer) {
  buffer->input = BottomInput();
  GNND_TRY(CheckSample(options, sample));
  buffer->sample = sample;
  buffer->memory.Reset();
  buffer->key = sample.key();
  return Status::Ok();
}

Status ExtractRows(const TrainOptions& options, const FeatureStore& store, const Sample& sample,
                   ExtractBuffer* buffer) {
  buffer->sample = sample;
  const std::span<const uint32_t> nodes = sample.nodes();
  uint32_t* at = buffer->memory.Get<uint32_t>(nodes.size());
  const auto run = [&](const RowTable& table, std::span<const uint32_t> rows_at) {
    const Extraction extraction(options, table, sample, buffer);
    if (options.precision == Precision::kBfloat16) {
      extraction.Run<Bfloat16>(rows_at);
    } else {
      extraction.Run<float>(rows_at);
    }
  };
  if (store.flat() && !store.on_disk()) {
    run(store.table(), store.Locate(nodes, sample.ranks(), at));
    return Status::Ok();
  }
  std::iota(at, at + nodes.size(), 0U);
  run(CopiedRows(store, options.features, sample, &buffer->memory), {at, nodes.size()});
  return Status::Ok();
}

}  // namespace gnnd
