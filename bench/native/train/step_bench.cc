// Runs training steps of GraphSAGE on given batches, controlled by a driver that lets peers do the
// same steps on the same batches in turn (bench/peers/step.py).
//
//   step_bench FOLDER DUMP_FOLDER [--fanouts 10,10] [--batch 1024] [--hidden 256] [--threads 1]
//              [--batches 4] [--random-seed 1] [--bfloat16]
//
// FOLDER holds indptr.npy, indices.npy, features.npy, labels.npy and seeds.npy. Before it is ready
// the program writes every batch's node list and blocks and the initial parameters to DUMP_FOLDER,
// so that all train the same numbers. Command: `run COUNT` does COUNT steps over the batches in
// turn; the answer holds wall nanoseconds of each step's extraction (features of the batch, from
// the whole feature table), gradient (forward and backward) and optimizer step, and its mean loss;
// CPU nanoseconds are those of the process.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/clock.h"
#include "core/base/huge_array.h"
#include "core/base/memfd.h"
#include "core/sample/sampler.h"
#include "served_bench.h"
#include "train/work/torch_work.h"

namespace gnnd::bench {
namespace {

struct Options {
  std::vector<int32_t> fanouts;
  uint32_t batch_size = 0;
  uint32_t hidden = 0;
  uint32_t threads = 0;
  uint32_t batches = 0;
  uint64_t random_seed = 0;
  Precision precision = Precision::kFloat32;
};

// The dataset's arrays, mapped; topology in the Sampler's types.
struct Data {
  explicit Data(const std::string& folder)
      : indices(OpenNpy(folder, "indices.npy")),
        features(OpenNpy(folder, "features.npy")),
        labels(OpenNpy(folder, "labels.npy")) {
    const NpyArray indptr_file = OpenNpy(folder, "indptr.npy");
    for (const int64_t offset : indptr_file.values<int64_t>()) {
      indptr.push_back(static_cast<uint64_t>(offset));
    }
    const NpyArray seeds_file = OpenNpy(folder, "seeds.npy");
    for (const int64_t node : seeds_file.values<int64_t>()) {
      seeds.push_back(static_cast<uint32_t>(node));
    }
  }

  TopologyView view() const { return {indptr, indices.values<uint32_t>(), {}}; }
  uint32_t num_classes() const {
    const auto values = labels.values<int32_t>();
    return static_cast<uint32_t>(*std::max_element(values.begin(), values.end()) + 1);
  }

  std::vector<uint64_t> indptr;
  NpyArray indices;
  NpyArray features;
  NpyArray labels;
  std::vector<uint32_t> seeds;
};

std::vector<Mapping> SampleBatches(const Data& data, const Options& options) {
  const TopologyView topology = data.view();
  SamplerOptions sampling;
  sampling.fanouts = options.fanouts;
  const RecordLayout layout = Must(RecordLayout::Of(
      LimitsOf(topology.num_nodes(), topology.num_edges(), options.batch_size, sampling)));
  Sampler sampler(topology, sampling, layout, DetectInstructionSet());
  std::vector<Mapping> slots;
  for (uint32_t batch = 0; batch < options.batches; ++batch) {
    GNND_CHECK((batch + 1) * uint64_t{options.batch_size} <= data.seeds.size());
    const UniqueFd fd = Must(CreateMemfd("step-bench", layout.slot_bytes()));
    slots.push_back(Must(Mapping::Map(fd.get(), true)));
    const auto seeds =
        std::span(data.seeds).subspan(batch * uint64_t{options.batch_size}, options.batch_size);
    Must(sampler.Sample({options.random_seed, 0, batch}, seeds,
                        {slots.back().data(), slots.back().size()}));
  }
  return slots;
}

// Files: batch-B-nodes.npy, batch-B-{indptr,src}-H.npy (hop 0 at the seeds), all int32.
void DumpBatch(const std::string& folder, uint32_t batch, const Sample& sample) {
  const auto write = [&](const std::string& name, std::span<const uint32_t> values) {
    std::ostringstream path;
    path << folder << "/batch-" << batch << '-' << name << ".npy";
    WriteNpy(path.str(), NpyType::kInt32, {values.size()}, values.data(), values.size());
  };
  write("nodes", sample.nodes());
  for (uint32_t hop = 0; hop < sample.num_hops(); ++hop) {
    const std::string number = std::to_string(hop);
    write("indptr-" + number, sample.block(hop).indptr);
    write("src-" + number, sample.block(hop).src);
  }
}

// Files: NAME.npy, float32, one for each tensor of the model.
void DumpParameters(const std::string& folder, const ParameterManifest& manifest,
                    const std::vector<float>& parameters) {
  for (const ParameterTensor& tensor : manifest.tensors) {
    std::vector<uint64_t> shape = {tensor.rows};
    if (!tensor.is_bias) shape.push_back(tensor.cols);
    WriteNpy(folder + "/" + tensor.name + ".npy", NpyType::kFloat32, shape,
             parameters.data() + tensor.offset, tensor.size());
  }
}

// The segment's role in training: two parameter and optimizer buffers, written in turn.
class Steps {
 public:
  Steps(std::unique_ptr<TorchWork> work, const std::vector<Mapping>& slots)
      : work_(std::move(work)), slots_(slots), gradient_(work_->manifest().num_floats) {
    for (Buffers& buffers : buffers_) {
      buffers.parameters.resize(gradient_.size());
      buffers.optimizer.resize(work_->optimizer_floats());
    }
    work_->InitParameters(buffers_[0].parameters);
  }

  const ParameterManifest& manifest() const { return work_->manifest(); }
  const std::vector<float>& parameters() const { return buffers_[step_ % 2].parameters; }

