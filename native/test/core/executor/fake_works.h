#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <functional>
#include <span>
#include <vector>

#include "core/base/check.h"
#include "core/batch/record.h"
#include "core/executor/sample_work.h"
#include "core/executor/train_work.h"
#include "core/ledger/segment.h"
#include "core/metric/metric.h"
#include "core/metric/ranking.h"

// Work without graphs and without torch, for tests of the rules: cheap, deterministic, and so
// touchy that a batch lost, repeated, swapped, or computed on another version ends in other
// parameters.

namespace gnnd::test {

inline constexpr uint64_t kFakeFloats = 37;
inline constexpr uint64_t kFakeSlotBytes = 4 * kPageBytes;

inline uint64_t Mix(uint64_t x) {
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ x >> 27) * 0x94D049BB133111EBULL;
  return x ^ x >> 31;
}

// Who works on a device at this moment, to see that a Sampler and a standby never do at once.
struct DeviceWatch {
  enum Side { kSamples = 0, kTrains = 1 };

  std::atomic<int> busy[kMaxDevices][2] = {};
  std::atomic<int> collisions{0};

  // Sequentially consistent: of two that begin at once at least one sees the other.
  void Begin(uint32_t device, Side side) {
    busy[device][side].fetch_add(1);
    if (busy[device][1 - side].load() != 0) collisions.fetch_add(1);
  }
  void End(uint32_t device, Side side) { busy[device][side].fetch_sub(1); }
};

// The input nodes of a batch, of which there are between one per seed and 40 more.
inline std::vector<uint32_t> FakeNodes(uint32_t epoch, uint32_t batch, uint64_t seeds) {
  const uint64_t key = Mix(uint64_t{epoch} << 32 | batch);
  std::vector<uint32_t> nodes(seeds + 1 + key % 40);
  for (size_t i = 0; i < nodes.size(); ++i) nodes[i] = static_cast<uint32_t>(Mix(key + i));
  return nodes;
}

class FakeSampleWork final : public SampleWork {
 public:
  explicit FakeSampleWork(const Segment& segment, DeviceWatch* watch = nullptr, uint32_t device = 0)
      : segment_(segment), watch_(watch), device_(device) {}

  // As on a device that copies a record while it computes the next: a record of depth 2 is half
  // made when Start returns.
  uint32_t work_depth = 1;
  std::function<void(uint32_t epoch, uint32_t batch)> before;  // runs first
  std::function<void(const SampleTask&)> sees;                 // likewise
  uint32_t most_started = 0;                                   // at once
  bool abandoned = false;

  uint32_t depth() const override { return work_depth; }

  Status Start(const SampleTask& task) override {
    if (before) before(task.epoch, task.batch);
    if (sees) sees(task);
    if (watch_ != nullptr) watch_->Begin(device_, DeviceWatch::kSamples);
    most_started = std::max(most_started, ++started_);
    const std::vector<uint32_t> nodes = NodesOf(task);
    std::copy(nodes.begin(), nodes.end(), SectionOf(task, 1));
    return Status::Ok();
  }

