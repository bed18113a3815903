#include "train/device_extraction.h"

#include <algorithm>
#include <concepts>
#include <string>

#include "core/feature/hot_order.h"
#include "core/graph/features.h"
#include "train/ops.h"

namespace gnnd {
namespace {

// Rows of a cache that are gathered and copied at a time.
constexpr uint64_t kPartBytes = uint64_t{16} << 20;

// Copies on the device of what a sample's spans view.
class SampleCopy {
 public:
  SampleCopy(TrainStream* stream, Workspace* workspace) : stream_(stream), workspace_(workspace) {}

  Sample Of(const Sample& sample) const {
    Sample copy(sample.kind(), sample.key());
    copy.AddNodes(Copied(sample.nodes()), sample.num_seeds(), Copied(sample.ranks()));
    const BlockView& last = sample.block(sample.num_blocks() - 1);
    const BlockView last_copy = Copied(last);
    for (uint32_t b = 0; b + 1 < sample.num_blocks(); ++b) {
      const BlockView& block = sample.block(b);
      copy.AddBlock(sample.shares_rows() ? Prefix(block, last_copy) : Copied(block));
    }
    copy.AddBlock(last_copy);
    return copy;
  }

  template <typename T>
  std::span<const T> Copied(std::span<const T> values) const {
    if (values.empty()) return {};
    T* const to = workspace_->Get<T>(values.size());
    stream_->CopyIn(to, values.data(), values.size_bytes());
    return {to, values.size()};
  }

 private:
  BlockView Copied(const BlockView& block) const {
    BlockView copy = block;
    copy.indptr = Copied(block.indptr);
    copy.src = Copied(block.src);
    copy.weight = Copied(block.weight);
    copy.self_weight = Copied(block.self_weight);
    return copy;
  }

  // A block that is the first rows of another one.
  static BlockView Prefix(const BlockView& block, const BlockView& of) {
    BlockView prefix = block;
    prefix.indptr = of.indptr.first(block.indptr.size());
    prefix.src = of.src.first(block.src.size());
    prefix.weight = of.weight.first(block.weight.size());
    prefix.self_weight = of.self_weight.first(block.self_weight.size());
    return prefix;
  }

  TrainStream* stream_;
  Workspace* workspace_;
};

// Of one batch, from its rows in the features' own type.
class Extraction {
 public:
  Extraction(const TrainOptions& options, const RowTable& raw, ExtractBuffer* buffer)
      : options_(options),
        raw_(raw),
        buffer_(buffer),
        workspace_(&buffer->memory),
        stream_(TrainStream::Of(workspace_->device())) {}

  // In rows of T: float or Bfloat16.
  template <typename T>
  void Run(bool fuse) const {
    if (fuse) {
      Aggregate<T>();
    } else {
      Take<T>();
    }
  }

 private:
  template <typename T>
  void Aggregate() const {
    const BlockView& bottom = buffer_->sample.block(buffer_->sample.num_hops() - 1);
    T* const sum = workspace_->Get<T>(uint64_t{bottom.num_dst} * raw_.dim());
    const BlockOperand<T> operand(bottom, ReductionOf(options_.model), workspace_);
    operand.AggregateFromTable(raw_, bottom.src.data(), nullptr, sum);
    buffer_->input.aggregated = View(sum, bottom.num_dst);
    if (options_.model.type == ModelType::kGraphSage) {
      buffer_->input.self = FirstRows<T>(bottom.num_dst);
    }
  }

  template <typename T>
  void Take() const {
    const BatchKey& key = buffer_->key;
    const DropoutSite site{{key.random_seed, key.epoch, key.batch, /*layer=*/0},
                           buffer_->sample.nodes().data(),
                           options_.model.input_dropout};
    const auto count = static_cast<uint32_t>(buffer_->sample.nodes().size());
    buffer_->input.x = FirstRows<T>(count);
    workspace_->operators().rows<T>().dropout(DropoutOf<T>(site, buffer_->input.x), count,
                                              workspace_);
  }

  template <typename T>
  at::Tensor View(T* rows, uint64_t count) const {
    return ViewOf(rows, static_cast<int64_t>(count), static_cast<int64_t>(raw_.dim()),
                  workspace_->device().where);
  }

  // In place where the type is the features' own.
  template <typename T>
  at::Tensor FirstRows(uint64_t count) const {
    const bool is_half = raw_.type() == FeatureType::kFloat16;
    if constexpr (std::same_as<T, float>) {
      auto* const rows = const_cast<std::byte*>(raw_.row(0));
      if (!is_half) return View(reinterpret_cast<float*>(rows), count);
    }
    gnnd_device_convert args{};
    args.element = is_half ? GNND_ELEMENT_FLOAT16 : GNND_ELEMENT_FLOAT32;
    args.out_element = std::same_as<T, float> ? GNND_ELEMENT_FLOAT32 : GNND_ELEMENT_BFLOAT16;
    args.count = count * raw_.dim();
    args.from = raw_.row(0);
    T* const rows = workspace_->Get<T>(args.count);
    args.out = rows;
    stream_.Launch(stream_.table().convert, args);
    return View(rows, count);
  }

