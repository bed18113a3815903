#include "core/prepare/given_links.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "core/graph/npy.h"

namespace gnnd {
namespace {

// A list of links that the dataset has, its ends checked.
Result<NpyArray> OpenLinks(const std::string& path, uint32_t num_nodes) {
  NpyArray links = GNND_VALUE(NpyArray::Open(path));
  const uint64_t count = links.shape().empty() ? 0 : links.shape()[0];
  GNND_TRY(links.Expect({NpyType::kUint32}, {count, 2}));
  if (count == 0 || count > std::numeric_limits<uint32_t>::max()) {
    return Status(Code::kInvalidArgument, links.file() + " has " + std::to_string(count) +
                                              " links, expected 1 to 2^32 - 1");
  }
  const auto ends = links.values<uint32_t>();
  for (uint64_t i = 0; i < ends.size(); ++i) {
    if (ends[i] < num_nodes) continue;
    return Status(Code::kDatasetCorrupt, links.file() + ": link " + std::to_string(i / 2) +
                                             " names node " + std::to_string(ends[i]) +
                                             ", but the graph has " + std::to_string(num_nodes));
  }
  return links;
}

// How many pairs that are no links the dataset has for a side; 0 without the file.
Result<uint64_t> PoolOf(const std::string& path, const Edges& edges) {
  const Result<NpyArray> pool = OpenLinks(path, edges.num_nodes());
  if (pool.status().code() == Code::kNotFound) return uint64_t{0};
  GNND_TRY(pool.status());
  return pool->shape()[0];
}

uint64_t OverlapOf(const Edges& edges, bool symmetric, std::span<const uint32_t> links) {
  const auto has = [&edges](uint32_t source, uint32_t v) {
    const std::span<const uint32_t> row = edges.row(v);
    return std::binary_search(row.begin(), row.end(), source);
  };
  uint64_t overlap = 0;
  for (size_t i = 0; i < links.size(); i += 2) {
    const bool is_edge = has(links[i], links[i + 1]) || (symmetric && has(links[i + 1], links[i]));
    overlap += is_edge ? 1 : 0;
  }
  return overlap;
}

// Training links in the order of (destination, source), and of the list where these are equal.
std::vector<uint32_t> OrderOf(std::span<const uint32_t> links) {
  std::vector<uint32_t> order(links.size() / 2);
  std::iota(order.begin(), order.end(), 0U);
  const auto key = [links](uint32_t link) {
    return uint64_t{links[2 * size_t{link} + 1]} << 32 | links[2 * size_t{link}];
  };
  std::stable_sort(order.begin(), order.end(),
                   [&key](uint32_t one, uint32_t other) { return key(one) < key(other); });
  return order;
}

// Rows of an array, of which there are as many, in this order.
template <typename T>
Status WriteOrdered(const NpyArray& array, std::span<const uint32_t> order,
                    const std::string& folder) {
  const std::span<const T> values = array.values<T>();
  const uint64_t columns = values.size() / order.size();
  ArrayFile<T> file(folder, array.file());
  GNND_TRY(array.shape().size() == 1 ? file.Create({order.size()})
                                     : file.Create({order.size(), columns}));
  for (const uint32_t row : order) GNND_TRY(file.Append(values.subspan(row * columns, columns)));
  return file.Commit();
}

// What is known of training links, if anything is, in the order of these.
Status WriteLabels(const std::string& dataset, std::span<const uint32_t> order,
                   const std::string& folder) {
  Result<NpyArray> labels = NpyArray::Open(dataset + "/links_train_labels.npy");
  if (labels.status().code() == Code::kNotFound) return Status::Ok();
  GNND_TRY(labels.status());
  const bool fits = !labels->shape().empty() && labels->shape()[0] == order.size();
  if (!fits) return Status(Code::kDatasetCorrupt, labels->file() + " is not of as many links");
  switch (labels->type()) {
    case NpyType::kInt32:
      return WriteOrdered<int32_t>(*labels, order, folder);
    case NpyType::kUint8:
      return WriteOrdered<uint8_t>(*labels, order, folder);
    case NpyType::kFloat32:
      return WriteOrdered<float>(*labels, order, folder);
    default:
      return Status(Code::kDatasetCorrupt, labels->file() + " has no labels' type");
  }
}

// What training links count, if that is told, in the order of these.
Status WriteWeights(const std::string& dataset, std::span<const uint32_t> order,
                    const std::string& folder) {
  Result<NpyArray> weights = NpyArray::Open(dataset + "/links_train_weights.npy");
  if (weights.status().code() == Code::kNotFound) return Status::Ok();
  GNND_TRY(weights.status());
  GNND_TRY(weights->Expect({NpyType::kFloat32}, {order.size()}));
  return WriteOrdered<float>(*weights, order, folder);
}

// The links that are no edges yet, as destination << 32 | source, ascending.
std::vector<uint64_t> MissingEdges(const Edges& edges, bool symmetric,
                                   std::span<const uint32_t> links) {
  std::vector<uint64_t> missing;
  const auto add = [&](uint32_t source, uint32_t v) {
    const std::span<const uint32_t> row = edges.row(v);
    if (std::binary_search(row.begin(), row.end(), source)) return;
    missing.push_back(uint64_t{v} << 32 | source);
  };
  for (size_t i = 0; i < links.size(); i += 2) {
    add(links[i], links[i + 1]);
    if (symmetric) add(links[i + 1], links[i]);
  }
  std::sort(missing.begin(), missing.end());
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  return missing;
}

constexpr float kAddedWeight = 1;

// Writes the graph with these edges more, each row in ascending order.
Status WriteWith(std::span<const uint64_t> added, const Edges& edges,
                 std::span<const float> edge_weights, const std::string& folder) {
  const uint64_t num_edges = edges.indices.size() + added.size();
  ArrayFile<int64_t> indptr(folder, FileName(DatasetFile::kIndptr));
  ArrayFile<uint32_t> indices(folder, FileName(DatasetFile::kIndices));
  ArrayFile<float> weights(folder, FileName(DatasetFile::kEdgeWeights));
  GNND_TRY(indptr.Create({edges.indptr.size()}));
  GNND_TRY(indices.Create({num_edges}));
  if (!edge_weights.empty()) GNND_TRY(weights.Create({num_edges}));
  int64_t end = 0;
  GNND_TRY(indptr.Append(std::span(&end, 1)));
  for (uint32_t v = 0; v < edges.num_nodes(); ++v) {
    const std::span<const uint32_t> row = edges.row(v);
    size_t from = 0;  // edges of the row before it are written
    const auto write_to = [&](size_t to) {
      GNND_TRY(indices.Append(row.subspan(from, to - from)));
      const size_t start = static_cast<size_t>(edges.indptr[v]) + from;
      if (!edge_weights.empty()) {
        GNND_TRY(weights.Append(edge_weights.subspan(start, to - from)));
      }
      end += static_cast<int64_t>(to - from);
      from = to;
      return Status::Ok();
    };
    for (; !added.empty() && added.front() >> 32 == v; added = added.subspan(1), ++end) {
      const auto source = static_cast<uint32_t>(added.front());
      const auto at = std::lower_bound(row.begin(), row.end(), source) - row.begin();
      GNND_TRY(write_to(static_cast<size_t>(at)));
      GNND_TRY(indices.Append(std::span(&source, 1)));
      if (!edge_weights.empty()) GNND_TRY(weights.Append(std::span(&kAddedWeight, 1)));
    }
    GNND_TRY(write_to(row.size()));
    GNND_TRY(indptr.Append(std::span(&end, 1)));
  }
  GNND_TRY(indptr.Commit());
  GNND_TRY(indices.Commit());
  return edge_weights.empty() ? Status::Ok() : weights.Commit();
}

}  // namespace

Result<MessageGraphCounts> TakeGiven(const std::string& dataset, const GivenGraph& graph,
                                     bool keep_validation, const std::string& folder) {
  const Edges& edges = graph.edges;
  const auto open = [&](const char* name) {
    return OpenLinks(dataset + "/" + name, edges.num_nodes());
  };
  const NpyArray train = GNND_VALUE(open("links_train.npy"));
  const NpyArray val = GNND_VALUE(open("links_val.npy"));
  const NpyArray test = GNND_VALUE(open("links_test.npy"));
  MessageGraphCounts counts;
  counts.num_edges = edges.indices.size();
  counts.symmetric = graph.symmetric;
  counts.train = train.shape()[0];
  counts.val = val.shape()[0];
  counts.test = test.shape()[0];
  counts.overlap = OverlapOf(edges, counts.symmetric, val.values<uint32_t>()) +
                   OverlapOf(edges, counts.symmetric, test.values<uint32_t>());
  counts.val_pool = GNND_VALUE(PoolOf(dataset + "/links_val_negative_pairs.npy", edges));
  counts.test_pool = GNND_VALUE(PoolOf(dataset + "/links_test_negative_pairs.npy", edges));
  const std::vector<uint32_t> order = OrderOf(train.values<uint32_t>());
  GNND_TRY(WriteOrdered<uint32_t>(train, order, folder));
  GNND_TRY(WriteLabels(dataset, order, folder));
  GNND_TRY(WriteWeights(dataset, order, folder));
  if (keep_validation) {
    const auto added = MissingEdges(edges, counts.symmetric, val.values<uint32_t>());
    GNND_TRY(WriteWith(added, edges, graph.weights, folder));
    counts.num_edges += added.size();
  }
  const Shared shared(dataset, folder);
  for (const char* name :
       {FileName(DatasetFile::kIndptr), FileName(DatasetFile::kIndices),
        FileName(DatasetFile::kEdgeWeights), "links_val.npy", "links_test.npy",
        "links_val_negatives.npy", "links_test_negatives.npy", "links_val_negative_pairs.npy",
        "links_test_negative_pairs.npy", "links_val_labels.npy", "links_test_labels.npy"}) {
    GNND_TRY(shared.Link(name));
  }
  return counts;
}

}  // namespace gnnd
