// Compares the sampler with the scalar reference and with the limits of this machine's memory,
// measured on the spot: everything runs interleaved in one process; times are the thread's CPU
// time, as medians.
//
//   sampler_bench [--algorithm uniform|weighted|walk|labor] [--replace] [--new] [--gcn] [--hash]
//   [--nodes N] [--edges E] [--fanouts 15,10,5] [--batch B] [--rounds R] [--threads 2]
//   [--walks W] [--length L] [--restart P]
//
// With --threads each thread samples batches of its own into a slot of its own; their rates add up.
// Drawing a batch's seeds is part of its time, and stands beside it by instruction set and one by
// one. Edge weights are uniform in 1 to 10. For walks, steps count beside edges.
// The graph has Pareto-distributed degrees, endpoints drawn by degree and ids in random order,
// which is the worst case for locality. Prints a table on stderr and one JSON object a line on
// stdout.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/huge_array.h"
#include "core/base/memfd.h"
#include "core/item/item_range.h"
#include "core/sample/sampler.h"
#include "power_law_graph.h"
#include "sampler_lines.h"
#include "test/support/reference.h"

namespace gnnd {
namespace {

struct Options {
  uint32_t nodes = 2'400'000;
  uint64_t edges = 124'000'000;
  std::vector<int32_t> fanouts = {15, 10, 5};
  uint32_t batch = 1024;
  uint32_t rounds = 9;
  uint32_t threads = 1;
  bool gcn = false;
  bool hash = false;
  std::string algorithm = "uniform";
  SamplerOptions sampler;  // filled in from the above
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Variant {
  std::string name;
  Sampler* sampler;  // null: the reference
  std::vector<double> ns_per_edge;
};

// Runs all rounds; fills the variants' times and the probes' ns per line.
class Bench {
 public:
  Bench(const Options& options, const Graph& graph)
      : options_(options), topology_(graph.view()), table_(uint64_t{options.nodes}) {
    for (uint32_t v = 0; v < options.nodes; v += 10) train_nodes_.push_back(v);
    std::memset(table_.data(), 1, table_.size() * sizeof(uint32_t));
  }

  void Run() {
    const auto layout = RecordLayout::Of(
        LimitsOf(topology_.num_nodes(), topology_.num_edges(), options_.batch, options_.sampler));
    GNND_CHECK(layout.ok());
    const auto fd = CreateMemfd("sampler-bench", layout->slot_bytes());
    GNND_CHECK(fd.ok());
    const auto slot = Mapping::Map((*fd).get(), true);
    GNND_CHECK(slot.ok());
    std::vector<Sampler> samplers;
    samplers.reserve(3);
    variants_.push_back({"reference", nullptr, {}});
    for (const InstructionSet set : AvailableInstructionSets()) {
      samplers.emplace_back(topology_, options_.sampler, *layout, set);
      variants_.push_back({NameOf(set), &samplers.back(), {}});
    }
    // Round 0 warms slots and tables and is not counted.
    for (uint32_t round = 0; round <= options_.rounds; ++round) {
      RunRound(round, {slot->data(), slot->size()});
    }
    Report();
    ReportSeeds();
    if (options_.threads > 1) RunThreads(*layout);
  }

 private:
  // Runs one thread alone and all at once, in turns; a thread's rate is by its own CPU time.
  void RunThreads(const RecordLayout& layout) const {
    std::vector<double> alone;
    std::vector<double> together;
    for (uint32_t round = 0; round <= options_.rounds; ++round) {
      const double one = RateOf(layout, 1, round);
      const double all = RateOf(layout, options_.threads, round);
      if (round == 0) continue;
      alone.push_back(one);
      together.push_back(all);
    }
    const double ratio = Median(together) / Median(alone);
    std::fprintf(stderr, "%u threads: %.1f M edges/s, %.2f x one thread\n", options_.threads,
                 Median(together) * 1e3, ratio);
    std::printf(
        "{\"bench\":\"sampler-threads\",\"algorithm\":\"%s\",\"threads\":%u,"
        "\"edges_per_second\":%.0f,\"ratio_to_one_thread\":%.2f}\n",
        options_.algorithm.c_str(), options_.threads, Median(together) * 1e9, ratio);
  }

