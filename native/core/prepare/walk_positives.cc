#include "core/prepare/walk_positives.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "core/draw/purpose.h"
#include "core/draw/stream.h"
#include "core/draw/walk.h"
#include "core/prepare/key_sorter.h"

namespace gnnd {
namespace {

// A pair by (destination, source).
uint64_t PairKey(uint32_t source, uint32_t destination) {
  return uint64_t{destination} << 32 | source;
}

// Goes one walk after the other.
class Walker {
 public:
  Walker(const Edges& edges, const PositiveWalks& walks)
      : edges_(edges),
        walks_(walks),
        stream_(DrawStreamOf({walks.random_seed, kLinkSplitEpoch, 0}, 0, Purpose::kWalk)) {}

  // Adds the keys of the pairs of walk `number` from `start`.
  Status AddPairs(uint32_t start, uint32_t number, KeySorter* pairs) {
    Go(start, number);
    for (size_t i = 0; i < visited_.size(); ++i) {
      const size_t end = std::min<size_t>(visited_.size(), i + walks_.window + 1);
      for (size_t j = i + 1; j < end; ++j) {
        if (visited_[i] != visited_[j]) GNND_TRY(pairs->Add(PairKey(visited_[j], visited_[i])));
      }
    }
    return Status::Ok();
  }

 private:
  void Go(uint32_t start, uint32_t number) {
    visited_.assign(1, start);
    for (uint32_t step = 0; step < walks_.length; ++step) {
      const std::span<const uint32_t> row = edges_.row(visited_.back());
      if (row.empty()) return;
      const uint64_t block = uint64_t{number} * walks_.length + step;
      const PhiloxWords words = LongRowWords(stream_, start, block);
      visited_.push_back(row[WalkPosition(WordAt(words, 0), WordAt(words, 1), row.size())]);
    }
  }

  const Edges& edges_;
  const PositiveWalks& walks_;
  const DrawStream stream_;
  std::vector<uint32_t> visited_;
};

}  // namespace

uint64_t MostWalkPairs(const PositiveWalks& walks) {
  const uint64_t window = std::min(walks.window, walks.length);
  return walks.per_node * (window * walks.length - window * (window - 1) / 2);
}

Result<uint64_t> WriteWalkPositives(const Edges& edges, const PositiveWalks& walks, uint64_t held,
                                    const std::string& folder) {
  constexpr uint64_t kPairsMax = std::numeric_limits<uint32_t>::max();
  const uint64_t most = MostWalkPairs(walks);
  if (most > kPairsMax / std::max(1U, edges.num_nodes())) {
    return Status(Code::kInvalidArgument, "walks may come to " + std::to_string(most) +
                                              " pairs of each of " +
                                              std::to_string(edges.num_nodes()) +
                                              " nodes, and items are numbered in 32 bits");
  }
  Walker walker(edges, walks);
  KeySorter sorter(folder, held);
  for (uint32_t start = 0; start < edges.num_nodes(); ++start) {
    for (uint32_t number = 0; number < walks.per_node; ++number) {
      GNND_TRY(walker.AddPairs(start, number, &sorter));
    }
  }
  const uint64_t count = sorter.size();
  if (count == 0) {
    return Status(Code::kInvalidArgument,
                  "walks come to no pair: no node has another as neighbour");
  }
  ArrayFile<uint32_t> file(folder, "links_train.npy");
  GNND_TRY(file.Create({count, 2}));
  const auto write = [&file](std::span<const uint64_t> keys) {
    for (const uint64_t key : keys) {
      const uint32_t pair[] = {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)};
      GNND_TRY(file.Append(pair));
    }
    return Status::Ok();
  };
  GNND_TRY(sorter.Drain(write));
  GNND_TRY(file.Commit());
  return count;
}

}  // namespace gnnd
