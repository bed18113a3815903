// Measures how fast links are ranked, beside the rate of matrix products on the spot.
//
//   links_bench [NODES [EDGES [DIM [LINKS [NEGATIVES]]]]]
//               304031 2300000 128 20000 1000
//
// Ranks links of a power-law graph by random rows, with keyed negatives and among all nodes (a
// tenth of the links, and 32 links by the perceptron), and finds the ten nearest of as many nodes
// as that tenth, without those that they are linked to, on one thread. A pair is a multiply-add for
// each column, for the perceptron DIM of them. The rate of products is that of blocks of 1,024 rows
// and 256 outputs of the same width. A table, then one line of JSON.

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "bench_util.h"
#include "core/base/check.h"
#include "core/kernels/optimizer.h"
#include "power_law_graph.h"
#include "train/evaluate/link_ranking.h"
#include "train/evaluate/nearest.h"
#include "train/layers/layer.h"
#include "train/ops/affine.h"
#include "train/ops/ops.h"
#include "train/ops/parallel.h"

namespace gnnd::bench {
namespace {

struct Sizes {
  uint32_t nodes;
  uint64_t edges;
  uint32_t dim;
  uint32_t links;
  uint32_t negatives;
};

// Multiply-adds a second.
double ProductRate(int64_t dim) {
  constexpr int kBlocks = 60;
  const at::Tensor x = at::empty({1024, dim}).fill_(0.5F);
  const at::Tensor weight = at::empty({256, dim}).fill_(0.25F);
  const at::Tensor out = at::empty({1024, 256});
  Workspace workspace;
  const auto run = [&] {
    const double begin = Milliseconds();
    for (int block = 0; block < kBlocks; ++block) {
      workspace.Reset();
      RunAffine({x, weight, {}, {}, {}, {}, out}, &workspace);
    }
    return (Milliseconds() - begin) / 1e3;
  };
  run();
  return 1024.0 * 256.0 * static_cast<double>(dim) * kBlocks / Median({run(), run(), run()});
}

struct Data {
  explicit Data(const Sizes& sizes) : graph(PowerLawGraph(sizes.nodes, sizes.edges)) {
    Random random;
    for (uint64_t i = 0; i < uint64_t{sizes.nodes} * sizes.dim; ++i) {
      rows.push_back(static_cast<float>(random.Unit()) - 0.5F);
    }
    for (uint32_t i = 0; i < 2 * sizes.links; ++i) ends.push_back(random.Below(sizes.nodes));
    for (uint32_t v = 0; v < sizes.nodes; ++v) {
      std::sort(graph.indices.data() + graph.indptr[v],
                graph.indices.data() + graph.indptr[uint64_t{v} + 1]);
    }
  }

  Graph graph;
  std::vector<float> rows;
  std::vector<uint32_t> ends;
};

// A model of links with its first parameters.
struct Scorer {
  Scorer(LinkHead head, uint32_t dim) : spec(SpecOf(head, dim)), model(spec) {
    parameters.resize(model.manifest.num_floats);
    InitGlorot(model.manifest, 7, 1.0, parameters);
    tensors = ParametersOf(model, ViewsOf(model.manifest, parameters, at::kCPU), spec.num_layers);
  }

  static ModelSpec SpecOf(LinkHead head, uint32_t dim) {
    ModelSpec spec;
    spec.num_layers = 1;
    spec.in_dim = 1;
    spec.out_dim = dim;
    spec.head = head;
    return spec;
  }

