#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/draw/batch_key.h"
#include "core/graph/topology_view.h"
#include "core/item/links.h"
#include "core/sample/degree_nodes.h"
#include "core/sample/relabel.h"
#include "core/sample/sampler.h"

namespace gnnd {

// The probability that a batch has each node among its seeds, as if its ends were drawn
// independently; negatives are taken to be uniform. [num_nodes]
std::vector<float> LinkSeedShares(const LinkOptions& options, std::span<const uint32_t> links,
                                  uint32_t batch_size, uint32_t num_nodes);

// Makes the seeds of batches of links: a range of the keyed order of training links
// (core/item/item_range.h), their negatives (core/draw/negatives.h), each node once, in the order
// of first occurrence among all sources, then all destinations, then the negatives pair by pair;
// and what the batch's rows do without, its own links and their reverses. A pure function of the
// batch's key, the links and the graph. For use by one thread.
class LinkSeeds {
 public:
  struct Order {
    bool shuffled = true;     // else batches are the links in their order, the same in every epoch
    bool rows_ascend = true;  // of the graph; false: nobody knows, so that all are looked at
  };

  // `links` are the training links, [count, 2]: source, destination, in the order of (destination,
  // source), which only known links are looked up by: with kAllow any order will do, of rows, too.
  // Borrows them and the topology. Batches have up to `batch_size` links.
  LinkSeeds(const LinkOptions& options, std::span<const uint32_t> links, uint32_t batch_size,
            const TopologyView& topology, const Order& order = {true, true});

  // Makes the seeds of a batch. kDatasetCorrupt if one of its links is no pair of nodes.
  // REQUIRES: key.batch < NumBatches(count, batch_size).
  Status Make(const BatchKey& key);

  // Of the last batch made.
  std::span<const uint32_t> seeds() const { return {nodes_.data(), num_seeds_}; }
  LinkBatch batch() const;

 private:
  // Consecutive places of a row that are left out: an edge, as often as it is repeated.
  struct Skip {
    uint32_t row;
    uint32_t count;
    uint64_t place;
  };

  Status TakeItems(const BatchKey& key);
  void AddNegatives(const BatchKey& key);
  uint32_t NegativeOf(const BatchKey& key, uint32_t pair, uint32_t column) const;
  uint32_t DrawNode(const BatchKey& key, uint32_t row, uint32_t column, uint32_t attempt) const;
  void MaskInBatch();
  void FindSkips();
  void AddSkip(uint32_t row, uint32_t destination, uint32_t source);
  // Adds nodes to the seeds and writes their rows.
  void PushAll(std::span<const uint32_t> nodes, uint32_t* rows);
  // Whether source -> destination is a link that a negative should not be.
  bool IsKnown(uint32_t source, uint32_t destination) const;
  // Whether the list of training links has source -> destination.
  bool IsListed(uint32_t source, uint32_t destination) const;

  LinkOptions options_;
  std::span<const uint32_t> links_;
  uint32_t batch_size_;
  TopologyView topology_;
  bool shuffled_;
  bool rows_ascend_;  // else a row is read through to find a link in it
  HashRelabel table_;
  std::optional<DegreeNodes> by_degree_;

  uint32_t num_pairs_ = 0;
  uint32_t num_seeds_ = 0;
  uint32_t num_ends_ = 0;             // seeds that are ends of links, the first ones
  std::vector<uint32_t> items_;       // [pairs]
  std::vector<uint32_t> end_nodes_;   // [2 * pairs], sources, then destinations
  std::vector<uint32_t> end_rows_;    // their rows
  std::vector<uint32_t> drawn_;       // nodes of the negatives that were drawn
  std::vector<uint32_t> drawn_rows_;  // their rows
  std::vector<uint32_t> negatives_;   // [pairs * per_pair], rows
  std::vector<uint32_t> masked_;
  std::vector<uint32_t> nodes_;  // seeds
  std::vector<Skip> skips_;
  std::vector<uint32_t> skip_first_;   // [ends + 1], RowSkips::first
  std::vector<uint64_t> skip_places_;  // RowSkips::places
};

}  // namespace gnnd
