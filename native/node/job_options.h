#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/dataset.h"
#include "core/model/model_spec.h"
#include "core/sample/options.h"
#include "core/sample/plugin.h"
#include "node/convert.h"
#include "node/gen/job_spec.h"

// The options of jobs, as src/native/job-options.ts declares them.

namespace gnnd::node {

// SamplingOptions
struct SamplingOptions {
  SamplerOptions sampler;
  uint32_t batch_size = 0;
  bool hot_ranks = false;
  PluginSource plugin;  // read for kPlugin only
};

inline Algorithm AlgorithmOf(const std::string& name) {
  if (name == "KHOP_WEIGHTED") return Algorithm::kWeighted;
  if (name == "RANDOM_WALK") return Algorithm::kWalk;
  if (name == "LABOR") return Algorithm::kLabor;
  if (name == "KHOP_PLUGIN") return Algorithm::kPlugin;
  return Algorithm::kUniform;
}

inline EdgeWeights EdgeWeightsOf(Algorithm algorithm, bool gcn) {
  if (algorithm == Algorithm::kWalk) return EdgeWeights::kVisits;
  if (algorithm == Algorithm::kLabor) return EdgeWeights::kInverse;
  return gcn ? EdgeWeights::kGcn : EdgeWeights::kNone;
}

inline SamplingOptions SamplingOf(const Fields& fields) {
  SamplingOptions options;
  options.batch_size = fields.Uint32("batchSize");
  options.hot_ranks = fields.Bool("hotRanks");
  SamplerOptions& sampler = options.sampler;
  sampler.fanouts = fields.Int32List("fanouts");
  sampler.algorithm = AlgorithmOf(fields.String("algorithm"));
  sampler.weights = EdgeWeightsOf(sampler.algorithm, fields.Bool("gcnWeights"));
  sampler.replace = fields.Bool("replace");
  sampler.expansion = fields.String("expansion") == "NEW" ? Expansion::kNew : Expansion::kAll;
  if (sampler.algorithm == Algorithm::kWalk) {
    const Fields walk = fields.Object("walk");
    sampler.walk = {walk.Uint32("walks"), walk.Uint32("length"), walk.Double("restartProb")};
  }
  if (sampler.algorithm == Algorithm::kLabor) sampler.labor_window = fields.Uint32("laborWindow");
  if (sampler.algorithm == Algorithm::kPlugin) {
    const Fields plugin = fields.Object("plugin");
    options.plugin = {plugin.String("path"), plugin.String("sha256"), plugin.String("options")};
    if (plugin.Bool("weights")) sampler.weights = EdgeWeights::kGiven;
  }
  return options;
}

inline SampleLimits LimitsOf(const DatasetCounts& counts, const SamplingOptions& sampling) {
  SampleLimits limits = gnnd::LimitsOf(static_cast<uint32_t>(counts.num_nodes), counts.num_edges,
                                       sampling.batch_size, sampling.sampler);
  limits.hot_ranks = sampling.hot_ranks;
  return limits;
}

// ModelOptions
inline ModelSpec ModelOf(const Fields& fields) {
  ModelSpec spec;
  ReadModelSpec(fields, spec);
  spec.in_dim = fields.Uint32("inDim");
  spec.out_dim = fields.Uint32("outDim");
  return spec;
}

// The user's model that ModelOptions name, where they do.
struct ScriptSource {
  std::string path;
  std::string sha256;
};

inline ScriptSource ScriptOf(const Fields& model) {
  if (model.String("type") != "TORCHSCRIPT") return {};
  const Fields script = model.Object("script");
  return {script.String("path"), script.String("sha256")};
}

}  // namespace gnnd::node