  Status Finish(const SampleTask& task, SampleReport* report) override {
    const uint64_t seeds = segment_.SeedsOfBatch(task.batch);
    const std::vector<uint32_t> nodes = NodesOf(task);
    // A slot that another batch was written to meanwhile is seen by its Trainer.
    const auto edges = static_cast<uint32_t>(nodes.size() - seeds);
    for (uint64_t d = 0; d <= seeds; ++d) SectionOf(task, 2)[d] = d == 0 ? 0 : edges;
    for (uint32_t e = 0; e < edges; ++e) SectionOf(task, 3)[e] = static_cast<uint32_t>(seeds) + e;
    RecordTables tables;
    tables.Begin(SampleKind::kBlocks, {0, task.epoch, task.batch});
    const NodeEntry list{
        4, static_cast<uint32_t>(nodes.size()), static_cast<uint32_t>(seeds), 0, kPageBytes, 0};
    tables.nodes = {list};
    BlockEntry& block = tables.blocks.emplace_back();
    block.id_bytes = 4;
    block.num_dst = list.num_seeds;
    block.num_src = list.num_nodes;
    block.num_edges = edges;
    block.indptr_at = 2 * kPageBytes;
    block.src_at = 3 * kPageBytes;
    // Last: a half made record is none.
    WriteTables(&tables, task.slot);
    *report = SampleReport{.payload_bytes = tables.header.payload_bytes,
                           .extent_bytes = tables.header.extent_bytes,
                           .nodes = nodes.size(),
                           .edges = edges,
                           .seeds = seeds};
    --started_;
    if (watch_ != nullptr) watch_->End(device_, DeviceWatch::kSamples);
    return Status::Ok();
  }

  void Abandon() override { abandoned = true; }

 private:
  std::vector<uint32_t> NodesOf(const SampleTask& task) const {
    return FakeNodes(task.epoch, task.batch, segment_.SeedsOfBatch(task.batch));
  }
  static uint32_t* SectionOf(const SampleTask& task, uint64_t page) {
    return reinterpret_cast<uint32_t*>(task.slot.data()) + page * kPageBytes / 4;
  }

  uint32_t started_ = 0;
  const Segment& segment_;
  DeviceWatch* watch_;
  uint32_t device_;
};

// What chunks of an evaluation leave for later phases; shared by all Trainers of a crew, also by
// processes that are forked off later.
class FakeScratch {
 public:
  static constexpr uint32_t kPhases = 2;
  static constexpr uint32_t kChunks = 3;

  FakeScratch() {
    void* memory =
        mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    GNND_CHECK(memory != MAP_FAILED);
    rows_ = static_cast<std::atomic<uint64_t>*>(memory);
  }
  ~FakeScratch() { munmap(rows_, kPageBytes); }
  FakeScratch(const FakeScratch&) = delete;
  FakeScratch& operator=(const FakeScratch&) = delete;

  // Relaxed: what orders a row and its readers is the ledger.
  uint64_t row(uint32_t chunk) const { return rows_[chunk].load(std::memory_order_relaxed); }
  void set_row(uint32_t chunk, uint64_t value) {
    rows_[chunk].store(value, std::memory_order_relaxed);
  }

 private:
  std::atomic<uint64_t>* rows_;
};

class FakeTrainWork : public TrainWork {
 public:
  // Without a scratch nothing may be evaluated.
  explicit FakeTrainWork(FakeScratch* scratch = nullptr, DeviceWatch* watch = nullptr,
                         uint32_t device = 0)
      : scratch_(scratch), watch_(watch), device_(device) {}

  std::function<void(uint32_t epoch, uint32_t batch)> before_gradient;
  std::function<void(uint32_t epoch, uint32_t batch)> during_gradient;  // the device is in use
  std::function<void(uint32_t epoch, uint32_t batch)> during_extract;   // on the extracting thread
  std::atomic<int> predictions{0};
  std::function<void(const EvalTask& task, const Alive& alive)> during_evaluation;
  // May spoil what comes out: a batch's gradient, a step's parameters.
  std::function<void(uint32_t epoch, uint32_t batch, std::span<float> gradient)> after_gradient;
  std::function<void(uint64_t step, std::span<float> parameters)> after_apply;
  std::atomic<int> torn{0};  // parameters or records that changed while they were read

  void InitParameters(std::span<float> parameters) override {
    for (size_t i = 0; i < parameters.size(); ++i) {
      parameters[i] = static_cast<float>(Mix(i + 1) % 1000) * 1e-3F - 0.5F;
    }
  }

