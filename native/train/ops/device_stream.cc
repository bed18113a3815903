#include "train/ops/device_stream.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include "train/ops/torch_failure.h"

namespace gnnd {
namespace {

// Checks for every function that operators and extraction call.
Status NeedsOfTraining(const Device& device) {
  const gnnd_device_plugin& table = device.table();
  GNND_TRY(device.Needs(table.gather, "gather"));
  GNND_TRY(device.Needs(table.scatter, "scatter"));
  GNND_TRY(device.Needs(table.convert, "convert"));
  GNND_TRY(device.Needs(table.spmm, "spmm"));
  GNND_TRY(device.Needs(table.transpose, "transpose"));
  GNND_TRY(device.Needs(table.take, "take"));
  GNND_TRY(device.Needs(table.mean_scales, "mean_scales"));
  GNND_TRY(device.Needs(table.dropout, "dropout"));
  GNND_TRY(device.Needs(table.dropout_gradient, "dropout_gradient"));
  GNND_TRY(device.Needs(table.sum_rows, "sum_rows"));
  GNND_TRY(device.Needs(table.loss, "loss"));
  GNND_TRY(device.Needs(table.attention, "attention"));
  GNND_TRY(device.Needs(table.drop_attention, "drop_attention"));
  GNND_TRY(device.Needs(table.score_sums, "score_sums"));
  GNND_TRY(device.Needs(table.heads, "heads"));
  GNND_TRY(device.Needs(table.activation, "activation"));
  return device.Needs(table.norm, "norm");
}

// An executor sees only the GPU that it works on.
c10::Device Gpu() { return {c10::kCUDA, 0}; }

// kDeviceUnavailable if torch has no CUDA.
Result<c10::Stream> StreamOfTorch(const Device& device) {
  try {
    const c10::impl::VirtualGuardImpl torch(c10::kCUDA);
    return torch.getStreamFromGlobalPool(Gpu(), /*isHighPriority=*/false);
  } catch (const c10::Error& error) {
    const Status status = StatusOfTorch(error, &device, Code::kDeviceUnavailable);
    if (status.code() != Code::kDeviceUnavailable) return status;
    return Status(status.code(), "torch cannot use the GPU: " + status.message() +
                                     "; install a PyTorch that was built with CUDA");
  }
}

}  // namespace

TrainStream::TrainStream(const Device& device, const Operators& operators) : device_(device) {
  train_device_.where = on_host() ? c10::Device(c10::kCPU) : Gpu();
  train_device_.operators = &operators;
  train_device_.context = this;
  train_device_.allocate = [](void* context, uint64_t bytes) {
    const Device& on = static_cast<TrainStream*>(context)->device_;
    void* memory = nullptr;
    gnnd_device_error error{};
    if (on.table().allocate(on.get(), bytes, GNND_PURPOSE_WORKSPACE, &memory, &error) !=
        GNND_DEVICE_OK) {
      throw DeviceError(StatusOf(error));
    }
    return memory;
  };
  train_device_.release = [](void* context, void* memory, uint64_t) {
    auto* const self = static_cast<TrainStream*>(context);
    // Work that still uses the memory must end first; after a sticky error there is none.
    self->Drain();
    self->device_.table().release(self->device_.get(), memory);
  };
}

Result<std::unique_ptr<TrainStream>> TrainStream::Create(const Device& device, Use use,
                                                         const Operators& operators) {
  GNND_TRY(NeedsOfTraining(device));
  std::unique_ptr<TrainStream> made(new TrainStream(device, operators));
  if (use == Use::kCompute && !made->on_host()) {
    made->torch_ = GNND_VALUE(StreamOfTorch(device));
    made->stream_ = GNND_VALUE(DeviceStream::Adopt(device, made->torch_->native_handle()));
  } else {
    made->stream_ = GNND_VALUE(DeviceStream::Create(device, /*is_high=*/use == Use::kExtract));
  }
  made->begun_ = GNND_VALUE(DeviceEvent::Create(device, /*is_timed=*/true));
  made->ended_ = GNND_VALUE(DeviceEvent::Create(device, /*is_timed=*/true));
  return made;
}

void TrainStream::Copy(void* to, const void* from, uint64_t bytes, uint32_t direction) {
  if (bytes == 0) return;
  gnnd_device_error error{};
  uint32_t code = table().copy(stream_->get(), to, from, bytes, direction, &error);
  if (code == GNND_DEVICE_NOT_REGISTERED) {
    code = table().copy_staged(stream_->get(), to, from, bytes, direction, &error);
  }
  if (code != GNND_DEVICE_OK) throw DeviceError(StatusOf(error));
  if (on_host()) Synchronize();
}

void TrainStream::CopyIn(void* to, const void* from, uint64_t bytes) {
  Copy(to, from, bytes, GNND_COPY_TO_DEVICE);
}

void TrainStream::CopyOut(void* to, const void* from, uint64_t bytes) {
  Copy(to, from, bytes, GNND_COPY_TO_HOST);
}

void TrainStream::Fill(void* to, uint8_t byte, uint64_t bytes) {
  if (const Status status = stream_->Fill(to, byte, bytes); !status.ok()) {
    throw DeviceError(status);
  }
  if (on_host()) Synchronize();
}

void TrainStream::Synchronize() {
  const Status status = stream_->Synchronize();
  if (!status.ok()) throw DeviceError(status);
}

void TrainStream::BeginTorch() {
  gnnd_device_error error{};
  if (table().begin_foreign(stream_->get(), &error) != GNND_DEVICE_OK) ThrowAsTorch(error);
}

void TrainStream::BeginTiming() {
  const Status status = begun_->Record(*stream_);
  if (!status.ok()) throw DeviceError(status);
}

uint64_t TrainStream::EndTiming() {
  const Status status = ended_->Record(*stream_);
  if (!status.ok()) throw DeviceError(status);
  Synchronize();
  const Result<uint64_t> ns = ended_->Since(*begun_);
  if (!ns.ok()) throw DeviceError(ns.status());
  return *ns;
}

TrainStream::Current::Current(const TrainStream& stream) {
  if (!stream.torch_.has_value()) return;
  before_ = c10::impl::VirtualGuardImpl(c10::kCUDA).exchangeStream(*stream.torch_);
}

TrainStream::Current::~Current() {
  if (before_.has_value()) {
    static_cast<void>(c10::impl::VirtualGuardImpl(c10::kCUDA).exchangeStream(*before_));
  }
}

}  // namespace gnnd
