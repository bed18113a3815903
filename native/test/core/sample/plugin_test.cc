#include "core/sample/plugin.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "core/base/sha256.h"
#include "core/draw/philox.h"
#include "test/support/graphs.h"
#include "test/support/sampling.h"

namespace gnnd {
namespace {

using test::Graph;
using test::SamplerUnderTest;

// The plug-ins of native/test/plugins, built beside this binary.
std::string PluginPath(const std::string& name) {
  const auto binary = std::filesystem::read_symlink("/proc/self/exe");
  return binary.parent_path() / "plugins" / (name + ".so");
}

std::string Sha256HexOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  return HexOf(Sha256().Add(std::as_bytes(std::span(bytes))).Finish());
}

Result<std::shared_ptr<SamplerPlugin>> TryLoad(const TopologyView& topology,
                                               const std::string& name,
                                               const std::string& options = "",
                                               bool weighted = false) {
  const std::string path = PluginPath(name);
  return SamplerPlugin::Load({path, Sha256HexOf(path), options}, topology, {4, 3}, weighted);
}

SamplerOptions OptionsWith(const TopologyView& topology, const std::string& name,
                           const std::string& text = "", bool weighted = false) {
  auto plugin = TryLoad(topology, name, text, weighted);
  REQUIRE_MESSAGE(plugin.ok(), plugin.status().message());
  SamplerOptions options{.fanouts = {4, 3},
                         .weights = weighted ? EdgeWeights::kGiven : EdgeWeights::kNone};
  options.algorithm = Algorithm::kPlugin;
  options.plugin = *plugin;
  return options;
}

// The positions that uniform.c draws, from the keyed generator as core has it.
std::vector<uint64_t> ExpectedPicks(const BatchKey& key, uint32_t hop, uint32_t node,
                                    uint64_t degree, uint32_t fanout) {
  std::vector<uint64_t> picks;
  const uint64_t count = std::min<uint64_t>(degree, fanout);
  for (uint32_t j = 0; j < count; ++j) {
    const PhiloxWords words =
        Philox(KeyOf(key.random_seed),
               CounterOf(Purpose::kPlugin, key.epoch, key.batch, hop, node, j / 4));
    const uint64_t last = degree - count + j;
    uint64_t t = (words.word[j % 4] * (last + 1)) >> 32;
    if (degree <= fanout) t = j;
    picks.push_back(std::find(picks.begin(), picks.end(), t) == picks.end() ? t : last);
  }
  return picks;
}

TEST_CASE("a plug-in sees rows without the links of the batch, or loses them afterwards") {
  Graph graph;
  std::vector<uint32_t> row(30);
  for (uint32_t j = 0; j < 30; ++j) row[j] = j + 1;
  graph.AddRow(row);
  graph.AddRow({5, 6});
  for (uint32_t v = 2; v < 31; ++v) graph.AddRow({});
  const std::vector<uint32_t> first = {0, 4, 6};
  const std::vector<uint64_t> places = {0, 3, 4, 29, 0, 1};  // all of row 1
  SamplerOptions options = OptionsWith(graph.view(), "uniform");
  options.fanouts = {4};
  SamplerUnderTest sampler(graph.view(), options, 2, DetectInstructionSet());
  const BatchKey key{9, 1, 2};
  const std::vector<uint32_t> seeds = {0, 1};
  const auto picked = [&](bool after) {
    const Sample sample = sampler.Sample(key, seeds, {{}, {first, places, after}});
    CHECK(sample.block(0).indptr[2] == sample.block(0).indptr[1]);
    std::vector<uint64_t> positions;
    for (const uint32_t src : sample.block(0).src) positions.push_back(sample.nodes()[src] - 1);
    return positions;
  };
  std::vector<uint64_t> expected = ExpectedPicks(key, 0, 0, 26, 4);
  for (uint64_t& position : expected) {
    position = RowSkips::PlaceOf(std::span(places).first(4), position);
  }
  CHECK(picked(false) == expected);
  std::vector<uint64_t> drawn = ExpectedPicks(key, 0, 0, 30, 4);
  std::erase_if(drawn, [&places](uint64_t position) {
    return std::find(places.begin(), places.begin() + 4, position) != places.begin() + 4;
  });
  CHECK(picked(true) == drawn);
}

void CheckDraws(const TopologyView& topology, const Sample& sample,
                const std::vector<int32_t>& fanouts, Expansion expansion) {
  for (uint32_t hop = 0; hop < sample.num_hops(); ++hop) {
    const BlockView block = sample.block(hop);
    const uint32_t first =
        hop > 0 && expansion == Expansion::kNew ? sample.block(hop - 1).num_dst : 0;
    for (uint32_t row = first; row < block.num_dst; ++row) {
      const uint32_t node = sample.nodes()[row];
      const auto picks = ExpectedPicks(sample.key(), hop, node, topology.degree(node),
                                       static_cast<uint32_t>(fanouts[hop]));
      REQUIRE(block.indptr[row + 1] - block.indptr[row] == picks.size());
      for (size_t k = 0; k < picks.size(); ++k) {
        const uint32_t drawn = sample.nodes()[block.src[block.indptr[row] + k]];
        REQUIRE(drawn == topology.indices[topology.indptr[node] + picks[k]]);
      }
    }
  }
}

TEST_CASE("a plug-in's draws become valid records by every table and expansion") {
  const uint64_t seed = test::RandomSeed(71);
  CAPTURE(seed);
  const Graph graph = test::RandomGraph(seed, 900, 60);
  const auto seeds = test::RandomNodes(seed + 1, 900, 50);
  for (const Expansion expansion : {Expansion::kAll, Expansion::kNew}) {
    for (const uint64_t max_dense_bytes : {uint64_t{0}, uint64_t{1} << 30}) {
      for (const std::vector<int32_t>& fanouts :
           {std::vector<int32_t>{4, 3}, {1}, {40, 2}, {3, 200}, {2, 2, 2}}) {
        SamplerOptions options = OptionsWith(graph.view(), "uniform");
        options.fanouts = fanouts;
        options.expansion = expansion;
        options.max_dense_table_bytes = max_dense_bytes;
        SamplerUnderTest sampler(graph.view(), options, 50, DetectInstructionSet());
        const BatchKey key{seed, 3, 7};
        const Sample sample = sampler.Sample(key, seeds);
        CheckDraws(graph.view(), sample, fanouts, expansion);
        const uint64_t hash = test::ContentHash(sample);
        sampler.Sample({seed, 3, 8}, seeds);
        CHECK(test::ContentHash(sampler.Sample(key, seeds)) == hash);
      }
    }
  }
}

TEST_CASE("a plug-in's weights stand beside its picks; whole rows weigh 1") {
  const Graph graph = test::RandomGraph(5, 300, 30);
  TopologyView topology = graph.view();
  std::vector<float> edge_weight(topology.num_edges());
  for (size_t e = 0; e < edge_weight.size(); ++e) edge_weight[e] = static_cast<float>(e % 17);
  topology.edge_weight = edge_weight;
  SamplerOptions options = OptionsWith(topology, "uniform", "", true);
  options.fanouts = {4, kFullNeighbourhood};
  SamplerUnderTest sampler(topology, options, 20, DetectInstructionSet());
  const Sample sample = sampler.Sample({1, 0, 0}, test::RandomNodes(6, 300, 20));
  const BlockView block = sample.block(0);
  REQUIRE(block.weight.size() == block.src.size());
  for (uint32_t row = 0; row < block.num_dst; ++row) {
    const uint32_t node = sample.nodes()[row];
    const auto picks = ExpectedPicks(sample.key(), 0, node, topology.degree(node), 4);
    for (size_t k = 0; k < picks.size(); ++k) {
      CHECK(block.weight[block.indptr[row] + k] == edge_weight[topology.indptr[node] + picks[k]]);
    }
  }
  const BlockView whole = sample.block(1);
  CHECK(std::all_of(whole.weight.begin(), whole.weight.end(), [](float w) { return w == 1.0F; }));
  CHECK(whole.src.size() > block.src.size());
}

TEST_CASE("a plug-in that cannot be used is refused, naming the file and the cause") {
  const Graph graph = test::RandomGraph(5, 30, 5);
  const auto refusal = [&](const std::string& name, const std::string& options = "") {
    const auto plugin = TryLoad(graph.view(), name, options);
    CHECK_FALSE(plugin.ok());
    CHECK(plugin.status().code() == Code::kPluginFailed);
    CHECK(plugin.status().message().find(PluginPath(name)) != std::string::npos);
    return plugin.status().message();
  };
  CHECK(refusal("wrong_abi").find("was built for version 2") != std::string::npos);
  CHECK(refusal("no_symbol").find("exports no function gnnd_sampler_plugin_get") !=
        std::string::npos);
  CHECK(refusal("broken", "refuse").find("no graph of 30 nodes, please") != std::string::npos);
  CHECK(refusal("uniform", "fast=1").find("takes no options") != std::string::npos);
}

TEST_CASE("what is loaded are the frozen bytes, and they are a shared object") {
  const Graph graph = test::RandomGraph(5, 30, 5);
  const std::string path =
      std::filesystem::temp_directory_path() / ("gnnd-plugin-" + std::to_string(getpid()) + ".so");
  const auto load = [&](const std::string& sha256) {
    return SamplerPlugin::Load({path, sha256, ""}, graph.view(), {2}, false).status();
  };
  CHECK(load("00").message().find("cannot be opened") != std::string::npos);
  std::filesystem::copy_file(PluginPath("uniform"), path,
                             std::filesystem::copy_options::overwrite_existing);
  const std::string frozen = Sha256HexOf(path);
  CHECK(load(frozen).ok());
  std::ofstream(path, std::ios::binary | std::ios::trunc) << "not a shared object";
  CHECK(load(frozen).code() == Code::kPluginFailed);
  CHECK(load(frozen).message().find("the job was created with " + frozen) != std::string::npos);
  CHECK(load(Sha256HexOf(path)).message().find("cannot be loaded") != std::string::npos);
  std::filesystem::remove(path);
}

TEST_CASE("an answer against the rules ends the sample, naming the node, and nothing else") {
  Graph graph;
  graph.AddRow({});
  graph.AddRow({0, 2, 3});
  graph.AddRow({1});
  graph.AddRow({});
  const std::vector<uint32_t> seeds = {1};
  const auto failure = [&](const std::string& how, bool weighted = false) {
    SamplerUnderTest sampler(graph.view(), OptionsWith(graph.view(), "broken", how, weighted), 2,
                             DetectInstructionSet());
    const Status status = sampler.TrySample({1, 0, 0}, seeds);
    CHECK(status.code() == Code::kPluginFailed);
    CHECK(status.message().find("node 1 at hop 0") != std::string::npos);
    CHECK_FALSE(OpenRecord(sampler.slot()).ok());
    // Rows without neighbours ask nobody, and the sampler still works.
    sampler.Sample({1, 0, 0}, std::vector<uint32_t>{0, 3});
    return status.message();
  };
  CHECK(failure("position").find("position 3 in a row of 3") != std::string::npos);
  CHECK(failure("many").find("5 picks, the fanout is 4") != std::string::npos);
  CHECK(failure("negative").find("pick returned -7") != std::string::npos);
  CHECK(failure("weight", true).find("has weight -1") != std::string::npos);
}

// The signal that ends a process which samples with a plug-in that misbehaves; 0 if it lives.
int DeathOf(const std::string& how) {
  const Graph graph = test::RandomGraph(5, 30, 5);
  const pid_t child = fork();
  if (child == 0) {
    // Neither doctest's handlers nor its output: this is an executor's death.
    for (const int number : {SIGABRT, SIGSEGV, SIGBUS}) std::signal(number, SIG_DFL);
    SamplerUnderTest sampler(graph.view(), OptionsWith(graph.view(), "broken", how), 30,
                             DetectInstructionSet());
    static_cast<void>(sampler.TrySample({1, 0, 0}, test::RandomNodes(1, 30, 30)));
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TEST_CASE("a plug-in that writes far past its picks dies before it reaches anything of ours") {
  CHECK(DeathOf("overrun") == SIGSEGV);
  CHECK(DeathOf("crash") == SIGABRT);
}

TEST_CASE("the header's random numbers are those of core, for any block and wide ids") {
  const DrawStream stream = DrawStreamOf({0x0123456789ABCDEF, 5, 9}, 2, Purpose::kPlugin);
  const gnnd_random random = {
      {stream.key.lo, stream.key.hi},
      {0, stream.counter.word[1], stream.counter.word[2], stream.counter.word[3]}};
  std::set<uint32_t> firsts;
  constexpr uint64_t kOne = 1;
  for (const uint64_t node : {kOne + 76, (kOne << 44) - 1, (kOne << 32) + 77}) {
    for (const uint32_t block : {0U, 1U, 65535U, 65536U, 131072U, (1U << 28) - 1, 0xFFFFFFFFU}) {
      uint32_t words[4];
      gnnd_random_block(&random, node, block, words);
      firsts.insert(words[0]);
      const PhiloxWords expected = LongRowWords(stream, node, block);
      CHECK(std::equal(words, words + 4, expected.word));
    }
  }
  CHECK(firsts.size() == 21);
}

TEST_CASE("ids are read by their width") {
  const uint32_t narrow[] = {5, 0xFFFFFFFD};
  const uint64_t wide[] = {5, uint64_t{1} << 43};
  CHECK(gnnd_id(narrow, 4, 1) == 0xFFFFFFFD);
  CHECK(gnnd_id(wide, 8, 1) == uint64_t{1} << 43);
}

}  // namespace
}  // namespace gnnd