  Status Extract(const Sample& sample, uint32_t buffer, ExtractReport* report) override {
    if (watch_ != nullptr) watch_->Begin(device_, DeviceWatch::kTrains);
    Extracted& extracted = extracted_[buffer];
    extracted.key = sample.key();
    if (sample.kind() == SampleKind::kRows) {
      extracted.nodes = FakeNodes(sample.key().epoch, sample.key().batch, sample.num_seeds());
    } else {
      extracted.nodes.assign(sample.nodes().begin(), sample.nodes().end());
    }
    if (during_extract) during_extract(extracted.key.epoch, extracted.key.batch);
    if (!Holds(extracted, sample)) ++torn;
    *report = ExtractReport{};
    if (watch_ != nullptr) watch_->End(device_, DeviceWatch::kTrains);
    return Status::Ok();
  }

  Status ComputeGradient(const Sample& sample, uint32_t buffer, const ParametersView& parameters,
                         std::span<float> gradient, BatchReport* report) override {
    if (before_gradient) before_gradient(sample.key().epoch, sample.key().batch);
    if (watch_ != nullptr) watch_->Begin(device_, DeviceWatch::kTrains);
    if (during_gradient) during_gradient(sample.key().epoch, sample.key().batch);
    Gradient(extracted_[buffer].nodes, sample.num_seeds(), parameters.floats, gradient, report);
    if (after_gradient) after_gradient(sample.key().epoch, sample.key().batch, gradient);
    if (!Holds(extracted_[buffer], sample)) ++torn;
    if (watch_ != nullptr) watch_->End(device_, DeviceWatch::kTrains);
    return Status::Ok();
  }

  static void Gradient(const std::vector<uint32_t>& nodes, uint64_t seeds,
                       std::span<const float> parameters, std::span<float> gradient,
                       BatchReport* report) {
    // Signs and sizes vary with the nodes, and each float depends on another one.
    for (size_t i = 0; i < gradient.size(); ++i) {
      float sum = 0;
      for (const uint32_t node : nodes) {
        const float x = static_cast<float>(Mix(node + i) % 2001) * 1e-3F - 1.0F;
        sum += x * parameters[(i + node) % parameters.size()] + 0.01F * x;
      }
      gradient[i] = sum;
    }
    report->sums.loss = static_cast<double>(gradient[0]) + 1.5;
    report->sums.items = seeds;
    report->sums.counts[kCorrect] = nodes.front() % (seeds + 1);
  }

  void Apply(const StepView& step) override {
    const float rate = 0.05F / static_cast<float>(1 + (step.version + 1) % 7);
    for (size_t i = 0; i < step.parameters_in.size(); ++i) {
      float sum = 0;
      for (const GradientView& gradient : step.gradients) sum += gradient.floats[i];
      sum /= static_cast<float>(step.num_items);
      step.optimizer_out[i] = 0.5F * step.optimizer_in[i] + sum;
      step.parameters_out[i] = step.parameters_in[i] - rate * step.optimizer_out[i];
    }
    if (after_apply) after_apply(step.version + 1, step.parameters_out);
  }

  // Touchy about all it is told.
  void PredictParameters(uint64_t version, uint64_t lag, std::span<const float> parameters,
                         std::span<const float> optimizer, std::span<float> predicted) override {
    ++predictions;
    const float rate = 0.02F * static_cast<float>(lag) / static_cast<float>(1 + version % 7);
    for (size_t i = 0; i < predicted.size(); ++i) {
      predicted[i] = parameters[i] - rate * optimizer[i];
    }
  }

  Result<EvalShape> PlanEvaluation(EvalNodes, const Alive& alive) override {
    if (!alive()) return Status(Code::kAborted, "evaluation given up");
    return EvalShape{FakeScratch::kPhases, FakeScratch::kChunks,
                     FakeScratch::kPhases * FakeScratch::kChunks};
  }

