#include "core/prepare/message_graph.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <span>
#include <system_error>
#include <vector>

#include "core/draw/purpose.h"
#include "core/graph/npy.h"
#include "core/item/item_range.h"
#include "core/prepare/given_links.h"
#include "core/prepare/message_files.h"

namespace gnnd {
namespace {

// Checks the edges; the result tells whether each row ascends.
Result<bool> CheckRows(const Edges& edges) {
  const auto corrupt = [](uint32_t v, const std::string& what) {
    return Status(Code::kDatasetCorrupt, "row " + std::to_string(v) + what);
  };
  if (edges.indptr.front() != 0 ||
      edges.indptr.back() != static_cast<int64_t>(edges.indices.size())) {
    return corrupt(0, ": indptr does not run from 0 to the number of edges");
  }
  bool ascends = true;
  for (uint32_t v = 0; v < edges.num_nodes(); ++v) {
    if (edges.indptr[v] > edges.indptr[v + 1]) return corrupt(v, ": indptr falls");
    uint32_t last = 0;
    for (const uint32_t source : edges.row(v)) {
      if (source >= edges.num_nodes()) return corrupt(v, " names no node");
      ascends = ascends && last <= source;
      last = source;
    }
  }
  return ascends;
}

// Whether every edge has its reverse. Rows are visited upward, so what each row is asked for rises,
// and a place in each row replaces a search.
bool IsSymmetric(const Edges& edges) {
  std::vector<uint32_t> place(edges.num_nodes());
  bool symmetric = true;
  for (uint32_t v = 0; v < edges.num_nodes() && symmetric; ++v) {
    VisitRuns(edges, v, [&](uint32_t source, size_t, size_t) {
      const std::span<const uint32_t> other = edges.row(source);
      uint32_t& at = place[source];
      while (at < other.size() && other[at] < v) ++at;
      symmetric = symmetric && at < other.size() && other[at] == v;
    });
  }
  return symmetric;
}

enum class Side : uint8_t { kTrain, kValidation, kTest };

// Which side each item is on.
class Sides {
 public:
  Sides(uint32_t items, std::span<const uint32_t> validation, std::span<const uint32_t> test)
      : bits_(items / 32 + 1) {
    for (const uint32_t item : validation) Set(item, Side::kValidation);
    for (const uint32_t item : test) Set(item, Side::kTest);
  }

  Side of(uint32_t item) const {
    return static_cast<Side>(bits_[item / 32] >> (item % 32 * 2) & 3);
  }

 private:
  void Set(uint32_t item, Side side) {
    bits_[item / 32] |= static_cast<uint64_t>(side) << (item % 32 * 2);
  }

  std::vector<uint64_t> bits_;
};

// Numbers items while rows are visited upward.
class ItemNumbers {
 public:
  // Of a symmetric graph `first` has the first item that each row names; else it is not read.
  ItemNumbers(bool symmetric, const std::vector<uint32_t>& first)
      : symmetric_(symmetric), next_(first) {}

  // The item of the edge source -> v. Whether this edge names it, as one edge does, is told by
  // IsNamed. What row `source` names comes to be asked for in the order in which it stands there.
  uint32_t Take(uint32_t source, uint32_t v) {
    return IsNamed(source, v) ? count_++ : next_[source]++;
  }
  bool IsNamed(uint32_t source, uint32_t v) const { return !symmetric_ || source < v; }

 private:
  bool symmetric_;
  uint32_t count_ = 0;
  std::vector<uint32_t> next_;  // by node: the item whose reverse comes next
};

// Writes the edges with each row in ascending order, and their weights beside them, if any.
Status WriteAscending(const Edges& edges, std::span<const float> weights,
                      const std::string& folder) {
  ArrayFile<uint32_t> indices(folder, FileName(DatasetFile::kIndices));
  ArrayFile<float> ordered(folder, FileName(DatasetFile::kEdgeWeights));
  GNND_TRY(indices.Create({edges.indices.size()}));
  if (!weights.empty()) GNND_TRY(ordered.Create({weights.size()}));
  std::vector<uint64_t> order;  // sources with their places in the row
  for (uint32_t v = 0; v < edges.num_nodes(); ++v) {
    const std::span<const uint32_t> row = edges.row(v);
    order.clear();
    for (size_t i = 0; i < row.size(); ++i) order.push_back(uint64_t{row[i]} << 32 | i);
    std::sort(order.begin(), order.end());
    const auto start = static_cast<size_t>(edges.indptr[v]);
    for (const uint64_t entry : order) {
      const auto source = static_cast<uint32_t>(entry >> 32);
      GNND_TRY(indices.Append(std::span(&source, 1)));
      if (!weights.empty()) {
        GNND_TRY(ordered.Append(weights.subspan(start + static_cast<uint32_t>(entry), 1)));
      }
    }
  }
  GNND_TRY(indices.Commit());
  return weights.empty() ? Status::Ok() : ordered.Commit();
}

// Writes the files of one message graph.
class Maker {
 public:
  Maker(const Edges& edges, std::span<const float> weights, const MessageGraphOptions& options,
        std::string folder)
      : edges_(edges), weights_(weights), options_(options), folder_(std::move(folder)) {}