  // Edges per nanosecond, all threads.
  double RateOf(const RecordLayout& layout, uint32_t threads, uint32_t round) const {
    std::vector<double> rates(threads, 0);
    std::vector<std::thread> running;
    for (uint32_t t = 0; t < threads; ++t) {
      running.emplace_back([&, t] {
        const auto fd = CreateMemfd("sampler-bench", layout.slot_bytes());
        GNND_CHECK(fd.ok());
        const auto slot = Mapping::Map((*fd).get(), true);
        GNND_CHECK(slot.ok());
        Sampler sampler(topology_, options_.sampler, layout, DetectInstructionSet());
        std::vector<uint32_t> seeds;
        double ns = 0;
        uint64_t edges = 0;
        constexpr uint32_t kBatches = 6;  // the first two warm slot and table
        for (uint32_t i = 0; i < kBatches; ++i) {
          const BatchKey key{42, t * kBatches + i, round};
          const double start = Now();
          SeedsOf(key, train_nodes_, options_.batch, &seeds);
          const uint64_t made =
              SampleBy({"", &sampler, {}}, key, seeds, {slot->data(), slot->size()});
          if (i < 2) continue;
          ns += Now() - start;
          edges += made;
        }
        rates[t] = static_cast<double>(edges) / ns;
      });
    }
    for (std::thread& thread : running) thread.join();
    return std::accumulate(rates.begin(), rates.end(), 0.0);
  }

  void RunRound(uint32_t round, std::span<std::byte> slot) {
    constexpr uint32_t kReads = 2'000'000;
    constexpr uint32_t kBatchesPerRound = 3;
    const BatchKey key{42, 0, round};
    std::vector<uint32_t> seeds;
    SeedsOf(key, train_nodes_, options_.batch, &seeds);
    const double probes[] = {
        ProbeLine(topology_.indices.data(), topology_.indices.size_bytes(), kReads),
        ProbeLine(topology_.indptr.data(), topology_.indptr.size_bytes(), kReads),
        ProbeLine(table_.data(), table_.size() * sizeof(uint32_t), kReads)};
    for (Variant& variant : variants_) {
      double ns = 0;
      uint64_t edges = 0;
      const uint32_t batches = variant.sampler == nullptr ? 1 : kBatchesPerRound;
      for (uint32_t i = 0; i < batches; ++i) {
        const BatchKey batch_key{42, i, round};
        const double start = Now();
        SeedsOf(batch_key, train_nodes_, options_.batch, &seeds);
        edges += SampleBy(variant, batch_key, seeds, slot);
        ns += Now() - start;
      }
      if (round > 0) variant.ns_per_edge.push_back(ns / static_cast<double>(edges));
    }
    if (round == 0) {
      const auto sample = OpenRecord(slot, true);
      GNND_CHECK(sample.ok());
      lines_ = LineCounter(topology_, options_.sampler).Count(*sample);
      payload_bytes_ = OwnHeader(slot).payload_bytes;
      return;
    }
    for (int i = 0; i < 3; ++i) probe_ns_[i].push_back(probes[i]);
    TimeSeeds(key);
  }

  // One batch's, in nanoseconds: one position after the other, then by each instruction set.
  void TimeSeeds(const BatchKey& key) {
    const auto n = static_cast<uint32_t>(train_nodes_.size());
    std::vector<uint32_t> out(std::min(options_.batch, n));
    const auto size = static_cast<uint32_t>(out.size());
    const double start = Now();
    for (uint32_t i = 0; i < size; ++i) {
      out[i] = PermutedIndex(KeyOf(key.random_seed), key.epoch, n, i);
    }
    seeds_ns_["one by one"].push_back(Now() - start);
    for (const InstructionSet set : AvailableInstructionSets()) {
      const double set_start = Now();
      LoopsFor<PermuteLoops>(set).permute(KeyOf(key.random_seed), key.epoch, n, 0, size,
                                          out.data());
      seeds_ns_[NameOf(set)].push_back(Now() - set_start);
    }
  }

