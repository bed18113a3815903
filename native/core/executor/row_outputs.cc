#include "core/executor/row_outputs.h"

#include <utility>

namespace gnnd {
namespace {

// What the task predicts.
class PredictedFile final : public RowOutput {
 public:
  PredictedFile(uint32_t layer, const Predictions& kind)
      : RowOutput(layer, kind.outputs()), kind_(kind) {}

  std::string name() const override { return "predictions.npy"; }
  NpyType type() const override { return kind_.rule().predicted_type(); }
  std::vector<uint64_t> ShapeOf(uint64_t nodes) const override { return kind_.ShapeOf(nodes); }
  void Append(std::span<const float> rows, std::vector<std::byte>* to) const override {
    kind_.Append(rows, to);
  }

 private:
  Predictions kind_;
};

// The rows as they are.
class RowsFile final : public RowOutput {
 public:
  RowsFile(uint32_t layer, std::string name, uint32_t width)
      : RowOutput(layer, width), name_(std::move(name)) {}

  std::string name() const override { return name_; }
  NpyType type() const override { return NpyType::kFloat32; }
  std::vector<uint64_t> ShapeOf(uint64_t nodes) const override { return {nodes, width()}; }
  void Append(std::span<const float> rows, std::vector<std::byte>* to) const override {
    const auto bytes = std::as_bytes(rows);
    to->insert(to->end(), bytes.begin(), bytes.end());
  }

 private:
  std::string name_;
};

// The rows as probabilities.
class SharesFile final : public RowOutput {
 public:
  SharesFile(uint32_t layer, const PredictionRule& rule, uint32_t width)
      : RowOutput(layer, width), rule_(rule) {}

  std::string name() const override { return "probabilities.npy"; }
  NpyType type() const override { return NpyType::kFloat32; }
  std::vector<uint64_t> ShapeOf(uint64_t nodes) const override { return {nodes, width()}; }
  void Append(std::span<const float> rows, std::vector<std::byte>* to) const override {
    std::vector<float> shares(width());
    for (size_t at = 0; at < rows.size(); at += width()) {
      rule_.Probabilities(rows.subspan(at, width()), shares);
      const auto bytes = std::as_bytes(std::span(shares));
      to->insert(to->end(), bytes.begin(), bytes.end());
    }
  }

 private:
  const PredictionRule& rule_;
};

std::unique_ptr<RowOutput> OutputOf(const OutputChoice& choice, const PredictionRule& rule,
                                    uint32_t width) {
  switch (choice.kind) {
    case OutputKind::kPredictions:
      return std::make_unique<PredictedFile>(choice.layer, Predictions(rule, width));
    case OutputKind::kLogits:
      return std::make_unique<RowsFile>(choice.layer, "logits.npy", width);
    case OutputKind::kProbabilities:
      return std::make_unique<SharesFile>(choice.layer, rule, width);
    case OutputKind::kEmbeddings:
      break;
  }
  return std::make_unique<RowsFile>(choice.layer, "embeddings.npy", width);
}

}  // namespace

Result<RowOutputs> OutputsOf(std::span<const OutputChoice> choices, const PredictionRule& rule,
                             std::span<const uint32_t> widths) {
  if (choices.empty()) return Status(Code::kInvalidArgument, "an inference without outputs");
  RowOutputs outputs;
  for (const OutputChoice& choice : choices) {
    if (choice.layer >= widths.size()) {
      return Status(Code::kInvalidArgument,
                    "rows of layer " + std::to_string(uint64_t{choice.layer} + 1) +
                        " of a model that has " + std::to_string(widths.size()));
    }
    outputs.push_back(OutputOf(choice, rule, widths[choice.layer]));
  }
  return outputs;
}

}  // namespace gnnd
