#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/graph/npy.h"
#include "core/graph/row_table.h"
#include "core/graph/schema.h"
#include "core/graph/topology_view.h"

// What a job over several types reads of its dataset: the topology of its relations, the input rows
// of each type, and of type 0, whose nodes it learns, labels and splits. Mapped, never copied.

namespace gnnd {

// Opened with cheap checks only: headers, types, shapes, sizes. Elements are unchecked: Validate
// (validate.h) reads all of them, FillTopology (topology.h) those of the topology and the splits.
class TypedDataset {
 public:
  TypedDataset() = default;

  // Maps the files of `folder` (docs/formats/dataset.md) that `schema` names; it may have fewer
  // types and relations than the dataset, in any order. `type_rows` is empty or has a path for each
  // type: a derived file of its input rows, float32 or float16 [num_nodes, any width]; an empty
  // path: the type's features.npy, where it has features. Errors: those of NpyArray::Open and
  // CheckSchema, kInvalidArgument where `type_rows` has another length; the first one found.
  static Result<TypedDataset> Open(const std::string& folder, const Schema& schema,
                                   const std::vector<std::string>& type_rows = {});

  const Schema& schema() const { return schema_; }
  uint32_t num_types() const { return static_cast<uint32_t>(schema_.types.size()); }
  uint32_t num_relations() const { return static_cast<uint32_t>(schema_.relations.size()); }
  uint32_t num_nodes(uint32_t type) const {
    return static_cast<uint32_t>(schema_.types[type].num_nodes);
  }
  // Of all types.
  uint64_t total_nodes() const;

  // [num_nodes(type), width]; no rows and a width of 0 where the type has none.
  RowTable rows(uint32_t type) const;
  // Row v has node v of the destination type. Elements are what the files hold.
  TopologyView topology(uint32_t relation) const;
  // All types and relations, in the schema's order.
  GraphView graph() const;

  // Of type 0, as those of a Dataset; all empty unless it is labelled.
  uint32_t num_classes() const { return static_cast<uint32_t>(schema_.types[0].num_classes); }
  std::span<const int32_t> labels() const;      // [num_nodes(0)], of a kClassification
  std::span<const uint8_t> label_bits() const;  // [num_nodes(0), num_classes()], of a kMultiLabel
  std::span<const float> targets() const;       // [num_nodes(0), num_classes()], of a kRegression
  std::span<const int64_t> train() const { return NodesOf(train_); }  // ascending ids
  std::span<const int64_t> val() const { return NodesOf(val_); }
  std::span<const int64_t> test() const { return NodesOf(test_); }

 private:
  struct Edges {
    NpyArray indptr;
    NpyArray indices;
  };

  static std::span<const int64_t> NodesOf(const NpyArray& split) {
    if (split.shape().empty()) return {};
    return split.values<int64_t>();
  }
  Status OpenRows(const std::string& folder, const std::vector<std::string>& type_rows);
  Status OpenEdges(const std::string& folder);
  Status OpenLabels(const std::string& folder);

  Schema schema_;
  std::vector<NpyArray> rows_;  // by type; not opened where it has none
  std::vector<Edges> edges_;    // by relation
  NpyArray labels_;             // not opened unless type 0 is labelled, as the next
  NpyArray train_;
  NpyArray val_;
  NpyArray test_;
};

}  // namespace gnnd
