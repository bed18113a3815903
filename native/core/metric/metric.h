#pragma once

#include <cstddef>

namespace gnnd {

// Where a task whose items have one class each counts those whose arg-max is their label, among the
// counts of a TaskSums (core/ledger/task_sums.h); other tasks leave it 0.
inline constexpr size_t kCorrect = 0;

}  // namespace gnnd
