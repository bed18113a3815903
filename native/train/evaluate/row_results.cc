#include "train/evaluate/row_results.h"

#include "train/ops/ops.h"

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

Status CountRows(const EvalTask& task, std::span<const float> logits,
                 std::span<const uint32_t> rows, uint64_t first, const NodeTargets& targets,
                 EvalResult* result) {
  const uint64_t columns = logits.size() / rows.size();
  *result = EvalResult{};
  result->rows = rows.size();
  const bool with_loss = task.run.nodes == EvalNodes::kValidation;
  EvalCount count(targets, with_loss, task.kept, result);
  for (size_t i = 0; i < rows.size(); ++i) {
    count.Add(rows[i], first + i, logits.subspan(i * columns, columns));
  }
  return count.Finish();
}

}  // namespace gnnd
