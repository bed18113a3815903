#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "core/batch/record.h"
#include "core/batch/trees.h"
#include "core/graph/timed_graph.h"
#include "core/prepare/timed_rows.h"
#include "core/sample/temporal_sampler.h"
#include "test/support/temporal_reference.h"

// Graphs whose edges have times, and a sampler in time with a slot of its own.

namespace gnnd::test {

// The same graph with rows in the order of time.
class SortedByTime {
 public:
  explicit SortedByTime(const TimedEdges& edges) : graph_(edges.graph), times_(edges.times) {
    RowTimeSorter sorter;
    for (size_t r = 0; r < times_.size(); ++r) {
      if (times_[r].empty()) continue;
      Graph& rows = graph_.relations[r].rows;
      for (size_t v = 0; v + 1 < rows.indptr.size(); ++v) {
        const uint64_t at = rows.indptr[v];
        const uint64_t degree = rows.indptr[v + 1] - at;
        sorter.Sort(std::span(rows.indices).subspan(at, degree),
                    std::span(times_[r]).subspan(at, degree), rows.indices.data() + at,
                    times_[r].data() + at);
      }
    }
  }

  TimedGraph view() const {
    TimedGraph timed{graph_.view(), {}};
    for (const std::vector<int64_t>& times : times_) timed.times.emplace_back(times);
    return timed;
  }

 private:
  TypedGraph graph_;
  std::vector<std::vector<int64_t>> times_;
};

// Random times below `most`; a relation in four has none.
inline TimedEdges WithRandomTimes(uint64_t random_seed, TypedGraph graph, int64_t most) {
  std::mt19937_64 generator(random_seed);
  TimedEdges edges{std::move(graph), {}};
  for (const TypedGraph::Relation& relation : edges.graph.relations) {
    std::vector<int64_t>& times = edges.times.emplace_back();
    if (edges.graph.relations.size() > 1 && generator() % 4 == 0) continue;
    for (size_t e = 0; e < relation.rows.indices.size(); ++e) {
      times.push_back(static_cast<int64_t>(generator() % static_cast<uint64_t>(most)));
    }
  }
  return edges;
}

// A sampler in time with a slot of its own. Seeds are given in one list.
class TemporalUnderTest {
 public:
  TemporalUnderTest(const TimedGraph& graph, const SamplerOptions& options,
                    const TimeOptions& times, const std::vector<uint32_t>& max_seeds,
                    InstructionSet set)
      : layout_(LayoutOf(graph.graph, options, max_seeds)),
        sampler_(graph, options, times, layout_, set),
        slot_(layout_.slot_bytes(), std::byte{0xA5}) {}

  // Seeds of one type follow each other.
  Status TrySample(const BatchKey& key, std::span<const TimedSeed> seeds) {
    std::vector<uint32_t> nodes;
    std::vector<int64_t> times;
    for (const TimedSeed& seed : seeds) {
      nodes.push_back(seed.node);
      times.push_back(seed.time);
    }
    std::vector<TimedSeeds> lists;
    for (size_t begin = 0; begin < seeds.size();) {
      size_t end = begin;
      while (end < seeds.size() && seeds[end].type == seeds[begin].type) ++end;
      lists.push_back({seeds[begin].type, std::span(nodes).subspan(begin, end - begin),
                       std::span(times).subspan(begin, end - begin)});
      begin = end;
    }
    return sampler_.Sample(key, lists, slot_);
  }
  // The view is valid until the next call.
  gnnd::Sample Sample(const BatchKey& key, std::span<const TimedSeed> seeds) {
    const Status status = TrySample(key, seeds);
    REQUIRE_MESSAGE(status.ok(), status.message());
    const Result<gnnd::Sample> sample = OpenRecord(slot_);
    REQUIRE_MESSAGE(sample.ok(), sample.status().message());
    const Status trees = CheckTrees(*sample);
    REQUIRE_MESSAGE(trees.ok(), trees.message());
    return *sample;
  }
  std::span<const std::byte> slot() const { return slot_; }
  uint64_t workspace_bytes() const { return sampler_.workspace_bytes(); }

 private:
  static RecordLayout LayoutOf(const GraphView& graph, const SamplerOptions& options,
                               const std::vector<uint32_t>& max_seeds) {
    const Result<RecordLayout> layout = RecordLayout::Of(TreeLimitsOf(graph, max_seeds, options));
    REQUIRE_MESSAGE(layout.ok(), layout.status().message());
    return *layout;
  }

  RecordLayout layout_;
  TemporalSampler sampler_;
  std::vector<std::byte> slot_;
};

}  // namespace gnnd::test
