#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/graph/dataset.h"
#include "core/graph/schema.h"

// The full check of a dataset: every element of every array. docs/formats/dataset.md lists the
// checks. A dataset that passes can be sampled and trained on without any further check of ids.

namespace gnnd {

// One rule that a file breaks: the first offender (place and value) and how many there are.
struct DatasetProblem {
  std::string file;  // name within the folder; "dataset.json" when the counts themselves cannot be
  std::string message;
};

struct DatasetValidation {
  static constexpr uint64_t kMaxListed = 20;

  std::vector<DatasetProblem> problems;  // the first kMaxListed, in the order of the files' checks
  uint64_t num_problems = 0;             // all of them

  bool ok() const { return num_problems == 0; }
};

// Checks all files of `folder` against each other and against `counts`. Never fails: whatever is
// wrong, missing or unreadable is a problem in the result. A file whose header is wrong is not
// checked further; the others still are. Files in `checked` have elements that ArrayCopy has
// checked already, which are not read again.
DatasetValidation Validate(const std::string& folder, const DatasetCounts& counts,
                           const std::vector<std::string>& checked = {});

// The same of a graph of several types and relations. Rows of a relation ascend, each source once;
// files are named as "nodes/author/features.npy".
DatasetValidation Validate(const std::string& folder, const Schema& schema,
                           const std::vector<std::string>& checked = {});

}  // namespace gnnd
