#pragma once

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <vector>

#include "core/base/prefetch.h"
#include "core/draw/stream.h"
#include "core/graph/topology_view.h"
#include "core/sample/options.h"
#include "core/sample/picks.h"
#include "core/sample/walk.h"
#include "core/sample/weighted.h"
#include "power_law_graph.h"

// The cache lines that a batch's sample must touch, counted from the record, and the cost of one.

namespace gnnd {

inline constexpr uint64_t kLineBytes = 64;

// Nanoseconds of this thread's processor time.
inline double Now() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

// Nanoseconds per cache line of independent random reads from `bytes` bytes, prefetched to the
// level that this processor does best with.
inline double ProbeLine(const void* memory, uint64_t bytes, uint32_t reads) {
  constexpr uint32_t kAhead = 64;
  const PrefetchLevel level = BestPrefetchLevel();
  const auto* base = static_cast<const unsigned char*>(memory);
  const uint64_t lines = bytes / kLineBytes;
  const unsigned char* ring[kAhead];
  static Random random;
  const auto next = [&] {
    const uint64_t line = ((random.Next() >> 32) * lines) >> 32;
    Prefetch(level, base + line * kLineBytes);
    return base + line * kLineBytes;
  };
  for (auto& address : ring) address = next();
  uint64_t sum = 0;
  const double start = Now();
  for (uint32_t i = 0; i < reads; ++i) {
    sum += *ring[i % kAhead];
    ring[i % kAhead] = next();
  }
  const double elapsed = Now() - start;
  // Pretends to use the sum, so that the compiler does not drop the reads.
  asm volatile("" : : "r"(sum));
  return elapsed / reads;
}

// Cache lines that a batch must touch, counted from its record.
struct Lines {
  uint64_t edges = 0;
  uint64_t rows = 0;
  uint64_t unique = 0;
  uint64_t indices = 0;
  uint64_t indptr = 0;
  uint64_t steps = 0;  // steps of walks
};

inline uint64_t CountDistinct(std::vector<uint64_t>* lines) {
  std::sort(lines->begin(), lines->end());
  return static_cast<uint64_t>(std::unique(lines->begin(), lines->end()) - lines->begin());
}

// The reads for one row: positions in indices and in the alias tables, other nodes' bounds, steps.
struct RowReads {
  std::vector<uint64_t> indices;
  std::vector<uint64_t> alias;
  uint64_t bounds = 0;
};

class LineCounter {
 public:
  LineCounter(const TopologyView& topology, const SamplerOptions& options)
      : topology_(topology), options_(options) {}

  Lines Count(const Sample& sample) {
    Lines lines;
    lines.unique = sample.nodes().size();
    lines.edges = sample.num_edges();
    uint32_t first_row = 0;
    for (uint32_t hop = 0; hop < sample.num_hops(); ++hop) {
      const BlockView block = sample.block(hop);
      if (options_.expansion == Expansion::kAll) first_row = 0;
      for (uint32_t row = first_row; row < block.num_dst; ++row) {
        RowReads reads = ReadsOf(sample.key(), hop, sample.nodes()[row]);
        for (uint64_t& at : reads.indices) at = at * sizeof(uint32_t) / kLineBytes;
        for (uint64_t& at : reads.alias) at = at * sizeof(AliasEntry) / kLineBytes;
        if (options_.algorithm == Algorithm::kWalk) lines.steps += reads.indices.size();
        lines.indices += CountDistinct(&reads.indices) + CountDistinct(&reads.alias);
        lines.indptr += 1 + reads.bounds;
      }
      lines.rows += block.num_dst - first_row;
      first_row = block.num_dst;
    }
    return lines;
  }

 private:
  RowReads ReadsOf(const BatchKey& key, uint32_t hop, uint32_t node) {
    const uint64_t start = topology_.indptr[node];
    const uint64_t degree = topology_.degree(node);
    const auto fanout = static_cast<uint32_t>(options_.fanouts[hop]);
    RowReads reads;
    if (options_.algorithm == Algorithm::kWalk) {
      WalkFrom(DrawStreamOf(key, hop, Purpose::kWalk), node, &reads);
    } else if (options_.algorithm == Algorithm::kLabor || degree <= fanout) {
      for (uint64_t j = 0; j < degree; ++j) reads.indices.push_back(start + j);
      if (options_.algorithm == Algorithm::kWeighted) reads.alias = reads.indices;
    } else if (options_.algorithm == Algorithm::kWeighted) {
      const DrawStream stream = DrawStreamOf(key, hop, Purpose::kWeighted);
      const uint32_t draws = options_.replace ? fanout : WeightedCandidates(fanout);
      for (uint32_t j = 0; j < draws; ++j) {
        const PhiloxWords words = RowWords(stream, node, j / 2);
        const uint32_t word = words.word[j % 2 * 2];
        reads.alias.push_back(start + BoundedDraw(word, static_cast<uint32_t>(degree)));
      }
      reads.indices.resize(fanout);
      reads.indices.resize(weighted_.Pick(stream, node, topology_.alias.data() + start, degree,
                                          fanout, options_.replace, {}, reads.indices.data()));
      for (uint64_t& at : reads.indices) at += start;
    } else {
      reads.indices.resize(fanout);
      const DrawStream stream = DrawStreamOf(key, hop);
      if (options_.replace) {
        RowPicker::PickWithReplacement(stream, node, degree, fanout, reads.indices.data());
      } else {
        picker_.Pick(stream, node, degree, fanout, reads.indices.data());
      }
      for (uint64_t& at : reads.indices) at += start;
    }
    return reads;
  }

  void WalkFrom(const DrawStream& stream, uint32_t node, RowReads* reads) const {
    const WalkOptions& walk = options_.walk;
    for (uint32_t w = 0; w < walk.walks; ++w) {
      uint32_t at = node;
      for (uint32_t s = 0; s < walk.length && topology_.degree(at) > 0; ++s) {
        const PhiloxWords words = RowWords(stream, node, w * walk.length + s);
        reads->indices.push_back(topology_.indptr[at] + WideBoundedDraw(words.word[0],
                                                                        words.word[1],
                                                                        topology_.degree(at)));
        reads->bounds += s == 0 ? 0 : 1;
        at = topology_.indices[reads->indices.back()];
        if (words.word[2] < RestartThreshold(walk.restart_prob)) break;
      }
    }
  }

  TopologyView topology_;
  SamplerOptions options_;
  RowPicker picker_{static_cast<uint32_t>(kMaxFanout)};
  WeightedPicker weighted_;
};

}  // namespace gnnd