  Result<MessageGraphCounts> Make() {
    counts_.symmetric = IsSymmetric(edges_);
    GNND_TRY(CountItems());
    const Sides sides = SidesOfItems();
    GNND_TRY(WriteRowsAndLinks(sides));
    GNND_TRY(WriteEdges(sides));
    return counts_;
  }

 private:
  Status CountItems() {
    uint64_t items = 0;
    if (counts_.symmetric) first_items_.resize(edges_.num_nodes());
    for (uint32_t v = 0; v < edges_.num_nodes(); ++v) {
      if (counts_.symmetric) first_items_[v] = static_cast<uint32_t>(items);
      VisitRuns(edges_, v, [&](uint32_t source, size_t, size_t) {
        items += !counts_.symmetric || source < v ? 1 : 0;
      });
    }
    if (items > std::numeric_limits<uint32_t>::max()) {
      return Status(Code::kInvalidArgument, "the graph has " + std::to_string(items) +
                                                " links, and a split numbers them in 32 bits");
    }
    const auto share = [items](double of) {
      return static_cast<uint64_t>(of * static_cast<double>(items));
    };
    counts_.val = share(options_.validation);
    counts_.test = share(options_.test);
    counts_.train = items - std::min(items, counts_.val + counts_.test);
    if (counts_.val > 0 && counts_.test > 0 && counts_.train > 0) return Status::Ok();
    return Status(Code::kInvalidArgument,
                  "of " + std::to_string(items) + " links " + std::to_string(counts_.train) +
                      " would be for training, " + std::to_string(counts_.val) +
                      " for validation, " + std::to_string(counts_.test) +
                      " for the test, and each needs one or more");
  }

  Sides SidesOfItems() const {
    const auto val = static_cast<uint32_t>(counts_.val);
    const auto test = static_cast<uint32_t>(counts_.test);
    const auto items = static_cast<uint32_t>(counts_.train) + val + test;
    std::vector<uint32_t> held(uint64_t{val} + test);
    ItemOrder{options_.random_seed, kLinkSplitEpoch, items}.Write({0, val + test}, held.data());
    return {items, std::span(held).first(val), std::span(held).subspan(val)};
  }

  bool Stays(Side side) const {
    return side == Side::kTrain || (side == Side::kValidation && options_.keep_validation);
  }

  // indptr.npy and the lists of links.
  Status WriteRowsAndLinks(const Sides& sides) {
    ArrayFile<int64_t> indptr(folder_, FileName(DatasetFile::kIndptr));
    ArrayFile<uint32_t> train(folder_, "links_train.npy");
    ArrayFile<uint32_t> val(folder_, "links_val.npy");
    ArrayFile<uint32_t> test(folder_, "links_test.npy");
    GNND_TRY(indptr.Create({edges_.indptr.size()}));
    GNND_TRY(train.Create({counts_.train, 2}));
    GNND_TRY(val.Create({counts_.val, 2}));
    GNND_TRY(test.Create({counts_.test, 2}));
    ArrayFile<uint32_t>* const lists[] = {&train, &val, &test};
    ItemNumbers numbers(counts_.symmetric, first_items_);
    int64_t kept = 0;
    GNND_TRY(indptr.Append(std::span(&kept, 1)));
    for (uint32_t v = 0; v < edges_.num_nodes(); ++v) {
      Status status;
      kept += edges_.indptr[v + 1] - edges_.indptr[v];
      VisitRuns(edges_, v, [&](uint32_t source, size_t, size_t count) {
        const Side side = sides.of(numbers.Take(source, v));
        if (!Stays(side)) kept -= static_cast<int64_t>(count);
        if (!numbers.IsNamed(source, v) || !status.ok()) return;
        const uint32_t pair[] = {source, v};
        status = lists[static_cast<size_t>(side)]->Append(pair);
      });
      GNND_TRY(status);
      GNND_TRY(indptr.Append(std::span(&kept, 1)));
    }
    counts_.num_edges = static_cast<uint64_t>(kept);
    GNND_TRY(indptr.Commit());
    for (ArrayFile<uint32_t>* list : lists) GNND_TRY(list->Commit());
    return Status::Ok();
  }