  ModelSpec spec;
  Model model;
  std::vector<float> parameters;
  LayerParameters tensors;
};

// Seconds that one chunk of all items takes.
double SecondsOf(PairPhase& pairs, EvalNodes nodes, const PairPhase::Rows& rows) {
  EvalTask task;
  task.run.nodes = nodes;
  EvalResult result;
  std::vector<double> seconds;
  for (int round = 0; round < 3; ++round) {
    const double begin = Milliseconds();
    GNND_CHECK(pairs.Run(task, 1, rows, [] { return true; }, &result).ok());
    seconds.push_back((Milliseconds() - begin) / 1e3);
  }
  return Median(seconds);
}

// Prints a line and returns the share of the rate of products.
double Told(const char* name, uint32_t items, double pairs, double cost, double seconds,
            double rate) {
  const double share = pairs * cost / seconds / rate;
  std::printf("%-22s %8u items %8.2f s %10.1f M pairs/s %5.0f %% of products\n", name, items,
              seconds, pairs / seconds / 1e6, 100 * share);
  return share;
}

struct Way {
  const char* name;
  LinkHead head;
  EvaluationNegatives negatives;
  uint32_t links;
};

// The way's share of the rate of products.
double Measure(const Sizes& sizes, const Data& data, const Way& way, double rate) {
  LinkUse use;
  use.negatives = way.negatives;
  use.count = sizes.negatives;
  use.symmetric = true;
  use.sets[1].ends = std::span(data.ends).first(uint64_t{2} * way.links);
  const Scorer scorer(way.head, sizes.dim);
  const TopologyView topology = data.graph.view();
  LinkRanking ranking(use, topology, scorer.spec, 17);
  const RowTable table(std::span(data.rows), sizes.dim);
  const double seconds = SecondsOf(ranking, EvalNodes::kTest, {table, scorer.tensors});
  const bool all = way.negatives == EvaluationNegatives::kAll;
  const double pairs = static_cast<double>(way.links) * (all ? sizes.nodes : sizes.negatives);
  const double cost = static_cast<double>(HeadOf(way.head).CostOfPair(sizes.dim));
  return Told(way.name, way.links, pairs, cost, seconds, rate);
}

// That of finding the ten nearest of so many nodes among all.
double MeasureNearest(const Sizes& sizes, const Data& data, uint32_t count, double rate) {
  std::string folder = std::filesystem::temp_directory_path() / "gnnd-nearest-XXXXXX";
  GNND_CHECK(mkdtemp(folder.data()) != nullptr);
  std::filesystem::create_directory(folder + "/out");
  LinkUse use;
  use.symmetric = true;
  use.question.asks = LinkAsks::kNearest;
  use.question.k = 10;
  std::vector<uint32_t> nodes(count);
  std::iota(nodes.begin(), nodes.end(), 0U);
  const Scorer scorer(LinkHead::kDot, sizes.dim);
  const TopologyView topology = data.graph.view();
  auto opened = Nearest::Open(use, topology, scorer.spec, {nodes, false}, folder);
  GNND_CHECK(opened.ok());
  const RowTable table(std::span(data.rows), sizes.dim);
  const double seconds = SecondsOf(**opened, EvalNodes::kValidation, {table, scorer.tensors});
  std::filesystem::remove_all(folder);
  const double pairs = static_cast<double>(count) * sizes.nodes;
  return Told("dot, nearest of all", count, pairs, sizes.dim, seconds, rate);
}

}  // namespace
}  // namespace gnnd::bench

int main(int argc, char** argv) {
  using namespace gnnd;
  using namespace gnnd::bench;
  at::set_num_threads(1);
  UseTeamOf(1);
  const c10::AutoGradMode without_gradients(false);
  const auto number = [&](int at, uint64_t otherwise) {
    return argc > at ? std::strtoull(argv[at], nullptr, 10) : otherwise;
  };
  const Sizes sizes{static_cast<uint32_t>(number(1, 304'031)), number(2, 2'300'000),
                    static_cast<uint32_t>(number(3, 128)), static_cast<uint32_t>(number(4, 20'000)),
                    static_cast<uint32_t>(number(5, 1000))};
  const Data data(sizes);
  const double rate = ProductRate(sizes.dim);
  std::printf("products: %.1f G multiply-adds/s\n", rate / 1e9);
  const Way ways[] = {
      {"dot, keyed", LinkHead::kDot, EvaluationNegatives::kKeyed, sizes.links},
      {"bilinear, keyed", LinkHead::kBilinear, EvaluationNegatives::kKeyed, sizes.links},
      {"dot, all", LinkHead::kDot, EvaluationNegatives::kAll, sizes.links / 10},
      {"perceptron, keyed", LinkHead::kMlp, EvaluationNegatives::kKeyed, 32},
  };
  std::string json = "{\"bench\":\"links\"";
  for (const Way& way : ways) {
    const double share = Measure(sizes, data, way, rate);
    json += ",\"" + std::string(way.name) + "\":" + std::to_string(share);
  }
  const double nearest = MeasureNearest(sizes, data, sizes.links / 10, rate);
  json += ",\"dot, nearest\":" + std::to_string(nearest);
  std::printf("%s}\n", json.c_str());
  return 0;
}
