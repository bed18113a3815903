#include "train/device/device_extraction.h"

#include <algorithm>
#include <concepts>
#include <cstdio>
#include <string>
#include <utility>

#include "core/feature/hot_order.h"
#include "core/graph/features.h"
#include "core/kernels/row_tiers.h"
#include "train/ops/ops.h"

namespace gnnd {
namespace {

// Bytes of cached rows that are gathered and copied at a time.
constexpr uint64_t kPartBytes = uint64_t{16} << 20;

// Blocks of a gather over the bus. A bus of 64 GB/s with 2 us latency has 128 KiB under way, which
// 32 blocks of 256 threads request in words of 16 bytes. More blocks would only wait, on
// multiprocessors that training could use.
constexpr uint32_t kBusBlocks = 32;

// Copies to the device the arrays that a sample's spans view.
class SampleCopy {
 public:
  SampleCopy(TrainStream* stream, Workspace* workspace) : stream_(stream), workspace_(workspace) {}

  Sample Of(const Sample& sample) const {
    Sample copy(sample.kind(), sample.key());
    copy.SetSharesRows(sample.shares_rows());
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
    copy.nodes = Copied(block.nodes);
    return copy;
  }

  // The copy of a block that is a prefix of another one.
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

template <typename T>
at::Tensor View(T* rows, uint64_t count, uint64_t columns, Workspace* workspace) {
  return ViewOf(rows, static_cast<int64_t>(count), static_cast<int64_t>(columns),
                workspace->device().where);
}

// The first rows as T, float or Bfloat16; in place if the features have that type.
template <typename T>
at::Tensor RowsAs(const RowTable& raw, uint64_t count, Workspace* workspace) {
  const bool is_half = raw.type() == FeatureType::kFloat16;
  if constexpr (std::same_as<T, float>) {
    auto* const rows = const_cast<std::byte*>(raw.row(0));
    if (!is_half) return View(reinterpret_cast<float*>(rows), count, raw.dim(), workspace);
  }
  gnnd_device_convert args{};
  args.element = is_half ? GNND_ELEMENT_FLOAT16 : GNND_ELEMENT_FLOAT32;
  args.out_element = std::same_as<T, float> ? GNND_ELEMENT_FLOAT32 : GNND_ELEMENT_BFLOAT16;
  args.count = count * raw.dim();
  args.from = raw.row(0);
  T* const rows = workspace->Get<T>(args.count);
  args.out = rows;
  TrainStream& stream = TrainStream::Of(workspace->device());
  stream.Launch(stream.table().convert, args);
  return View(rows, count, raw.dim(), workspace);
}

RankedNodes NodesOf(const Sample& sample) { return {sample.nodes(), sample.ranks()}; }

// The extraction of one batch, from its rows in the features' own type.
class Extraction {
 public:
  Extraction(const TrainOptions& options, const RowTable& raw, ExtractBuffer* buffer)
      : options_(options), raw_(raw), buffer_(buffer), workspace_(&buffer->memory) {}

  // Computes in rows of T: float or Bfloat16.
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
    const BlockOperand<T> operand(bottom, ReductionOf(options_.model, options_.shares), workspace_);
    operand.AggregateFromTable(raw_, bottom.src.data(), nullptr, sum);
    buffer_->input.aggregated = View(sum, bottom.num_dst, raw_.dim(), workspace_);
    if (KindOf(options_.model.type).reads_self()) {
      buffer_->input.self = RowsAs<T>(raw_, bottom.num_dst, workspace_);
    }
  }

  template <typename T>
  void Take() const {
    const BatchKey& key = buffer_->key;
    const DropoutSite site{{key.random_seed, key.epoch, key.batch, /*layer=*/0},
                           buffer_->sample.nodes().data(),
                           options_.model.input_dropout};
    const auto count = static_cast<uint32_t>(buffer_->sample.nodes().size());
    buffer_->input.x = RowsAs<T>(raw_, count, workspace_);
    workspace_->operators().rows<T>().dropout(DropoutOf<T>(site, buffer_->input.x), count,
                                              workspace_);
  }

