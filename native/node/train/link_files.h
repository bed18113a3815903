#pragma once

#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "core/graph/dataset.h"
#include "core/graph/npy.h"
#include "core/graph/topology.h"
#include "train/input/link_use.h"
#include "train/tasks/task.h"

// Links that a Trainer reads from files: those that it evaluates, and those that it is asked for.

namespace gnnd::node {

// Arrays of node ids, mapped as long as this lives.
class LinkFiles {
 public:
  // Rows of `extents` - 1 axes of uint32, however many.
  Result<std::span<const uint32_t>> Read(const std::string& path, size_t extents) {
    files_.push_back(GNND_VALUE(NpyArray::Open(path)));
    const NpyArray& file = files_.back();
    if (file.type() != NpyType::kUint32 || file.shape().size() != extents) {
      return Status(Code::kDatasetCorrupt,
                    path + " is not an array of uint32 of " + std::to_string(extents) + " axes");
    }
    return file.values<uint32_t>();
  }

  // The links of both evaluated sides, of a dataset's folder.
  Status ReadEvaluated(const std::string& folder, LinkUse* use) {
    const bool given = use->negatives == EvaluationNegatives::kDataset;
    const bool pooled = use->negatives == EvaluationNegatives::kPool;
    for (const EvalNodes which : {EvalNodes::kValidation, EvalNodes::kTest}) {
      const std::string side = which == EvalNodes::kTest ? "test" : "val";
      LinkSet& set = use->sets[static_cast<uint32_t>(which)];
      set.ends = GNND_VALUE(Read(folder + "/links_" + side + ".npy", 2));
      if (given) {
        set.negatives = GNND_VALUE(Read(folder + "/links_" + side + "_negatives.npy", 2));
      }
      if (pooled) {
        set.negatives = GNND_VALUE(Read(folder + "/links_" + side + "_negative_pairs.npy", 2));
      }
    }
    return Status::Ok();
  }

  // How much each of `links` training links counts.
  Status ReadWeights(const std::string& folder, uint32_t links, LinkWeights* weights) {
    files_.push_back(GNND_VALUE(NpyArray::Open(folder + "/links_train_weights.npy")));
    const NpyArray& file = files_.back();
    GNND_TRY(file.Expect({NpyType::kFloat32}, {links}));
    weights->of = file.values<float>();
    double sum = 0;
    for (const float weight : weights->of) {
      if (!(weight >= 0) || !std::isfinite(weight)) {
        return Status(Code::kDatasetCorrupt,
                      file.file() + " has a weight that is no number from 0");
      }
      sum += static_cast<double>(weight);
    }
    if (!(sum > 0)) return Status(Code::kDatasetCorrupt, file.file() + " has no weight above 0");
    weights->scale = static_cast<double>(links) / sum;
    return Status::Ok();
  }

  // The graph that test links are told by, in a folder like a dataset's. It stays in its files,
  // which the kernel caches; each element is checked first, as a topology's are.
  Status ReadTestMessages(const std::string& folder, const DatasetCounts& counts, LinkUse* use) {
    test_graph_ = GNND_VALUE(Dataset::Open(folder, counts));
    const UniqueFd memfd =
        GNND_VALUE(CreateTopology(test_graph_, {TopologyPlace::kFile, /*alias=*/false}));
    test_topology_ = GNND_VALUE(Topology::Attach(memfd.get(), test_graph_));
    use->test_messages = TestMessages{test_topology_.view(), test_graph_.edge_weights()};
    return Status::Ok();
  }

  // What is known of the links of a folder, as `task` has it, `width` numbers or classes each.
  Status ReadLabels(const std::string& folder, const NodeTargets& as, LinkLabels* labels) {
    NodeTargets* const sides[] = {&labels->train, &labels->evaluated[0], &labels->evaluated[1]};
    const char* const names[] = {"train", "val", "test"};
    for (size_t side = 0; side < 3; ++side) {
      const std::string path = folder + "/links_" + names[side] + "_labels.npy";
      files_.push_back(GNND_VALUE(NpyArray::Open(path)));
      const NpyArray& file = files_.back();
      const uint64_t links = file.shape().empty() ? 0 : file.shape()[0];
      *sides[side] = as;
      GNND_TRY(TaskOf(as.task).Bind(file, links, sides[side]));
      for (uint64_t link = 0; link < links; ++link) {
        if (sides[side]->Has(link)) continue;
        return Status(Code::kDatasetCorrupt,
                      path + ": link " + std::to_string(link) + " has " + sides[side]->what());
      }
    }
    return Status::Ok();
  }

  // What an inference is asked for, in `folder`, and links of the dataset's that are no edges.
  // `given`: those of training are none.
  struct Asked {
    std::string folder;
    std::string dataset;
    bool among = false;
    bool given = false;
  };
  Status ReadAsked(const Asked& asked, LinkQuestion* question) {
    if (question->asks == LinkAsks::kScores) {
      question->pairs = GNND_VALUE(Read(asked.folder + "/pairs.npy", 2));
    }
    if (question->asks != LinkAsks::kNearest) return Status::Ok();
    if (asked.among) question->among = GNND_VALUE(Read(asked.folder + "/among.npy", 1));
    std::vector<const char*> sides = {"val", "test"};
    if (asked.given) sides.push_back("train");
    for (const char* const side : sides) {
      const std::string path = asked.dataset + "/links_" + side + ".npy";
      if (access(path.c_str(), F_OK) != 0) continue;
      question->known.push_back({GNND_VALUE(Read(path, 2)), {}});
    }
    return Status::Ok();
  }

 private:
  std::vector<NpyArray> files_;
  Dataset test_graph_;
  Topology test_topology_;
};

// Links, and what is known of them.
struct LinkSource {
  LinkFiles files;
  LinkLabels labels;
  std::vector<float> weights;

  Status ReadLabels(const std::string& folder, const NodeTargets& as,
                    const ClassWeighting& weighting, LinkUse* use) {
    GNND_TRY(files.ReadLabels(folder, as, &labels));
    std::vector<int64_t> all(weighting.balanced ? labels.train.rows() : 0);
    std::iota(all.begin(), all.end(), 0);
    weights = WeightsOf(weighting, labels.train, all);
    labels.train.weights = weights;
    for (NodeTargets& side : labels.evaluated) side.weights = weights;
    use->labels = &labels;
    return Status::Ok();
  }
};

}  // namespace gnnd::node