  const TrainOptions& options_;
  const RowTable& raw_;
  ExtractBuffer* buffer_;
  Workspace* workspace_;
  TrainStream& stream_;
};

}  // namespace

Result<DeviceFeatures> DeviceFeatures::Load(const TrainOptions& options) {
  const Device& device = *options.device.device;
  DeviceFeatures made;
  made.features_ = options.features;
  made.seen_ = options.device.features_seen;
  made.ranked_rows_ = options.host_features.num_rows();
  const uint64_t row_bytes = options.features.row_bytes();
  const uint64_t fit = options.device.cache_bytes / row_bytes;
  made.cache_rows_ = std::min<uint64_t>(fit, options.hot_order.size());
  const std::span<const uint32_t> order = options.hot_order.first(made.cache_rows_);
  for (const uint32_t node : order) {
    if (node < options.features.num_rows()) continue;
    return Status(Code::kInvalidArgument,
                  "hot_order: node " + std::to_string(node) + " is not in the graph");
  }
  made.cache_ = GNND_VALUE(
      DeviceBuffer<std::byte>::Allocate(device, order.size() * row_bytes, DevicePurpose::kCache));
  const std::unique_ptr<DeviceStream> stream = GNND_VALUE(DeviceStream::Create(device));
  const uint64_t part = std::max<uint64_t>(1, kPartBytes / row_bytes);
  std::vector<std::byte> rows(std::min<uint64_t>(part, order.size()) * row_bytes);
  for (uint64_t begin = 0; begin < order.size(); begin += part) {
    const auto nodes = order.subspan(begin, std::min<uint64_t>(part, order.size() - begin));
    if (options.features_on_disk) AskForRows(options.features, nodes);
    gnnd::CopyRows(options.features, nodes, rows.data());
    const uint64_t bytes = nodes.size() * row_bytes;
    GNND_TRY(stream->StageIn<std::byte>({made.cache_.data() + begin * row_bytes, bytes},
                                        {rows.data(), bytes}));
  }
  GNND_TRY(stream->Synchronize());
  return made;
}

void DeviceFeatures::ListMisses(const Sample& sample) {
  positions_.clear();
  nodes_.clear();
  ranks_.clear();
  if (seen_ != nullptr && ranked_rows_ == 0) return;
  const uint64_t reached = std::max(cache_rows_, seen_ == nullptr ? 0 : ranked_rows_);
  const std::span<const uint32_t> ranks = sample.ranks();
  for (uint32_t i = 0; i < sample.nodes().size(); ++i) {
    const uint32_t rank = ranks.empty() ? kNoRank : ranks[i];
    if (rank < reached) continue;
    positions_.push_back(i);
    nodes_.push_back(sample.nodes()[i]);
    ranks_.push_back(rank);
  }
}

void DeviceFeatures::Read(const FeatureStore& store, const Sample& sample, const Sample& copy,
                          TrainStream* stream, Workspace* workspace, std::byte* out) {
  const uint64_t row_bytes = features_.row_bytes();
  gnnd_device_gather gather{};
  gather.nodes = copy.nodes().data();
  gather.ranks = copy.ranks().empty() ? nullptr : copy.ranks().data();
  gather.count = copy.nodes().size();
  gather.row_bytes = static_cast<uint32_t>(row_bytes);
  gather.cache = cache_.data();
  gather.cached_rows = cache_rows_;
  gather.out = out;
  gather.out_stride = row_bytes;
  if (ranked_rows_ == 0) {
    gather.host_rows = seen_;
  } else if (seen_ != nullptr) {
    gather.host_ranked = seen_;
    gather.host_ranked_rows = ranked_rows_;
  }
  stream->Launch(stream->table().gather, gather);
  // The record is here as well, so nobody waits for the device to list its misses.
  ListMisses(sample);
  if (positions_.empty()) return;
  rows_.resize(positions_.size() * row_bytes);
  ReadRows(store, nodes_, ranks_, row_bytes, rows_.data());
  const SampleCopy copies(stream, workspace);
  gnnd_device_scatter scatter{};
  scatter.positions = copies.Copied(std::span<const uint32_t>(positions_)).data();
  scatter.count = positions_.size();
  scatter.rows = copies.Copied(std::span<const std::byte>(rows_)).data();
  scatter.row_bytes = gather.row_bytes;
  scatter.out = out;
  scatter.out_stride = row_bytes;
  stream->Launch(stream->table().scatter, scatter);
}

Status ExtractToDevice(const TrainOptions& options, const FeatureStore& store, const Sample& sample,
                       DeviceFeatures* features, ExtractBuffer* buffer) {
  GNND_TRY(BeginExtraction(options, sample, buffer));
  Workspace* const workspace = &buffer->memory;
  TrainStream& stream = TrainStream::Of(workspace->device());
  stream.BeginTiming();
  const SampleCopy copies(&stream, workspace);
  buffer->sample = copies.Of(sample);
  buffer->labels = copies.Copied(std::span<const uint32_t>(buffer->seed_labels)).data();
  const uint64_t bytes = sample.nodes().size() * options.features.row_bytes();
  auto* const rows = workspace->Get<std::byte>(bytes);
  features->Read(store, sample, buffer->sample, &stream, workspace, rows);
  const RowTable raw(options.features.type(), {rows, bytes}, options.features.dim());
  const Extraction extraction(options, raw, buffer);
  if (options.precision == Precision::kBfloat16) {
    extraction.Run<Bfloat16>(FusesBottom(options, sample));
  } else {
    extraction.Run<float>(FusesBottom(options, sample));
  }
  buffer->device_ns = stream.EndTiming();
  return Status::Ok();
}

}  // namespace gnnd
