#include "train/input/row_files.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/feature/open_rows.h"
#include "core/model/row_manifest.h"
#include "core/prepare/propagation.h"
#include "train/tasks/task.h"

namespace gnnd {
namespace {

constexpr uint64_t kStretchBytes = uint64_t{1} << 20;

// Reads labels.npy, whose format is that of the dataset's labels (docs/formats/propagation.md).
Status ReadTargets(const RowsOptions& options, uint64_t rows, RowFiles* files) {
  NodeTargets* const targets = &files->targets;
  targets->task = options.task;
  targets->width = options.model.out_dim;
  targets->decides = options.decides;
  targets->ranks = options.ranks;
  // A head's model knows of no node what it could be told.
  if (options.model.head) return Status::Ok();
  files->labels = GNND_VALUE(NpyArray::Open(options.folder + "/" + kLabelsFile));
  return TaskOf(options.task).Bind(files->labels, rows, targets);
}

}  // namespace

std::vector<std::string> TokenPaths(const RowsOptions& options) {
  const ModelSpec& model = options.model;
  std::vector<std::string> paths;
  const auto add = [&](uint32_t op, uint32_t hop) {
    paths.push_back(options.folder + "/" + RowFile(op, hop));
  };
  const bool last_only = model.type == ModelType::kSgc;
  if (!last_only) add(0, 0);
  for (uint32_t op = 0; op < model.num_operators; ++op) {
    for (uint32_t hop = last_only ? model.num_hops : 1; hop <= model.num_hops; ++hop) add(op, hop);
  }
  return paths;
}

uint64_t StretchRows(const RowsOptions& options) {
  const uint64_t long_enough = kStretchBytes / (options.model.in_dim * sizeof(float)) + 1;
  return std::max<uint64_t>(options.batch_size, std::min(kRowsOfChunk, long_enough));
}

Result<RowFiles> OpenRowFiles(const RowsOptions& options) {
  const ModelSpec& model = options.model;
  const bool predicts = !options.predictions.folder.empty();
  const uint64_t labelled = options.train + options.val + options.test;
  const uint64_t rows = options.links                     ? options.links->topology.num_nodes()
                        : options.predicted.num_nodes > 0 ? options.predicted.num_nodes
                                                          : labelled;
  RowFiles files;
  RowReaderOptions reader;
  reader.paths = TokenPaths(options);
  reader.rows = rows;
  reader.columns = model.in_dim;
  // Predicted rows may be any rows, in more runs than a training batch has.
  reader.tier = predicts ? RowTier::kHost : options.tier;
  reader.most_rows = StretchRows(options);
  // A batch may begin and end within chunks, and contain the short chunk.
  reader.most_runs = options.batch_size / std::max(1U, options.chunk) + 3;
  if (options.links) {
    // A batch's rows, and those of a chunk of an evaluation, lie anywhere.
    reader.most_rows =
        std::max(reader.most_rows, options.links->batches.MaxSeeds(options.batch_size));
    reader.most_runs = reader.most_rows;
  }
  files.tokens = GNND_VALUE(OpenRows(reader));
  files.nodes = GNND_VALUE(NpyArray::Open(options.folder + "/" + kNodesFile));
  GNND_TRY(files.nodes.Expect({NpyType::kUint32}, {rows}));
  GNND_TRY(ReadTargets(options, rows, &files));
  for (uint64_t row = 0; row < rows && !predicts && !model.head; ++row) {
    if (files.targets.Has(row)) continue;
    return Status(Code::kDatasetCorrupt,
                  "labels.npy: row " + std::to_string(row) + " has " + files.targets.what());
  }
  return files;
}

}  // namespace gnnd
