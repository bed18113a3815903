#pragma once

#include <cstdint>
#include <string>

#include "core/base/status.h"
#include "core/graph/dataset.h"
#include "core/prepare/message_files.h"
#include "core/prepare/walk_positives.h"

// The graph that a job of links takes its messages from: a dataset of its own, without the links
// that validation and test ask for, so that no training, evaluation or prediction can read them off
// its edges.
//
// An *item* is a pair (source, destination) of an edge, row `destination` listing `source`. If
// every edge has its reverse, the graph counts as symmetric, and a pair and its reverse are one
// item, of which source < destination is named. Self-loops are no items, repeated edges are one;
// both stay where they are unless their pair is taken out.
//
// Items are numbered in the order of (row, source). Which are validation and test items follows
// from the split's random seed and their number alone: with V and T the floors of the shares of all
// items, those at the positions [0, V) and [V, V + T) of the keyed permutation (permutation.h) of
// epoch kLinkSplitEpoch. All others are training items. Each list is in the order of numbers.

namespace gnnd {

struct MessageGraphOptions {
  double validation = 0.05;  // shares of all items
  double test = 0.1;
  uint64_t random_seed = 0;
  // The graph along which test links may be told: validation links stay edges of it, and given ones
  // become edges, with a weight of 1, in both directions if the graph is symmetric. Those that it
  // has already are not added again.
  bool keep_validation = false;
  // The dataset has lists of its own: nothing is split, and every edge stays, as who gives a list
  // says what the graph has.
  bool given = false;
  PositiveWalks walks{};  // along the edges that are left; their pairs are the training links
};

// Writes to `folder`, which exists: indptr.npy, indices.npy and, if there are any,
// edge_weights.npy; empty lists of training, validation and test nodes; links_train.npy,
// links_val.npy and links_test.npy, uint32 [items, 2]; and symbolic links to the features and
// labels, if any, of `dataset`, the folder of a dataset with these counts. Takes 8 bytes of memory
// a node, 2 bits an item and 4 bytes a validation or test item. Errors: the dataset's;
// kDatasetCorrupt if an edge or a given link is no pair of nodes; kInvalidArgument if
// a list would be empty, or there are 2^32 items.
//
// Rows ascend, whatever those of the dataset do: whoever leaves links out searches rows. Where the
// dataset's do not, they are sorted in files first, a row at a time.
//
// With walks links_train.npy has the pairs that these come to (walk_positives.h), whatever the
// training links would be.
//
// Of given lists the graph's files, validation and test lists and their negatives
// (links_val_negatives.npy, links_test_negatives.npy; or, of all together,
// links_val_negative_pairs.npy, links_test_negative_pairs.npy), if any, are symbolic links, too,
// except what had to be sorted, and a graph that validation links were added to; training links are
// sorted by (destination, source). That takes 8 bytes of memory each, added edges likewise. What
// is known of links goes with them: links_train_labels.npy, links_val_labels.npy and
// links_test_labels.npy, if any, of an array type that labels of nodes have; and what training
// links count, links_train_weights.npy, float32 [links], if it is there.
Result<MessageGraphCounts> MakeMessageGraph(const std::string& dataset, const DatasetCounts& counts,
                                            const MessageGraphOptions& options,
                                            const std::string& folder);

}  // namespace gnnd
