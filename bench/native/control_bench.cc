// Measures the cost of control: a job's real loops, each in a process of its own, around work that
// only takes time. Everything else that an executor does is control: claims, publications, takes,
// steps, waits and wake-ups.
//
//   control_bench [--executors N] [--batches M] [--work-us U] [--slots S]
//
// Half of the executors are Samplers, half Trainers; a step takes one batch of each Trainer. The
// benchmark runs twice: with work that burns its time (executors share the cores, as many small
// ones do), and with work that sleeps (all work at once, as on a machine with a core for each). It
// prints one JSON object: `control_share` is processor time outside the work ÷ (that + the work's
// time), `switches` are voluntary context switches, that is, sleeps.

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/base/check.h"
#include "core/base/clock.h"
#include "core/batch/record.h"
#include "core/executor/sampler_loop.h"
#include "core/executor/trainer_loop.h"
#include "core/ledger/segment.h"

namespace gnnd {
namespace {

constexpr uint64_t kFloats = 64;
constexpr uint64_t kSlotBytes = 4 * kPageBytes;

struct Options {
  uint64_t executors = 64;
  uint64_t batches = 3000;
  uint64_t work_us = 1000;
  uint64_t slots = 4096;
};

uint64_t Now(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * kNsPerSecond + static_cast<uint64_t>(now.tv_nsec);
}

// Takes time, and measures it: the processor's time, and the time of the work's caller.
class StandIn {
 public:
  StandIn(bool burns, uint64_t ns) : burns_(burns), ns_(ns) {}

  template <typename Rest>
  void Do(const Rest& rest) {
    const uint64_t from = Now(CLOCK_THREAD_CPUTIME_ID);
    rest();
    if (burns_) {
      while (Now(CLOCK_THREAD_CPUTIME_ID) - from < ns_) {
      }
    } else {
      const timespec pause = ToTimespec(ns_);
      nanosleep(&pause, nullptr);
    }
    processor_ns += Now(CLOCK_THREAD_CPUTIME_ID) - from;
    ++times;
  }

  uint64_t processor_ns = 0;
  uint64_t times = 0;

 private:
  bool burns_;
  uint64_t ns_;
};

// Records of one seed without edges.
class TimedSampleWork final : public SampleWork {
 public:
  explicit TimedSampleWork(StandIn* stand_in) : stand_in_(stand_in) {}

  Status Start(const SampleTask&) override { return Status::Ok(); }
  Status Finish(const SampleTask& task, SampleReport* report) override {
    stand_in_->Do([&] {
      RecordTables tables;
      tables.Begin(SampleKind::kBlocks, {0, task.epoch, task.batch});
      tables.nodes = {{4, 1, 1, 0, kPageBytes, 0}};
      BlockEntry& block = tables.blocks.emplace_back();
      block.id_bytes = 4;
      block.num_dst = block.num_src = 1;
      block.indptr_at = 2 * kPageBytes;
      block.src_at = 3 * kPageBytes;
      WriteTables(&tables, task.slot);
      *report = SampleReport{tables.header.payload_bytes, tables.header.extent_bytes, 1, 0, 1};
    });
    return Status::Ok();
  }

 private:
  StandIn* stand_in_;
};

class TimedTrainWork final : public TrainWork {
 public:
  explicit TimedTrainWork(StandIn* stand_in) : stand_in_(stand_in) {}

  void InitParameters(std::span<float> parameters) override {
    std::fill(parameters.begin(), parameters.end(), 0.0F);
  }
  Status Extract(const Sample&, uint32_t, ExtractReport* report) override {
    *report = ExtractReport{};
    return Status::Ok();
  }
  Status ComputeGradient(const Sample&, uint32_t, const ParametersView&, std::span<float> gradient,
                         BatchReport* report) override {
    stand_in_->Do([&] { std::fill(gradient.begin(), gradient.end(), 1.0F); });
    *report = BatchReport{.sums = {.items = 1, .counts = {}, .loss = 1.0, .totals = {}}};
    return Status::Ok();
  }
  void Apply(const StepView& step) override {
    std::copy(step.parameters_in.begin(), step.parameters_in.end(), step.parameters_out.begin());
  }
  void PredictParameters(uint64_t, uint64_t, std::span<const float> parameters,
                         std::span<const float>, std::span<float> predicted) override {
    std::copy(parameters.begin(), parameters.end(), predicted.begin());
  }
  Result<EvalShape> PlanEvaluation(EvalNodes, const Alive&) override { return NoEvaluation(); }
  Status EvaluateChunk(const EvalTask&, const ParametersView&, const Alive&, EvalResult*) override {
    return NoEvaluation();
  }
  Status Reduce(const ReduceTask&, const Alive&) override { return NoEvaluation(); }
  Judgement Judge(const EvalResult&, std::span<std::byte>) const override { return {}; }
  void EndEvaluation(const EvalRun&) override {}
  Sha256Digest DigestOf(std::span<const float>) override { return {}; }

 private:
  static Status NoEvaluation() { return Status(Code::kInternal, "no evaluation here"); }

