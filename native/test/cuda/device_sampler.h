#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "core/batch/layout.h"
#include "core/draw/walk.h"
#include "core/sample/options.h"
#include "cuda/operators.h"
#include "cuda/shim/shim.h"
#include "test/support/graphs.h"

// A sampler that is made of the device's operators, in memory of exactly the size that they ask
// for.

namespace gnnd::test {

class DeviceSampler {
 public:
  struct Shape {
    bool hash = false;
    uint32_t max_blocks = 3;
    uint32_t first_stamp = 1;
  };

  DeviceSampler(const TopologyView& topology, const SamplerOptions& options,
                const RecordLayout& layout, const Shape& shape)
      : options_(options), layout_(layout), queue_{nullptr, shape.max_blocks} {
    const uint32_t hops = layout.num_hops();
    uint32_t max_rows = 0;
    for (uint32_t h = 0; h < hops; ++h) {
      max_edges_ = std::max(max_edges_, layout.block(h).max_edges);
      max_rows = std::max(max_rows, layout.block(h).max_dst);
    }
    const uint32_t max_nodes = layout.nodes().max_nodes;
    graph_ = {topology.indptr.data(), topology.indices.data(),
              topology.alias.empty() ? nullptr : topology.alias.data(), topology.num_nodes()};
    table_.stamp = shape.first_stamp;
    uint64_t slots = topology.num_nodes();
    if (shape.hash) {
      slots = std::bit_ceil(std::max(uint64_t{2} * max_nodes, uint64_t{2}));
      keys_.assign(slots, 0);
      table_.keys = keys_.data();
      table_.slot_bits = static_cast<uint32_t>(std::countr_zero(slots));
    }
    words_.assign(slots, 0);
    table_.words = words_.data();
    nodes_.resize(max_nodes);
    ids_.resize(std::max(max_edges_, layout.nodes().max_seeds));
    tiles_.resize(cuda::TileWords(std::max<uint64_t>({ids_.size(), max_rows, uint64_t{1}})));
    inverses_.resize(options.weights == EdgeWeights::kGcn ? max_nodes : 0);
    work_.resize(cuda::WorkWords(WorkShapeOf(topology, max_rows)));
    outs_.resize(hops);
    for (uint32_t h = 0; h < hops; ++h)
      outs_[h].Resize(layout.block(Shared() ? hops - 1 : h), options);
  }

  // Runs a batch; the state says whether there is a sample.
  const cuda::SampleState& Run(const BatchKey& key, std::span<const uint32_t> seeds) {
    for (uint32_t h = 0; h < outs_.size(); ++h) {
      const cuda::HopTask task = TaskOf(h);
      if (h == 0) cuda::BeginSample(queue_, task, seeds.data(), Count(seeds.size()));
      RunHop(task, key, h);
    }
    ++table_.stamp;
    return state_;
  }

  // The sample of the last batch.
  Sample Last(const BatchKey& key, uint32_t num_seeds) const {
    Sample sample(SampleKind::kBlocks, key);
    const uint32_t hops = Count(outs_.size());
    sample.AddNodes(std::span(nodes_).first(state_.hops[hops].num_dst), num_seeds, {});
    for (uint32_t h = 0; h < hops; ++h) {
      const Out& out = outs_[Shared() ? 0 : h];
      const cuda::HopCounts& counts = state_.hops[h];
      BlockView block;
      block.hop = h;
      block.num_dst = counts.num_dst;
      block.num_src = state_.hops[h + 1].num_dst;
      block.indptr = std::span(out.indptr).first(counts.num_dst + 1);
      block.src = std::span(out.src).first(counts.num_edges);
      if (!out.weight.empty()) block.weight = std::span(out.weight).first(counts.num_edges);
      if (!out.self_weight.empty()) {
        block.self_weight = std::span(out.self_weight).first(counts.num_dst);
      }
      sample.AddBlock(block);
    }
    return sample;
  }

  // Less room than the layout asks for.
  uint32_t& max_edges() { return max_edges_; }
  void LimitNodes(uint32_t most) {
    nodes_.resize(most);
    if (table_.keys == nullptr) return;
    table_.slot_bits = static_cast<uint32_t>(std::countr_zero(std::bit_ceil(2 * most)));
  }
  uint32_t& max_rows(uint32_t hop) { return outs_[hop].max_dst; }

 private:
  struct Out {
    std::vector<uint32_t> indptr;
    std::vector<uint32_t> src;
    std::vector<float> weight;
    std::vector<float> self_weight;
    uint32_t max_dst = 0;

