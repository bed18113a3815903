#include <algorithm>

#include "core/model/model_spec.h"
#include "core/run/eval_scratch.h"
#include "core/sample/layout.h"
#include "node/core/bindings.h"
#include "node/job_options.h"
#include "node/manifest_value.h"

// Sizes that follow from a spec: mirrors `modelManifest` and `recordSlotBytes` of contract.ts.

namespace gnnd::node {
namespace {

// modelManifest(model): ModelManifest
Napi::Value Manifest(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const ParameterManifest manifest =
      ValueOrThrow(env, ManifestOf(ModelOf(Fields(info[0], "model"))));
  return ManifestValue(env, manifest);
}

// evaluationSizes(options): EvaluationSizes
Napi::Value EvaluationSizes(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const Fields fields(info[0], "options");
  const DatasetCounts counts = CountsOf(fields.Object("counts"));
  ModelSpec spec = ModelOf(fields.Object("model"));
  for (const int32_t width : fields.Int32List("widths")) {
    spec.widths.push_back(static_cast<uint32_t>(width));
  }
  if (spec.type == ModelType::kScript && spec.widths.size() != spec.num_layers) {
    ThrowUnlessOk(env, Status(Code::kInvalidArgument, "options.widths: one for each layer"));
  }
  Napi::Object sizes = Napi::Object::New(env);
  if (fields.Bool("sampled")) {
    const uint64_t most = std::max({counts.val, counts.test, uint64_t{1}});
    sizes.Set("chunks", NumberOf(env, (most + kEvalChunkSeeds - 1) / kEvalChunkSeeds));
    sizes.Set("scratchBytes", NumberOf(env, 0));
    sizes.Set("workBytes", NumberOf(env, 0));  // as a batch, and never beside one
    return sizes;
  }
  const uint64_t chunks = uint64_t{MaxEvalPhases(spec)} * EvalChunks(counts.num_nodes);
  sizes.Set("chunks", NumberOf(env, chunks));
  sizes.Set("scratchBytes", NumberOf(env, EvalLayout::Of(spec, counts.num_nodes).total_bytes));
  sizes.Set("workBytes",
            NumberOf(env, EvalWorkBytes(spec, counts.num_nodes, counts.val + counts.test,
                                        fields.Uint32("threads"))));
  return sizes;
}

// evaluationScratch(bytes, folder): fd, the caller's to hand down and to close
Napi::Value Scratch(const Napi::CallbackInfo& info) {
  const auto bytes = static_cast<uint64_t>(info[0].As<Napi::Number>().Int64Value());
  UniqueFd fd =
      ValueOrThrow(info.Env(), EvalScratch::Create(bytes, info[1].As<Napi::String>().Utf8Value()));
  return Napi::Number::New(info.Env(), fd.Release());
}

// recordSlotBytes(counts, sampling): number: virtual bytes of the largest possible record
Napi::Value SlotBytes(const Napi::CallbackInfo& info) {
  const DatasetCounts counts = CountsOf(Fields(info[0], "counts"));
  const SamplingOptions sampling = SamplingOf(Fields(info[1], "sampling"));
  const RecordLayout layout =
      ValueOrThrow(info.Env(), RecordLayout::Of(LimitsOf(counts, sampling)));
  return NumberOf(info.Env(), layout.slot_bytes());
}

}  // namespace

void DefineModel(Napi::Env env, Napi::Object exports) {
  exports.Set("modelManifest", Napi::Function::New(env, Manifest));
  exports.Set("evaluationSizes", Napi::Function::New(env, EvaluationSizes));
  exports.Set("evaluationScratch", Napi::Function::New(env, Scratch));
  exports.Set("recordSlotBytes", Napi::Function::New(env, SlotBytes));
}

}  // namespace gnnd::node
