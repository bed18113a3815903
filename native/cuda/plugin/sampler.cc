#include "cuda/plugin/sampler.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/batch/epoch_name.h"
#include "core/draw/labor.h"
#include "core/draw/stream.h"
#include "core/draw/walk.h"
#include "cuda/operators.h"

using gnnd::BatchKey;
using gnnd::cuda::HopCounts;
using gnnd::cuda::HopOut;
using gnnd::cuda::HopTask;
using gnnd::cuda::kBadArgument;
using gnnd::cuda::kMaxSampleHops;
using gnnd::cuda::Range;
using gnnd::cuda::SampleState;

namespace {

// Larger tables, of a word per node, are replaced by hashing.
constexpr uint64_t kMaxTableBytes = uint64_t{2} << 30;

}  // namespace

gnnd_device_sampler::gnnd_device_sampler(gnnd_device& device,
                                         const gnnd_device_sampler_config& config, Failure* failure)
    : device_(device), runtime_(device.runtime()), config_(config), arena_(device, failure) {}

gnnd_device_sampler::~gnnd_device_sampler() {
  if (compute_ != nullptr) static_cast<void>(runtime_.DestroyStream(compute_));
  if (copy_ != nullptr) static_cast<void>(runtime_.DestroyStream(copy_));
  for (const Workspace& workspace : workspaces_) {
    for (const Runtime::Event event : {workspace.begun, workspace.computed, workspace.marking,
                                       workspace.marked, workspace.copied}) {
      if (event != nullptr) static_cast<void>(runtime_.DestroyEvent(event));
    }
    if (workspace.state != nullptr) static_cast<void>(runtime_.FreePinned(workspace.state));
  }
}

std::string gnnd_device_sampler::Problem() const {
  const auto within = [](uint64_t value, uint64_t least, uint64_t most) {
    return value >= least && value <= most;
  };
  if (!within(config_.num_hops, 1, GNND_DEVICE_MAX_HOPS)) return "hops";
  if (!within(config_.num_nodes, 1, UINT32_MAX - 1)) return "nodes";
  if (!within(config_.num_train, 1, config_.num_nodes)) return "training nodes";
  if (!within(config_.batch_size, 1, config_.max_nodes)) return "the batch size";
  if (!within(config_.algorithm, GNND_SAMPLE_UNIFORM, GNND_SAMPLE_LABOR)) return "the algorithm";
  if (!within(config_.weights, GNND_WEIGHTS_NONE, GNND_WEIGHTS_INVERSE)) return "the weights";
  if (!within(config_.expansion, 1, 2)) return "the expansion";
  if (!within(config_.depth, 1, 2)) return "the depth";
  if (is_weighted() && config_.alias == nullptr) return "the alias table";
  if ((config_.ranks != nullptr) != (config_.ranks_at != 0)) return "the section of hot ranks";
  for (uint32_t h = 0; h < config_.num_hops; ++h) {
    const gnnd_device_hop& hop = config_.hops[h];
    if (hop.max_dst == 0) return "a hop's rows";
    if ((hop.weight_at != 0) != (config_.weights != GNND_WEIGHTS_NONE)) return "a weight section";
    if ((hop.self_weight_at != 0) != (config_.weights == GNND_WEIGHTS_GCN)) {
      return "a section of self weights";
    }
  }
  return "";
}

int gnnd_device_sampler::Create(Failure* failure) {
  const std::string problem = Problem();
  if (!problem.empty()) {
    failure->what = "making a sampler: " + problem + " cannot be";
    return kBadArgument;
  }
  for (uint32_t h = 0; h < config_.num_hops; ++h) {
    max_edges_ = std::max(max_edges_, config_.hops[h].max_edges);
    max_rows_ = std::max(max_rows_, config_.hops[h].max_dst);
  }
  TakeTable();
  train_nodes_ = arena_.Take<uint32_t>(config_.num_train);
  workspaces_.resize(config_.depth);
  for (Workspace& workspace : workspaces_) TakeWorkspace(&workspace);
  if (arena_.error() != 0) return arena_.error();

  failure->what = "making a sampler";
  if (const int error = runtime_.CreateStream(false, &compute_); error != 0) return error;
  if (const int error = runtime_.CreateStream(true, &copy_); error != 0) return error;
  for (Workspace& workspace : workspaces_) {
    if (const int error = MakeEvents(&workspace); error != 0) return error;
  }
  queue_ = {static_cast<gnnd::cuda::StreamHandle>(compute_), device_.max_blocks()};
  copy_queue_ = {static_cast<gnnd::cuda::StreamHandle>(copy_), device_.max_blocks()};
  if (const int error = ClearTable(); error != 0) return error;
  return device_.CopyStaged(compute_, train_nodes_, config_.train_nodes,
                            config_.num_train * sizeof(uint32_t), GNND_COPY_TO_DEVICE, failure);
}

