#include "train/row_files.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/model/row_manifest.h"
#include "core/prepare/propagation.h"

namespace gnnd {
namespace {

constexpr uint64_t kStretchBytes = uint64_t{1} << 20;

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
  return std::max<uint64_t>(options.batch_size, std::min(kEvalRows, long_enough));
}

Result<RowFiles> OpenRowFiles(const RowsOptions& options) {
  const ModelSpec& model = options.model;
  const bool predicts = !options.predictions.folder.empty();
  const uint64_t labelled = options.train + options.val + options.test;
  const uint64_t rows = options.predicted.num_nodes > 0 ? options.predicted.num_nodes : labelled;
  RowFiles files;
  RowReaderOptions reader;
  reader.paths = TokenPaths(options);
  reader.rows = rows;
  reader.columns = model.in_dim;
  // Targets may be any rows, in more runs than a batch of training has.
  reader.tier = predicts ? RowTier::kHost : options.tier;
  reader.most_rows = StretchRows(options);
  // A batch may begin and end within chunks, and meet the short one.
  reader.most_runs = options.batch_size / std::max(1U, options.chunk) + 3;
  files.tokens = GNND_VALUE(RowReader::Open(reader));
  files.nodes = GNND_VALUE(NpyArray::Open(options.folder + "/" + kNodesFile));
  files.labels = GNND_VALUE(NpyArray::Open(options.folder + "/" + kLabelsFile));
  GNND_TRY(files.nodes.Expect({NpyType::kUint32}, {rows}));
  GNND_TRY(files.labels.Expect({NpyType::kInt32}, {rows}));
  for (const int32_t label : files.labels.values<int32_t>()) {
    if (predicts || (label >= 0 && static_cast<uint32_t>(label) < model.out_dim)) continue;
    return Status(Code::kDatasetCorrupt, "labels.npy: a row has label " + std::to_string(label));
  }
  return files;
}

}  // namespace gnnd
