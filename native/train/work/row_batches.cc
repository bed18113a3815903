#include "train/work/row_batches.h"

namespace gnnd {
namespace {

// The tier of rows that the host reads.
Tier TierHere(RowTier tier) { return tier == RowTier::kDisk ? Tier::kDisk : Tier::kHost; }

class Here final : public RowBatches {
 public:
  explicit Here(const RowInput& input) : RowBatches(input, CpuDevice()), input_(input) {}

  Status Bring(uint32_t number, const NextRuns& next) override { return Read(number, next); }
  Status BringEvaluated() override { return ReadEvaluated(); }
  RowBatch BatchOf(uint32_t number, bool training) const override {
    const RowBuffer& buffer = buffers_[number];
    return {buffer.tokens, buffer.key, buffer.nodes.data(), training};
  }
  const uint32_t* LabelsOf(uint32_t number) const override {
    return buffers_[number].targets.labels.data();
  }
  Status Tell(uint32_t number, ExtractReport* report) override {
    TellTraffic(number, TierHere(input_.options.tier), report);
    return Status::Ok();
  }

 private:
  const RowInput& input_;
};

// Batches whose rows the host reads and copies to a device.
class Sent : public RowBatches {
 public:
  Sent(const RowInput& input, DeviceRows* device)
      : RowBatches(input, device->pinned()), input_(input), device_(*device) {}

  Status Bring(uint32_t number, const NextRuns& next) override {
    GNND_TRY(Read(number, next));
    Put(number);
    return Status::Ok();
  }
  Status BringEvaluated() override {
    GNND_TRY(ReadEvaluated());
    Put(kEvaluated);
    return Status::Ok();
  }
  RowBatch BatchOf(uint32_t number, bool training) const override {
    const DeviceBatch& there = device_.batch(number);
    return {there.tokens, buffers_[number].key, there.nodes, training};
  }
  const uint32_t* LabelsOf(uint32_t number) const override { return device_.batch(number).labels; }
  Status Tell(uint32_t number, ExtractReport* report) override {
    TellTraffic(number, TierHere(input_.options.tier), report);
    const auto tier = static_cast<uint32_t>(TierHere(input_.options.tier));
    report->staged_rows = report->traffic.rows[tier];
    report->staged_bytes = report->traffic.bytes[tier];
    return TellDevice(number, report);
  }

 protected:
  Status TellDevice(uint32_t number, ExtractReport* report) {
    report->work_bytes += device_.reserved_bytes();
    report->cache_rows = device_.held_rows();
    report->device_ns = device_.batch(number).device_ns;
    if (IsUseDue(extracted_++)) report->device = GNND_VALUE(input_.options.device->Use());
    return Status::Ok();
  }

  const RowInput& input_;
  DeviceRows& device_;

 private:
  void Put(uint32_t number) {
    const RowBuffer& buffer = buffers_[number];
    device_.Put(number, buffer.tokens, buffer.nodes, buffer.targets.labels);
  }

  uint64_t extracted_ = 0;
};

// Batches of rows that the device holds: the training rows, or those of all splits.
class Held final : public Sent {
 public:
  using Sent::Sent;

  Status Bring(uint32_t number, const NextRuns&) override {
    Gather(number);
    return Status::Ok();
  }
  Status BringEvaluated() override {
    if (device_.held_rows() <= input_.options.train) return Sent::BringEvaluated();
    Gather(kEvaluated);
    return Status::Ok();
  }
  Status Tell(uint32_t number, ExtractReport* report) override {
    TellTraffic(number, Tier::kDevice, report);
    return TellDevice(number, report);
  }

 private:
  void Gather(uint32_t number) {
    RowBuffer* const buffer = &buffers_[number];
    reader_.ReadTargets(buffer);
    device_.Gather(number, buffer->rows, buffer->nodes, buffer->targets.labels);
  }
};

}  // namespace

// Reads a single run in stretches. There is no guess at what is evaluated next.
Status RowBatches::ReadEvaluated() {
  RowBuffer* const buffer = &buffers_[kEvaluated];
  if (buffer->runs.size() == 1) return reader_.ReadInStretches(buffer);
  return reader_.Read(buffer, [](uint32_t, std::vector<RowRun>*) {});
}

void RowBatches::TellTraffic(uint32_t number, Tier tier, ExtractReport* report) const {
  const uint64_t rows = buffers_[number].rows.size() * reader_.num_tokens();
  report->traffic.rows[static_cast<uint32_t>(tier)] += rows;
  report->traffic.bytes[static_cast<uint32_t>(tier)] += rows * reader_.row_bytes();
  report->work_bytes += reader_.memory_bytes();
  for (uint32_t b = 0; b < kExtractBuffers; ++b) {
    report->work_bytes += buffers_[b].memory.reserved_bytes();
  }
}

std::unique_ptr<RowBatches> HostRowBatches(const RowInput& input) {
  return std::make_unique<Here>(input);
}

std::unique_ptr<RowBatches> DeviceRowBatches(const RowInput& input, DeviceRows* device) {
  if (device->held_rows() > 0) return std::make_unique<Held>(input, device);
  return std::make_unique<Sent>(input, device);
}

}  // namespace gnnd