void gnnd_device_sampler::TakeTable() {
  table_slots_ = config_.num_nodes;
  if (config_.force_hash != 0 || table_slots_ * sizeof(uint64_t) > kMaxTableBytes) {
    table_slots_ = std::bit_ceil(std::max(uint64_t{2} * config_.max_nodes, uint64_t{2}));
    table_.keys = arena_.Take<uint64_t>(table_slots_);
    table_.slot_bits = static_cast<uint32_t>(std::countr_zero(table_slots_));
  }
  table_.words = arena_.Take<uint64_t>(table_slots_);
}

void gnnd_device_sampler::TakeWorkspace(Workspace* workspace) {
  gnnd::cuda::WorkShape shape;
  shape.max_rows = max_rows_;
  shape.max_edges = max_edges_;
  shape.max_degree = config_.max_degree;
  shape.weighted = is_weighted();
  if (config_.algorithm == GNND_SAMPLE_WALK)
    shape.walk_visits = config_.walks * config_.walk_length;
  for (uint32_t h = 0; h < config_.num_hops; ++h) {
    const int32_t fanout = std::max(config_.hops[h].fanout, 0);
    shape.max_fanout = std::max(shape.max_fanout, static_cast<uint32_t>(fanout));
  }
  const uint64_t ids = std::max(max_edges_, config_.batch_size);
  const uint64_t tiles = gnnd::cuda::TileWords(std::max<uint64_t>({ids, max_rows_, 1}));
  gnnd::cuda::SampleBuffers& buffers = workspace->buffers;
  buffers.state = arena_.Take<SampleState>(1);
  buffers.nodes = arena_.Take<uint32_t>(config_.max_nodes);
  buffers.max_nodes = config_.max_nodes;
  buffers.ids = arena_.Take<uint32_t>(ids);
  buffers.max_edges = max_edges_;
  buffers.tiles = arena_.Take<uint32_t>(tiles);
  buffers.work = arena_.Take<uint64_t>(gnnd::cuda::WorkWords(shape));
  if (config_.weights == GNND_WEIGHTS_GCN) {
    buffers.inverses = arena_.Take<double>(config_.max_nodes);
  }
  workspace->seeds = arena_.Take<uint32_t>(config_.batch_size);
  if (config_.ranks != nullptr) workspace->ranks = arena_.Take<uint32_t>(config_.max_nodes);
  for (uint32_t h = 0; h < (is_shared() ? 1 : config_.num_hops); ++h) {
    // Blocks that share their sections are as large as the last block.
    const gnnd_device_hop& hop = config_.hops[is_shared() ? config_.num_hops - 1 : h];
    HopOut& out = workspace->outs[h];
    out.max_dst = hop.max_dst;
    out.max_edges = hop.max_edges;
    out.indptr = arena_.Take<uint32_t>(uint64_t{hop.max_dst} + 1);
    out.src = arena_.Take<uint32_t>(hop.max_edges);
    if (hop.weight_at != 0) out.weight = arena_.Take<float>(hop.max_edges);
    if (hop.self_weight_at != 0) out.self_weight = arena_.Take<float>(hop.max_dst);
  }
}

int gnnd_device_sampler::MakeEvents(Workspace* workspace) {
  void* state = nullptr;
  if (const int error = runtime_.AllocatePinned(sizeof(SampleState), &state); error != 0) {
    return error;
  }
  workspace->state = static_cast<SampleState*>(state);
  for (Runtime::Event* event : {&workspace->begun, &workspace->computed, &workspace->marking,
                                &workspace->marked, &workspace->copied}) {
    if (const int error = runtime_.CreateEvent(true, event); error != 0) return error;
  }
  return 0;
}

// Clears the table, so that its words and keys do not look like those of a new round of stamps.
int gnnd_device_sampler::ClearTable() {
  table_.stamp = 0;
  int error = runtime_.Fill(compute_, table_.words, 0, table_slots_ * sizeof(uint64_t));
  if (error == 0 && table_.keys != nullptr) {
    error = runtime_.Fill(compute_, table_.keys, 0, table_slots_ * sizeof(uint64_t));
  }
  return error;
}

