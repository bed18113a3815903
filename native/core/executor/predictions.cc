#include "core/executor/predictions.h"

namespace gnnd {

std::vector<uint64_t> Predictions::ShapeOf(uint64_t nodes) const {
  if (!rule_->predicts_columns()) return {nodes};
  return {nodes, outputs_};
}

uint64_t Predictions::bytes_per_node() const {
  return BytesOf(rule_->predicted_type()) * (rule_->predicts_columns() ? outputs_ : 1);
}

void Predictions::Append(std::span<const float> outputs, std::vector<std::byte>* to) const {
  for (size_t at = 0; at < outputs.size(); at += outputs_) {
    rule_->Predict(outputs.subspan(at, outputs_), to);
  }
}

}  // namespace gnnd