  std::string Run(uint32_t count) {
    std::vector<uint64_t> extract_ns;
    std::vector<uint64_t> gradient_ns;
    std::vector<uint64_t> apply_ns;
    std::vector<uint64_t> cpu_ns;
    std::vector<double> loss;
    for (uint32_t i = 0; i < count; ++i) {
      const Sample sample = Must(OpenRecord(slots_[step_ % slots_.size()].bytes()));
      const Buffers& now = buffers_[step_ % 2];
      Buffers& next = buffers_[(step_ + 1) % 2];
      BatchReport report;
      ExtractReport extract;
      const uint64_t start_cpu_ns = CpuNs(CLOCK_PROCESS_CPUTIME_ID);
      const uint64_t start_ns = MonotonicNs();
      Must(work_->Extract(sample, 0, &extract));
      const uint64_t extracted_ns = MonotonicNs();
      Must(work_->ComputeGradient(sample, 0, {step_, 0, now.parameters}, gradient_, &report));
      const uint64_t computed_ns = MonotonicNs();
      const GradientView gradients[] = {{step_, true, gradient_}};
      work_->Apply({step_++, report.sums.items, gradients, now.parameters, now.optimizer,
                    next.parameters, next.optimizer});
      const uint64_t applied_ns = MonotonicNs();
      cpu_ns.push_back(CpuNs(CLOCK_PROCESS_CPUTIME_ID) - start_cpu_ns);
      extract_ns.push_back(extracted_ns - start_ns);
      gradient_ns.push_back(computed_ns - extracted_ns);
      apply_ns.push_back(applied_ns - computed_ns);
      loss.push_back(report.sums.loss / static_cast<double>(report.sums.items));
    }
    std::ostringstream answer;
    answer << '{' << JsonList("extract_ns", extract_ns) << ','
           << JsonList("gradient_ns", gradient_ns) << ',' << JsonList("apply_ns", apply_ns) << ','
           << JsonList("cpu_ns", cpu_ns) << ',' << JsonList("loss", loss) << '}';
    return answer.str();
  }

 private:
  struct Buffers {
    std::vector<float> parameters;
    std::vector<float> optimizer;
  };

  std::unique_ptr<TorchWork> work_;
  const std::vector<Mapping>& slots_;
  Buffers buffers_[2];
  std::vector<float> gradient_;
  uint64_t step_ = 0;
};

// Features as a float16 file would hold them, which a bfloat16 run reads.
HugeArray<Half> HalvesOf(std::span<const float> values) {
  HugeArray<Half> halves(values.size());
  std::transform(values.begin(), values.end(), halves.data(),
                 [](float value) { return std::bit_cast<Half>(static_cast<_Float16>(value)); });
  return halves;
}

// If `halves` is empty, features are the dataset's own, in float32.
TrainOptions TrainOptionsOf(const Data& data, const Options& options,
                            std::span<const Half> halves) {
  TrainOptions train;
  train.model.num_layers = static_cast<uint32_t>(options.fanouts.size());
  train.model.in_dim = static_cast<uint32_t>(data.features.shape()[1]);
  train.model.hidden_dim = options.hidden;
  train.model.out_dim = data.num_classes();
  train.random_seed = options.random_seed;
  train.threads = options.threads;
  train.precision = options.precision;
  const auto floats = data.features.values<float>();
  train.features =
      halves.empty() ? RowTable(floats, train.model.in_dim) : RowTable(halves, train.model.in_dim);
  train.targets.labels = data.labels.values<int32_t>();
  train.topology = data.view();
  return train;
}

int Main(int argc, char** argv) {
  if (argc < 3 || argv[1][0] == '-' || argv[2][0] == '-') {
    std::fprintf(stderr, "usage: step_bench FOLDER DUMP_FOLDER [OPTIONS]   (see the source)\n");
    return 64;
  }
  const auto is_narrow = [](const char* word) { return std::string(word) == "--bfloat16"; };
  const bool narrow = std::any_of(argv + 3, argv + argc, is_narrow);
  const Options options{FanoutsArgument(argc, argv, "10,10"),
                        NumberArgument(argc, argv, "--batch", 1024),
                        NumberArgument(argc, argv, "--hidden", 256),
                        NumberArgument(argc, argv, "--threads", 1),
                        NumberArgument(argc, argv, "--batches", 4),
                        NumberArgument(argc, argv, "--random-seed", 1),
                        narrow ? Precision::kBfloat16 : Precision::kFloat32};
  const Data data(argv[1]);
  const std::string dump = argv[2];
  const std::vector<Mapping> slots = SampleBatches(data, options);
  for (uint32_t batch = 0; batch < options.batches; ++batch) {
    DumpBatch(dump, batch, Must(OpenRecord(slots[batch].bytes(), /*deep=*/true)));
  }
  HugeArray<Half> halves;
  if (narrow) halves = HalvesOf(data.features.values<float>());
  const std::span<const Half> narrowed{halves.data(), halves.size()};
  Steps steps(Must(TorchWork::Create(TrainOptionsOf(data, options, narrowed))), slots);
  DumpParameters(dump, steps.manifest(), steps.parameters());
  std::ostringstream ready;
  ready << "{\"batches\":" << options.batches << '}';
  Serve(ready.str(), [&](const std::vector<std::string>& words) {
    GNND_CHECK(words.size() == 2 && words[0] == "run");
    return steps.Run(static_cast<uint32_t>(std::stoul(words[1])));
  });
  return 0;
}

}  // namespace
}  // namespace gnnd::bench

int main(int argc, char** argv) { return gnnd::bench::Main(argc, argv); }
