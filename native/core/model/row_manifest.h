#pragma once

#include <cstdint>

#include "core/base/status.h"
#include "core/model/model_spec.h"

// Models over propagated rows (SGC, SIGN, HOGA): a row is a node's features after each hop of each
// operator, its *tokens*. Token 0 is hop 0; hop r of operator k is token 1 + k * num_hops + r - 1.

namespace gnnd {

// Rows per chunk when rows are evaluated; decides no bit but the order in which losses are added.
inline constexpr uint64_t kRowsOfChunk = 4096;

inline uint32_t TokensOf(const ModelSpec& spec) { return 1 + spec.num_operators * spec.num_hops; }

// Places of dropout, numbered like layers in its key (core/draw/dropout.h).
enum RowDropout : uint32_t {
  kInputMask = 0,      // on input features
  kHiddenMask = 1,     // on tokens, or on the output of a perceptron's layer 0; layer l: 1 + l
  kReadOutMask = 10,   // on the rows that are read out
  kHopMask = 11,       // on a hop's perceptron; its layer l: 11 + l
  kLastAttention = 9,  // on the read-out's attention; attention layer l: l
};
inline constexpr uint32_t kMaxHopLayers = 4;

// kInvalidArgument, naming the field.
Status CheckRowSpec(const ModelSpec& spec);

// Appends the tensors of docs/formats/checkpoint.md. REQUIRES: a checked spec.
void AddRowTensors(const ModelSpec& spec, ParameterManifest* manifest);

// Number of a row's tokens that the model reads: all, or for SGC only the last.
uint32_t TokensRead(const ModelSpec& spec);

}  // namespace gnnd
