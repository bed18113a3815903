#include "train/work/block_training.h"

#include <optional>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "train/device/device_extraction.h"
#include "train/input/extraction.h"
#include "train/ops/parallel.h"
#include "train/work/compute_side.h"

namespace gnnd {
namespace {

// Brings the rows of samples to the place that computes with them.
class RowBringer {
 public:
  virtual ~RowBringer() = default;
  // The device whose memory the buffers have.
  virtual const TrainDevice& device() const = 0;
  virtual Status Read(const Sample& sample, ExtractBuffer* buffer) = 0;
  // Reports how the rows of this sample came, which was read last.
  virtual Status Tell(const Sample& sample, ExtractReport* report) = 0;
};

class HostReader final : public RowBringer {
 public:
  explicit HostReader(const BlockInput& input) : input_(input) {}

  const TrainDevice& device() const override { return CpuDevice(); }
  Status Read(const Sample& sample, ExtractBuffer* buffer) override {
    return ExtractRows(input_.options, input_.store, sample, buffer);
  }
  Status Tell(const Sample& sample, ExtractReport* report) override {
    report->cache_rows = input_.store.most_cache_rows();
    report->cache_given_up_rows = report->cache_rows - input_.store.cache_rows();
    report->traffic = input_.store.TrafficOf(sample.nodes(), sample.ranks());
    return Status::Ok();
  }

 private:
  const BlockInput& input_;
};

class DeviceRowsReader final : public RowBringer {
 public:
  DeviceRowsReader(const BlockInput& input, DeviceSide* device)
      : input_(input), device_(*device), reader_(device->features(), Peers()) {}

  const TrainDevice& device() const override { return device_.extract().train_device(); }
  Status Read(const Sample& sample, ExtractBuffer* buffer) override {
    return ExtractToDevice(input_.options, input_.store, sample, &reader_, buffer);
  }
  Status Tell(const Sample&, ExtractReport* report) override {
    report->cache_rows = device_.features().cache_rows();
    reader_.Tell(report);
    if (IsUseDue(extracted_++)) report->device = GNND_VALUE(device_.device().Use());
    return Status::Ok();
  }

 private:
  // The devices whose rows this one reads beside its own; null if nobody shares any.
  PeerRows* Peers() {
    const RowShares* const shares = input_.options.device.shares;
    if (shares == nullptr) return nullptr;
    return &peers_.emplace(device_.device(), device_.features().placement(),
                           input_.options.features.row_bytes(), *shares);
  }

  const BlockInput& input_;
  DeviceSide& device_;
  std::optional<PeerRows> peers_;
  DeviceReader reader_;
  uint64_t extracted_ = 0;
};

class OnBlocks final : public Training {
 public:
  OnBlocks(const BlockTrainer& parts, std::unique_ptr<RowBringer> rows)
      : parts_(parts),
        rows_(std::move(rows)),
        buffers_{ExtractBuffer(rows_->device()), ExtractBuffer(rows_->device())} {}

  bool keeps_history() const override { return parts_.history->kept() != nullptr; }
  Status BringHistoryTo(const BatchPoint& point) override {
    return parts_.history->BringTo(point, &parts_.input->store);
  }

  Status Extract(const Sample& sample, uint32_t number, ExtractReport* report) override {
    ExtractBuffer* const buffer = &buffers_[number];
    UseTeamOf(parts_.input->options.threads);
    GNND_TRY(BeginExtraction(parts_.input->options, sample, buffer));
    GNND_TRY(parts_.task->Read(sample, buffer));
    const Sample& read = parts_.history->Prune(sample, &report->history);
    GNND_TRY(rows_->Read(read, buffer));
    report->device_ns = buffer->device_ns;
    report->cache_fill_ns = parts_.input->cache_fill_ns;
    report->work_bytes = parts_.side->told_bytes();
    for (const ExtractBuffer& each : buffers_) report->work_bytes += each.memory.reserved_bytes();
    return rows_->Tell(read, report);
  }

  Status ComputeGradient(const Sample& sample, uint32_t number, const ParametersView& parameters,
                         std::span<float> gradient, BatchReport* report) override {
    const ExtractBuffer& extracted = buffers_[number];
    const BottomInput& input = extracted.input;
    GNND_CHECK(input.x.defined() || input.aggregated.defined());
    GNND_CHECK(extracted.key.epoch == sample.key().epoch &&
               extracted.key.batch == sample.key().batch);
    Workspace* const memory = &parts_.side->memory();
    memory->Reset();
    const auto compute = [&] {
      const std::vector<at::Tensor> leaves = parts_.model->Leaves(
          extracted.key, parts_.side->Parameters(parameters), parts_.side->where());
      const at::Tensor rows =
          parts_.model->Forward(leaves, extracted.sample, input, memory, parts_.history->kept());
      const BlockTask& task = *parts_.task;
      const at::Tensor outputs = task.Outputs({sample, leaves, memory}, rows).contiguous();
      const auto loss = [&](const at::Tensor& grad, BatchReport* told) {
        return task.Loss({sample, extracted, memory}, outputs, grad, told);
      };
      GNND_TRY(parts_.side->WriteGradient({parts_.model->manifest(), leaves, outputs, loss},
                                          gradient, report));
      report->history = parts_.history->Update();
      return Status::Ok();
    };
    return parts_.side->RunTimed(compute, &report->device_ns);
  }

 private:
  const BlockTrainer parts_;
  std::unique_ptr<RowBringer> rows_;
  ExtractBuffer buffers_[kExtractBuffers];
};

}  // namespace

std::unique_ptr<Training> BlockTraining(const BlockTrainer& parts) {
  return std::make_unique<OnBlocks>(parts, std::make_unique<HostReader>(*parts.input));
}

std::unique_ptr<Training> BlockTraining(const BlockTrainer& parts, DeviceSide* device) {
  return std::make_unique<OnBlocks>(parts,
                                    std::make_unique<DeviceRowsReader>(*parts.input, device));
}

}  // namespace gnnd