  // The first phase leaves a row for each chunk; the second one needs them all.
  Status EvaluateChunk(const EvalTask& task, const ParametersView& view, const Alive& alive,
                       EvalResult* result) override {
    GNND_CHECK(scratch_ != nullptr);
    const std::span<const float> parameters = view.floats;
    if (watch_ != nullptr) watch_->Begin(device_, DeviceWatch::kTrains);
    const std::vector<float> first(parameters.begin(), parameters.end());
    if (during_evaluation) during_evaluation(task, alive);
    if (watch_ != nullptr) watch_->End(device_, DeviceWatch::kTrains);
    if (!alive()) return Status(Code::kAborted, "evaluation given up");
    if (!std::equal(first.begin(), first.end(), parameters.begin())) ++torn;
    const uint64_t digest = Digest(first);
    const auto row = [&](uint32_t chunk) { return Mix(digest + task.run.number * 8 + chunk); };
    result->rows = 1;
    if (task.phase == 0) {
      scratch_->set_row(task.chunk, row(task.chunk));
      return Status::Ok();
    }
    *result = ShareOf(task.chunk, digest, task.run.nodes);
    if (!task.kept.empty()) KeepScores(task, digest);
    for (uint32_t chunk = 0; chunk < FakeScratch::kChunks; ++chunk) {
      if (scratch_->row(chunk) == row(chunk)) continue;
      ++torn;
      result->sums.counts[kCorrect] = result->sums.items;
    }
    return Status::Ok();
  }

  Status Reduce(const ReduceTask& task, const Alive& alive) override {
    return RankColumns(ScoreTable::In(task.kept, kColumns), task.items, task.chunk, task.chunks,
                       alive);
  }

  // The accuracy, or where chunks keep scores the ROC AUC.
  Judgement Judge(const EvalResult& whole, std::span<std::byte> kept) const override {
    uint64_t count = 0;
    for (uint32_t chunk = 0; chunk < FakeScratch::kChunks; ++chunk) count += CountOf(chunk);
    GNND_CHECK(whole.counts == std::vector<uint64_t>(kCounts, count));
    const auto correct = static_cast<double>(whole.sums.counts[kCorrect]);
    if (kept.empty()) return {{correct, static_cast<double>(whole.sums.items)}, {}};
    const double roc_auc = MeanOf(ScoreTable::In(kept, kColumns).rankings).roc_auc;
    return {{roc_auc, 1}, {roc_auc}};
  }

  void EndEvaluation(const EvalRun&) override {
    for (uint32_t chunk = 0; chunk < FakeScratch::kChunks; ++chunk) scratch_->set_row(chunk, 0);
  }

  Sha256Digest DigestOf(std::span<const float> parameters) override {
    const uint64_t digest = Digest(parameters);
    Sha256Digest bytes{};
    std::memcpy(bytes.data(), &digest, sizeof digest);
    return bytes;
  }

  static uint64_t Digest(std::span<const float> parameters) {
    uint64_t digest = 0;
    for (const float x : parameters) digest = Mix(digest + std::bit_cast<uint32_t>(x) + 1);
    return digest;
  }

  // Of ten nodes. Few distinct accuracies, so that equals occur.
  static uint64_t CorrectOf(uint64_t digest, EvalNodes nodes) {
    return nodes == EvalNodes::kValidation ? digest % 5 : digest / 5 % 10;
  }

