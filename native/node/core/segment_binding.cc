#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/run/switch_profit.h"
#include "core/segment/segment.h"
#include "node/core/bindings.h"

// The daemon's side of a job segment: mirrors `segment*` of contract.ts.

namespace gnnd::node {
namespace {

// Shared, so that a reclaim under way on its thread outlives a close.
using SegmentHandle = std::shared_ptr<Segment>;

constexpr napi_type_tag kSegmentTag = {0x676E6E64'7365676DULL, 0x656E745F'68616E64ULL};

SegmentHandle SegmentOf(const Napi::CallbackInfo& info) {
  if (!info[0].IsObject() || !info[0].As<Napi::Object>().CheckTypeTag(&kSegmentTag)) {
    throw Napi::TypeError::New(info.Env(), "handle must be an open segment");
  }
  const Napi::Value inner = info[0].As<Napi::Object>().Get("open");
  if (!inner.IsExternal()) throw Napi::TypeError::New(info.Env(), "the segment is closed");
  return *inner.As<Napi::External<SegmentHandle>>().Data();
}

const char* NameOf(Role role) {
  switch (role) {
    case Role::kSampler:
      return "SAMPLER";
    case Role::kTrainer:
      return "TRAINER";
    case Role::kStandby:
      return "STANDBY";
  }
  return "SAMPLER";
}

const char* NameOf(Phase phase) {
  switch (phase) {
    case Phase::kRegistered:
      return "REGISTERED";
    case Phase::kLoading:
      return "LOADING";
    case Phase::kRunning:
      return "RUNNING";
    case Phase::kFinished:
      return "FINISHED";
    case Phase::kFailed:
      return "FAILED";
    case Phase::kReaped:
      return "REAPED";
  }
  return "REGISTERED";
}

// The stage names of ExecutorStatus.stage.
const char* NameOfActivity(uint32_t activity) {
  constexpr const char* kStages[kNumStages] = {"SAMPLE",  "MARK",  "COPY",  "PRUNE",
                                               "EXTRACT", "TRAIN", "APPLY", "EVALUATE"};
  if (activity < kNumStages) return kStages[activity];
  return activity == static_cast<uint32_t>(Activity::kIdle) ? "IDLE" : "WAIT";
}

SegmentSpec SpecOf(const Fields& fields) {
  SegmentSpec spec;
  spec.batches_per_epoch = fields.Uint64("batchesPerEpoch");
  spec.batch_limit = fields.Uint64("batchLimit");
  spec.epochs = fields.Uint32("epochs");
  spec.first_epoch = fields.Uint32("firstEpoch");
  spec.group = fields.Uint32("batchesPerStep");
  spec.staleness = fields.Uint32("staleness");
  spec.compensation = fields.String("stalenessCompensation") == "PREDICT"
                          ? StalenessCompensation::kPredict
                          : StalenessCompensation::kNone;
  spec.num_slots = fields.Uint64("numSlots");
  spec.slot_bytes = fields.Uint64("slotBytes");
  spec.queue_max_bytes = fields.Uint64("queueMaxBytes");
  spec.parameter_floats = fields.Uint64("parameterFloats");
  spec.optimizer_floats = fields.Uint64("optimizerFloats");
  spec.num_devices = fields.Uint32("numDevices");
  spec.max_executors = fields.Uint32("maxExecutors");
  spec.batch_size = fields.Uint64("batchSize");
  spec.train_nodes = fields.Uint64("trainNodes");
  spec.evaluation = {fields.Uint32("evaluateEveryEpochs"), fields.Uint32("evaluationChunks")};
  spec.low_water = fields.Uint32("lowWater");
  spec.early_stop = {fields.Uint32("stopPatience"), fields.Double("stopMinDelta")};
  return spec;
}

// segmentDefaultSlots(options): number
Napi::Value DefaultSlots(const Napi::CallbackInfo& info) {
  const Fields fields(info[0], "options");
  return NumberOf(info.Env(),
                  DefaultSlotCount(fields.Uint64("batchesPerStep"), fields.Uint64("staleness"),
                                   fields.Uint64("numDevices"), fields.Uint64("batchesPerEpoch"),
                                   fields.Uint64("queueMaxBytes"), fields.Uint64("recordBytes")));
}

// segmentCreate(spec): { segment, fd }: fd is the caller's to hand down and to close
Napi::Value Create(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  UniqueFd fd = ValueOrThrow(env, Segment::Create(SpecOf(Fields(info[0], "spec"))));
  Segment segment = ValueOrThrow(env, Segment::Attach(fd.get(), Access::kReadWrite));
  auto* handle = new SegmentHandle(std::make_shared<Segment>(std::move(segment)));
  Napi::Object object = Napi::Object::New(env);
  object.TypeTag(&kSegmentTag);
  object.Set("open", Napi::External<SegmentHandle>::New(
                         env, handle, [](Napi::Env, SegmentHandle* owned) { delete owned; }));
  Napi::Object result = Napi::Object::New(env);
  result.Set("segment", object);
  result.Set("fd", Napi::Number::New(env, fd.Release()));
  return result;
}

// segmentClose(segment)
void Close(const Napi::CallbackInfo& info) {
  SegmentOf(info);
  Napi::Object object = info[0].As<Napi::Object>();
  object.Get("open").As<Napi::External<SegmentHandle>>().Data()->reset();
  object.Set("open", info.Env().Null());
}

// segmentRegister(segment, role, device): { row, incarnation }
Napi::Value Register(const Napi::CallbackInfo& info) {
  const std::string role = info[1].As<Napi::String>().Utf8Value();
  const uint32_t device = info[2].As<Napi::Number>().Uint32Value();
  const Role which = role == "TRAINER"   ? Role::kTrainer
                     : role == "STANDBY" ? Role::kStandby
                                         : Role::kSampler;
  const ExecutorId id = ValueOrThrow(info.Env(), SegmentOf(info)->RegisterExecutor(which, device));
  Napi::Object result = Napi::Object::New(info.Env());
  result.Set("row", id.row);
  result.Set("incarnation", id.incarnation);
  return result;
}

Napi::Array NumbersOf(Napi::Env env, const uint64_t* values, uint32_t count) {
  Napi::Array array = Napi::Array::New(env, count);
  for (uint32_t i = 0; i < count; ++i) array.Set(i, NumberOf(env, values[i]));
  return array;
}

Napi::Object TimesOf(Napi::Env env, uint64_t total_ns, uint64_t count, const uint64_t* buckets,
                     uint32_t num_buckets) {
  Napi::Object times = Napi::Object::New(env);
  times.Set("totalNs", NumberOf(env, total_ns));
  times.Set("count", NumberOf(env, count));
  times.Set("buckets", NumbersOf(env, buckets, num_buckets));
  return times;
}

// Only a device that a Sampler and a standby Trainer share has a turn.
bool HasTurn(Role role, uint32_t turn) {
  if (role == Role::kTrainer) return true;
  return ((turn & kTurnStandbyHolds) != 0) == (role == Role::kStandby);
}

Napi::Object ExecutorOf(Napi::Env env, const ExecutorSnapshot& executor, uint32_t turn) {
  Napi::Object entry = Napi::Object::New(env);
  entry.Set("row", executor.id.row);
  entry.Set("incarnation", executor.id.incarnation);
  entry.Set("role", NameOf(executor.role));
  entry.Set("device", executor.device);
  entry.Set("pid", executor.pid);
  entry.Set("hasTurn", HasTurn(executor.role, turn));
  entry.Set("phase", NameOf(executor.phase));
  entry.Set("registeredNs", NumberOf(env, executor.registered_ns));
  entry.Set("heartbeatNs", NumberOf(env, executor.heartbeat_ns));
  entry.Set("stage", NameOfActivity(executor.activity));
  entry.Set("progressNs", NumberOf(env, executor.progress_ns));
  entry.Set("counters", NumbersOf(env, executor.counters, kNumCounters));
  Napi::Array stages = Napi::Array::New(env, kNumStages);
  for (uint32_t i = 0; i < kNumStages; ++i) {
    const StageSnapshot& stage = executor.stages[i];
    Napi::Object times = TimesOf(env, stage.busy_ns, stage.count, stage.buckets, kNumStageBuckets);
    times.Set("medianNs", NumberOf(env, stage.median_ns));
    stages.Set(i, times);
  }
  entry.Set("stages", stages);
  Napi::Array waits = Napi::Array::New(env, kNumWaitSides);
  for (uint32_t i = 0; i < kNumWaitSides; ++i) {
    const WaitSnapshot& wait = executor.waits[i];
    waits.Set(i, TimesOf(env, wait.wait_ns, wait.count, wait.buckets, kNumWaitBuckets));
  }
  entry.Set("waits", waits);
  return entry;
}

Napi::Value RunOf(Napi::Env env, const SegmentSnapshot& snapshot) {
  if (!snapshot.evaluation) return env.Null();
  const EvalRun& run = *snapshot.evaluation;
  const bool test = run.nodes == EvalNodes::kTest;
  Napi::Object entry = Napi::Object::New(env);
  entry.Set("kind", test ? (run.is_best ? "TEST_BEST" : "TEST_LAST") : "VALIDATION");
  entry.Set("epoch", NumberOf(env, run.epoch));
  entry.Set("done", NumberOf(env, snapshot.evaluation_done));
  entry.Set("total", NumberOf(env, snapshot.evaluation_total));
  return entry;
}

// segmentSnapshot(segment): SegmentSnapshot
Napi::Value Snapshot(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const SegmentSnapshot snapshot = SegmentOf(info)->Snapshot();
  Napi::Object result = Napi::Object::New(env);
  result.Set("version", NumberOf(env, snapshot.version));
  result.Set("committedBatches", NumberOf(env, snapshot.committed_batches));
  result.Set("totalBatches", NumberOf(env, snapshot.total_batches));
  result.Set("epochsToTrain", snapshot.epochs_to_train);
  result.Set("epoch", snapshot.epoch);
  result.Set("epochsCommitted", snapshot.epochs_committed);
  result.Set("complete", snapshot.complete);
  result.Set("evaluation", RunOf(env, snapshot));
  result.Set("queueDepth", NumberOf(env, snapshot.queue_depth));
  result.Set("queueBytes", NumberOf(env, snapshot.queue_bytes));
  result.Set("claimed",
             NumberOf(env, snapshot.states[static_cast<uint32_t>(BatchState::kClaimed)]));
  result.Set("taken", NumberOf(env, snapshot.states[static_cast<uint32_t>(BatchState::kTaken)]));
  result.Set("numSlots", NumberOf(env, snapshot.num_slots));
  result.Set("largestRecordBytes", NumberOf(env, snapshot.largest_record_bytes));
  result.Set("reclaimed", NumberOf(env, snapshot.reclaimed));
  const StandbyEstimates& estimates = snapshot.estimates;
  const int64_t profit_ns =
      SwitchProfitNs(snapshot.queue_depth, estimates.t_t_ns, estimates.n_t, estimates.t_t_prime_ns);
  result.Set("standbyProfitNs", Napi::Number::New(env, static_cast<double>(profit_ns)));
  result.Set("aborted", snapshot.aborted
                            ? Napi::Value(Napi::String::New(env, snapshot.abort_message))
                            : env.Null());
  Napi::Array executors = Napi::Array::New(env, snapshot.executors.size());
  for (uint32_t i = 0; i < snapshot.executors.size(); ++i) {
    const ExecutorSnapshot& executor = snapshot.executors[i];
    executors.Set(i, ExecutorOf(env, executor, snapshot.turns[executor.device]));
  }
  result.Set("executors", executors);
  return result;
}

std::string HexOf(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

std::string HexOf(const Sha256Digest& digest) {
  std::string text;
  for (const uint8_t byte : digest) {
    constexpr const char* kDigits = "0123456789abcdef";
    text += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return text;
}

Napi::Value EvaluationOf(Napi::Env env, const std::optional<EvaluationReport>& evaluation) {
  if (!evaluation) return env.Null();
  Napi::Object entry = Napi::Object::New(env);
  entry.Set("valNodes", NumberOf(env, evaluation->val_nodes));
  entry.Set("valCorrect", NumberOf(env, evaluation->val_correct));
  entry.Set("bestEpoch", evaluation->best_epoch);
  entry.Set("endNs", NumberOf(env, evaluation->end_ns));
  return entry;
}

Napi::Value TestOf(Napi::Env env, const std::optional<TestReport>& test) {
  if (!test) return env.Null();
  Napi::Object entry = Napi::Object::New(env);
  entry.Set("nodes", NumberOf(env, test->nodes));
  entry.Set("correct", NumberOf(env, test->correct));
  return entry;
}

// segmentEpoch(segment, epoch): SegmentEpoch
Napi::Value Epoch(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const EpochReport report = SegmentOf(info)->ReportEpoch(info[1].As<Napi::Number>().Uint32Value());
  Napi::Object result = Napi::Object::New(env);
  result.Set("epoch", report.epoch);
  result.Set("committed", report.committed);
  result.Set("startNs", NumberOf(env, report.start_ns));
  result.Set("endNs", NumberOf(env, report.end_ns));
  result.Set("batches", NumberOf(env, report.batches));
  result.Set("steps", NumberOf(env, report.steps));
  result.Set("retries", NumberOf(env, report.retries));
  result.Set("seeds", NumberOf(env, report.seeds));
  result.Set("correct", NumberOf(env, report.correct));
  result.Set("lossSum", report.loss_sum);
  result.Set("ledgerDigest", HexOf(report.ledger_digest));
  result.Set("expectedLedgerDigest", HexOf(ExpectedLedgerDigest(report.epoch, report.batches)));
  result.Set("finalVersion", NumberOf(env, report.final_version));
  result.Set("deviceBatches", NumbersOf(env, report.device_batches.data(),
                                        static_cast<uint32_t>(report.device_batches.size())));
  result.Set("parametersSha256",
             report.committed ? HexOf(report.parameters_sha256) : std::string());
  result.Set("complete", report.complete);
  result.Set("evaluation", EvaluationOf(env, report.evaluation));
  result.Set("test", TestOf(env, report.test));
  return result;
}

// segmentReclaim(segment, incarnation): Promise<ReclaimReport>; the process must be reaped
Napi::Value Reclaim(const Napi::CallbackInfo& info) {
  const SegmentHandle segment = SegmentOf(info);
  const uint32_t incarnation = info[1].As<Napi::Number>().Uint32Value();
  return RunOnThread<ReclaimReport>(
      info.Env(), [segment, incarnation] { return segment->Reclaim(incarnation); },
      [](Napi::Env env, ReclaimReport& report) -> Napi::Value {
        Napi::Object result = Napi::Object::New(env);
        result.Set("claimed", report.claimed);
        result.Set("taken", report.taken);
        result.Set("evaluations", report.evaluations);
        return result;
      });
}

// segmentCommand(segment, command)
void SetCommand(const Napi::CallbackInfo& info) {
  const bool pause = info[1].As<Napi::String>().Utf8Value() == "PAUSE";
  SegmentOf(info)->SetCommand(pause ? Command::kPause : Command::kRun);
}

// segmentStandby(segment, policy, armed, estimates)
void SetStandby(const Napi::CallbackInfo& info) {
  const SegmentHandle segment = SegmentOf(info);
  const std::string policy = info[1].As<Napi::String>().Utf8Value();
  const Fields fields(info[3], "estimates");
  StandbyEstimates estimates;
  estimates.t_s_ns = fields.Uint64("samplerBatchNs");
  estimates.t_t_ns = fields.Uint64("trainerBatchNs");
  estimates.t_t_prime_ns = fields.Uint64("standbyBatchNs");
  estimates.n_t = fields.Uint64("trainers");
  segment->SetEstimates(estimates);
  segment->SetStandby(policy == "ALWAYS" ? StandbyPolicy::kAlways
                      : policy == "OFF"  ? StandbyPolicy::kOff
                                         : StandbyPolicy::kAuto,
                      info[2].As<Napi::Boolean>().Value());
}

// segmentAbort(segment, message)
void Abort(const Napi::CallbackInfo& info) {
  SegmentOf(info)->Abort(Code::kAborted, info[1].As<Napi::String>().Utf8Value());
}

// segmentParameters(segment, 'LAST' | 'BEST'): { at, data }: at is a version or an epoch
Napi::Value Parameters(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const SegmentHandle segment = SegmentOf(info);
  const auto floats = static_cast<size_t>(segment->parameter_floats());
  Napi::Float32Array data = Napi::Float32Array::New(env, floats);
  const std::span<float> out(data.Data(), floats);
  Napi::Object result = Napi::Object::New(env);
  if (info[1].As<Napi::String>().Utf8Value() == "BEST") {
    result.Set("at", ValueOrThrow(env, segment->CopyBestParameters(out)));
  } else {
    result.Set("at", NumberOf(env, ValueOrThrow(env, segment->CopyLastParameters(out))));
  }
  result.Set("data", data);
  return result;
}

}  // namespace

void DefineSegment(Napi::Env env, Napi::Object exports) {
  exports.Set("segmentDefaultSlots", Napi::Function::New(env, DefaultSlots));
  exports.Set("segmentCreate", Napi::Function::New(env, Create));
  exports.Set("segmentClose", Napi::Function::New(env, Close));
  exports.Set("segmentRegister", Napi::Function::New(env, Register));
  exports.Set("segmentSnapshot", Napi::Function::New(env, Snapshot));
  exports.Set("segmentEpoch", Napi::Function::New(env, Epoch));
  exports.Set("segmentReclaim", Napi::Function::New(env, Reclaim));
  exports.Set("segmentCommand", Napi::Function::New(env, SetCommand));
  exports.Set("segmentStandby", Napi::Function::New(env, SetStandby));
  exports.Set("segmentAbort", Napi::Function::New(env, Abort));
  exports.Set("segmentParameters", Napi::Function::New(env, Parameters));
}

}  // namespace gnnd::node