  StandIn* stand_in_;
};

// The account of one executor, in memory that outlives its process.
struct Account {
  uint64_t processor_ns;  // in its loop, including the work
  uint64_t work_ns;       // spent in the work
  uint64_t times;
  uint64_t switches;
};

uint64_t ProcessorNs(const rusage& usage) {
  const auto of = [](const timeval& time) {
    return static_cast<uint64_t>(time.tv_sec) * kNsPerSecond +
           static_cast<uint64_t>(time.tv_usec) * 1000;
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

bool Execute(const Segment& shared, ExecutorId id, Role role, StandIn stand_in, Account* account) {
  const bool samples = role == Role::kSampler;
  Result<Segment> segment =
      Segment::Attach(shared.fd(), samples ? Access::kModelReadOnly : Access::kSlotsReadOnly);
  if (!segment.ok()) return false;
  rusage before{};
  getrusage(RUSAGE_SELF, &before);
  Result<LoopEnd> end = Status(Code::kInternal, "");
  if (samples) {
    TimedSampleWork work(&stand_in);
    end = RunSamplerLoop(*segment, id, work);
  } else {
    TimedTrainWork work(&stand_in);
    end = RunTrainerLoop(*segment, id, work, false);
  }
  rusage after{};
  getrusage(RUSAGE_SELF, &after);
  *account = Account{ProcessorNs(after) - ProcessorNs(before), stand_in.processor_ns,
                     stand_in.times, static_cast<uint64_t>(after.ru_nvcsw - before.ru_nvcsw)};
  return end.ok();
}

Segment MakeSegment(const Options& options) {
  SegmentSpec spec;
  spec.batches_per_epoch = spec.train_nodes = options.batches;
  spec.epochs = 1;
  spec.group = static_cast<uint32_t>(options.executors / 2);
  spec.num_slots = std::max<uint64_t>(options.slots, spec.group);
  spec.slot_bytes = kSlotBytes;
  spec.queue_max_bytes = uint64_t{1} << 40;
  spec.parameter_floats = kFloats;
  spec.max_executors = static_cast<uint32_t>(options.executors);
  spec.batch_size = 1;
  Result<UniqueFd> fd = Segment::Create(spec);
  GNND_CHECK(fd.ok());
  Result<Segment> segment = Segment::Attach(fd->get(), Access::kReadWrite);
  GNND_CHECK(segment.ok());
  return std::move(*segment);
}

std::string Measure(const Options& options, bool burns) {
  Segment segment = MakeSegment(options);
  const size_t bytes = options.executors * sizeof(Account);
  void* shared = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  GNND_CHECK(shared != MAP_FAILED);
  auto* accounts = static_cast<Account*>(shared);
  const uint64_t work_ns = options.work_us * 1000;
  const uint64_t start_ns = MonotonicNs();
  for (uint64_t i = 0; i < options.executors; ++i) {
    const Role role = i % 2 == 0 ? Role::kSampler : Role::kTrainer;
    const Result<ExecutorId> id = segment.RegisterExecutor(role, 0);
    GNND_CHECK(id.ok());
    const pid_t pid = fork();
    GNND_CHECK(pid >= 0);
    if (pid == 0) _exit(Execute(segment, *id, role, StandIn(burns, work_ns), &accounts[i]) ? 0 : 1);
  }
  int status = 0;
  while (wait(&status) > 0) GNND_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  const auto wall_s = static_cast<double>(MonotonicNs() - start_ns) * 1e-9;
  GNND_CHECK(segment.Complete());
  Account sum{};
  for (uint64_t i = 0; i < options.executors; ++i) {
    sum.processor_ns += accounts[i].processor_ns;
    sum.work_ns += accounts[i].work_ns;
    sum.times += accounts[i].times;
    sum.switches += accounts[i].switches;
  }
  munmap(shared, bytes);
  GNND_CHECK(sum.times == 2 * options.batches);
  // Sleeping work counts only its sleep; falling asleep counts neither as work nor as control.
  const double work = static_cast<double>(burns ? sum.work_ns : sum.times * work_ns);
  const double control = static_cast<double>(sum.processor_ns) - static_cast<double>(sum.work_ns);
  const auto batches = static_cast<double>(options.batches);
  const double sleeps =
      static_cast<double>(sum.switches) - (burns ? 0 : static_cast<double>(sum.times));
  char text[256];
  std::snprintf(text, sizeof text,
                "{\"control_share\":%.4f,\"control_us_per_batch\":%.1f,\"switches_per_batch\":%.2f,"
                "\"batches_per_s\":%.0f}",
                control / (control + work), control / batches / 1e3, sleeps / batches,
                batches / wall_s);
  return text;
}

uint64_t NumberAfter(int argc, char** argv, const char* name, uint64_t otherwise) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::strcmp(argv[i], name) == 0) return std::strtoull(argv[i + 1], nullptr, 10);
  }
  return otherwise;
}

int Main(int argc, char** argv) {
  Options options;
  options.executors = std::max<uint64_t>(2, NumberAfter(argc, argv, "--executors", 64) / 2 * 2);
  options.batches = NumberAfter(argc, argv, "--batches", options.batches);
  options.work_us = NumberAfter(argc, argv, "--work-us", options.work_us);
  options.slots = NumberAfter(argc, argv, "--slots", options.slots);
  const std::string burning = Measure(options, true);
  const std::string sleeping = Measure(options, false);
  std::printf(
      "{\"bench\":\"control\",\"executors\":%llu,\"batches\":%llu,\"work_us\":%llu,"
      "\"slots\":%llu,\"cores\":%u,\"burning\":%s,\"sleeping\":%s}\n",
      static_cast<unsigned long long>(options.executors),
      static_cast<unsigned long long>(options.batches),
      static_cast<unsigned long long>(options.work_us),
      static_cast<unsigned long long>(options.slots), std::thread::hardware_concurrency(),
      burning.c_str(), sleeping.c_str());
  return 0;
}

}  // namespace
}  // namespace gnnd

int main(int argc, char** argv) { return gnnd::Main(argc, argv); }
