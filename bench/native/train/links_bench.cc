// Measures how fast links are ranked, beside the rate of matrix products on the spot.
//
//   links_bench [NODES [EDGES [DIM [LINKS [NEGATIVES]]]]]
//               304031 2300000 128 100000 1000
//
// Ranks links of a power-law graph by random rows, with keyed negatives and among all nodes (a
// fiftieth of the links, and 32 links by the perceptron), and finds the ten nearest of as many
// nodes as that fiftieth, without those that they are linked to, on one thread. A pair is a
// multiply-add for each column, for the perceptron DIM of them. The rate of products is that of
// blocks of 1,024 rows and 256 outputs of the same width; it is measured before each of five
// rounds, of whose shares the median counts, for other work on the host slows both. Beside a share
// with keyed negatives stands what it would be if nothing were done but these products and copying
// the negatives' rows, at the rate at which they are copied alone. A table, then one line of JSON.

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "bench_util.h"
#include "core/base/check.h"
#include "core/executor/eval_scratch.h"
#include "core/graph/features.h"
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

// A round of ranking beside the rates of what it cannot do without.
struct Round {
  double seconds;  // of one chunk of all items
  double share;    // of the rate of products
  double bound;    // of that share: products and copies of rows alone
};

// Seconds that copying the rows of a random node takes.
double SecondsOfRow(const RowTable& table, uint32_t rows) {
  constexpr int kBlocks = 100;
  Random random;
  std::vector<uint32_t> nodes(rows);
  std::vector<float> copies(rows * table.dim());
  double seconds = 0;
  for (int block = -1; block < kBlocks; ++block) {  // the first, -1, is not counted
    for (uint32_t& node : nodes) node = random.Below(static_cast<uint32_t>(table.num_rows()));
    const double begin = Milliseconds();
    GatherRows(table, nodes, copies);
    seconds += block < 0 ? 0 : (Milliseconds() - begin) / 1e3;
  }
  return seconds / kBlocks / rows;
}

// What is asked of a phase: so many multiply-adds, and so many rows that are copied.
struct Asked {
  const char* name;
  uint32_t items;
  double pairs;
  double cost;  // multiply-adds of a pair
  double rows;
};

// Prints a line and returns the median share.
double Told(const Asked& asked, PairPhase& pairs, EvalNodes nodes, const PairPhase::Rows& rows) {
  EvalTask task;
  task.run.nodes = nodes;
  std::vector<Round> rounds;
  for (int i = 0; i < 5; ++i) {
    const double products =
        asked.pairs * asked.cost / ProductRate(static_cast<int64_t>(rows.table.dim()));
    const double copies = asked.rows > 0 ? asked.rows * SecondsOfRow(rows.table, 1000) : 0;
    EvalResult result;
    const double begin = Milliseconds();
    GNND_CHECK(pairs.Run(task, 1, rows, [] { return true; }, &result).ok());
    const double seconds = (Milliseconds() - begin) / 1e3;
    rounds.push_back({seconds, products / seconds, products / (products + copies)});
  }
  std::ranges::sort(rounds, {}, &Round::share);
  const Round& usual = rounds[rounds.size() / 2];
  std::printf("%-20s %7u items %7.2f s %8.1f M pairs/s %4.0f %% of products (%.0f to %.0f)",
              asked.name, asked.items, usual.seconds, asked.pairs / usual.seconds / 1e6,
              100 * usual.share, 100 * rounds.front().share, 100 * rounds.back().share);
  if (asked.rows > 0) std::printf(", with copies %.0f %%", 100 * usual.bound);
  std::printf("\n");
  return usual.share;
}

struct Way {
  const char* name;
  LinkHead head;
  EvaluationNegatives negatives;
  uint32_t links;
};

// The way's share of the rate of products.
double Measure(const Sizes& sizes, const Data& data, const Way& way) {
  LinkUse use;
  use.negatives = way.negatives;
  use.count = sizes.negatives;
  use.symmetric = true;
  use.sets[1].ends = std::span(data.ends).first(uint64_t{2} * way.links);
  const Scorer scorer(way.head, sizes.dim);
  const TopologyView topology = data.graph.view();
  LinkRanking ranking(use, topology, scorer.spec, 17);
  const RowTable table(std::span(data.rows), sizes.dim);
  const bool all = way.negatives == EvaluationNegatives::kAll;
  const double pairs = static_cast<double>(way.links) * (all ? sizes.nodes : sizes.negatives);
  const double cost = static_cast<double>(HeadOf(way.head).CostOfPair(sizes.dim));
  const double copied = all ? 0 : pairs / kLinkGroup;
  return Told({way.name, way.links, pairs, cost, copied}, ranking, EvalNodes::kTest,
              {table, scorer.tensors});
}

// That of finding the ten nearest of so many nodes among all.
double MeasureNearest(const Sizes& sizes, const Data& data, uint32_t count) {
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
  const double pairs = static_cast<double>(count) * sizes.nodes;
  const double share =
      Told({"dot, nearest of all", count, pairs, static_cast<double>(sizes.dim), 0}, **opened,
           EvalNodes::kValidation, {table, scorer.tensors});
  std::filesystem::remove_all(folder);
  return share;
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
                    static_cast<uint32_t>(number(3, 128)),
                    static_cast<uint32_t>(number(4, 100'000)),
                    static_cast<uint32_t>(number(5, 1000))};
  const Data data(sizes);
  std::printf("products: %.1f G multiply-adds/s, copies of random rows: %.1f GB/s\n",
              ProductRate(sizes.dim) / 1e9,
              sizes.dim * 4 / SecondsOfRow(RowTable(std::span(data.rows), sizes.dim), 1000) / 1e9);
  const Way ways[] = {
      {"dot, keyed", LinkHead::kDot, EvaluationNegatives::kKeyed, sizes.links},
      {"bilinear, keyed", LinkHead::kBilinear, EvaluationNegatives::kKeyed, sizes.links},
      {"dot, all", LinkHead::kDot, EvaluationNegatives::kAll, sizes.links / 50},
      {"perceptron, keyed", LinkHead::kMlp, EvaluationNegatives::kKeyed, 32},
  };
  std::string json = "{\"bench\":\"links\"";
  for (const Way& way : ways) {
    const double share = Measure(sizes, data, way);
    json += ",\"" + std::string(way.name) + "\":" + std::to_string(share);
  }
  const double nearest = MeasureNearest(sizes, data, sizes.links / 50);
  json += ",\"dot, nearest\":" + std::to_string(nearest);
  std::printf("%s}\n", json.c_str());
  return 0;
}
