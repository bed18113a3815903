// Made from the job spec in proto/gnnd/v1 by `npm run build:proto`; not to be edited.
// clang-format off
#pragma once

#include "node/job_structs.h"
#include "node/table.h"

// Parts of a job spec that the daemon hands on as they are. Every field must have a member of
// its name: one that nobody honours does not compile.

namespace gnnd::node {

template <>
inline constexpr auto kNames<LocalitySchedule> = NamesOf<LocalitySchedule>("LocalitySchedule", {
    {"FIXED", LocalitySchedule{1}},
    {"ADAPTIVE", LocalitySchedule{2}}});

template <>
inline constexpr auto kNames<Algorithm> = NamesOf<Algorithm>("Algorithm", {
    {"KHOP_UNIFORM", Algorithm{1}},
    {"KHOP_WEIGHTED", Algorithm{2}},
    {"RANDOM_WALK", Algorithm{3}},
    {"LABOR", Algorithm{4}},
    {"KHOP_PLUGIN", Algorithm{5}}});

template <>
inline constexpr auto kNames<Expansion> = NamesOf<Expansion>("Expansion", {
    {"ALL", Expansion{1}},
    {"NEW", Expansion{2}}});

template <>
inline constexpr auto kNames<ModelType> = NamesOf<ModelType>("ModelType", {
    {"GRAPHSAGE", ModelType{1}},
    {"GCN", ModelType{2}},
    {"GAT", ModelType{3}},
    {"GATV2", ModelType{4}},
    {"PINSAGE", ModelType{5}},
    {"TORCHSCRIPT", ModelType{6}},
    {"SGC", ModelType{7}},
    {"SIGN", ModelType{8}},
    {"HOGA", ModelType{9}},
    {"GIN", ModelType{10}},
    {"TRANSFORMER", ModelType{11}},
    {"RSAGE", ModelType{12}},
    {"RGCN", ModelType{13}},
    {"HGT", ModelType{14}}});

template <>
inline constexpr auto kNames<Activation> = NamesOf<Activation>("Activation", {
    {"RELU", Activation{1}},
    {"ELU", Activation{2}},
    {"LEAKY_RELU", Activation{3}}});

template <>
inline constexpr auto kNames<Normalization> = NamesOf<Normalization>("Normalization", {
    {"NONE", Normalization{1}},
    {"L2", Normalization{2}},
    {"LAYER", Normalization{3}}});

template <>
inline constexpr auto kNames<ModelVariant> = NamesOf<ModelVariant>("ModelVariant", {
    {"NONE", ModelVariant{1}},
    {"FUSED", ModelVariant{2}},
    {"CONCAT", ModelVariant{3}},
    {"GATED", ModelVariant{4}},
    {"DAC24", ModelVariant{5}}});

template <>
inline constexpr auto kNames<ScheduleType> = NamesOf<ScheduleType>("ScheduleType", {
    {"CONSTANT", ScheduleType{1}},
    {"STEP", ScheduleType{2}},
    {"COSINE", ScheduleType{3}}});

template <>
inline constexpr auto kNames<WeightDecayScope> = NamesOf<WeightDecayScope>("WeightDecayScope", {
    {"ALL", WeightDecayScope{1}},
    {"FIRST_LAYER", WeightDecayScope{2}}});

template <>
inline constexpr auto kNames<OptimizerType> = NamesOf<OptimizerType>("OptimizerType", {
    {"ADAM", OptimizerType{1}},
    {"ADAMW", OptimizerType{2}},
    {"SGD", OptimizerType{3}}});

template <>
inline constexpr auto kNames<Precision> = NamesOf<Precision>("Precision", {
    {"AUTO", Precision{4}},
    {"FLOAT32", Precision{1}},
    {"BFLOAT16", Precision{2}},
    {"TF32", Precision{3}}});

template <>
inline constexpr auto kNames<LinkExclusion> = NamesOf<LinkExclusion>("LinkExclusion", {
    {"BATCH", LinkExclusion{1}},
    {"BATCH_AFTER", LinkExclusion{2}},
    {"NONE", LinkExclusion{3}}});

template <>
inline constexpr auto kNames<NegativeMethod> = NamesOf<NegativeMethod>("NegativeMethod", {
    {"UNIFORM", NegativeMethod{1}},
    {"DEGREE", NegativeMethod{2}},
    {"JOINT", NegativeMethod{3}},
    {"IN_BATCH", NegativeMethod{4}}});

template <>
inline constexpr auto kNames<KnownLinks> = NamesOf<KnownLinks>("KnownLinks", {
    {"ALLOW", KnownLinks{1}},
    {"MASK", KnownLinks{2}},
    {"AVOID", KnownLinks{3}}});

template <>
inline constexpr auto kNames<LinkHead> = NamesOf<LinkHead>("LinkHead", {
    {"DOT", LinkHead{1}},
    {"COSINE", LinkHead{2}},
    {"DISTMULT", LinkHead{3}},
    {"BILINEAR", LinkHead{4}},
    {"MLP", LinkHead{5}}});

template <>
inline constexpr auto kNames<LinkLoss> = NamesOf<LinkLoss>("LinkLoss", {
    {"BCE", LinkLoss{1}},
    {"BCE_BALANCED", LinkLoss{2}},
    {"BPR", LinkLoss{3}},
    {"SOFTMAX", LinkLoss{4}}});

template <>
inline constexpr auto kNames<EvaluationNegatives> =
    NamesOf<EvaluationNegatives>("EvaluationNegatives", {
    {"AUTO", EvaluationNegatives{1}},
    {"KEYED", EvaluationNegatives{2}},
    {"ALL", EvaluationNegatives{3}},
    {"DATASET", EvaluationNegatives{4}},
    {"POOL", EvaluationNegatives{5}}});

template <>
inline constexpr auto kTable<WalkOptions> = StructOf("WalkOptions",
    Field{"walks", &WalkOptions::walks},
    Field{"length", &WalkOptions::length},
    Field{"restartProb", &WalkOptions::restart_prob});

template <>
inline constexpr auto kTable<LaborOptions> = StructOf("LaborOptions",
    Field{"dependencyWindow", &LaborOptions::dependency_window});

template <>
inline constexpr auto kTable<LocalityOptions> = StructOf("LocalityOptions",
    Field{"maxScale", &LocalityOptions::max_scale},
    Field{"schedule", &LocalityOptions::schedule},
    Field{"ratio", &LocalityOptions::ratio},
    Field{"hopNodes", &LocalityOptions::hop_nodes});

template <>
inline constexpr auto kTable<PluginSource> = StructOf("PluginSource",
    Field{"path", &PluginSource::path},
    Field{"options", &PluginSource::options},
    Field{"weights", &PluginSource::weights},
    Field{"sha256", &PluginSource::sha256});

inline constexpr auto kSamplingSpec = std::tuple{
    Field{"fanouts", &SamplingOptions::fanouts},
    Field{"algorithm", &SamplingOptions::algorithm},
    Field{"replace", &SamplingOptions::replace},
    Field{"expansion", &SamplingOptions::expansion},
    Field{"walk", &SamplingOptions::walk},
    Field{"labor", &SamplingOptions::labor},
    Field{"plugin", &SamplingOptions::source},
    Field{"locality", &SamplingOptions::locality}};

template <>
inline constexpr auto kTable<ScriptSource> = StructOf("ScriptSource",
    Field{"path", &ScriptSource::path},
    Field{"sha256", &ScriptSource::sha256});

inline constexpr auto kModelSpec = std::tuple{
    Field{"type", &ModelOptions::type},
    Field{"layers", &ModelOptions::num_layers},
    Field{"hiddenDim", &ModelOptions::hidden_dim},
    Field{"dropout", &ModelOptions::dropout},
    Field{"inputDropout", &ModelOptions::input_dropout},
    Field{"heads", &ModelOptions::heads},
    Field{"activation", &ModelOptions::activation},
    Field{"normalization", &ModelOptions::normalization},
    Field{"residual", &ModelOptions::residual},
    Field{"attentionDropout", &ModelOptions::attention_dropout},
    Field{"script", &ModelOptions::script},
    Field{"variant", &ModelOptions::variant},
    Field{"hopLayers", &ModelOptions::hop_layers},
    Field{"hopHiddenDim", &ModelOptions::hop_hidden_dim},
    Field{"bases", &ModelOptions::bases}};

inline constexpr auto kLrScheduleSpec = std::tuple{
    Field{"type", &ScheduleOptions::type},
    Field{"stepEpochs", &ScheduleOptions::step_epochs},
    Field{"gamma", &ScheduleOptions::gamma},
    Field{"warmupEpochs", &ScheduleOptions::warmup_epochs}};

inline constexpr auto kOptimizerSpec = std::tuple{
    Field{"learningRate", &OptimizerOptions::learning_rate},
    Field{"beta1", &OptimizerOptions::beta1},
    Field{"beta2", &OptimizerOptions::beta2},
    Field{"epsilon", &OptimizerOptions::epsilon},
    Field{"weightDecay", &OptimizerOptions::weight_decay},
    Field{"weightDecayScope", &OptimizerOptions::weight_decay_scope},
    Field{"type", &OptimizerOptions::type},
    Field{"momentum", &OptimizerOptions::momentum},
    Field{"clipNorm", &OptimizerOptions::clip_norm},
    Field{"nesterov", &OptimizerOptions::nesterov}};

}  // namespace gnnd::node
