// Made from the job spec in proto/gnnd/v1 by `npm run build:proto`; not to be edited.
// clang-format off
#pragma once

#include "node/spec_field.h"

// Parts of a job spec that the daemon hands on as they are. Every field must have a member of
// its name: one that nobody honours does not compile.

namespace gnnd::node {

template <typename Options>
void ReadModelSpec(const Fields& fields, Options& options) {
  ReadSpecName(fields, "type", options.type,
               {{"GRAPHSAGE", 1},
                {"GCN", 2},
                {"GAT", 3},
                {"GATV2", 4},
                {"PINSAGE", 5},
                {"TORCHSCRIPT", 6}});
  ReadSpecField(fields, "layers", options.num_layers);
  ReadSpecField(fields, "hiddenDim", options.hidden_dim);
  ReadSpecField(fields, "dropout", options.dropout);
  ReadSpecField(fields, "inputDropout", options.input_dropout);
  ReadSpecField(fields, "heads", options.heads);
  ReadSpecName(fields, "activation", options.activation,
               {{"RELU", 1},
                {"ELU", 2},
                {"LEAKY_RELU", 3}});
  ReadSpecName(fields, "normalization", options.normalization,
               {{"NONE", 1},
                {"L2", 2},
                {"LAYER", 3}});
  ReadSpecField(fields, "residual", options.residual);
  ReadSpecField(fields, "attentionDropout", options.attention_dropout);
}

template <typename Options>
void ReadOptimizerSpec(const Fields& fields, Options& options) {
  ReadSpecField(fields, "learningRate", options.learning_rate);
  ReadSpecField(fields, "beta1", options.beta1);
  ReadSpecField(fields, "beta2", options.beta2);
  ReadSpecField(fields, "epsilon", options.epsilon);
  ReadSpecField(fields, "weightDecay", options.weight_decay);
  ReadSpecName(fields, "weightDecayScope", options.weight_decay_scope,
               {{"ALL", 1},
                {"FIRST_LAYER", 2}});
  ReadSpecName(fields, "type", options.type,
               {{"ADAM", 1},
                {"ADAMW", 2},
                {"SGD", 3}});
  ReadSpecField(fields, "momentum", options.momentum);
  ReadSpecField(fields, "clipNorm", options.clip_norm);
  ReadSpecField(fields, "nesterov", options.nesterov);
}

template <typename Options>
void ReadLrScheduleSpec(const Fields& fields, Options& options) {
  ReadSpecName(fields, "type", options.type,
               {{"CONSTANT", 1},
                {"STEP", 2},
                {"COSINE", 3}});
  ReadSpecField(fields, "stepEpochs", options.step_epochs);
  ReadSpecField(fields, "gamma", options.gamma);
  ReadSpecField(fields, "warmupEpochs", options.warmup_epochs);
}

}  // namespace gnnd::node
