#include "train/row_results.h"

#include <cmath>

#include "core/kernels/loss.h"
#include "train/ops.h"

namespace gnnd {

void WriteRunning(const ParameterManifest& manifest, const std::vector<RunningValue>& running,
                  std::span<const float> parameters, uint64_t rows, std::span<float> gradient) {
  for (const RunningValue& value : running) {
    const ParameterTensor& tensor = manifest.tensors[value.index];
    const at::Tensor here = value.value.to(at::kCPU);
    const float* const found = here.const_data_ptr<float>();
    for (uint64_t i = 0; i < tensor.size(); ++i) {
      const uint64_t at = tensor.offset + i;
      gradient[at] = static_cast<float>(rows) * (parameters[at] - found[i]);
    }
  }
}

Status CountRows(const at::Tensor& logits, std::span<const uint32_t> labels, bool with_loss,
                 EvalResult* result) {
  const auto classes = static_cast<uint64_t>(logits.size(1));
  *result = EvalResult{};
  result->rows = result->nodes = labels.size();
  for (size_t i = 0; i < labels.size(); ++i) {
    const std::span row(logits.const_data_ptr<float>() + i * classes, classes);
    if (with_loss) result->loss_sum += CrossEntropy<float>(row, labels[i], nullptr);
    if (ArgMax(row) == labels[i]) ++result->correct;
  }
  if (std::isfinite(result->loss_sum)) return Status::Ok();
  return Status(Code::kNumericDivergence, "the validation loss is not finite");
}

}  // namespace gnnd