HopTask gnnd_device_sampler::TaskOf(const Workspace& workspace, uint32_t hop) const {
  HopTask task;
  task.graph = {config_.indptr, config_.indices,
                static_cast<const gnnd::AliasEntry*>(config_.alias),
                static_cast<uint32_t>(config_.num_nodes)};
  task.table = table_;
  task.buffers = workspace.buffers;
  task.out = workspace.outs[is_shared() ? 0 : hop];
  task.hop = hop;
  task.appends = is_shared();
  return task;
}

void gnnd_device_sampler::EnqueueHop(const BatchKey& key, const HopTask& task) {
  const uint32_t hop = task.hop;
  const auto fanout = static_cast<uint32_t>(config_.hops[hop].fanout);
  const bool replace = config_.replace != 0;
  if (config_.hops[hop].fanout < 0) {
    is_weighted() ? gnnd::cuda::SampleFullByWeight(queue_, task)
                  : gnnd::cuda::SampleFull(queue_, task);
    if (config_.weights == GNND_WEIGHTS_INVERSE) gnnd::cuda::WeighAllOne(queue_, task);
  } else if (is_weighted()) {
    gnnd::cuda::SampleWeighted(queue_, task, DrawStreamOf(key, hop, gnnd::Purpose::kWeighted),
                               fanout, replace, config_.max_degree);
  } else if (config_.algorithm == GNND_SAMPLE_LABOR) {
    const auto keys = gnnd::LaborKeysOf(key, hop, config_.labor_window);
    gnnd::cuda::SampleLabor(queue_, task, keys, fanout);
  } else if (config_.algorithm == GNND_SAMPLE_WALK) {
    const gnnd::cuda::WalkShape walk{config_.walks, config_.walk_length,
                                     gnnd::RestartThreshold(config_.restart_prob)};
    gnnd::cuda::SampleWalk(queue_, task, DrawStreamOf(key, hop, gnnd::Purpose::kWalk), fanout,
                           walk);
  } else {
    gnnd::cuda::SampleUniform(queue_, task, DrawStreamOf(key, hop), fanout, replace);
  }
  if (config_.weights == GNND_WEIGHTS_GCN) gnnd::cuda::WeighGcn(queue_, task);
}

int gnnd_device_sampler::Start(uint32_t epoch, uint32_t batch, Failure* failure) {
  const Range range(runtime_, "sampling");
  failure->what = "sampling batch " + std::to_string(batch) + " of " + gnnd::EpochName(epoch);
  const uint64_t first = uint64_t{batch} * config_.batch_size;
  if (started_ - finished_ == config_.depth || first >= config_.num_train) return kBadArgument;
  if (table_.stamp == UINT32_MAX) {
    if (const int error = ClearTable(); error != 0) return error;
  }
  ++table_.stamp;
  Workspace& workspace = workspaces_[started_ % config_.depth];
  const uint64_t count = std::min<uint64_t>(config_.batch_size, config_.num_train - first);
  workspace.num_seeds = static_cast<uint32_t>(count);
  const BatchKey key{config_.random_seed, epoch, batch};
  if (const int error = runtime_.Record(workspace.begun, compute_); error != 0) return error;
  gnnd::cuda::SeedsOfBatch(queue_, key, train_nodes_, static_cast<uint32_t>(config_.num_train),
                           static_cast<uint32_t>(first), workspace.num_seeds, workspace.seeds);
  gnnd::cuda::BeginSample(queue_, TaskOf(workspace, 0), workspace.seeds, workspace.num_seeds);
  for (uint32_t hop = 0; hop < config_.num_hops; ++hop) EnqueueHop(key, TaskOf(workspace, hop));
  int error = runtime_.LaunchError();
  if (error == 0) {
    error = runtime_.Copy(compute_, workspace.state, workspace.buffers.state, sizeof(SampleState),
                          GNND_COPY_TO_HOST);
  }
  if (error == 0) error = runtime_.Record(workspace.computed, compute_);
  if (error == 0) ++started_;
  return error;
}

