#include "core/executor/eval_scratch.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

namespace gnnd {
namespace {

constexpr uint64_t kMinChunkNodes = 256;
constexpr uint64_t kUsualChunks = 1024;  // enough for many Trainers, few enough to look through
// Smaller areas keep their pages: freeing and allocating them again costs more than they are worth.
constexpr uint64_t kKeepBytes = uint64_t{1} << 30;
constexpr uint64_t kRankedBlockCost = uint64_t{1} << 29;
constexpr uint64_t kLeastRankedBlock = 256;

}  // namespace

uint32_t EvalChunkNodes(uint64_t num_nodes, uint64_t rows) {
  const uint64_t chunks = std::clamp<uint64_t>(rows / kEvalBlockRows, 1, kUsualChunks);
  return static_cast<uint32_t>(
      RoundUp(std::max(kMinChunkNodes, (num_nodes + chunks - 1) / chunks), 64));
}

uint32_t EvalChunks(uint64_t num_nodes) {
  const uint64_t nodes = EvalChunkNodes(num_nodes, UINT64_MAX);
  return static_cast<uint32_t>((num_nodes + nodes - 1) / nodes);
}

uint32_t MaxEvalPhases(const ModelSpec& spec) { return 2 * spec.num_layers + (spec.head ? 1 : 0); }

uint32_t RankedBlock(uint64_t cost_of_row) {
  return static_cast<uint32_t>(std::clamp(kRankedBlockCost / std::max(cost_of_row, uint64_t{1}),
                                          kLeastRankedBlock, uint64_t{kRankedBlockRows}));
}

uint32_t PairChunks(uint64_t units) { return static_cast<uint32_t>(std::min(units, kUsualChunks)); }

uint32_t MaxPairChunks() { return static_cast<uint32_t>(kUsualChunks); }

uint32_t TransformedColumns(const ModelSpec& spec, uint32_t layer) {
  return SizeOf(KindOf(spec.type).transformed, spec, layer);
}

bool MayTransform(const ModelSpec& spec, uint32_t layer) {
  const ModelKind& kind = KindOf(spec.type);
  if (kind.transformed == LayerSize::kNone) return false;
  return kind.always_transforms || TransformedColumns(spec, layer) < ShapeOf(spec, layer).in;
}

EvalLayout EvalLayout::Of(const ModelSpec& spec, uint64_t num_nodes) {
  uint64_t hidden[2] = {};
  uint64_t transformed = 0;
  for (uint32_t layer = 0; layer < spec.num_layers; ++layer) {
    const LayerShape shape = ShapeOf(spec, layer);
    if (layer + 1 < spec.num_layers || spec.head) {
      hidden[layer % 2] = std::max<uint64_t>(hidden[layer % 2], shape.out);
    }
    if (MayTransform(spec, layer)) {
      transformed = std::max<uint64_t>(transformed, TransformedColumns(spec, layer));
    }
  }
  EvalLayout layout;
  const auto take = [&](uint64_t columns) {
    const uint64_t at = layout.total_bytes;
    layout.total_bytes += RoundUp(columns * num_nodes * sizeof(float), kPageBytes);
    return at;
  };
  layout.hidden_at[0] = take(hidden[0]);
  layout.hidden_at[1] = take(hidden[1]);
  layout.transformed_at = take(transformed);
  const ModelKind& kind = KindOf(spec.type);
  layout.scores_at = take(kind.has_scores ? uint64_t{2} * spec.heads : 0);
  if (!kind.gathers_features) return layout;
  const uint64_t row_bytes = spec.in_dim * sizeof(float);
  layout.kept_at = layout.total_bytes;
  layout.is_kept_at = layout.kept_at + RoundUp(row_bytes * num_nodes, kPageBytes);
  layout.kept_bytes = layout.is_kept_at + RoundUp(num_nodes, kPageBytes) - layout.kept_at;
  return layout;
}

uint64_t TypedScratchBytes(const ModelSpec& spec, uint64_t numbers) {
  return 2 * RoundUp(numbers * spec.hidden_dim * sizeof(float), kPageBytes);
}

uint64_t EvalWorkBytes(const ModelSpec& spec, uint64_t num_nodes, uint64_t num_targets) {
  constexpr uint64_t kSets = 2;  // the sets of validation and of test nodes
  uint64_t block = 0;
  for (uint32_t layer = 0; layer < spec.num_layers; ++layer) {
    const LayerShape shape = ShapeOf(spec, layer);
    const uint64_t wide = TransformedColumns(spec, layer);
    const uint64_t narrowest = std::max<uint64_t>(1, std::min<uint64_t>(shape.in, shape.out));
    // Aggregates, own rows, transformed and computed rows; a word and a weight for each edge.
    const uint64_t floats = kEvalBlockRows * (uint64_t{2} * shape.in + 2 * wide + shape.out) +
                            kEvalBlockFloats / narrowest * (1 + spec.heads);
    block = std::max(block, floats * sizeof(float));
  }
  const uint64_t sets = kSets * (uint64_t{spec.num_layers} + 1) * num_nodes / 8;
  if (spec.head) {
    // Links in both directions, ends and negatives of both splits, and blocks of scores.
    const uint64_t listed = 2 * num_targets * (sizeof(uint64_t) + sizeof(uint32_t));
    const uint64_t known = listed + num_nodes * sizeof(uint64_t) + num_nodes / 8;
    constexpr uint64_t kRows = uint64_t{kRankedBlockRows} + kLinkGroup;
    const uint64_t rows = kRows * (uint64_t{3} * spec.out_dim + kLinkGroup);
    return sets + known + kSets * num_nodes * sizeof(uint32_t) + num_nodes * sizeof(float) + block +
           rows * sizeof(float);
  }
  return sets + 2 * num_targets * sizeof(uint32_t) + num_nodes * sizeof(float) + block;
}

Result<UniqueFd> EvalScratch::Create(uint64_t bytes, const std::string& folder) {
  bytes = std::max(bytes, kPageBytes);
  if (folder.empty()) return CreateMemfd("gnnd-evaluation", bytes);
  UniqueFd fd(open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!fd.valid() || ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    return SystemError(Code::kIo, "a file of " + std::to_string(bytes) + " bytes in " + folder);
  }
  return fd;
}

Result<EvalScratch> EvalScratch::Attach(int fd, uint64_t bytes) {
  EvalScratch scratch;
  scratch.mapping_ = GNND_VALUE(Mapping::Map(fd, true));
  if (scratch.mapping_.size() < bytes) {
    return Status(Code::kShmCorrupted, "the evaluation's scratch has " +
                                           std::to_string(scratch.mapping_.size()) +
                                           " bytes, not " + std::to_string(bytes));
  }
  scratch.fd_ = UniqueFd(fcntl(fd, F_DUPFD_CLOEXEC, 3));
  if (!scratch.fd_.valid()) {
    return SystemError(Code::kIo, "duplicating the scratch");
  }
  return scratch;
}

void EvalScratch::Clear(uint64_t bytes) {
  struct stat info{};
  if (fstat(fd_.get(), &info) != 0) return;
  if (static_cast<uint64_t>(info.st_blocks) * 512 <= kKeepBytes) return;
  // A file system that cannot punch holes keeps the memory, which is no error.
  static_cast<void>(fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                              static_cast<off_t>(bytes)));
}

}  // namespace gnnd