  // indices.npy and edge_weights.npy.
  Status WriteEdges(const Sides& sides) {
    ArrayFile<uint32_t> indices(folder_, FileName(DatasetFile::kIndices));
    ArrayFile<float> weights(folder_, FileName(DatasetFile::kEdgeWeights));
    GNND_TRY(indices.Create({counts_.num_edges}));
    if (!weights_.empty()) GNND_TRY(weights.Create({counts_.num_edges}));
    ItemNumbers numbers(counts_.symmetric, first_items_);
    for (uint32_t v = 0; v < edges_.num_nodes(); ++v) {
      const std::span<const uint32_t> row = edges_.row(v);
      Status status;
      size_t from = 0;  // edges before it are written or left out
      const auto write_to = [&](size_t end) {
        if (!status.ok() || end == from) return;
        status = indices.Append(row.subspan(from, end - from));
        if (!status.ok() || weights_.empty()) return;
        status = weights.Append(
            weights_.subspan(static_cast<size_t>(edges_.indptr[v]) + from, end - from));
      };
      VisitRuns(edges_, v, [&](uint32_t source, size_t first, size_t count) {
        if (Stays(sides.of(numbers.Take(source, v)))) return;
        write_to(first);
        from = first + count;
      });
      write_to(row.size());
      GNND_TRY(status);
    }
    GNND_TRY(indices.Commit());
    return weights_.empty() ? Status::Ok() : weights.Commit();
  }

  Edges edges_;
  std::span<const float> weights_;
  MessageGraphOptions options_;
  std::string folder_;
  MessageGraphCounts counts_;
  std::vector<uint32_t> first_items_;  // the first item that each row names, of a symmetric graph
};

// Has the pairs of walks take the place of training links in a message graph that was made.
Status WalkInstead(const PositiveWalks& walks, const std::string& folder,
                   MessageGraphCounts* counts) {
  const auto open = [&folder](DatasetFile file) {
    return NpyArray::Open(folder + "/" + FileName(file));
  };
  const NpyArray indptr = GNND_VALUE(open(DatasetFile::kIndptr));
  const NpyArray indices = GNND_VALUE(open(DatasetFile::kIndices));
  const Edges edges{indptr.values<int64_t>(), indices.values<uint32_t>()};
  counts->train = GNND_VALUE(WriteWalkPositives(edges, walks, kHeldPairs, folder));
  return Status::Ok();
}

}  // namespace

Result<MessageGraphCounts> MakeMessageGraph(const std::string& dataset, const DatasetCounts& counts,
                                            const MessageGraphOptions& options,
                                            const std::string& folder) {
  GNND_TRY(CheckCounts(counts));
  const auto open = [&](DatasetFile file) {
    return OpenDatasetFile(file, dataset + "/" + FileName(file), counts);
  };
  const NpyArray indptr = GNND_VALUE(open(DatasetFile::kIndptr));
  const NpyArray indices = GNND_VALUE(open(DatasetFile::kIndices));
  Result<NpyArray> weights = open(DatasetFile::kEdgeWeights);
  if (weights.status().code() != Code::kNotFound) GNND_TRY(weights.status());
  Edges edges{indptr.values<int64_t>(), indices.values<uint32_t>()};
  std::span<const float> edge_weights;
  if (weights.ok()) edge_weights = weights->values<float>();
  const bool ascends = GNND_VALUE(CheckRows(edges));
  GNND_TRY(Shared(dataset, folder).AddNodes());
  const auto make = [&]() -> Result<MessageGraphCounts> {
    MessageGraphCounts counts_made =
        GNND_VALUE(options.given ? TakeGiven(dataset, {edges, edge_weights, IsSymmetric(edges)},
                                             options.keep_validation, folder)
                                 : Maker(edges, edge_weights, options, folder).Make());
    if (options.walks.per_node > 0) GNND_TRY(WalkInstead(options.walks, folder, &counts_made));
    return counts_made;
  };
  if (ascends) return make();
  // Of given lists alone these files are the graph's; else they are read once.
  const bool stay = options.given && !options.keep_validation;
  const std::string place = stay ? folder : folder + "/ascending";
  std::error_code error;
  std::filesystem::create_directory(place, error);
  GNND_TRY(WriteAscending(edges, edge_weights, place));
  const NpyArray rows = GNND_VALUE(OpenDatasetFile(
      DatasetFile::kIndices, place + "/" + FileName(DatasetFile::kIndices), counts));
  edges.indices = rows.values<uint32_t>();
  if (!edge_weights.empty()) {
    weights = OpenDatasetFile(DatasetFile::kEdgeWeights,
                              place + "/" + FileName(DatasetFile::kEdgeWeights), counts);
    GNND_TRY(weights.status());
    edge_weights = weights->values<float>();
  }
  Result<MessageGraphCounts> made = make();
  if (!stay) std::filesystem::remove_all(place, error);
  return made;
}

}  // namespace gnnd
