#include "core/sample/device_sampler.h"

#include <algorithm>
#include <cstring>

#include "core/base/check.h"
#include "core/batch/record.h"

namespace gnnd {
namespace {

template <typename T>
Result<DeviceBuffer<T>> Copied(const Device& device, DeviceStream* stream,
                               std::span<const T> values) {
  DeviceBuffer<T> buffer =
      GNND_VALUE(DeviceBuffer<T>::Allocate(device, values.size(), DevicePurpose::kTopology));
  GNND_TRY(stream->StageIn(buffer.view(), values));
  return buffer;
}

}  // namespace

Result<std::unique_ptr<DeviceSampler>> DeviceSampler::Create(const Device& device,
                                                             const TopologyView& topology,
                                                             const SamplerOptions& options,
                                                             const RecordLayout& layout,
                                                             const Batches& batches) {
  GNND_TRY(device.Needs(device.table().sampler_create, "sampler"));
  if (options.algorithm == Algorithm::kPlugin) {
    return Status(Code::kDeviceUnavailable, "a user's sampler runs on CPU devices only");
  }
  if (options.locality.on()) {
    return Status(Code::kDeviceUnavailable, "locality-aware sampling runs on CPU devices only");
  }
  GNND_CHECK(layout.num_node_types() == 1 && layout.num_blocks() == layout.num_hops());
  std::unique_ptr<DeviceSampler> sampler(new DeviceSampler(device, layout, batches));
  GNND_TRY(sampler->Upload(topology, batches));
  const gnnd_device_sampler_config config = sampler->ConfigOf(topology, options, batches);
  gnnd_device_error error{};
  if (device.table().sampler_create(device.get(), &config, &sampler->sampler_, &error) !=
      GNND_DEVICE_OK) {
    return StatusOf(error);
  }
  return sampler;
}

DeviceSampler::~DeviceSampler() {
  // Waits for work under way, so that no slot is written any more.
  if (sampler_ != nullptr) device_.table().sampler_destroy(sampler_);
}

Status DeviceSampler::Upload(const TopologyView& topology, const Batches& batches) {
  const std::unique_ptr<DeviceStream> stream = GNND_VALUE(DeviceStream::Create(device_));
  indptr_ = GNND_VALUE(Copied(device_, stream.get(), topology.indptr));
  indices_ = GNND_VALUE(Copied(device_, stream.get(), topology.indices));
  alias_ = GNND_VALUE(Copied(device_, stream.get(), topology.alias));
  ranks_ = GNND_VALUE(Copied(device_, stream.get(), batches.ranks));
  return stream->Synchronize();
}

gnnd_device_sampler_config DeviceSampler::ConfigOf(const TopologyView& topology,
                                                   const SamplerOptions& options,
                                                   const Batches& batches) const {
  gnnd_device_sampler_config config{};
  config.random_seed = random_seed_;
  config.num_nodes = topology.num_nodes();
  config.num_edges = topology.num_edges();
  for (uint32_t v = 0; v < topology.num_nodes(); ++v) {
    config.max_degree = std::max(config.max_degree, topology.degree(v));
  }
  config.indptr = indptr_.data();
  config.indices = indices_.data();
  config.alias = alias_.data();
  config.train_nodes = batches.train_nodes.data();
  config.num_train = batches.train_nodes.size();
  config.batch_size = batches.batch_size;
  config.algorithm = static_cast<uint32_t>(options.algorithm);
  config.weights = static_cast<uint32_t>(options.weights);
  config.replace = options.replace ? 1 : 0;
  config.expansion = static_cast<uint32_t>(options.expansion);
  config.walks = options.walk.walks;
  config.walk_length = options.walk.length;
  config.labor_window = options.labor.dependency_window;
  config.restart_prob = options.walk.restart_prob;
  config.num_hops = layout_.num_hops();
  config.max_nodes = layout_.nodes().max_nodes;
  for (uint32_t h = 0; h < config.num_hops; ++h) {
    const BlockLayout& hop = layout_.block(h);
    config.hops[h] = {hop.fanout,    hop.max_dst, hop.max_edges, 0,
                      hop.indptr_at, hop.src_at,  hop.weight_at, hop.self_weight_at};
  }
  config.nodes_at = layout_.nodes().nodes_at;
  if (ranks_.size() > 0) {
    config.ranks = ranks_.data();
    config.ranks_at = layout_.nodes().ranks_at;
  }
  config.slot_bytes = layout_.slot_bytes();
  config.depth = batches.depth;
  config.force_hash = batches.hash ? 1 : 0;
  return config;
}

Status DeviceSampler::Start(uint32_t epoch, uint32_t batch, std::span<std::byte> slot) {
  GNND_CHECK(slot.size() >= layout_.slot_bytes());
  // A slot that is being written must not look like the record it held before.
  std::memset(slot.data(), 0, sizeof(uint64_t));
  gnnd_device_error error{};
  if (device_.table().sample_start(sampler_, epoch, batch, &error) != GNND_DEVICE_OK) {
    return StatusOf(error);
  }
  started_.push_back({epoch, batch, slot});
  return Status::Ok();
}

Status DeviceSampler::Finish(gnnd_device_sample_report* report) {
  GNND_CHECK(!started_.empty());
  const Started first = started_.front();
  started_.erase(started_.begin());
  gnnd_device_error error{};
  if (device_.table().sample_finish(sampler_, first.slot.data(), report, &error) !=
      GNND_DEVICE_OK) {
    return StatusOf(error);
  }
  RecordTables tables;
  tables.Begin(SampleKind::kBlocks, {random_seed_, first.epoch, first.batch});
  tables.header.shares_rows = layout_.shares_rows() ? 1 : 0;
  const NodesLayout& nodes = layout_.nodes();
  tables.nodes = {{kRecordIdBytes, report->num_nodes, report->num_seeds, 0, nodes.nodes_at,
                   ranks_.size() > 0 ? nodes.ranks_at : 0}};
  for (uint32_t h = 0; h < layout_.num_blocks(); ++h) {
    const BlockLayout& place = layout_.block(h);
    const gnnd_device_sample_hop& hop = report->hops[h];
    tables.blocks.push_back({h, 0, 0, 0, hop.num_dst, hop.num_src, hop.num_edges, kRecordIdBytes,
                             place.indptr_at, place.src_at, place.weight_at, place.self_weight_at});
  }
  WriteTables(&tables, first.slot);
  return Status::Ok();
}

}  // namespace gnnd
