#include "train/layers/block_model.h"

#include <algorithm>

#include "core/kernels/optimizer.h"
#include "train/ops/ops.h"

namespace gnnd {
namespace {

Model WithoutDropout(const Model& model) {
  Model quiet = model;
  quiet.spec.dropout = quiet.spec.input_dropout = quiet.spec.attention_dropout = 0;
  return quiet;
}

class Own final : public BlockModel {
 public:
  Own(Model model, const RowTable& features, uint64_t random_seed)
      : BlockModel(std::move(model)),
        quiet_(WithoutDropout(this->model())),
        features_(features),
        random_seed_(random_seed) {}

  void Init(std::span<float> parameters) const override {
    const double gain = KindOf(model().spec.type).is_scaled ? FirstLayerGain(features_) : 1.0;
    InitGlorot(manifest(), random_seed_, gain, parameters);
  }

  std::vector<at::Tensor> Leaves(const BatchKey&, std::span<const float> floats,
                                 at::Device where) override {
    std::vector<at::Tensor> leaves = ViewsOf(manifest(), floats, where);
    for (at::Tensor& leaf : leaves) leaf.requires_grad_(true);
    return leaves;
  }
  at::Tensor Forward(std::span<const at::Tensor> leaves, const Sample& sample,
                     const BottomInput& input, Workspace* workspace,
                     TrainerHistory* history) override {
    return ForwardBlocks(model(), leaves, sample, input, workspace, history);
  }

  std::vector<at::Tensor> Constants(std::span<const float> floats, at::Device where) override {
    return ViewsOf(manifest(), floats, where);
  }
  void Evaluate(std::span<const at::Tensor> constants, const Sample& sample,
                const BottomInput& input, Workspace* workspace, const LayerTap& tap) override {
    ForwardBlocks(quiet_, constants, sample, input, workspace, nullptr, tap);
  }

  uint32_t torch_threads(uint32_t) const override { return 1; }
  Code thrown() const override { return Code::kInternal; }

 private:
  const Model quiet_;
  const RowTable features_;
  const uint64_t random_seed_;
};

// A script computes with torch's own operators and holds its parameters itself.
class Scripted final : public BlockModel {
 public:
  explicit Scripted(std::unique_ptr<ScriptModel> script)
      : BlockModel(Model(script->spec(), script->manifest())), script_(std::move(script)) {}

  void Init(std::span<float> parameters) const override {
    std::ranges::copy(script_->initial_parameters(), parameters.begin());
  }

  std::vector<at::Tensor> Leaves(const BatchKey& key, std::span<const float> floats,
                                 at::Device) override {
    script_->SetParameters(floats);
    script_->BeginBatch(key);
    return {script_->parameters().begin(), script_->parameters().end()};
  }
  at::Tensor Forward(std::span<const at::Tensor>, const Sample& sample, const BottomInput& input,
                     Workspace*, TrainerHistory*) override {
    return script_->Forward(sample, input.x);
  }

  std::vector<at::Tensor> Constants(std::span<const float> floats, at::Device) override {
    script_->SetParameters(floats);
    script_->BeginEvaluation();
    return {};
  }
  void Evaluate(std::span<const at::Tensor>, const Sample& sample, const BottomInput& input,
                Workspace*, const LayerTap& tap) override {
    script_->Forward(sample, input.x, tap);
  }

  uint32_t torch_threads(uint32_t threads) const override { return threads; }
  Code thrown() const override { return Code::kPluginFailed; }

 private:
  std::unique_ptr<ScriptModel> script_;
};

}  // namespace

std::unique_ptr<BlockModel> OwnModel(Model model, const RowTable& features, uint64_t random_seed) {
  return std::make_unique<Own>(std::move(model), features, random_seed);
}

std::unique_ptr<BlockModel> ScriptedModel(std::unique_ptr<ScriptModel> script) {
  return std::make_unique<Scripted>(std::move(script));
}

}  // namespace gnnd
