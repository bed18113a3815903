#pragma once

#include <cstdint>

// The enumerated fields of the counter: the purpose of a draw, and the reserved epochs. Frozen like
// all of core/draw. Everything here is plain enough for a second compiler (CUDA's): functions
// marked GNND_HD, scalars, and no arrays in namespaces, which device code cannot read.

namespace gnnd {

// The purpose of a draw, which keeps the streams of different uses apart. Every use has its own
// number, and every field of the counter in its own meaning; none borrows bits of another field.
enum class Purpose : uint32_t {
  kSample = 1,            // neighbour picks of k-hop sampling
  kPermutation = 2,       // the epoch's order of training nodes
  kInit = 3,              // initial parameters
  kDropout = 4,           // dropout masks of hidden layers; "hop" is the layer
  kAttentionDropout = 5,  // masks of attention coefficients; "hop" is the layer
  kWeighted = 16,         // neighbour picks by edge weight
  kWalk = 17,             // random walks
  kLabor = 18,            // keys of LABOR's draws
  kPlugin = 19,           // a user's sampler
  kScript = 20,           // start of torch's own generator in a batch of a user's model
  kLocality = 21,         // neighbour picks that favour some nodes (locality.h)
  kNegative = 22,         // negatives of links (negatives.h); "hop" is the attempt
  kCacheOrder = 32,       // the RANDOM cache policy; decides no bit of a model
  kPageKey = 240,         // keys of a stream's blocks from 2^16 on (philox.h)
  kRelationKey = 241,     // keys of relations
};

// Epochs are numbered from 0. Those at the end of the range are reserved, so that work before the
// job never sees one of its batches: this one is for calibration, those below it, counted downward,
// for pre-sampling.
inline constexpr uint32_t kTrialEpoch = 0xFFFFFF;
inline constexpr uint32_t kFirstPresampleEpoch = kTrialEpoch - 1;
// Epochs of sampled evaluations: this one on validation nodes, the next on test nodes. No job has
// so many epochs.
inline constexpr uint32_t kEvaluationEpoch = 0xC00000;
// Epochs of the order of a propagation's rows: this one for training nodes, the next two for
// validation and test nodes.
inline constexpr uint32_t kRowOrderEpoch = 0xC00010;
// Epochs of the negatives of evaluated links: this one for validation links, the next for test
// links; and that of the permutation which splits a graph's links.
inline constexpr uint32_t kLinkEvaluationEpoch = 0xC00020;
inline constexpr uint32_t kLinkSplitEpoch = 0xC00030;

}  // namespace gnnd