 private:
  static uint64_t PartOf(uint64_t whole, uint32_t chunk) {
    return (whole + FakeScratch::kChunks - 1 - chunk) / FakeScratch::kChunks;
  }
  static uint64_t ItemsOf(uint32_t chunk) { return PartOf(kEvaluated, chunk); }
  static uint64_t CountOf(uint32_t chunk) { return ItemsOf(chunk) * (chunk + 7); }
  // A chunk's part of an evaluation's result.
  static EvalResult ShareOf(uint32_t chunk, uint64_t digest, EvalNodes nodes) {
    const auto part = [chunk](uint64_t whole) { return PartOf(whole, chunk); };
    EvalResult result{};
    result.sums.loss = static_cast<double>(Mix(digest + chunk) % 1000) * 0.1;
    result.sums.items = part(kEvaluated);
    result.sums.counts[kCorrect] = part(CorrectOf(digest, nodes));
    result.rows = 1;
    result.counts.assign(kCounts, CountOf(chunk));
    return result;
  }
  static void KeepScores(const EvalTask& task, uint64_t digest) {
    const ScoreTable table = ScoreTable::In(task.kept, kColumns);
    uint64_t first = 0;
    for (uint32_t before = 0; before < task.chunk; ++before) first += ItemsOf(before);
    for (uint64_t i = first * kColumns; i < (first + ItemsOf(task.chunk)) * kColumns; ++i) {
      table.scores[i] = ScoreOf(digest, task.run.nodes, i);
      table.outcomes[i] = OutcomeOf(i);
    }
  }
  static float ScoreOf(uint64_t digest, EvalNodes nodes, uint64_t entry) {
    return static_cast<float>(Mix(digest + 100 + 50 * static_cast<uint64_t>(nodes) + entry) % 4);
  }
  // Both sorts in each column, and some that are not known.
  static gnnd::Outcome OutcomeOf(uint64_t entry) {
    constexpr gnnd::Outcome kSorts[] = {gnnd::Outcome::kPositive, gnnd::Outcome::kNegative,
                                        gnnd::Outcome::kUnknown};
    return kSorts[entry < 2 * kColumns ? entry / kColumns : Mix(entry) % 3];
  }

 public:
  // Nodes of an evaluation, columns that they are ranked by, and the bytes that this takes.
  static constexpr uint64_t kEvaluated = 10;
  static constexpr uint32_t kColumns = 2;
  static constexpr uint64_t kKeptBytes =
      kColumns * (ScoreTable::kColumnBytes + kEvaluated * ScoreTable::kEntryBytes);
  // Integers that a chunk counts.
  static constexpr uint32_t kCounts = 3;

  // Of the validation nodes, pair by pair.
  static double RocAucOf(uint64_t digest) {
    double sum = 0;
    for (uint32_t column = 0; column < kColumns; ++column) {
      double above = 0;
      uint32_t pairs = 0;
      for (uint64_t a = column; a < kEvaluated * kColumns; a += kColumns) {
        for (uint64_t b = column; b < kEvaluated * kColumns; b += kColumns) {
          if (OutcomeOf(a) != gnnd::Outcome::kPositive) continue;
          if (OutcomeOf(b) != gnnd::Outcome::kNegative) continue;
          const float gain = ScoreOf(digest, EvalNodes::kValidation, a) -
                             ScoreOf(digest, EvalNodes::kValidation, b);
          above += gain > 0 ? 1 : gain == 0 ? 0.5 : 0;
          ++pairs;
        }
      }
      sum += above / pairs;
    }
    return sum / kColumns;
  }
  // The validation loss of a whole run, summed in the order of chunks.
  static double LossOf(uint64_t digest) {
    double sum = 0;
    for (uint32_t chunk = 0; chunk < FakeScratch::kChunks; ++chunk) {
      sum += ShareOf(chunk, digest, EvalNodes::kValidation).sums.loss;
    }
    return sum;
  }

 private:
  struct Extracted {
    BatchKey key{};
    std::vector<uint32_t> nodes;
  };

  static bool Holds(const Extracted& extracted, const Sample& sample) {
    if (sample.kind() == SampleKind::kRows) return extracted.key.batch == sample.key().batch;
    return extracted.key.epoch == sample.key().epoch && extracted.key.batch == sample.key().batch &&
           std::equal(extracted.nodes.begin(), extracted.nodes.end(), sample.nodes().begin(),
                      sample.nodes().end());
  }

  FakeScratch* scratch_;
  DeviceWatch* watch_;
  uint32_t device_;
  Extracted extracted_[kExtractBuffers];
};

}  // namespace gnnd::test