  void ReportSeeds() const {
    std::fprintf(stderr, "seeds of a batch, us:");
    for (const auto& [name, ns] : seeds_ns_) {
      std::fprintf(stderr, " %s %.1f", name.c_str(), Median(ns) * 1e-3);
      std::printf("{\"bench\":\"seeds\",\"variant\":\"%s\",\"batch\":%u,\"us\":%.2f}\n",
                  name.c_str(), options_.batch, Median(ns) * 1e-3);
    }
    std::fprintf(stderr, "\n");
  }

  uint64_t SampleBy(const Variant& variant, const BatchKey& key, std::span<const uint32_t> seeds,
                    std::span<std::byte> slot) const {
    if (variant.sampler == nullptr) {
      const auto blocks = SampleReference(topology_, options_.sampler, key, seeds).blocks;
      if (options_.sampler.expansion == Expansion::kNew) return blocks.back().src.size();
      uint64_t edges = 0;
      for (const ReferenceBlock& block : blocks) edges += block.src.size();
      return edges;
    }
    GNND_CHECK(variant.sampler->Sample(key, seeds, slot).ok());
    const auto sample = OpenRecord(slot);
    GNND_CHECK(sample.ok());
    return sample->num_edges();
  }

  void Report() const {
    const auto edges = static_cast<double>(lines_.edges);
    const double indices_ns = Median(probe_ns_[0]);
    const double indptr_ns = Median(probe_ns_[1]);
    const double table_ns = Median(probe_ns_[2]);
    const double limit_ns = (static_cast<double>(lines_.indices) * indices_ns +
                             static_cast<double>(lines_.indptr) * indptr_ns) /
                                edges +
                            table_ns;
    const double reference_ns = Median(variants_[0].ns_per_edge);
    std::fprintf(
        stderr,
        "%u nodes, %llu edges; batch %u: %llu edges, %llu unique nodes, %.1f MB\n"
        "lines per edge: indices %.2f (%.1f ns each), indptr %.2f (%.1f ns), table 1 (%.1f "
        "ns); line limit %.1f ns = %.1f M edges/s\n"
        "lines are asked for to %s\n%-10s %12s %10s %12s %12s\n",
        options_.nodes, static_cast<unsigned long long>(options_.edges), options_.batch,
        static_cast<unsigned long long>(lines_.edges),
        static_cast<unsigned long long>(lines_.unique), static_cast<double>(payload_bytes_) * 1e-6,
        static_cast<double>(lines_.indices) / edges, indices_ns,
        static_cast<double>(lines_.indptr) / edges, indptr_ns, table_ns, limit_ns, 1e3 / limit_ns,
        NameOf(BestPrefetchLevel()), "sampler", "M edges/s", "ns/edge", "x reference", "of limit");
    if (lines_.steps > 0) {
      const double steps = static_cast<double>(lines_.steps) / edges;
      std::fprintf(stderr, "steps: %.2f per edge; %.1f M steps/s by %s\n", steps,
                   1e3 * steps / Median(variants_.back().ns_per_edge),
                   variants_.back().name.c_str());
    }
    for (const Variant& variant : variants_) {
      const double ns = Median(variant.ns_per_edge);
      std::fprintf(stderr, "%-10s %12.1f %10.1f %12.1f %11.0f%%\n", variant.name.c_str(), 1e3 / ns,
                   ns, reference_ns / ns, 100 * limit_ns / ns);
      std::printf(
          "{\"bench\":\"sampler\",\"algorithm\":\"%s\",\"variant\":\"%s\",\"nodes\":%u,\"edges\":%"
          "llu,"
          "\"replace\":%s,\"new\":%s,"
          "\"gcn\":%s,\"hash\":%s,\"edges_per_second\":%.0f,\"ratio_to_reference\":%.2f,"
          "\"share_of_line_limit\":%.3f,\"line_limit_edges_per_second\":%.0f}\n",
          options_.algorithm.c_str(), variant.name.c_str(), options_.nodes,
          static_cast<unsigned long long>(options_.edges),
          options_.sampler.replace ? "true" : "false",
          options_.sampler.expansion == Expansion::kNew ? "true" : "false",
          options_.gcn ? "true" : "false", options_.hash ? "true" : "false", 1e9 / ns,
          reference_ns / ns, limit_ns / ns, 1e9 / limit_ns);
    }
  }

