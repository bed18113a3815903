#include "core/sample/link_seeds.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "core/base/check.h"
#include "core/base/prefetch.h"
#include "core/draw/negatives.h"
#include "core/item/item_range.h"

namespace gnnd {
namespace {

uint32_t MostSeeds(const LinkOptions& options, uint32_t batch_size, uint32_t num_nodes) {
  const uint32_t pairs = std::min(batch_size, options.count);
  return static_cast<uint32_t>(std::min<uint64_t>(num_nodes, options.MaxSeeds(pairs)));
}

bool RowsAscend(const TopologyView& topology) {
  for (uint32_t row = 0; row < topology.num_nodes(); ++row) {
    const auto nodes = topology.indices.subspan(topology.indptr[row], topology.degree(row));
    if (!std::is_sorted(nodes.begin(), nodes.end())) return false;
  }
  return true;
}

// The place of the first number that is not below `wanted`, of ascending ones. Steps are chosen
// without a branch, which half of the time would be predicted wrong.
size_t FirstNotBelow(std::span<const uint32_t> numbers, uint32_t wanted) {
  size_t begin = 0;
  size_t count = numbers.size();
  while (count > 1) {
    const size_t half = count / 2;
    begin += numbers[begin + half - 1] < wanted ? half : 0;
    count -= half;
  }
  return count == 1 && numbers[begin] < wanted ? begin + 1 : begin;
}

}  // namespace

std::vector<float> LinkSeedShares(const LinkOptions& options, std::span<const uint32_t> links,
                                  uint32_t batch_size, uint32_t num_nodes) {
  const uint32_t pairs = std::min(batch_size, options.count);
  const double drawn = static_cast<double>(options.MaxSeeds(pairs) - uint64_t{2} * pairs);
  // Expected number of times that a batch names the node.
  std::vector<float> shares(num_nodes, static_cast<float>(drawn / num_nodes));
  const auto of_batch =
      static_cast<float>(static_cast<double>(pairs) / static_cast<double>(options.count));
  for (const uint32_t end : links) {
    if (end < num_nodes) shares[end] += of_batch;
  }
  for (float& share : shares) share = 1.0F - std::exp(-share);
  return shares;
}

LinkSeeds::LinkSeeds(const LinkOptions& options, std::span<const uint32_t> links,
                     uint32_t batch_size, const TopologyView& topology, const Order& order)
    : options_(options),
      links_(links),
      batch_size_(batch_size),
      topology_(topology),
      shuffled_(order.shuffled),
      rows_ascend_(order.rows_ascend || options.exclude == LinkExclusion::kNone ||
                   RowsAscend(topology)),
      table_(MostSeeds(options, batch_size, topology.num_nodes())),
      nodes_(uint64_t{MostSeeds(options, batch_size, topology.num_nodes())} + 1) {
  GNND_CHECK(options.on() && links.size() == uint64_t{2} * options.count);
  if (options.method == NegativeMethod::kDegree) by_degree_.emplace(topology);
}

Status LinkSeeds::Make(const BatchKey& key) {
  const auto most = static_cast<uint32_t>(nodes_.size() - 1);
  table_.Begin(most);
  num_seeds_ = 0;
  const Status status = TakeItems(key);
  if (status.ok()) AddNegatives(key);
  table_.End(num_seeds_);
  if (status.ok()) FindSkips();
  return status;
}

LinkBatch LinkSeeds::batch() const {
  LinkBatch batch;
  const std::span<const uint32_t> ends(end_rows_);
  batch.pairs.source = ends.first(num_pairs_);
  batch.pairs.destination = ends.subspan(num_pairs_, num_pairs_);
  batch.pairs.items = items_;
  batch.pairs.per_pair = options_.PerPair(num_pairs_);
  batch.pairs.in_batch = options_.method == NegativeMethod::kInBatch;
  batch.pairs.negatives = batch.pairs.in_batch ? batch.pairs.destination : negatives_;
  batch.pairs.masked = masked_;
  batch.skips = {skip_first_, skip_places_, options_.exclude == LinkExclusion::kBatchAfter};
  return batch;
}

Status LinkSeeds::TakeItems(const BatchKey& key) {
  const ItemRange range = ItemRange::OfBatch(key.batch, batch_size_, options_.count);
  num_pairs_ = range.size();
  items_.resize(num_pairs_);
  if (shuffled_) {
    ItemOrder{key.random_seed, key.epoch, options_.count}.Write(range, items_.data());
  } else {
    std::iota(items_.begin(), items_.end(), range.begin);
  }
  end_nodes_.resize(size_t{2} * num_pairs_);
  for (uint32_t i = 0; i < num_pairs_; ++i) {
    const uint32_t source = links_[size_t{2} * items_[i]];
    const uint32_t destination = links_[size_t{2} * items_[i] + 1];
    if (std::max(source, destination) >= topology_.num_nodes()) {
      return Status(Code::kDatasetCorrupt,
                    "training link " + std::to_string(items_[i]) + " is (" +
                        std::to_string(source) + ", " + std::to_string(destination) +
                        "), but the graph has " + std::to_string(topology_.num_nodes()) + " nodes");
    }
    end_nodes_[i] = source;
    end_nodes_[num_pairs_ + i] = destination;
  }
  end_rows_.resize(end_nodes_.size());
  PushAll(end_nodes_, end_rows_.data());
  num_ends_ = num_seeds_;
  return Status::Ok();
}

void LinkSeeds::PushAll(std::span<const uint32_t> nodes, uint32_t* rows) {
  num_seeds_ = table_.InsertAll(nodes.data(), static_cast<uint32_t>(nodes.size()), nodes_.data(),
                                num_seeds_, rows);
}

void LinkSeeds::AddNegatives(const BatchKey& key) {
  masked_.clear();
  negatives_.clear();
  if (options_.method == NegativeMethod::kInBatch) {
    if (options_.known != KnownLinks::kAllow) MaskInBatch();
    return;
  }
  const uint32_t per_pair = options_.negatives;
  const uint32_t all = num_pairs_ * per_pair;
  if (all == 0) return;
  const bool joint = options_.method == NegativeMethod::kJoint;
  drawn_.resize(joint ? num_pairs_ : all);
  for (uint32_t i = 0; i < drawn_.size(); ++i) {
    drawn_[i] = joint ? DrawNode(key, i, 0, 0) : NegativeOf(key, i / per_pair, i % per_pair);
  }
  drawn_rows_.resize(drawn_.size());
  PushAll(drawn_, drawn_rows_.data());
  negatives_.resize(all);
  for (uint32_t i = 0; i < all; ++i) {
    const size_t at = i % drawn_.size();  // joint: the next pair goes on where this one ended
    negatives_[i] = drawn_rows_[at];
    if (options_.known == KnownLinks::kAllow) continue;
    if (IsKnown(end_nodes_[i / per_pair], drawn_[at])) masked_.push_back(i);
  }
}

uint32_t LinkSeeds::NegativeOf(const BatchKey& key, uint32_t pair, uint32_t column) const {
  uint32_t node = DrawNode(key, pair, column, 0);
  if (options_.known != KnownLinks::kAvoid) return node;
  for (uint32_t attempt = 1; attempt < kNegativeAttempts && IsKnown(end_nodes_[pair], node);
       ++attempt) {
    node = DrawNode(key, pair, column, attempt);
  }
  return node;
}

uint32_t LinkSeeds::DrawNode(const BatchKey& key, uint32_t row, uint32_t column,
                             uint32_t attempt) const {
  if (by_degree_ && !by_degree_->empty()) {
    return by_degree_->Draw(LongRowWords(NegativeStream(key, attempt), row, column));
  }
  return NegativeDraw(key, row, column, attempt, topology_.num_nodes());
}

bool LinkSeeds::IsKnown(uint32_t source, uint32_t destination) const {
  if (source == destination) return true;
  const auto row =
      topology_.indices.subspan(topology_.indptr[destination], topology_.degree(destination));
  if (std::binary_search(row.begin(), row.end(), source)) return true;
  // Links that are the graph's own edges are found there.
  if (!options_.given) return false;
  return IsListed(source, destination) || (options_.symmetric && IsListed(destination, source));
}

bool LinkSeeds::IsListed(uint32_t source, uint32_t destination) const {
  const auto key = [](uint64_t high, uint32_t low) { return high << 32 | low; };
  const uint64_t wanted = key(destination, source);
  size_t low = 0;
  size_t high = options_.count;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    const uint64_t found = key(links_[2 * middle + 1], links_[2 * middle]);
    if (found == wanted) return true;
    if (found < wanted) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return false;
}

// Looks for the batch's sources in the rows of its destinations: for the fewer of the two in the
// other. Of listed links it asks for each pair.
void LinkSeeds::MaskInBatch() {
  struct Source {
    uint32_t node;
    uint32_t pair;
  };
  std::vector<Source> sources(num_pairs_);
  for (uint32_t i = 0; i < num_pairs_; ++i) sources[i] = {end_nodes_[i], i};
  const auto by_node = [](const Source& a, const Source& b) { return a.node < b.node; };
  std::sort(sources.begin(), sources.end(), by_node);
  for (uint32_t column = 0; column < num_pairs_; ++column) {
    const uint32_t destination = end_nodes_[num_pairs_ + column];
    const auto mask = [&](uint32_t pair) {
      if (pair != column) masked_.push_back(pair * num_pairs_ + column);
    };
    const auto mask_all_of = [&](uint32_t node) {
      const auto equal = std::equal_range(sources.begin(), sources.end(), Source{node, 0}, by_node);
      for (auto at = equal.first; at != equal.second; ++at) mask(at->pair);
    };
    const auto row =
        topology_.indices.subspan(topology_.indptr[destination], topology_.degree(destination));
    if (row.size() < num_pairs_ && !options_.given) {
      bool is_there = false;  // the destination in its own row
      for (size_t e = 0; e < row.size(); ++e) {
        if (e > 0 && row[e] == row[e - 1]) continue;
        mask_all_of(row[e]);
        is_there = is_there || row[e] == destination;
      }
      if (!is_there) mask_all_of(destination);
      continue;
    }
    for (const Source& source : sources) {
      if (IsKnown(source.node, destination)) mask(source.pair);
    }
  }
  std::sort(masked_.begin(), masked_.end());
}

void LinkSeeds::FindSkips() {
  skip_first_.clear();
  skip_places_.clear();
  if (options_.exclude == LinkExclusion::kNone) return;
  skips_.clear();
  // A search begins in the middle of a row, whose bounds lie elsewhere: both are asked for ahead.
  constexpr uint32_t kBoundsAhead = 16;
  constexpr uint32_t kMiddleAhead = 8;
  const PrefetchLevel level = BestPrefetchLevel();
  const auto ask_bounds = [&](uint32_t node) { Prefetch(level, &topology_.indptr[node]); };
  const auto ask_middle = [&](uint32_t node) {
    const uint64_t middle = (topology_.indptr[node] + topology_.indptr[node + 1]) / 2;
    Prefetch(level, topology_.indices.data() + middle);
  };
  for (uint32_t i = 0; i < num_pairs_; ++i) {
    if (i + kBoundsAhead < num_pairs_) {
      ask_bounds(end_nodes_[i + kBoundsAhead]);
      ask_bounds(end_nodes_[num_pairs_ + i + kBoundsAhead]);
      ask_middle(end_nodes_[i + kMiddleAhead]);
      ask_middle(end_nodes_[num_pairs_ + i + kMiddleAhead]);
    }
    const uint32_t source = end_nodes_[i];
    const uint32_t destination = end_nodes_[num_pairs_ + i];
    AddSkip(end_rows_[num_pairs_ + i], destination, source);
    if (options_.symmetric) AddSkip(end_rows_[i], source, destination);
  }
  std::sort(skips_.begin(), skips_.end(), [](const Skip& a, const Skip& b) {
    return a.row != b.row ? a.row < b.row : a.place < b.place;
  });
  // A list may name a link twice, or beside its reverse.
  const auto is_same = [](const Skip& a, const Skip& b) {
    return a.row == b.row && a.place == b.place;
  };
  skips_.erase(std::unique(skips_.begin(), skips_.end(), is_same), skips_.end());
  skip_first_.assign(size_t{num_ends_} + 1, 0);
  for (const Skip& skip : skips_) skip_first_[skip.row + 1] += skip.count;
  for (uint32_t row = 0; row < num_ends_; ++row) skip_first_[row + 1] += skip_first_[row];
  for (const Skip& skip : skips_) {
    for (uint32_t k = 0; k < skip.count; ++k) skip_places_.push_back(skip.place + k);
  }
}

void LinkSeeds::AddSkip(uint32_t row, uint32_t destination, uint32_t source) {
  const auto neighbours =
      topology_.indices.subspan(topology_.indptr[destination], topology_.degree(destination));
  if (!rows_ascend_) {
    for (auto at = neighbours.begin();; ++at) {
      at = std::find(at, neighbours.end(), source);
      if (at == neighbours.end()) return;
      skips_.push_back({row, 1, static_cast<uint64_t>(at - neighbours.begin())});
    }
  }
  const size_t first = FirstNotBelow(neighbours, source);
  size_t end = first;
  while (end < neighbours.size() && neighbours[end] == source) ++end;
  if (end > first) skips_.push_back({row, static_cast<uint32_t>(end - first), first});
}

}  // namespace gnnd
