#include <string>

#include "train/tasks/losses.h"
#include "train/work/block_task.h"

namespace gnnd {
namespace {

class Nodes final : public BlockTask {
 public:
  explicit Nodes(const NodeTargets& targets) : targets_(targets) {}

  Status Read(const Sample& sample, ExtractBuffer* buffer) const override {
    const auto seeds = sample.nodes().first(sample.num_seeds());
    for (const uint32_t node : seeds) {
      if (targets_.Has(node)) continue;
      return Status(Code::kDatasetCorrupt,
                    "training node " + std::to_string(node) + " has " + targets_.what());
    }
    targets_.Read(seeds, &buffer->seeds);
    buffer->labels = buffer->seeds.labels.data();
    return Status::Ok();
  }

  at::Tensor Outputs(const Batch&, const at::Tensor& rows) const override { return rows; }

  Status Loss(const Known& known, const at::Tensor& outputs, const at::Tensor& grad,
              BatchReport* report) const override {
    const LossInput input{targets_, known.extracted.seeds, known.extracted.labels};
    return ComputeLoss(input, outputs, grad, known.workspace, report);
  }

 private:
  const NodeTargets& targets_;
};

}  // namespace

std::unique_ptr<BlockTask> NodesOfBlocks(const NodeTargets& targets) {
  return std::make_unique<Nodes>(targets);
}

}  // namespace gnnd
