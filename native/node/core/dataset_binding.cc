#include <memory>

#include "core/dataset/csr.h"
#include "core/dataset/features.h"
#include "core/dataset/topology.h"
#include "core/dataset/validate.h"
#include "node/core/bindings.h"
#include "node/job_options.h"

// Dataset files: mirrors `dataset*` and `topology*` of contract.ts.

namespace gnnd::node {
namespace {

Napi::Value ValidationOf(Napi::Env env, DatasetValidation& validation) {
  Napi::Array problems = Napi::Array::New(env);
  for (const DatasetProblem& problem : validation.problems) {
    Napi::Object entry = Napi::Object::New(env);
    entry.Set("path", problem.file);
    entry.Set("description", problem.message);
    problems.Set(problems.Length(), entry);
  }
  Napi::Object result = Napi::Object::New(env);
  result.Set("problems", problems);
  result.Set("problemCount", NumberOf(env, validation.num_problems));
  return result;
}

// datasetValidate(folder, counts): Promise<DatasetValidation>
Napi::Value ValidateDataset(const Napi::CallbackInfo& info) {
  const std::string folder = info[0].As<Napi::String>().Utf8Value();
  const DatasetCounts counts = CountsOf(Fields(info[1], "counts"));
  return RunOnThread<DatasetValidation>(
      info.Env(),
      [folder, counts]() -> Result<DatasetValidation> { return Validate(folder, counts); },
      ValidationOf);
}

// datasetStandardize(inputPath, outputPath): Promise<void>
Napi::Value Standardize(const Napi::CallbackInfo& info) {
  const std::string input = info[0].As<Napi::String>().Utf8Value();
  const std::string output = info[1].As<Napi::String>().Utf8Value();
  return RunOnThread(info.Env(), [input, output] { return StandardizeFeatures(input, output); });
}

// topologyReserve(): number: an empty memfd
Napi::Value MakeTopology(const Napi::CallbackInfo& info) {
  Result<UniqueFd> fd = ReserveTopology();
  if (!fd.ok()) ThrowUnlessOk(info.Env(), fd.status());
  return Napi::Number::New(info.Env(), fd->Release());
}

// topologyFill(fd, location, alias): Promise<void>: seals it for all Samplers of the host
Napi::Value FillReserved(const Napi::CallbackInfo& info) {
  const int fd = info[0].As<Napi::Number>().Int32Value();
  const DatasetLocation location = LocationOf(Fields(info[1], "location"));
  const bool alias = info[2].As<Napi::Boolean>().Value();
  return RunOnThread(info.Env(), [fd, location, alias]() -> Status {
    Result<Dataset> dataset = Dataset::Open(location.folder, location.counts);
    if (!dataset.ok()) return dataset.status();
    return FillTopology(fd, *dataset, alias);
  });
}

}  // namespace

void DefineDataset(Napi::Env env, Napi::Object exports) {
  exports.Set("datasetValidate", Napi::Function::New(env, ValidateDataset));
  exports.Set("datasetStandardize", Napi::Function::New(env, Standardize));
  exports.Set("topologyReserve", Napi::Function::New(env, MakeTopology));
  exports.Set("topologyFill", Napi::Function::New(env, FillReserved));
}

}  // namespace gnnd::node
