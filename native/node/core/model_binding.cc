#include "core/model/model_spec.h"
#include "core/sample/layout.h"
#include "node/core/bindings.h"
#include "node/job_options.h"

// Sizes that follow from a spec: mirrors `modelManifest` and `recordSlotBytes` of contract.ts.

namespace gnnd::node {
namespace {

// modelManifest(model): ModelManifest
Napi::Value Manifest(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const ParameterManifest manifest =
      ValueOrThrow(env, ManifestOf(ModelOf(Fields(info[0], "model"))));
  Napi::Array tensors = Napi::Array::New(env);
  for (const ParameterTensor& tensor : manifest.tensors) {
    Napi::Object entry = Napi::Object::New(env);
    entry.Set("name", tensor.name);
    entry.Set("rows", tensor.rows);
    entry.Set("cols", tensor.cols);
    entry.Set("leadingOne", tensor.leading_one);
    entry.Set("offset", NumberOf(env, tensor.offset));
    tensors.Set(tensors.Length(), entry);
  }
  Napi::Object result = Napi::Object::New(env);
  result.Set("tensors", tensors);
  result.Set("numFloats", NumberOf(env, manifest.num_floats));
  return result;
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
