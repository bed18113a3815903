// Runs the Sampler on a graph of several types from files, controlled by a driver that lets peers
// sample the same batches in turn (bench/peers/typed_sampling.py).
//
//   typed_sampler_bench FOLDER [--fanouts 10,10] [--batch 1024] [--expansion new|all]
//
// FOLDER is that of a dataset of several types without features and labels (nodes/, edges/), with
// schema.txt, a line for each type (`type NAME NODES`) and then relation (`relation SOURCE NAME
// DESTINATION EDGES`, types by their index), and seeds.npy, int64 nodes of type 0 in the order in
// which batches take them. Command: `run FIRST COUNT` samples the batches FIRST .. into slots that
// were written before, as in the daemon. The answer has wall and processor nanoseconds, edges and
// nodes of each.

#include <cstdint>
#include <fstream>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "core/base/clock.h"
#include "core/batch/record.h"
#include "core/graph/topology.h"
#include "core/graph/typed_dataset.h"
#include "core/sample/sampler.h"
#include "core/sample/typed.h"
#include "served_bench.h"

namespace gnnd::bench {
namespace {

Schema ReadSchema(const std::string& path) {
  std::ifstream file(path);
  Schema schema;
  for (std::string kind; file >> kind;) {
    if (kind == "type") {
      NodeType& type = schema.types.emplace_back();
      file >> type.name >> type.num_nodes;
    } else {
      Relation& relation = schema.relations.emplace_back();
      file >> relation.source >> relation.name >> relation.destination >> relation.num_edges;
    }
    GNND_CHECK(!file.fail());
  }
  return schema;
}

// The graph as a job's Samplers have it, with the seeds of all batches.
class Job {
 public:
  Job(const std::string& folder, const SamplerOptions& options, uint32_t batch_size)
      : batch_size_(batch_size),
        dataset_(Must(TypedDataset::Open(folder, ReadSchema(folder + "/schema.txt")))),
        topology_(Must(Topology::Attach(Must(CreateTopology(dataset_)).get(), dataset_))),
        layout_(Must(LayoutOf(dataset_.schema(), batch_size, options))),
        sampler_(topology_.graph(), options, layout_, DetectInstructionSet()) {
    const NpyArray seeds = OpenNpy(folder, "seeds.npy");
    for (const int64_t seed : seeds.values<int64_t>()) {
      seeds_.push_back(static_cast<uint32_t>(seed));
    }
    for (uint32_t i = 0; i < kSlots; ++i) {
      const UniqueFd fd = Must(CreateMemfd("typed-sampler-bench", layout_.slot_bytes()));
      slots_.push_back(Must(Mapping::Map(fd.get(), true)));
    }
  }

  // The record of a batch; after the last full one they start over.
  std::span<const std::byte> Sample(uint32_t batch) {
    const Mapping& slot = slots_[batch % kSlots];
    const uint64_t begin = batch % (seeds_.size() / batch_size_) * batch_size_;
    const std::span seeds = std::span<const uint32_t>(seeds_).subspan(begin, batch_size_);
    Must(sampler_.Sample({1, 0, batch}, seeds, {slot.data(), slot.size()}));
    return slot.bytes();
  }

 private:
  static constexpr uint32_t kSlots = 4;

  uint32_t batch_size_;
  TypedDataset dataset_;
  Topology topology_;
  RecordLayout layout_;
  Sampler sampler_;
  std::vector<uint32_t> seeds_;
  std::vector<Mapping> slots_;
};

std::string Answer(Job* job, const std::vector<std::string>& words) {
  GNND_CHECK(words.size() == 3 && words[0] == "run");
  const auto first = static_cast<uint32_t>(std::stoul(words[1]));
  const auto count = static_cast<uint32_t>(std::stoul(words[2]));
  Must(OpenRecord(job->Sample(first), /*deep=*/true));
  std::vector<uint64_t> ns;
  std::vector<uint64_t> cpu_ns;
  std::vector<uint64_t> edges;
  std::vector<uint64_t> nodes;
  for (uint32_t batch = first; batch < first + count; ++batch) {
    const uint64_t start_cpu_ns = CpuNs(CLOCK_THREAD_CPUTIME_ID);
    const uint64_t start_ns = MonotonicNs();
    const Sample sample = Must(OpenRecord(job->Sample(batch)));
    ns.push_back(MonotonicNs() - start_ns);
    cpu_ns.push_back(CpuNs(CLOCK_THREAD_CPUTIME_ID) - start_cpu_ns);
    edges.push_back(sample.num_edges());
    nodes.push_back(0);
    for (uint32_t t = 0; t < sample.num_node_types(); ++t) nodes.back() += sample.nodes(t).size();
  }
  std::ostringstream answer;
  answer << '{' << JsonList("ns", ns) << ',' << JsonList("cpu_ns", cpu_ns) << ','
         << JsonList("edges", edges) << ',' << JsonList("nodes", nodes) << '}';
  return answer.str();
}

int Main(int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') {
    std::fprintf(stderr, "usage: typed_sampler_bench FOLDER [--fanouts 10,10] [--batch 1024]\n");
    return 64;
  }
  SamplerOptions options;
  options.fanouts = FanoutsArgument(argc, argv, "10,10");
  if (Argument(argc, argv, "--expansion", "new") == "new") options.expansion = Expansion::kNew;
  Job job(argv[1], options, NumberArgument(argc, argv, "--batch", 1024));
  Serve("{}", [&job](const std::vector<std::string>& words) { return Answer(&job, words); });
  return 0;
}

}  // namespace
}  // namespace gnnd::bench

int main(int argc, char** argv) { return gnnd::bench::Main(argc, argv); }
