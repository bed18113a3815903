#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/base/status.h"
#include "core/graph/npy.h"
#include "core/graph/schema.h"

namespace gnnd {

// The edges of a relation in a dataset's folder, for work that reads all of them once.
class RelationEdges {
 public:
  // Maps and checks them. A dataset was checked when it was imported; this keeps a file that was
  // changed since from leading out of another. kInvalidArgument: CheckSchema's errors, no such
  // relation. kDatasetCorrupt: an array has another type or shape than the schema says, rows do not
  // follow each other, or one lists what is no node. kNotFound, kIo.
  static Result<RelationEdges> Open(const std::string& folder, const Schema& schema,
                                    uint32_t relation);

  uint64_t num_rows() const { return indptr().size() - 1; }
  // [num_rows + 1], rising from 0 to the number of edges.
  std::span<const int64_t> indptr() const { return indptr_.values<int64_t>(); }
  // Below the nodes of the source type.
  std::span<const uint32_t> indices() const { return indices_.values<uint32_t>(); }

 private:
  NpyArray indptr_;
  NpyArray indices_;
};

}  // namespace gnnd
