#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/base/memfd.h"
#include "core/base/status.h"
#include "core/model/model_spec.h"

// What exact evaluation leaves between its phases: rows of hidden layers, in memory that all
// Trainers of a job share. Rows lie at their node's id, so that no table of places is needed; the
// memory is sparse, so that rows which nobody computes take none.

namespace gnnd {

// Nodes of a chunk of an evaluation that computes `rows` rows of one layer, of a graph of
// `num_nodes`: a multiple of 64, for some 10 ms of work on a large graph, and for enough rows to
// multiply on one that the targets hardly reach.
uint32_t EvalChunkNodes(uint64_t num_nodes, uint64_t rows);
// Chunks at most, whatever the targets.
uint32_t EvalChunks(uint64_t num_nodes);
// Nodes of a chunk of a sampled evaluation.
inline constexpr uint32_t kEvalChunkSeeds = 512;
// Phases of an exact evaluation at most: a layer may transform its input rows first.
uint32_t MaxEvalPhases(const ModelSpec& spec);

// Columns of a transformed row, where layer `layer` transforms first; 0 where no layer does.
uint32_t TransformedColumns(const ModelSpec& spec, uint32_t layer);
// Whether layer `layer` may transform every input row before anything is gathered: those that
// always do, and others where that is narrower.
bool MayTransform(const ModelSpec& spec, uint32_t layer);

// Places in the scratch, in bytes from its start; each begins on a page.
struct EvalLayout {
  uint64_t hidden_at[2] = {};   // float[num_nodes][columns]: layer l's rows at l % 2
  uint64_t transformed_at = 0;  // float[num_nodes][columns]: of the layer that is computed
  uint64_t scores_at = 0;       // GAT: float[2][heads][num_nodes], sources and destinations
  uint64_t total_bytes = 0;     // what it takes when every row is touched
  // Behind that, where a scratch is long enough: sums over neighbours' features, which no parameter
  // changes, for the evaluations to come. 0 bytes for models that sum nothing of the kind.
  uint64_t kept_at = 0;     // float[num_nodes][in_dim]
  uint64_t is_kept_at = 0;  // uint8_t[num_nodes]: 1 once the row is there
  uint64_t kept_bytes = 0;

  static EvalLayout Of(const ModelSpec& spec, uint64_t num_nodes);
};

// Private memory that an exact evaluation takes in each Trainer, about: sets of nodes, and blocks.
uint64_t EvalWorkBytes(const ModelSpec& spec, uint64_t num_nodes, uint64_t num_targets);

// Rows of a block: enough for a matrix product on several threads, and they stay in the cache until
// then. The number of threads plays no part, since a row's bits depend on its place in the block.
inline constexpr uint64_t kEvalBlockRows = 1024;
// Floats that a block gathers, 256 MiB: some 50 ms of one core.
inline constexpr uint64_t kEvalBlockFloats = uint64_t{1} << 26;

// What an exact evaluation on a device with memory of its own copies there at once, at most.
inline constexpr uint64_t kEvalPartBytes = uint64_t{64} << 20;

// A mapping of the scratch.
class EvalScratch {
 public:
  // Memory, or with a folder a file in it that has no name; sparse. kShmAllocationFailed, kIo.
  static Result<UniqueFd> Create(uint64_t bytes, const std::string& folder);
  // kShmCorrupted when it is smaller than `bytes`.
  static Result<EvalScratch> Attach(int fd, uint64_t bytes);

  float* at(uint64_t offset) const { return reinterpret_cast<float*>(mapping_.data() + offset); }
  uint64_t size() const { return mapping_.size(); }
  int fd() const { return fd_.get(); }

  // Gives the first so many bytes back where they are much; all of them read as zero then. Nobody
  // may be using them.
  void Clear(uint64_t bytes);

 private:
  Mapping mapping_;
  UniqueFd fd_;
};

}  // namespace gnnd