    void Resize(const BlockLayout& hop, const SamplerOptions& options) {
      max_dst = hop.max_dst;
      indptr.assign(hop.max_dst + 1, 0xA5A5A5A5);
      src.assign(hop.max_edges, 0xA5A5A5A5);
      weight.assign(options.weights == EdgeWeights::kNone ? 0 : hop.max_edges, -1.0F);
      self_weight.assign(options.weights == EdgeWeights::kGcn ? hop.max_dst : 0, -1.0F);
    }
  };

  static uint32_t Count(size_t size) { return static_cast<uint32_t>(size); }
  bool Shared() const { return options_.expansion == Expansion::kNew; }

  cuda::WorkShape WorkShapeOf(const TopologyView& topology, uint32_t max_rows) {
    cuda::WorkShape shape;
    shape.max_rows = max_rows;
    shape.max_edges = max_edges_;
    for (const int32_t fanout : options_.fanouts) {
      shape.max_fanout = std::max(shape.max_fanout, static_cast<uint32_t>(std::max(fanout, 0)));
    }
    for (uint32_t v = 0; v < topology.num_nodes(); ++v) {
      max_degree_ = std::max(max_degree_, topology.degree(v));
    }
    shape.max_degree = max_degree_;
    shape.weighted = options_.algorithm == Algorithm::kWeighted;
    if (options_.algorithm == Algorithm::kWalk) {
      shape.walk_visits = options_.walk.walks * options_.walk.length;
    }
    return shape;
  }

  cuda::HopTask TaskOf(uint32_t hop) {
    Out& out = outs_[Shared() ? 0 : hop];
    cuda::HopTask task;
    task.graph = graph_;
    task.table = table_;
    task.buffers = {&state_,    nodes_.data(), Count(nodes_.size()), ids_.data(),
                    max_edges_, tiles_.data(), work_.data(),         inverses_.data()};
    task.out = {out.indptr.data(),
                out.src.data(),
                out.weight.empty() ? nullptr : out.weight.data(),
                out.self_weight.empty() ? nullptr : out.self_weight.data(),
                out.max_dst,
                Count(out.src.size())};
    task.hop = hop;
    task.appends = Shared();
    return task;
  }

  void RunHop(const cuda::HopTask& task, const BatchKey& key, uint32_t hop) {
    const auto fanout = static_cast<uint32_t>(options_.fanouts[hop]);
    const bool full = options_.fanouts[hop] == kFullNeighbourhood;
    const bool weighted = options_.algorithm == Algorithm::kWeighted;
    if (full) {
      weighted ? cuda::SampleFullByWeight(queue_, task) : cuda::SampleFull(queue_, task);
      if (options_.weights == EdgeWeights::kInverse) cuda::WeighAllOne(queue_, task);
    } else if (weighted) {
      cuda::SampleWeighted(queue_, task, DrawStreamOf(key, hop, Purpose::kWeighted), fanout,
                           options_.replace, max_degree_);
    } else if (options_.algorithm == Algorithm::kLabor) {
      cuda::SampleLabor(queue_, task, LaborKeysOf(key, hop, options_.labor.dependency_window),
                        fanout);
    } else if (options_.algorithm == Algorithm::kWalk) {
      const WalkOptions& walk = options_.walk;
      cuda::SampleWalk(queue_, task, DrawStreamOf(key, hop, Purpose::kWalk), fanout,
                       {walk.walks, walk.length, RestartThreshold(walk.restart_prob)});
    } else {
      cuda::SampleUniform(queue_, task, DrawStreamOf(key, hop), fanout, options_.replace);
    }
    if (options_.weights == EdgeWeights::kGcn) cuda::WeighGcn(queue_, task);
  }

  SamplerOptions options_;
  RecordLayout layout_;
  cuda::Queue queue_;
  cuda::GraphView graph_;
  cuda::NodeTable table_;
  cuda::SampleState state_{};
  uint32_t max_edges_ = 0;
  uint64_t max_degree_ = 0;
  std::vector<uint64_t> words_;
  std::vector<uint64_t> keys_;
  std::vector<uint32_t> nodes_;
  std::vector<uint32_t> ids_;
  std::vector<uint32_t> tiles_;
  std::vector<uint64_t> work_;
  std::vector<double> inverses_;
  std::vector<Out> outs_;
};

}  // namespace gnnd::test
