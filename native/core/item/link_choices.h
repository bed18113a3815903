#pragma once

#include <cstdint>

// Choices of jobs that learn links, as the job's spec numbers and tells them
// (proto/gnnd/v1/links.proto).

namespace gnnd {

// What a batch's own links are to its neighbourhoods.
enum class LinkExclusion : uint32_t {
  kBatch = 1,       // not there when neighbours are drawn
  kBatchAfter = 2,  // left out of what was drawn
  kNone = 3,        // edges like others
};

enum class NegativeMethod : uint32_t { kUniform = 1, kDegree = 2, kJoint = 3, kInBatch = 4 };

// What becomes of negatives that are links of training.
enum class KnownLinks : uint32_t { kAllow = 1, kMask = 2, kAvoid = 3 };

// How the rows of two nodes become a score.
enum class LinkHead : uint32_t { kDot = 1, kCosine = 2, kDistMult = 3, kBilinear = 4, kMlp = 5 };

enum class LinkLoss : uint32_t { kBce = 1, kBceBalanced = 2, kBpr = 3, kSoftmax = 4 };

// Which nodes a link is ranked among when it is evaluated. A job's spec may leave it open (1); what
// native code gets is decided.
enum class EvaluationNegatives : uint32_t { kKeyed = 2, kAll = 3, kDataset = 4, kPool = 5 };

}  // namespace gnnd