  const TrainOptions& options_;
  const RowTable& raw_;
  ExtractBuffer* buffer_;
  Workspace* workspace_;
};

}  // namespace

Result<DeviceFeatures> DeviceFeatures::Load(const TrainOptions& options) {
  const Device& device = *options.device.device;
  DeviceFeatures made;
  made.features_ = options.features;
  made.seen_ = options.device.features_seen;
  made.ranked_rows_ = options.host_features.num_rows();
  const uint64_t row_bytes = options.features.row_bytes();
  const uint64_t fit =
      std::min<uint64_t>(options.device.cache_bytes / row_bytes, options.hot_order.size());
  const bool is_placed = !options.device.placement.lines.empty();
  made.placement_ = is_placed ? options.device.placement : RowPlacement::Prefix(fit);
  const auto own = GNND_VALUE(made.placement_.OwnNodes(options.hot_order));
  const std::span<const uint32_t> order = own;
  made.cache_rows_ = order.size();
  for (const RowPlacement::Line& line : made.placement_.lines) {
    made.places_ += static_cast<uint32_t>(line.places.size());
  }
  if (made.cache_rows_ > 0 || is_placed || (made.seen_ != nullptr && made.ranked_rows_ > 0)) {
    made.node_ranks_ = options.hot_ranks;
  }
  // Kernels take a limited number of lines and places, of which the host needs one each.
  if (made.placement_.lines.size() >= GNND_DEVICE_ROW_LINES ||
      made.places_ >= GNND_DEVICE_ROW_PLACES) {
    return Status(Code::kInvalidArgument,
                  "placement of feature rows: " + std::to_string(made.placement_.lines.size()) +
                      " lines with " + std::to_string(made.places_) + " places");
  }
  for (const uint32_t node : order) {
    if (node < options.features.num_rows()) continue;
    return Status(Code::kInvalidArgument,
                  "hot_order: node " + std::to_string(node) + " is not in the graph");
  }
  const bool is_shared = is_placed && options.device.shares != nullptr && !order.empty();
  const uint64_t all_bytes = order.size() * row_bytes;
  if (is_shared) {
    Result<SharedDeviceBuffer> shared =
        SharedDeviceBuffer::Allocate(device, all_bytes, DevicePurpose::kCache);
    if (shared.status().code() == Code::kDeviceMemory) {
      // Readers of a dead Trainer's rows still map its memory, some until their next batch, which
      // may wait for this Trainer. Rows decide no bit, so it begins without its own.
      static_cast<void>(std::fprintf(stderr, "gnnd.cache: no rows on this device: %s\n",
                                     shared.status().message().c_str()));
      made.cache_rows_ = 0;
      return made;
    }
    made.shared_ = GNND_VALUE(std::move(shared));
  } else {
    made.cache_ =
        GNND_VALUE(DeviceBuffer<std::byte>::Allocate(device, all_bytes, DevicePurpose::kCache));
  }
  const std::unique_ptr<DeviceStream> stream = GNND_VALUE(DeviceStream::Create(device));
  const uint64_t part = std::max<uint64_t>(1, kPartBytes / row_bytes);
  std::vector<std::byte> rows(std::min<uint64_t>(part, order.size()) * row_bytes);
  for (uint64_t begin = 0; begin < order.size(); begin += part) {
    const auto nodes = order.subspan(begin, std::min<uint64_t>(part, order.size() - begin));
    if (options.features_on_disk) AskForRows(options.features, nodes);
    gnnd::CopyRows(options.features, nodes, rows.data());
    const uint64_t bytes = nodes.size() * row_bytes;
    GNND_TRY(stream->StageIn<std::byte>({made.memory() + begin * row_bytes, bytes},
                                        {rows.data(), bytes}));
  }
  GNND_TRY(stream->Synchronize());
  if (is_shared) {
    const uint32_t owner = options.device.incarnation;
    options.device.shares->Publish(made.placement_.device,
                                   {owner, all_bytes, made.shared_.handle()});
  }
  return made;
}

gnnd_device_row_tiers DeviceFeatures::tiers() const {
  gnnd_device_row_tiers tiers{};
  std::vector<const void*> places;
  for (const RowPlacement::Line& line : placement_.lines) {
    places.clear();
    for (const RowPlacement::Place& place : line.places) {
      const bool is_own = place.device == placement_.device && memory() != nullptr;
      places.push_back(is_own ? memory() + place.row * row_bytes() : nullptr);
    }
    AddLine(&tiers, line.from, line.to, places);
  }
  if (ranked_rows_ == 0) {
    tiers.by_node = seen_;
  } else if (seen_ != nullptr) {
    AddPrefix(&tiers, ranked_rows_, seen_);
  }
  return tiers;
}

std::vector<gnnd_device_gather> GathersOf(const gnnd_device_gather& all, uint32_t host_place,
                                          uint64_t kept_rows, uint64_t bus_rows,
                                          const uint32_t* bus_positions) {
  std::vector<gnnd_device_gather> gathers;
  if (kept_rows > 0) {
    gnnd_device_gather& kept = gathers.emplace_back(all);
    for (uint32_t p = host_place; p < kept.tiers.places; ++p) kept.tiers.place[p] = nullptr;
    kept.tiers.by_node = nullptr;
  }
  if (bus_rows > 0) {
    gnnd_device_gather& bus = gathers.emplace_back(all);
    bus.positions = bus_positions;
    bus.count = bus_rows;
    bus.blocks = kBusBlocks;
  }
  return gathers;
}

RankedNodes DeviceReader::Ranked(const RankedNodes& given) {
  const std::span<const uint32_t> ranks = features_.node_ranks();
  if (!given.ranks.empty() || ranks.empty()) return given;
  looked_up_.resize(given.nodes.size());
  std::ranges::transform(given.nodes, looked_up_.begin(),
                         [ranks](uint32_t node) { return ranks[node]; });
  return {given.nodes, looked_up_};
}

void DeviceReader::Sort(const FeatureStore& store, const RankedNodes& given) {
  bus_positions_.clear();
  positions_.clear();
  nodes_.clear();
  ranks_.clear();
  ways_ = Ways();
  uint64_t found[GNND_DEVICE_ROW_PLACES] = {};
  const uint32_t host = features_.places();
  for (uint32_t i = 0; i < given.nodes.size(); ++i) {
    const uint32_t rank = given.ranks.empty() ? kNoRank : given.ranks[i];
    const RowSpot spot = SpotOf(tiers_, rank);
    if (spot.index < host) {
      ++found[spot.index];
      continue;
    }
    const Tier kind = store.tiers()[store.PlaceOf(given.nodes[i], rank).tier].kind;
    ++ways_.traffic.rows[static_cast<uint32_t>(kind)];
    if (spot.index != kNoSpot || tiers_.by_node != nullptr) {
      bus_positions_.push_back(i);
      continue;
    }
    positions_.push_back(i);
    nodes_.push_back(given.nodes[i]);
    ranks_.push_back(rank);
  }
  Account(found);
}

void DeviceReader::Tell(ExtractReport* report) const {
  report->traffic = ways_.traffic;
  report->staged_rows = positions_.size();
  report->staged_bytes = positions_.size() * features_.row_bytes();
  report->bus_rows = bus_positions_.size();
  report->bus_bytes = bus_positions_.size() * features_.row_bytes();
  report->row_wait_ns = static_cast<uint64_t>(ways_.wait_ns + 0.5);
}

// Counts rows by the place where they were found, and the host's rows.
void DeviceReader::Account(std::span<const uint64_t> found) {
  const RowPlacement& placement = features_.placement();
  uint64_t* const rows = ways_.traffic.rows;
  const auto host_rows = static_cast<double>(bus_positions_.size() + positions_.size());
  ways_.wait_ns = placement.host_row_ns * host_rows;
  uint32_t at = 0;
  for (const RowPlacement::Line& line : placement.lines) {
    for (const RowPlacement::Place& place : line.places) {
      const uint64_t here = found[at++];
      const bool is_own = place.device == placement.device;
      rows[static_cast<uint32_t>(is_own ? Tier::kDevice : Tier::kPeer)] += here;
      if (is_own || place.device >= placement.row_ns.size()) continue;
      ways_.wait_ns += placement.row_ns[place.device] * static_cast<double>(here);
    }
  }
  for (uint32_t kind = 0; kind < kNumTiers; ++kind) {
    ways_.traffic.bytes[kind] = rows[kind] * features_.row_bytes();
  }
}

void DeviceReader::Read(const FeatureStore& store, const RankedNodes& given,
                        const RankedNodes& copy, TrainStream* stream, Workspace* workspace,
                        std::byte* out) {
  if (peers_ != nullptr) peers_->Refresh(&tiers_);
  const RankedNodes read = Ranked(given);
  // The host has the nodes, too, so nobody waits for the device to list its misses.
  Sort(store, read);
  const SampleCopy copies(stream, workspace);
  const uint64_t row_bytes = features_.row_bytes();
  if (positions_.size() < read.nodes.size()) {
    gnnd_device_gather gather{};
    gather.row_bytes = static_cast<uint32_t>(row_bytes);
    gather.out_stride = row_bytes;
    gather.tiers = tiers_;
    gather.nodes = (copy.nodes.empty() ? copies.Copied(read.nodes) : copy.nodes).data();
    gather.ranks = (copy.ranks.empty() ? copies.Copied(read.ranks) : copy.ranks).data();
    gather.count = read.nodes.size();
    gather.out = out;
    const std::span<const uint32_t> over_bus(bus_positions_);
    const uint64_t kept = read.nodes.size() - over_bus.size() - positions_.size();
    // If all rows come over the bus, no list of positions is needed.
    const bool is_mixed = !over_bus.empty() && over_bus.size() < read.nodes.size();
    const uint32_t* const bus = is_mixed ? copies.Copied(over_bus).data() : nullptr;
    for (const auto& part : GathersOf(gather, features_.places(), kept, over_bus.size(), bus)) {
      stream->Launch(stream->table().gather, part);
    }
  }
  if (positions_.empty()) return;
  rows_.resize(positions_.size() * row_bytes);
  ReadRows(store, nodes_, ranks_, row_bytes, rows_.data());
  if (positions_.size() == read.nodes.size()) {
    return stream->CopyIn(out, rows_.data(), rows_.size());
  }
  gnnd_device_scatter scatter{};
  scatter.positions = copies.Copied(std::span<const uint32_t>(positions_)).data();
  scatter.count = positions_.size();
  scatter.rows = copies.Copied(std::span<const std::byte>(rows_)).data();
  scatter.row_bytes = static_cast<uint32_t>(row_bytes);
  scatter.out = out;
  scatter.out_stride = row_bytes;
  stream->Launch(stream->table().scatter, scatter);
}

at::Tensor FloatsOf(const RowTable& raw, uint64_t count, Workspace* workspace) {
  return RowsAs<float>(raw, count, workspace);
}

Sample CopyToDevice(const FeatureStore& store, const Sample& sample, DeviceReader* reader,
                    Workspace* workspace, at::Tensor* rows) {
  TrainStream& stream = TrainStream::Of(workspace->device());
  const Sample copy = SampleCopy(&stream, workspace).Of(sample);
  const RowTable& table = reader->features().table();
  const uint64_t count = sample.nodes().size();
  const uint64_t bytes = count * table.row_bytes();
  auto* const raw = workspace->Get<std::byte>(bytes);
  reader->Read(store, NodesOf(sample), NodesOf(copy), &stream, workspace, raw);
  *rows = FloatsOf(RowTable(table.type(), {raw, bytes}, table.dim()), count, workspace);
  return copy;
}

Status ExtractToDevice(const TrainOptions& options, const FeatureStore& store, const Sample& sample,
                       DeviceReader* reader, ExtractBuffer* buffer) {
  Workspace* const workspace = &buffer->memory;
  TrainStream& stream = TrainStream::Of(workspace->device());
  stream.BeginTiming();
  const SampleCopy copies(&stream, workspace);
  buffer->sample = copies.Of(sample);
  buffer->labels = copies.Copied(std::span<const uint32_t>(buffer->seeds.labels)).data();
  const uint64_t bytes = sample.nodes().size() * options.features.row_bytes();
  auto* const rows = workspace->Get<std::byte>(bytes);
  reader->Read(store, NodesOf(sample), NodesOf(buffer->sample), &stream, workspace, rows);
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