std::vector<gnnd_device_sampler::Section> gnnd_device_sampler::SectionsOf(
    const Workspace& workspace) const {
  const SampleState& state = *workspace.state;
  const uint32_t hops = config_.num_hops;
  std::vector<Section> sections;
  const auto add = [&](const void* from, uint64_t at, uint64_t count) {
    if (from != nullptr && count > 0) sections.push_back({from, at, count * sizeof(uint32_t)});
  };
  add(workspace.buffers.nodes, config_.nodes_at, state.hops[hops].num_dst);
  add(workspace.ranks, config_.ranks_at, state.hops[hops].num_dst);
  // Blocks that share their sections are prefixes of the last block.
  for (uint32_t h = is_shared() ? hops - 1 : 0; h < hops; ++h) {
    const HopCounts& counts = state.hops[h];
    const HopOut& out = workspace.outs[is_shared() ? 0 : h];
    const gnnd_device_hop& place = config_.hops[h];
    add(out.indptr, place.indptr_at, uint64_t{counts.num_dst} + 1);
    add(out.src, place.src_at, counts.num_edges);
    add(out.weight, place.weight_at, counts.num_edges);
    add(out.self_weight, place.self_weight_at, counts.num_dst);
  }
  return sections;
}

// The M stage of a sample whose size is known. The caller leaves out ranks beyond the largest
// cache.
int gnnd_device_sampler::Mark(const Workspace& workspace) {
  if (workspace.ranks == nullptr) return 0;
  const Range range(runtime_, "marking");
  if (const int error = runtime_.Record(workspace.marking, copy_); error != 0) return error;
  gnnd::cuda::MarkHotRanks(copy_queue_, config_.ranks, UINT32_MAX, workspace.buffers.nodes, 0,
                           workspace.state->hops[config_.num_hops].num_dst, workspace.ranks);
  const int error = runtime_.LaunchError();
  return error != 0 ? error : runtime_.Record(workspace.marked, copy_);
}

int gnnd_device_sampler::CopyOut(const Workspace& workspace, std::byte* slot,
                                 gnnd_device_sample_report* report, Failure* failure) {
  const Range range(runtime_, "copying a record");
  for (const Section& section : SectionsOf(workspace)) {
    std::byte* const to = slot + section.at;
    const bool is_direct = device_.IsRegistered(to, section.bytes);
    (is_direct ? report->direct_bytes : report->staged_bytes) += section.bytes;
    const int error =
        is_direct ? device_.Copy(copy_, to, section.from, section.bytes, GNND_COPY_TO_HOST, failure)
                  : device_.CopyStaged(copy_, to, section.from, section.bytes, GNND_COPY_TO_HOST,
                                       failure);
    if (error != 0) return error;
  }
  failure->what = "copying a record into its slot";
  const int error = runtime_.Record(workspace.copied, copy_);
  return error != 0 ? error : runtime_.SynchronizeEvent(workspace.copied);
}

int gnnd_device_sampler::Finish(std::byte* slot, gnnd_device_sample_report* report,
                                Failure* failure) {
  failure->what = "finishing a sample";
  *report = {};
  if (started_ == finished_) return kBadArgument;
  const Workspace& workspace = workspaces_[finished_ % config_.depth];
  ++finished_;
  if (const int error = runtime_.SynchronizeEvent(workspace.computed); error != 0) return error;
  const SampleState& state = *workspace.state;
  if (state.error != gnnd::cuda::kNoError) {
    failure->what = (state.error & gnnd::cuda::kSampleTooLarge) != 0
                        ? "a sample is larger than its bounds"
                        : "a training node stands twice, or is no node of the graph";
    return kBadArgument;
  }
  const uint32_t hops = config_.num_hops;
  report->num_seeds = workspace.num_seeds;
  report->num_nodes = state.hops[hops].num_dst;
  for (uint32_t h = 0; h < hops; ++h) {
    report->hops[h] = {state.hops[h].num_dst, state.hops[h + 1].num_dst, state.hops[h].num_edges,
                       0};
  }
  if (const int error = Mark(workspace); error != 0) return error;
  if (const int error = CopyOut(workspace, slot, report, failure); error != 0) return error;
  static_cast<void>(runtime_.Elapsed(workspace.begun, workspace.computed, &report->sample_ns));
  if (workspace.ranks != nullptr) {
    static_cast<void>(runtime_.Elapsed(workspace.marking, workspace.marked, &report->mark_ns));
  }
  const uint64_t before = report->sample_ns + report->mark_ns;
  uint64_t until = 0;
  static_cast<void>(runtime_.Elapsed(workspace.begun, workspace.copied, &until));
  report->copy_ns = until > before ? until - before : 0;
  return 0;
}
