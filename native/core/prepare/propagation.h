#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/graph/dataset.h"

// A propagation as data: X, BX, ..., B^R X for K operators B, of which the rows of labelled nodes
// are kept (docs/formats/propagation.md). propagate.h computes it.

namespace gnnd {

// The operator B in terms of the adjacency matrix A; deg(v) counts the entries of v's row with its
// self-loop, if any. The inverse of degree 0 is 0: rows without neighbours become zero.
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
  uint32_t terms = 10;     // kPpr and kHeat: of the sum, including the identity
};

// The type that rows are stored in. They are summed in float32, from the float32 of the previous
// hop, and rounded once, when they are written.
enum class RowType : uint32_t { kFloat32 = 0, kFloat16 = 1, kBfloat16 = 2 };

constexpr uint64_t BytesOf(RowType type) { return type == RowType::kFloat32 ? 4 : 2; }

// Together with the dataset this decides all bytes of the files.
struct PropagationPlan {
  std::vector<PropagationOperator> operators;
  uint32_t hops = 3;  // R
  RowType row_type = RowType::kFloat32;
  uint64_t random_seed = 0;  // decides the order of rows
  // Orders rows randomly within each split: otherwise a chunk of neighbouring rows is a chunk of
  // neighbouring node ids, which may all have one label.
  bool permuted = true;
  // Standardises each column of each hop to mean 0 and variance 1 over all nodes, before rows are
  // rounded; the next hop starts from values that are not standardised.
  bool standardize = false;
  // Keeps rows of all nodes, in the order of ids, instead of those of labelled ones: for inference.
  bool all_nodes = false;
};

bool IsSeries(const PropagationOperator& op);
// Coefficients of a series by power of the random walk's matrix.
std::vector<float> SeriesOf(const PropagationOperator& op);

// kInvalidArgument names the field.
Status CheckPlan(const PropagationPlan& plan);

// Name of a file of rows: "hop0.npy" is common to all operators, then "op0-hop1.npy" ...
std::string RowFile(uint32_t op, uint32_t hop);
// Name of a file of moments for standardising: F means, then F divisors, little-endian float64.
std::string MomentsFile(uint32_t op, uint32_t hop);
inline constexpr const char* kNodesFile = "nodes.npy";    // uint32, the node of each row
inline constexpr const char* kLabelsFile = "labels.npy";  // labels, as in the dataset

// Offset of the first row in a file, so that a chunk of 2048 rows (of 1024 in float32) starts and
// ends at such a multiple whatever its width, as direct reads require.
inline constexpr uint64_t kRowAlignment = 4096;

// The node of each row: training, then validation, then test nodes, each split in an order of its
// own; or all nodes.
std::vector<uint32_t> RowNodes(const Dataset& dataset, const PropagationPlan& plan);

// Sizes of a propagation's files, and the memory and disk space needed to make them.
struct PropagationSizes {
  uint64_t rows = 0;          // per file
  uint64_t file_bytes = 0;    // all files together
  uint64_t peak_bytes = 0;    // on disk while the files are made
  uint64_t memory_bytes = 0;  // for blocks of columns
  uint64_t block_columns = 0;
  uint64_t blocks = 0;
  uint64_t steps = 0;  // passes over the topology
};

// REQUIRES: a checked plan. `columns` per block: 0 = as many as fit `memory_bytes`, up to the
// fastest width. kInvalidArgument when a single column does not fit.
Result<PropagationSizes> SizesOf(const DatasetCounts& counts, const PropagationPlan& plan,
                                 uint64_t memory_bytes, uint64_t columns);

}  // namespace gnnd
