#include "core/model/model_spec.h"
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
  exports.Set("recordSlotBytes", Napi::Function::New(env, SlotBytes));
}

}  // namespace gnnd::node
