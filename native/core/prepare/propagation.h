#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/graph/dataset.h"

// What a propagation is, as data: X, BX, ..., B^R X for K operators B, of which the rows of
// labelled nodes are kept (docs/formats/propagation.md). How it is made: propagate.h.

namespace gnnd {

// B by its matrix A of neighbours; deg(v) counts the entries of v's row, its own self-loop included
// where there is one. An inverse degree of 0 is 0: rows without neighbours become zero.
enum class OperatorKind : uint32_t {
  kSymmetric = 1,  // D^-1/2 A D^-1/2
  kRow = 2,        // D^-1 A: the neighbours' mean
  kPpr = 3,        // personalised PageRank: alpha * sum over i < terms of (1 - alpha)^i (D^-1 A)^i
  kHeat = 4,       // e^-t * sum over i < terms of t^i / i! (D^-1 A)^i
};

struct PropagationOperator {
  OperatorKind kind = OperatorKind::kSymmetric;
  bool self_loops = true;  // A + I in place of A
  double alpha = 0.15;     // kPpr: (0, 1]
  double time = 3;         // kHeat: t, above 0
  uint32_t terms = 10;     // kPpr and kHeat: the sum's, the identity included
};

// The type that rows are stored in. They are summed in float32, from the float32 of the hop before,
// and rounded once, as they are written.
enum class RowType : uint32_t { kFloat32 = 0, kFloat16 = 1, kBfloat16 = 2 };

constexpr uint64_t BytesOf(RowType type) { return type == RowType::kFloat32 ? 4 : 2; }

// All that decides the bytes, beside the dataset.
struct PropagationPlan {
  std::vector<PropagationOperator> operators;
  uint32_t hops = 3;  // R
  RowType row_type = RowType::kFloat32;
  uint64_t random_seed = 0;  // of the rows' order
  // Rows in a random order, within each split: without one, chunks of neighbouring rows are chunks
  // of neighbouring node ids, which may have one label.
  bool permuted = true;
  // Each column of each hop gets mean 0 and variance 1 over all nodes, after it was propagated and
  // before rows are rounded; the next hop is that of what was propagated.
  bool standardize = false;
  // Rows of all nodes, in the order of ids, in place of those of labelled ones: for inference.
  bool all_nodes = false;
};

bool IsSeries(const PropagationOperator& op);
// Of a series: coefficients of the powers of the random walk's matrix.
std::vector<float> SeriesOf(const PropagationOperator& op);

// kInvalidArgument names the field.
Status CheckPlan(const PropagationPlan& plan);

// Where rows lie: "hop0.npy" is common to all operators, then "op0-hop1.npy" ...
std::string RowFile(uint32_t op, uint32_t hop);
// By what its columns were standardised: F means, then F divisors, little-endian float64.
std::string MomentsFile(uint32_t op, uint32_t hop);
inline constexpr const char* kNodesFile = "nodes.npy";    // uint32, the node of each row
inline constexpr const char* kLabelsFile = "labels.npy";  // of its node, as the dataset's

// Rows start here in a file, so that a chunk of 2048 rows (of 1024 in float32) starts and ends at
// such a multiple whatever its width: what direct reads want.
inline constexpr uint64_t kRowAlignment = 4096;

// The node of each row: training nodes, then validation, then test nodes, each split in an order of
// its own; or all nodes.
std::vector<uint32_t> RowNodes(const Dataset& dataset, const PropagationPlan& plan);

// The bytes of all files of a propagation, and what memory and disk its making takes.
struct PropagationSizes {
  uint64_t rows = 0;          // of each file
  uint64_t file_bytes = 0;    // of all files
  uint64_t peak_bytes = 0;    // on disk while they are made
  uint64_t memory_bytes = 0;  // of column blocks
  uint64_t block_columns = 0;
  uint64_t blocks = 0;
  uint64_t steps = 0;  // passes over the topology
};

// REQUIRES: a checked plan. `columns` of a block: 0 = as many as `memory_bytes` has room for, up to
// what is fast. kInvalidArgument when not even one column has room.
Result<PropagationSizes> SizesOf(const DatasetCounts& counts, const PropagationPlan& plan,
                                 uint64_t memory_bytes, uint64_t columns);

}  // namespace gnnd
