#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/image/image.h"
#include "core/ledger/segment.h"
#include "core/metric/link_rank.h"
#include "core/metric/ranking.h"
#include "node/core/bindings.h"
#include "node/core/segment_tables.h"

// The daemon's side of a job segment.

namespace gnnd::node {

constexpr napi_type_tag kSegmentTag = {0x676E6E64'7365676DULL, 0x656E745F'68616E64ULL};

// Shared, so that a reclaim that runs on its thread outlives a close.
using SharedSegment = std::shared_ptr<Segment>;

// An open segment as an argument; it is closed explicitly. `object` is JavaScript's handle.
struct OpenSegment {
  Napi::Object object;
  SharedSegment segment;

  Segment* operator->() const { return segment.get(); }
};

template <>
struct Codec<OpenSegment> {
  static std::string Type() { return "SegmentHandle"; }
  static OpenSegment Read(const Napi::Value& value, const std::string& path) {
    if (!value.IsObject() || !value.As<Napi::Object>().CheckTypeTag(&kSegmentTag)) {
      Refuse(value.Env(), path, "an open segment");
    }
    const auto object = value.As<Napi::Object>();
    const Napi::Value inner = object.Get("open");
    if (!inner.IsExternal()) throw Napi::TypeError::New(value.Env(), "the segment is closed");
    return {object, *inner.As<Napi::External<SharedSegment>>().Data()};
  }
};

// Wraps a new segment for JavaScript.
template <>
struct Codec<SharedSegment> {
  static std::string Type() { return "SegmentHandle"; }
  static Napi::Value Write(Napi::Env env, const SharedSegment& segment) {
    Napi::Object object = Napi::Object::New(env);
    object.TypeTag(&kSegmentTag);
    object.Set("open", Napi::External<SharedSegment>::New(
                           env, new SharedSegment(segment),
                           [](Napi::Env, SharedSegment* owned) { delete owned; }));
    return object;
  }
};

struct CreatedSegment {
  SharedSegment segment;
  int fd = -1;
};

template <>
inline constexpr auto kTable<CreatedSegment> =
    StructOf("CreatedSegment", "The caller closes both.",
             Field{"segment", &CreatedSegment::segment}, Field{"fd", &CreatedSegment::fd});

namespace {

Status BeginTrained(const OpenSegment& segment, const Floats& parameters) {
  return segment->BeginTrained(parameters.values);
}

Status RecordScales(const OpenSegment& segment, const std::vector<LocalityScale>& scales) {
  return segment->RecordScales(scales);
}

uint64_t DefaultSlots(const SlotOptions& options) {
  return DefaultSlotCount(options.group, options.staleness, options.num_devices,
                          options.batches_per_epoch, options.queue_max_bytes, options.record_bytes);
}

Result<CreatedSegment> Create(const SegmentSpec& spec) {
  UniqueFd fd = GNND_VALUE(Segment::Create(spec));
  Segment segment = GNND_VALUE(Segment::Attach(fd.get(), Access::kReadWrite));
  return CreatedSegment{std::make_shared<Segment>(std::move(segment)), fd.Release()};
}

void Close(OpenSegment open) {
  open.object.Get("open").As<Napi::External<SharedSegment>>().Data()->reset();
  open.object.Set("open", open.object.Env().Null());
}

Result<ExecutorId> Register(const OpenSegment& segment, Role role, uint32_t device) {
  return segment->RegisterExecutor(role, device);
}

SegmentSnapshot Snapshot(const OpenSegment& segment) { return segment->Snapshot(); }

EpochReport Epoch(const OpenSegment& segment, uint32_t epoch_index) {
  return segment->ReportEpoch(epoch_index);
}

Task<ReclaimReport> Reclaim(const OpenSegment& open, uint32_t incarnation) {
  return {[segment = open.segment, incarnation] { return segment->Reclaim(incarnation); }};
}

void SetCommand(const OpenSegment& segment, Command command) { segment->SetCommand(command); }

void SetStandby(const OpenSegment& segment, StandbyPolicy policy, bool armed,
                const StandbyEstimates& estimates) {
  segment->SetEstimates(estimates);
  segment->SetStandby(policy, armed);
}

void Abort(const OpenSegment& segment, const std::string& message) {
  segment->Abort(Code::kAborted, message);
}

Task<ImageFacts> Write(const OpenSegment& open, const std::string& folder,
                       const std::string& owner) {
  return {[segment = open.segment, folder, owner] { return WriteImage(*segment, folder, owner); }};
}

Task<ImageFacts> Load(const OpenSegment& open, const std::string& path, const std::string& owner) {
  return {[segment = open.segment, path, owner] { return LoadImage(*segment, path, owner); }};
}

Status BeginWithParameters(const OpenSegment& segment, const Floats& parameters) {
  return BeginWith(*segment.segment, parameters.values);
}

Result<Floats> OfImage(const std::string& path, Which which) {
  return Floats{GNND_VALUE(ReadImageParameters(path, which == Which::kBest))};
}

std::string BuildId() { return kBuildId; }

Result<ParametersCopy> Parameters(const OpenSegment& segment, Which which) {
  const auto floats = static_cast<size_t>(segment->parameter_floats());
  Napi::Float32Array data = Napi::Float32Array::New(segment.object.Env(), floats);
  const std::span<float> out(data.Data(), floats);
  const uint64_t at = which == Which::kBest ? GNND_VALUE(segment->CopyBestParameters(out))
                                            : GNND_VALUE(segment->CopyLastParameters(out));
  return ParametersCopy{at, data};
}

// ---- what is numbered by place ------------------------------------------------------------------

std::string SecondsText(const char* name, std::span<const uint64_t> bounds_ns) {
  std::string text = "export const " + std::string(name) + " = [";
  for (const uint64_t bound : bounds_ns) {
    char number[32];
    std::snprintf(number, sizeof number, "%g", static_cast<double>(bound) * 1e-9);
    text += std::string(text.back() == '[' ? "" : ", ") + number;
  }
  return text + "] as const;\n";
}

std::string ListText(const char* name, std::span<const char* const> names) {
  std::string text = "export const " + std::string(name) + " = [";
  for (const char* each : names)
    text += (text.back() == '[' ? "'" : ", '") + std::string(each) + "'";
  return text + "] as const;\n";
}

std::string NumberText(const char* name, uint64_t value, const char* what) {
  return "/** " + std::string(what) + " */\nexport const " + name + " = " + std::to_string(value) +
         ";\n";
}

std::string CountersText() {
  std::string text =
      "/** Index of `ExecutorSnapshot.counters`; native/core/ledger/layout.h says what each is. "
      "*/\nexport const counters = {\n";
  uint32_t place = 0;
  for (const char* name : kCounterNames) {
    text += "  " + std::string(name) + ": " + std::to_string(place++) + ",\n";
  }
  return text + "} as const;\n";
}

std::string PlacesText() {
  return "/** Upper bounds of `buckets` in seconds; one more bucket follows for the rest. */\n" +
         SecondsText("stageBoundsSeconds", kStageBoundsNs) +
         SecondsText("waitBoundsSeconds", kWaitBoundsNs) +
         "\n/** Index of `ExecutorSnapshot.stages`. */\n" + ListText("stages", kStageNames) +
         "\n/** Index of `ExecutorSnapshot.waits`. */\n" + ListText("waitSides", kWaitSideNames) +
         "\n" + CountersText() + "\n" +
         NumberText("trialEpoch", kTrialEpoch,
                    "The epoch of trials, which never see a batch of the job.") +
         NumberText("rankedEntryBytes", ScoreTable::kEntryBytes,
                    "A score that an evaluation ranks a node by, and what is known of the node.") +
         NumberText("rankedColumnBytes", ScoreTable::kColumnBytes, "What a column comes to.") +
         NumberText("countsPerClass", kCountsPerClass,
                    "Integers that a chunk of an evaluation counts for a class or a label.") +
         NumberText("linkCounts", kNumHitRanks,
                    "Integers that a chunk of an evaluation of links counts.") +
         "\n/** Index of the metrics of an evaluation. */\nexport const evaluationMetrics = [" +
         UnionOf<Metric>(", ") + "] as const;\n" +
         "\n/** An open segment; closed explicitly. */\nexport interface SegmentHandle {\n"
         "  readonly open: unknown;\n}\n";
}

}  // namespace

void DefineSegment(Subject& subject) {
  subject.Text(PlacesText())
      .Enum<StalenessCompensation>()
      .Enum<Role>()
      .Enum<Phase>()
      .Enum<Command>()
      .Enum<StandbyPolicy>()
      .Enum<Which>()
      .Enum<EvaluationKind>()
      .Enum<Metric>()
      .Struct<SlotOptions>()
      .Struct<HistoryConfig>()
      .Struct<LocalityScale>()
      .Struct<SegmentSpec>()
      .Struct<CreatedSegment>()
      .Struct<ExecutorId>()
      .Struct<ReclaimReport>()
      .Struct<StandbyEstimates>()
      .Struct<StageSnapshot>()
      .Struct<WaitSnapshot>()
      .Struct<ExecutorView>()
      .Struct<EvaluationProgress>()
      .Struct<SegmentSnapshot>()
      .Struct<EvalRecord>()
      .Struct<EvaluationReport>()
      .Struct<EpochReport>()
      .Struct<ParametersCopy>()
      .Struct<ImageFacts>();
  subject.Function("segmentDefaultSlots", DefaultSlots, {"options"})
      .Function("segmentCreate", Create, {"spec"})
      .Function("segmentBeginTrained", BeginTrained, {"segment", "parameters"},
                "Of one batch: only its evaluation is left to do, with these parameters.")
      .Function("segmentRecordScales", RecordScales, {"segment", "scales"},
                "By which the first epochs were followed in an earlier attempt, where they adapt.")
      .Function("segmentClose", Close, {"segment"})
      .Function("segmentRegister", Register, {"segment", "role", "device"})
      .Function("segmentSnapshot", Snapshot, {"segment"})
      .Function("segmentEpoch", Epoch, {"segment", "epochIndex"})
      .Function("segmentReclaim", Reclaim, {"segment", "incarnation"},
                "Frees what a dead executor held; it must have been reaped.")
      .Function("segmentCommand", SetCommand, {"segment", "command"})
      .Function("segmentStandby", SetStandby, {"segment", "policy", "armed", "estimates"})
      .Function("segmentAbort", Abort, {"segment", "message"})
      .Function("segmentParameters", Parameters, {"segment", "which"})
      .Function("segmentWriteImage", Write, {"segment", "folder", "owner"},
                "An image of the newest version, durable in `folder` or not at all.")
      .Function("segmentLoadImage", Load, {"segment", "path", "owner"},
                "Makes a segment without executors stand where the image was taken.")
      .Function("imageParameters", OfImage, {"path", "which"},
                "Reads and hashes the whole file: for threads of the pool (src/pool).")
      .Function("segmentBeginWith", BeginWithParameters, {"segment", "parameters"},
                "Makes a segment without executors begin with these parameters.")
      .Function("segmentBuildId", BuildId, {});
}

}  // namespace gnnd::node
