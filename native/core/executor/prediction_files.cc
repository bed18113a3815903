#include "core/executor/prediction_files.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "core/base/failpoint.h"

namespace gnnd {

PredictionFiles::PredictionFiles(ChunkFiles files, RowOutputs outputs)
    : ChunkFiles(std::move(files)), outputs_(std::move(outputs)) {
  for (const auto& output : outputs_) layers_.push_back(output->layer());
  std::ranges::sort(layers_);
  const auto repeated = std::ranges::unique(layers_);
  layers_.erase(repeated.begin(), repeated.end());
}

Result<PredictionFiles> PredictionFiles::Open(const PredictionPlace& place, const Nodes& targets,
                                              RowOutputs outputs) {
  const uint64_t rows = targets.nodes.size();
  std::vector<ChunkArray> arrays;
  for (const auto& output : outputs) {
    arrays.push_back({output->name(), output->type(), output->ShapeOf(rows)});
  }
  ChunkFiles files = GNND_VALUE(ChunkFiles::Open(place.folder, arrays));
  if (!targets.are_all) {
    GNND_TRY(WriteIdsOnce(place.folder + "/out/nodes.npy", std::array{rows}, targets.nodes));
  }
  return PredictionFiles(std::move(files), std::move(outputs));
}

Status PredictionFiles::Write(uint32_t layer, uint64_t first, std::span<const float> rows) {
  const auto wrong = std::ranges::find_if(rows, [](float value) { return !std::isfinite(value); });
  uint32_t begun = 0;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const RowOutput& output = *outputs_[i];
    if (output.layer() != layer) continue;
    if (begun++ == 1) GNND_FAILPOINT("predict.writing");
    if (wrong != rows.end()) {
      const auto at = static_cast<uint64_t>(wrong - rows.begin());
      return Status(Code::kNumericDivergence,
                    "a number of layer " + std::to_string(uint64_t{layer} + 1) + " in row " +
                        std::to_string(first + at / output.width()) + " is not finite");
    }
    made_.clear();
    output.Append(rows, &made_);
    GNND_TRY(WriteRows(i, first, made_));
  }
  return Status::Ok();
}

}  // namespace gnnd
