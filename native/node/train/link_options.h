#pragma once

#include <cstdint>
#include <string>

#include "core/graph/dataset.h"
#include "core/item/link_choices.h"
#include "core/kernels/link_loss.h"
#include "node/tables.h"

// What a job says of the links that its Trainers learn.

namespace gnnd::node {

// What is computed for links, beside what the model's head and the batches say.
struct LinkTrainingOptions {
  LinkLossOptions loss;
  EvaluationNegatives negatives = EvaluationNegatives::kKeyed;
  uint32_t count = 1;
  std::string test_folder;
  uint64_t test_edges = 0;
  bool weighted = false;
  bool labelled = false;
  gnnd::Task task = gnnd::Task::kClassification;
};

template <>
inline constexpr auto kTable<LinkTrainingOptions> =
    StructOf("LinkTrainingOptions", "Read if the model has a head.",
             Field{"loss", [](auto& options) -> auto& { return options.loss.loss; }},
             Field{"temperature", [](auto& options) -> auto& { return options.loss.temperature; }},
             Field{"negatives", &LinkTrainingOptions::negatives,
                   "Of links_val.npy and links_test.npy in the dataset's folder."},
             Field{"count", &LinkTrainingOptions::count, "Of each link, for KEYED."},
             Field{"testFolder", &LinkTrainingOptions::test_folder,
                   "Of the graph that test links are told by; empty: that of batches."},
             Field{"testEdges", &LinkTrainingOptions::test_edges, "Of that graph."},
             Field{"weighted", &LinkTrainingOptions::weighted,
                   "Training links count as links_train_weights.npy has it, else alike."},
             Field{"labelled", &LinkTrainingOptions::labelled,
                   "What is known of links is learnt: links_train_labels.npy and so on."},
             Field{"task", &LinkTrainingOptions::task, "Of the labels."});

}  // namespace gnnd::node
