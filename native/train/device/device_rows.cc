#include "train/device/device_rows.h"

#include <algorithm>
#include <utility>

#include "core/base/half.h"
#include "core/graph/npy.h"
#include "core/kernels/row_tiers.h"
#include "train/input/row_files.h"
#include "train/ops/ops.h"

namespace gnnd {
namespace {

// Bytes of rows that are read and copied at a time while loading.
constexpr uint64_t kPartBytes = uint64_t{16} << 20;

uint32_t ElementOf(NpyType type) {
  if (type == NpyType::kFloat32) return GNND_ELEMENT_FLOAT32;
  return type == NpyType::kFloat16 ? GNND_ELEMENT_FLOAT16 : GNND_ELEMENT_BFLOAT16;
}

std::span<const std::byte> BytesOf(const NpyArray& rows) {
  if (rows.type() == NpyType::kFloat32) return std::as_bytes(rows.values<float>());
  if (rows.type() == NpyType::kFloat16) return std::as_bytes(rows.values<Half>());
  return std::as_bytes(rows.values<Bfloat16>());
}

Status NeedsOfRows(const Device& device) {
  const gnnd_device_plugin& table = device.table();
  GNND_TRY(device.Needs(table.batch_norm, "batch_norm"));
  GNND_TRY(device.Needs(table.prelu, "prelu"));
  return device.Needs(table.token_attention, "token_attention");
}

}  // namespace

PinnedHost::PinnedHost(const Device& device) : device_(device) {
  train_device_.operators = CpuDevice().operators;
  train_device_.context = this;
  train_device_.allocate = [](void* context, uint64_t bytes) -> void* {
    auto* const self = static_cast<PinnedHost*>(context);
    Chunk chunk;
    chunk.memory = AnonymousOrThrow(bytes);
    auto registered =
        HostRegistration::Register(self->device_, {chunk.memory.data(), chunk.memory.size()});
    if (registered.ok()) chunk.registered = std::move(*registered);
    self->chunks_.push_back(std::move(chunk));
    return self->chunks_.back().memory.data();
  };
  train_device_.release = [](void* context, void* memory, uint64_t) {
    auto* const self = static_cast<PinnedHost*>(context);
    std::erase_if(self->chunks_, [&](Chunk& chunk) {
      if (chunk.memory.data() != memory) return false;
      chunk.registered.reset();  // before the chunk is unmapped
      return true;
    });
  };
}

Result<std::unique_ptr<DeviceRows>> DeviceRows::Create(const RowsOptions& options,
                                                       uint64_t num_floats) {
  GNND_TRY(NeedsOfRows(*options.device));
  std::unique_ptr<DeviceSide> side =
      GNND_VALUE(DeviceSide::Create(*options.device, num_floats, Precision::kFloat32));
  std::unique_ptr<DeviceRows> made(new DeviceRows(options, std::move(side)));
  if (options.tier == RowTier::kDevice) GNND_TRY(made->LoadRows());
  return made;
}

Status DeviceRows::LoadRows() {
  held_rows_ = options_.train;
  if (options_.device_splits == DeviceSplits::kAll) held_rows_ += options_.val + options_.test;
  for (const std::string& path : TokenPaths(options_)) GNND_TRY(LoadToken(path));
  return Status::Ok();
}

Status DeviceRows::LoadToken(const std::string& path) {
  const NpyArray file = GNND_VALUE(NpyArray::Open(path));
  GNND_TRY(file.Expect(
      {NpyType::kFloat32, NpyType::kFloat16, NpyType::kUint16},
      {options_.train + options_.val + options_.test, uint64_t{options_.model.in_dim}}));
  element_ = ElementOf(file.type());
  const std::span<const std::byte> all = BytesOf(file);
  const auto bytes = all.first(all.size() / file.shape()[0] * held_rows_);
  auto token = GNND_VALUE(
      DeviceBuffer<std::byte>::Allocate(*options_.device, bytes.size(), DevicePurpose::kCache));
  const std::unique_ptr<DeviceStream> stream = GNND_VALUE(DeviceStream::Create(*options_.device));
  for (uint64_t begin = 0; begin < bytes.size(); begin += kPartBytes) {
    const uint64_t count = std::min<uint64_t>(kPartBytes, bytes.size() - begin);
    GNND_TRY(
        stream->StageIn<std::byte>({token.data() + begin, count}, bytes.subspan(begin, count)));
  }
  GNND_TRY(stream->Synchronize());
  tokens_.push_back(std::move(token));
  return Status::Ok();
}

uint64_t DeviceRows::reserved_bytes() const {
  uint64_t total = 0;
  for (const Workspace& memory : memory_) total += memory.reserved_bytes();
  return total;
}

template <typename T>
T* DeviceRows::Copied(uint32_t number, std::span<const T> values) {
  T* const to = memory_[number].Get<T>(values.size());
  StreamOf(number).CopyIn(to, values.data(), values.size_bytes());
  return to;
}

DeviceBatch* DeviceRows::Begin(uint32_t number, std::span<const uint32_t> nodes,
                               std::span<const uint32_t> labels) {
  DeviceBatch* const batch = &batches_[number];
  batch->tokens.clear();
  memory_[number].Reset();
  StreamOf(number).BeginTiming();
  batch->nodes = Copied(number, nodes);
  // There are no labels if rows have other targets, whose loss the processor computes.
  batch->labels = labels.empty() ? nullptr : Copied(number, labels);
  return batch;
}

const DeviceBatch& DeviceRows::Put(uint32_t number, const std::vector<at::Tensor>& tokens,
                                   std::span<const uint32_t> nodes,
                                   std::span<const uint32_t> labels) {
  DeviceBatch* const batch = Begin(number, nodes, labels);
  for (const at::Tensor& token : tokens) {
    const std::span<const float> floats(token.const_data_ptr<float>(),
                                        static_cast<size_t>(token.numel()));
    batch->tokens.push_back(ViewOf(Copied(number, floats), token.size(0), token.size(1),
                                   memory_[number].device().where));
  }
  batch->device_ns = StreamOf(number).EndTiming();
  return *batch;
}

const DeviceBatch& DeviceRows::Gather(uint32_t number, std::span<const uint32_t> rows,
                                      std::span<const uint32_t> nodes,
                                      std::span<const uint32_t> labels) {
  DeviceBatch* const batch = Begin(number, nodes, labels);
  TrainStream& stream = StreamOf(number);
  Workspace& memory = memory_[number];
  const uint64_t columns = options_.model.in_dim;
  const uint64_t value_bytes = element_ == GNND_ELEMENT_FLOAT32 ? sizeof(float) : sizeof(Half);
  gnnd_device_gather gather{};
  gather.ranks = Copied(number, rows);
  gather.count = rows.size();
  gather.row_bytes = static_cast<uint32_t>(columns * value_bytes);
  gather.out_stride = gather.row_bytes;
  for (const DeviceBuffer<std::byte>& token : tokens_) {
    auto* const floats = memory.Get<float>(rows.size() * columns);
    const bool is_narrow = element_ != GNND_ELEMENT_FLOAT32;
    gather.tiers = {};
    AddPrefix(&gather.tiers, held_rows_, token.data());
    gather.out = is_narrow ? static_cast<void*>(memory.Get<Half>(rows.size() * columns)) : floats;
    stream.Launch(stream.table().gather, gather);
    if (is_narrow) {
      stream.Launch(stream.table().convert,
                    gnnd_device_convert{element_, GNND_ELEMENT_FLOAT32, rows.size() * columns,
                                        gather.out, floats});
    }
    batch->tokens.push_back(ViewOf(floats, static_cast<int64_t>(rows.size()),
                                   static_cast<int64_t>(columns), memory.device().where));
  }
  batch->device_ns = stream.EndTiming();
  return *batch;
}

}  // namespace gnnd
