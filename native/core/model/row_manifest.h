#pragma once

#include <cstdint>

#include "core/base/status.h"
#include "core/model/model_spec.h"

// Models over propagated rows (SGC, SIGN, HOGA): a row is a node's features after each hop of each
// operator, its *tokens*. Token 0 is hop 0; hop r of operator k is token 1 + k * num_hops + r - 1.

namespace gnnd {

// Rows of a chunk of an evaluation of rows; decides no bit but the order of losses.
inline constexpr uint64_t kRowsOfChunk = 4096;

inline uint32_t TokensOf(const ModelSpec& spec) { return 1 + spec.num_operators * spec.num_hops; }

// Dropout's places, as layers of its key (core/draw/dropout.h).
enum RowDropout : uint32_t {
  kInputMask = 0,      // of input features
  kHiddenMask = 1,     // of the tokens, or of what a perceptron's layer 0 gives; layer l: 1 + l
  kReadOutMask = 10,   // of what is read out
  kHopMask = 11,       // of a hop's perceptron; its layer l: 11 + l
  kLastAttention = 9,  // of the read-out's attention; layer l of attention: l
};
inline constexpr uint32_t kMaxHopLayers = 4;

// kInvalidArgument, naming the field.
Status CheckRowSpec(const ModelSpec& spec);

// Appends the tensors of docs/formats/checkpoint.md. REQUIRES: a checked spec.
void AddRowTensors(const ModelSpec& spec, ParameterManifest* manifest);

// Tokens of a row that the model reads: of SGC the last alone.
uint32_t TokensRead(const ModelSpec& spec);

}  // namespace gnnd
