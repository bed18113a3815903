#pragma once

#include <string>
#include <vector>

#include "core/executor/prediction_place.h"
#include "core/executor/sampler_loop.h"
#include "core/kernels/optimizer.h"
#include "node/tables.h"
#include "node/train/link_options.h"
#include "node/train/predicted_nodes.h"
#include "train/input/link_use.h"
#include "train/input/rows_options.h"
#include "train/input/train_options.h"

// What the daemon tells a Trainer.

namespace gnnd::node {

template <>
inline constexpr auto kTable<ScheduleOptions> = Extending(
    kLrScheduleSpec, "ScheduleOptions", Field{"stepsPerEpoch", &ScheduleOptions::steps_per_epoch},
    Field{"epochs", &ScheduleOptions::epochs, "Of the job."});

template <>
inline constexpr auto kTable<OptimizerOptions> =
    Extending(kOptimizerSpec, "OptimizerOptions", Field{"schedule", &OptimizerOptions::schedule});

struct EvaluationOptions {
  int scratch_fd = 0;
  bool sampled = false;
  SamplingOptions sampling;
  Metric decides = Metric::kAccuracy;
};

template <>
inline constexpr auto kTable<EvaluationOptions> =
    StructOf("EvaluationOptions",
             Field{"scratchFd", &EvaluationOptions::scratch_fd,
                   "Receives hidden rows of exact evaluations; 0: there are none."},
             Field{"sampled", &EvaluationOptions::sampled},
             Field{"sampling", &EvaluationOptions::sampling,
                   "Used for sampled evaluations only; batchSize is not."},
             Field{"decides", &EvaluationOptions::decides,
                   "Decides which parameters are the best, and on an early stop."});

template <>
inline constexpr auto kNames<RowTier> = NamesOf<RowTier>(
    "RowReadTier",
    {{"HOST", RowTier::kHost}, {"DISK", RowTier::kDisk}, {"DEVICE", RowTier::kDevice}});

template <>
inline constexpr auto kNames<DeviceSplits> = NamesOf<DeviceSplits>(
    "DeviceRowSplits", {{"ALL", DeviceSplits::kAll}, {"TRAIN", DeviceSplits::kTrain}});

// Options of jobs whose batches are rows.
struct RowOptions {
  std::string folder;
  uint32_t chunk = 1;
  RowTier tier = RowTier::kHost;
  DeviceSplits device_splits = DeviceSplits::kAll;
};

template <>
inline constexpr auto kTable<RowOptions> = StructOf(
    "RowOptions",
    Field{"folder", &RowOptions::folder, "Of a propagation's row files; empty: of blocks."},
    Field{"chunk", &RowOptions::chunk, "Rows that stay together in an epoch's order."},
    Field{"tier", &RowOptions::tier, "Where they are read; decides no bit."},
    Field{"deviceSplits", &RowOptions::device_splits,
          "What a device holds, where that is the tier."});

template <>
inline constexpr auto kNames<OutputKind> =
    NamesOf<OutputKind>("OutputKind", {{"PREDICTIONS", OutputKind::kPredictions},
                                       {"LOGITS", OutputKind::kLogits},
                                       {"PROBABILITIES", OutputKind::kProbabilities},
                                       {"EMBEDDINGS", OutputKind::kEmbeddings}});

template <>
inline constexpr auto kTable<OutputChoice> = StructOf(
    "OutputChoice", "A file of an inference.", Field{"kind", &OutputChoice::kind},
    Field{"layer", &OutputChoice::layer, "Whose rows it is made of; 0: nearest the features."});

template <>
inline constexpr auto kNames<LinkAsks> =
    NamesOf<LinkAsks>("LinkAsks", {{"NOTHING", LinkAsks::kNothing},
                                   {"SCORES", LinkAsks::kScores},
                                   {"NEAREST", LinkAsks::kNearest}});

// What is asked of a head; the nodes of it are in files of the inference's folder.
struct QuestionOptions {
  LinkQuestion own;
  bool among = false;
};

template <>
inline constexpr auto kTable<QuestionOptions> = StructOf(
    "QuestionOptions", "What is asked of the head of a model of links.",
    Field{"asks", [](auto& options) -> auto& { return options.own.asks; },
          "SCORES: of the pairs in pairs.npy in the folder."},
    Field{"k", [](auto& options) -> auto& { return options.own.k; }, "NEAREST: so many each."},
    Field{"among", &QuestionOptions::among,
          "NEAREST: whether they are of the nodes in among.npy in the folder; else of all."},
    Field{"withKnown", [](auto& options) -> auto& { return options.own.with_known; },
          "NEAREST: whether those that it is linked to already are among them."});

// Options of inference: the nodes that its Trainers predict instead of evaluating.
struct PredictionOptions {
  PredictionPlace place;
  PredictedNodes nodes = PredictedNodes::kAll;
  QuestionOptions question;
};

template <>
inline constexpr auto kTable<PredictionOptions> = StructOf(
    "PredictionOptions",
    Field{"folder", [](auto& options) -> auto& { return options.place.folder; },
          "Of native/core/executor/chunk_files.h; empty: nothing is predicted."},
    Field{"task", [](auto& options) -> auto& { return options.place.task; }, "Of the model."},
    Field{"nodes", &PredictionOptions::nodes, "LISTED: those of targets.npy in the folder."},
    Field{"outputs", [](auto& options) -> auto& { return options.place.outputs; }},
    Field{"question", &PredictionOptions::question});

// Options of a Trainer's history, besides the memory that Trainers share.
struct HistoryOptions {
  HistoryConfig own;
  uint32_t levels = 0;
  double p_grad = 0;
};

template <>
inline constexpr auto kTable<HistoryOptions> = StructOf(
    "HistoryOptions",
    Field{"own", &HistoryOptions::own, "Where the segment has none: of the Trainer's own."},
    Field{"levels", &HistoryOptions::levels, "Bit l: rows that layer l gives are kept."},
    Field{"gradientShare", &HistoryOptions::p_grad, "p_grad."});

template <>
inline constexpr auto kTable<ClassWeighting> =
    StructOf("ClassWeighting", "Of losses, by class or label.",
             Field{"weights", &ClassWeighting::weights, "One each; none: 1."},
             Field{"balanced", &ClassWeighting::balanced, "By how many training nodes have it."});

struct TrainerOptions : ExecutorOptions {
  ModelOptions model;
  OptimizerOptions optimizer;
  Precision precision = Precision::kFloat32;
  uint32_t threads = 1;
  bool prefetch = false;
  EvaluationOptions evaluation;
  RowOptions rows;
  PredictionOptions prediction;
  HistoryOptions history;
  ClassWeighting class_weighting;
  LinkTrainingOptions links;
};

template <>
inline constexpr auto kTable<TrainerOptions> = Extending(
    kTable<ExecutorOptions>.fields, "TrainerOptions", Field{"model", &TrainerOptions::model},
    Field{"optimizer", &TrainerOptions::optimizer}, Field{"precision", &TrainerOptions::precision},
    Field{"threads", &TrainerOptions::threads},
    Field{"prefetch", &TrainerOptions::prefetch,
          "Extract the next batch while the present one is computed."},
    Field{"evaluation", &TrainerOptions::evaluation}, Field{"rows", &TrainerOptions::rows},
    Field{"prediction", &TrainerOptions::prediction}, Field{"history", &TrainerOptions::history},
    Field{"classWeighting", &TrainerOptions::class_weighting},
    Field{"links", &TrainerOptions::links});

inline std::string ListOf(const PredictionOptions& prediction) {
  return prediction.place.folder + "/targets.npy";
}

// Makes the Trainer predict, and evaluate nothing; `dataset` as NodesOf has it.
template <typename AnyDataset>
Status PredictInstead(const TrainerOptions& options, const AnyDataset& dataset,
                      TrainOptions* train) {
  const PredictionOptions& prediction = options.prediction;
  train->val_nodes = train->test_nodes = {};
  train->predictions = prediction.place;
  train->predicts_all = prediction.nodes == PredictedNodes::kAll;
  const auto num_nodes = static_cast<uint32_t>(options.dataset.counts.num_nodes);
  train->predicted_nodes =
      GNND_VALUE(NodesOf(dataset, num_nodes, prediction.nodes, ListOf(prediction)));
  return Status::Ok();
}

// Runs a Trainer of models over several types of nodes (typed_trainer.cc).
Result<LoopEnd> RunTypedTrainer(const TrainerOptions& options);

}  // namespace gnnd::node
