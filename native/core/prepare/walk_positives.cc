#include "core/prepare/walk_positives.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/draw/purpose.h"
#include "core/draw/stream.h"
#include "core/draw/walk.h"
#include "core/table/edge_sorter.h"

namespace gnnd {
namespace {

// Goes one walk after the other.
class Walker {
 public:
  Walker(const Edges& edges, const PositiveWalks& walks)
      : edges_(edges),
        walks_(walks),
        stream_(DrawStreamOf({walks.random_seed, kLinkSplitEpoch, 0}, 0, Purpose::kWalk)) {}

  // Adds the pairs of walk `number` from `start`: source, destination of each.
  void AddPairs(uint32_t start, uint32_t number, std::vector<uint32_t>* pairs) {
    Go(start, number);
    for (size_t i = 0; i < visited_.size(); ++i) {
      const size_t end = std::min<size_t>(visited_.size(), i + walks_.window + 1);
      for (size_t j = i + 1; j < end; ++j) {
        if (visited_[i] != visited_[j]) pairs->insert(pairs->end(), {visited_[j], visited_[i]});
      }
    }
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

// Writes what the sorter has: its rows are destinations, whose sources are sorted here.
Status WriteSorted(EdgeSorter& sorter, uint64_t pairs, const std::string& folder) {
  ArrayFile<uint32_t> file(folder, "links_train.npy");
  GNND_TRY(file.Create({pairs, 2}));
  uint32_t destination = 0;
  int64_t begin = 0;
  for (;;) {
    Result<std::optional<EdgeRows>> next = sorter.Next();
    GNND_TRY(next.status());
    if (!next->has_value()) return file.Commit();
    EdgeRows& rows = **next;
    const int64_t first = begin;
    for (const int64_t end : rows.ends) {
      const auto sources =
          std::span(rows.indices)
              .subspan(static_cast<size_t>(begin - first), static_cast<size_t>(end - begin));
      std::sort(sources.begin(), sources.end());
      for (const uint32_t source : sources) {
        const uint32_t pair[] = {source, destination};
        GNND_TRY(file.Append(pair));
      }
      begin = end;
      ++destination;
    }
  }
}

}  // namespace

uint64_t MostWalkPairs(const PositiveWalks& walks) {
  const uint64_t window = std::min(walks.window, walks.length);
  return walks.per_node * (window * walks.length - window * (window - 1) / 2);
}

Result<uint64_t> WriteWalkPositives(const Edges& edges, const PositiveWalks& walks,
                                    const PairSorting& sorting, const std::string& folder) {
  constexpr uint64_t kPairsMax = std::numeric_limits<uint32_t>::max();
  const uint64_t most = MostWalkPairs(walks);
  if (most > kPairsMax / std::max(1U, edges.num_nodes())) {
    return Status(Code::kInvalidArgument, "walks may come to " + std::to_string(most) +
                                              " pairs of each of " +
                                              std::to_string(edges.num_nodes()) +
                                              " nodes, and items are numbered in 32 bits");
  }
  EdgeSorterOptions options;
  options.num_nodes = edges.num_nodes();
  options.once = options.both_ways = false;
  options.folder = folder;
  options.entries_max = sorting.held_pairs;
  options.memory_bytes_max = sorting.sorted_bytes;
  const std::unique_ptr<EdgeSorter> sorter = EdgeSorter::Open(std::move(options));
  Walker walker(edges, walks);
  uint64_t count = 0;
  std::vector<uint32_t> pairs;
  for (uint32_t start = 0; start < edges.num_nodes(); ++start) {
    for (uint32_t number = 0; number < walks.per_node; ++number) {
      pairs.clear();
      walker.AddPairs(start, number, &pairs);
      GNND_CHECK(sorter->Add({pairs, {}, {}, 0}));
      count += pairs.size() / 2;
      if (sorter->NumHeld() >= sorting.held_pairs) GNND_TRY(sorter->Settle());
    }
  }
  if (count == 0) {
    return Status(Code::kInvalidArgument,
                  "walks come to no pair: no node has another as neighbour");
  }
  GNND_TRY(WriteSorted(*sorter, count, folder));
  return count;
}

}  // namespace gnnd
