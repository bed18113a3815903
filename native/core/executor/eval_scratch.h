#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/base/memfd.h"
#include "core/base/status.h"
#include "core/model/model_spec.h"

// Memory for the rows of hidden layers between the phases of exact evaluation, shared by all
// Trainers of a job. Rows lie at their node's id, so that no table of places is needed; the memory
// is sparse, so that rows which nobody computes take none.

namespace gnnd {

// Nodes per chunk of an evaluation that computes `rows` rows of one layer in a graph of
// `num_nodes`: a multiple of 64, for some 10 ms of work on a large graph, and with enough rows for
// a matrix product on a graph that the targets hardly reach.
uint32_t EvalChunkNodes(uint64_t num_nodes, uint64_t rows);
// Largest number of chunks, whatever the targets.
uint32_t EvalChunks(uint64_t num_nodes);
// Nodes per chunk of a sampled evaluation.
inline constexpr uint32_t kEvalChunkSeeds = 512;
// Largest number of phases of an exact evaluation: a layer may transform its input rows first, and
// a head scores pairs of rows at the end.
uint32_t MaxEvalPhases(const ModelSpec& spec);

// Columns of a transformed row if layer `layer` transforms first; 0 if no layer does.
uint32_t TransformedColumns(const ModelSpec& spec, uint32_t layer);
// Whether layer `layer` may transform every input row before anything is gathered: layers that
// always do, and others if that is narrower.
bool MayTransform(const ModelSpec& spec, uint32_t layer);

// Offsets in the scratch, in bytes; each is a multiple of a page.
struct EvalLayout {
  // float[num_nodes][columns]: layer l's rows at l % 2. The last layer's are kept for a head only.
  uint64_t hidden_at[2] = {};
  uint64_t transformed_at = 0;  // float[num_nodes][columns]: of the present layer
  uint64_t scores_at = 0;       // GAT: float[2][heads][num_nodes], sources and destinations
  uint64_t total_bytes = 0;     // size if every row is touched
  // After that, if the scratch is long enough: sums over neighbours' features, which no parameter
  // changes, for later evaluations. 0 bytes for models without such sums.
  uint64_t kept_at = 0;     // float[num_nodes][in_dim]
  uint64_t is_kept_at = 0;  // uint8_t[num_nodes]: 1 once the row is there
  uint64_t kept_bytes = 0;

  static EvalLayout Of(const ModelSpec& spec, uint64_t num_nodes);
};

// Bytes of the scratch of a model over relations: rows of two levels
// (train/evaluate/typed_layers.h) of so many node numbers (core/graph/node_numbers.h),
// float[numbers][hidden_dim] each.
uint64_t TypedScratchBytes(const ModelSpec& spec, uint64_t numbers);

// Approximate private memory of an exact evaluation in each Trainer: sets of nodes, and blocks.
uint64_t EvalWorkBytes(const ModelSpec& spec, uint64_t num_nodes, uint64_t num_targets);

// Rows of a block: enough for a matrix product on several threads, few enough to stay in the cache
// until then. Never by the number of threads: a row's bits depend on its place in the block.
inline constexpr uint64_t kEvalBlockRows = 1024;
// Floats that a block gathers, 256 MiB: some 50 ms of one core.
inline constexpr uint64_t kEvalBlockFloats = uint64_t{1} << 26;

// Links that are ranked together: keyed negatives are those of a group, not of a link. A product of
// a group's sources and its negatives computes as fast as the processor can, while rows of a
// negative for each link would come from memory one by one.
inline constexpr uint32_t kLinkGroup = 128;
// Most rows that a group is scored with at once.
inline constexpr uint32_t kRankedBlockRows = 4096;
// Rows that a group is scored with at once, where each costs so many multiply-adds: some 10 ms of
// one core.
uint32_t RankedBlock(uint64_t cost_of_row);

// Chunks of the pairs of an inference, which are made of so many blocks or groups.
uint32_t PairChunks(uint64_t units);
// The most there may be.
uint32_t MaxPairChunks();

// Most bytes that an exact evaluation copies at once to a device with memory of its own.
inline constexpr uint64_t kEvalPartBytes = uint64_t{64} << 20;

// A mapping of the scratch.
class EvalScratch {
 public:
  // A memfd, or an unnamed file in `folder` if that is given; sparse. kShmAllocationFailed, kIo.
  static Result<UniqueFd> Create(uint64_t bytes, const std::string& folder);
  // kShmCorrupted when it is smaller than `bytes`.
  static Result<EvalScratch> Attach(int fd, uint64_t bytes);

  float* at(uint64_t offset) const { return reinterpret_cast<float*>(mapping_.data() + offset); }
  uint64_t size() const { return mapping_.size(); }
  int fd() const { return fd_.get(); }

  // Frees the first `bytes` bytes if they are many; they read as zero then. Nobody may be using
  // them.
  void Clear(uint64_t bytes);

 private:
  Mapping mapping_;
  UniqueFd fd_;
};

}  // namespace gnnd