  Options options_;
  TopologyView topology_;
  HugeArray<uint32_t> table_;  // as large as a dense relabel table, for the probe
  std::vector<uint32_t> train_nodes_;
  std::vector<Variant> variants_;
  std::vector<double> probe_ns_[3];
  std::map<std::string, std::vector<double>> seeds_ns_;
  Lines lines_;
  uint64_t payload_bytes_ = 0;
};

std::vector<int32_t> ParseFanouts(const std::string& text) {
  std::vector<int32_t> fanouts;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    fanouts.push_back(static_cast<int32_t>(std::stol(text.substr(begin, end - begin))));
    begin = end + 1;
  }
  return fanouts;
}

void FillSampler(Options* options) {
  SamplerOptions& sampler = options->sampler;
  sampler.fanouts = options->fanouts;
  sampler.max_dense_table_bytes = options->hash ? 0 : uint64_t{1} << 40;
  if (options->gcn) sampler.weights = EdgeWeights::kGcn;
  if (options->algorithm == "weighted") sampler.algorithm = Algorithm::kWeighted;
  if (options->algorithm == "walk") {
    sampler.algorithm = Algorithm::kWalk;
    sampler.weights = EdgeWeights::kVisits;
  }
  if (options->algorithm == "labor") {
    sampler.algorithm = Algorithm::kLabor;
    sampler.weights = EdgeWeights::kInverse;
  }
}

// Returns false for an unknown option or an impossible value.
bool ParseValue(const std::string& name, const std::string& value, Options* options) {
  const auto number = static_cast<uint64_t>(std::strtoull(value.c_str(), nullptr, 10));
  const std::map<std::string, uint32_t*> counts = {{"--nodes", &options->nodes},
                                                   {"--batch", &options->batch},
                                                   {"--rounds", &options->rounds},
                                                   {"--threads", &options->threads},
                                                   {"--walks", &options->sampler.walk.walks},
                                                   {"--length", &options->sampler.walk.length}};
  if (name == "--fanouts") {
    options->fanouts = ParseFanouts(value);
  } else if (name == "--algorithm") {
    options->algorithm = value;
    return value == "uniform" || value == "weighted" || value == "walk" || value == "labor";
  } else if (name == "--restart") {
    options->sampler.walk.restart_prob = std::strtod(value.c_str(), nullptr);
  } else if (name == "--edges") {
    options->edges = number;
  } else if (counts.contains(name)) {
    *counts.at(name) = static_cast<uint32_t>(number);
    return number > 0;
  } else {
    return false;
  }
  return true;
}

Options ParseOptions(int argc, char** argv) {
  Options options;
  const std::map<std::string, bool*> flags = {
      {"--gcn", &options.gcn}, {"--hash", &options.hash}, {"--replace", &options.sampler.replace}};
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (flags.contains(name)) {
      *flags.at(name) = true;
      continue;
    }
    if (name == "--new") {
      options.sampler.expansion = Expansion::kNew;
      continue;
    }
    const char* value = i + 1 < argc ? argv[++i] : "";
    if (ParseValue(name, value, &options)) continue;
    std::fprintf(stderr, "%s %s: unknown option or bad value\n", name.c_str(), value);
    std::exit(2);
  }
  FillSampler(&options);
  return options;
}

}  // namespace
}  // namespace gnnd

int main(int argc, char** argv) {
  const gnnd::Options options = gnnd::ParseOptions(argc, argv);
  gnnd::Graph graph = gnnd::PowerLawGraph(options.nodes, options.edges);
  if (options.algorithm == "weighted") {
    const double start = gnnd::Now();
    gnnd::AddAliasTables(&graph);
    std::fprintf(stderr, "alias tables: %.1f s\n", (gnnd::Now() - start) * 1e-9);
  }
  gnnd::Bench(options, graph).Run();
  return 0;
}
