#include <algorithm>
#include <cmath>
#include <map>

#include "core/draw/permutation.h"
#include "core/draw/purpose.h"
#include "core/graph/alias.h"
#include "test/support/reference.h"

namespace gnnd {
namespace {

// Words 0 to 3 of a block of a negative's stream.
PhiloxWords WordsOf(const BatchKey& key, uint32_t row, uint32_t block, uint32_t attempt) {
  return Philox(KeyOf(key.random_seed),
                CounterOf(Purpose::kNegative, key.epoch, key.batch, attempt, row, block));
}

// High half of (high, low) times the bound, in steps of 16 bits.
uint64_t Scaled(uint32_t low, uint32_t high, uint64_t bound) {
  const uint64_t carried = (low * bound) >> 32;
  return (high * bound + carried) >> 32;
}

class Drawer {
 public:
  explicit Drawer(const TopologyView& topology) : topology_(topology) {
    for (uint32_t v = 0; v < topology.num_nodes(); ++v) {
      if (topology.degree(v) > 0) by_degree_[topology.degree(v)].push_back(v);
    }
    std::vector<float> weights;
    for (const auto& [degree, nodes] : by_degree_) {
      const double root = std::sqrt(static_cast<double>(degree));
      weights.push_back(
          static_cast<float>(root * std::sqrt(root) * static_cast<double>(nodes.size())));
    }
    table_.resize(weights.size());
    AliasBuilder().Build(weights, table_.data());
  }

  uint32_t Node(NegativeMethod method, const BatchKey& key, uint32_t row, uint32_t column,
                uint32_t attempt) const {
    if (method == NegativeMethod::kDegree) return ByDegree(WordsOf(key, row, column, attempt));
    const PhiloxWords words = WordsOf(key, row, column / 2, attempt);
    const uint32_t at = column % 2 * 2;
    return static_cast<uint32_t>(Scaled(words.word[at], words.word[at + 1], topology_.num_nodes()));
  }

 private:
  uint32_t ByDegree(const PhiloxWords& words) const {
    uint64_t slot = (words.word[0] * uint64_t{table_.size()}) >> 32;
    if (words.word[1] >= table_[slot].threshold) slot = table_[slot].alias;
    const auto& nodes = std::next(by_degree_.begin(), static_cast<int64_t>(slot))->second;
    return nodes[Scaled(words.word[2], words.word[3], nodes.size())];
  }

  const TopologyView& topology_;
  std::map<uint64_t, std::vector<uint32_t>> by_degree_;
  std::vector<AliasEntry> table_;
};

bool IsListed(std::span<const uint32_t> links, uint32_t source, uint32_t destination) {
  for (size_t i = 0; i < links.size(); i += 2) {
    if (links[i] == source && links[i + 1] == destination) return true;
  }
  return false;
}

bool IsKnown(const TopologyView& topology, uint32_t source, uint32_t destination) {
  if (source == destination) return true;
  for (uint64_t e = topology.indptr[destination]; e < topology.indptr[destination + 1]; ++e) {
    if (topology.indices[e] == source) return true;
  }
  return false;
}

}  // namespace

ReferenceLinks LinksReference(const TopologyView& topology, const LinkOptions& options,
                              const BatchKey& key, std::span<const uint32_t> links,
                              uint32_t batch_size) {
  ReferenceLinks made;
  const uint32_t first = key.batch * batch_size;
  const uint32_t pairs = std::min(batch_size, options.count - first);
  for (uint32_t i = 0; i < pairs; ++i) {
    made.items.push_back(
        PermutedIndex(KeyOf(key.random_seed), key.epoch, options.count, first + i));
  }
  const auto source = [&](uint32_t i) { return links[size_t{2} * made.items[i]]; };
  const auto destination = [&](uint32_t i) { return links[size_t{2} * made.items[i] + 1]; };
  const auto is_known = [&](uint32_t from, uint32_t to) {
    return IsKnown(topology, from, to) ||
           (options.given &&
            (IsListed(links, from, to) || (options.symmetric && IsListed(links, to, from))));
  };
  const auto row_of = [&made](uint32_t node) {
    const auto at = std::find(made.seeds.begin(), made.seeds.end(), node);
    const auto row = static_cast<uint32_t>(at - made.seeds.begin());
    if (at == made.seeds.end()) made.seeds.push_back(node);
    return row;
  };
  for (uint32_t i = 0; i < pairs; ++i) made.source.push_back(row_of(source(i)));
  for (uint32_t i = 0; i < pairs; ++i) made.destination.push_back(row_of(destination(i)));

  const Drawer drawer(topology);
  const bool masks = options.known != KnownLinks::kAllow;
  for (uint32_t i = 0; i < pairs; ++i) {
    for (uint32_t c = 0; c < options.PerPair(pairs); ++c) {
      if (options.method == NegativeMethod::kInBatch) {
        if (i != c && masks && is_known(source(i), destination(c))) {
          made.masked.push_back(i * pairs + c);
        }
        continue;
      }
      const uint32_t place = i * options.negatives + c;
      uint32_t node = 0;
      if (options.method == NegativeMethod::kJoint) {
        node = drawer.Node(NegativeMethod::kUniform, key, place % pairs, 0, 0);
      } else {
        node = drawer.Node(options.method, key, i, c, 0);
        for (uint32_t attempt = 1;
             attempt < 16 && options.known == KnownLinks::kAvoid && is_known(source(i), node);
             ++attempt) {
          node = drawer.Node(options.method, key, i, c, attempt);
        }
      }
      made.negatives.push_back(node);
      if (masks && is_known(source(i), node)) made.masked.push_back(place);
    }
  }
  if (options.method == NegativeMethod::kJoint) {
    // The shared list goes into the seeds in its own order, whatever part of it pairs use.
    for (uint32_t s = 0; s < pairs && options.negatives > 0; ++s) {
      row_of(drawer.Node(NegativeMethod::kUniform, key, s, 0, 0));
    }
  }
  for (uint32_t& node : made.negatives) node = row_of(node);
  return made;
}

}  // namespace gnnd
