#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "core/dataset/dataset.h"
#include "core/model/model_spec.h"
#include "core/sample/options.h"
#include "core/sample/plugin.h"
#include "node/convert.h"

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

// The value of a name, or 0, which no option has and whatever checks the option refuses.
template <typename Option, size_t kCount>
Option OptionOf(const std::string& name, const std::pair<const char*, Option> (&names)[kCount]) {
  for (const auto& [text, value] : names) {
    if (name == text) return value;
  }
  return Option{};
}

inline ModelType ModelTypeOf(const std::string& name) {
  return OptionOf<ModelType>(name, {{"GRAPHSAGE", ModelType::kGraphSage},
                                    {"GCN", ModelType::kGcn},
                                    {"GAT", ModelType::kGat},
                                    {"GATV2", ModelType::kGatV2},
                                    {"PINSAGE", ModelType::kPinSage},
                                    {"TORCHSCRIPT", ModelType::kScript}});
}

inline Activation ActivationOf(const std::string& name) {
  return OptionOf<Activation>(name, {{"RELU", Activation::kRelu},
                                     {"ELU", Activation::kElu},
                                     {"LEAKY_RELU", Activation::kLeakyRelu}});
}

inline Normalization NormalizationOf(const std::string& name) {
  return OptionOf<Normalization>(name, {{"NONE", Normalization::kNone},
                                        {"L2", Normalization::kL2},
                                        {"LAYER", Normalization::kLayer}});
}

// ModelOptions
inline ModelSpec ModelOf(const Fields& fields) {
  ModelSpec spec;
  spec.type = ModelTypeOf(fields.String("type"));
  spec.num_layers = fields.Uint32("layers");
  spec.in_dim = fields.Uint32("inDim");
  spec.hidden_dim = fields.Uint32("hiddenDim");
  spec.out_dim = fields.Uint32("outDim");
  spec.dropout = static_cast<float>(fields.Double("dropout"));
  spec.input_dropout = static_cast<float>(fields.Double("inputDropout"));
  spec.heads = fields.Uint32("heads");
  spec.attention_dropout = static_cast<float>(fields.Double("attentionDropout"));
  spec.activation = ActivationOf(fields.String("activation"));
  spec.normalization = NormalizationOf(fields.String("normalization"));
  spec.residual = fields.Bool("residual");
  return spec;
}

// The user's model that ModelOptions name, where they do.
struct ScriptSource {
  std::string path;
  std::string sha256;
};

inline ScriptSource ScriptOf(const Fields& model) {
  if (ModelTypeOf(model.String("type")) != ModelType::kScript) return {};
  const Fields script = model.Object("script");
  return {script.String("path"), script.String("sha256")};
}

}  // namespace gnnd::node
