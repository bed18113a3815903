#pragma once

#include <cstdint>
#include <iterator>
#include <span>

#include "core/base/check.h"

// The kinds of models as data: their only list in native code. The daemon sizes and names tensors
// by it, and layers (train/layers) compute with those tensors.

namespace gnnd {

enum class ModelType : uint32_t {
  kGraphSage = 1,
  kGcn = 2,
  kGat = 3,
  kGatV2 = 4,
  kPinSage = 5,
  kScript =
      6,  // a user's TorchScript module (train/layers/script_model.h), which brings its own tensors
  kSgc = 7,  // models over propagated rows (row_manifest.h)
  kSign = 8,
  kHoga = 9,
  kGin = 10,
  kTransformer = 11,
  kRsage = 12,  // models over several types and relations (relation_manifest.h)
  kRgcn = 13,
  kHgt = 14,
};

// The part a tensor plays in its layer.
enum class TensorRole : uint32_t {
  kWeight,          // neighbours' (GraphSAGE, PinSAGE), sources' (GATv2), or all rows' (GCN, GAT)
  kBias,            // the layer's
  kWeightSelf,      // the row's own (GraphSAGE, PinSAGE), or the destination's (GATv2)
  kWeightBias,      // GATv2: added to kWeight's product
  kWeightSelfBias,  // GATv2: added to kWeightSelf's product
  kProjection,      // PinSAGE: applied to a neighbour's row before it is aggregated
  kProjectionBias,
  kAttentionSource,       // GAT; the only attention vector of GATv2
  kAttentionDestination,  // GAT
  kResidual,
  kNormScale,  // layer normalisation's scale
  kNormShift,
  kKey,  // transformer, where kWeight is for values and kWeightSelf for queries
  kKeyBias,
  kSkip,          // transformer: applied to the row itself, which the layer adds
  kEpsilon,       // GIN: one number, the extra weight of the row itself
  kSecondWeight,  // GIN: second layer of its perceptron
  kSecondBias,
  // A head's over pairs of rows (train/layers/link_head.h).
  kPairProduct,
  kPairSource,
  kPairDestination,
  kPairBias,
  kPairOut,
  kPairOutBias,
  kRunning,  // statistics of batch normalisation, which batches move (optimizer.h)
};
inline constexpr uint32_t kTensorRoles = static_cast<uint32_t>(TensorRole::kRunning) + 1;

// A size that depends on the layer.
enum class LayerSize : uint32_t {
  kNone,
  kIn,       // columns of the layer's input
  kOut,      // columns of its output
  kHeads,    // number of attention heads
  kColumns,  // columns of one head's output
  kWide,     // columns of all heads' outputs side by side
  kTwiceWide,
  kHidden,  // columns of hidden layers
  kOne,
};

// A layer's place in its model. Heads are concatenated, except the last layer's, which are
// averaged.
struct LayerPlace {
  uint32_t in;
  uint32_t out;
  uint32_t hidden;  // columns of hidden layers
  uint32_t heads;
  bool is_last;
};
constexpr uint32_t SizeOf(LayerSize size, const LayerPlace& at) {
  switch (size) {
    case LayerSize::kNone:
      return 0;
    case LayerSize::kIn:
      return at.in;
    case LayerSize::kOut:
      return at.out;
    case LayerSize::kHeads:
      return at.heads;
    case LayerSize::kColumns:
      return at.is_last ? at.out : at.out / at.heads;
    case LayerSize::kWide:
      return at.is_last ? at.out * at.heads : at.out;
    case LayerSize::kTwiceWide:
      return 2 * SizeOf(LayerSize::kWide, at);
    case LayerSize::kHidden:
      return at.hidden;
    case LayerSize::kOne:
      return 1;
  }
  return 0;
}

// One tensor of every layer. A matrix begins with Glorot-uniform values, a vector with zeros.
struct TensorRule {
  const char* name;  // within the layer, as in torch_geometric
  TensorRole role;
  LayerSize rows;
  LayerSize cols = LayerSize::kNone;  // kNone: a vector
  // Whether it is half of a matrix over a row concatenated with its neighbours' aggregate.
  bool is_half = false;
};

// The form of a model's batches. kRelations: blocks of several types and relations.
enum class ModelInput : uint32_t { kBlocks, kRows, kScript, kRelations };

// How a layer combines the rows at the other ends of a destination's edges.
enum class Gathering : uint32_t {
  kOther,       // in a way that only the layer knows
  kMean,        // their mean, weighted where edges have weights
  kSum,         // their sum, weighted where a sample's edges have weights
  kNormalized,  // the sum with the row itself, weighted as GCN does
  kAttention,   // a sum with the row itself, weighted per head by attention coefficients
  kDot,         // a sum weighted per head by products of queries and keys
};

struct ModelKind {
  ModelType type;
  const char* name;  // as papers write it
  ModelInput input = ModelInput::kBlocks;
  Gathering gathering = Gathering::kOther;
  std::span<const TensorRule> tensors{};  // for models over blocks, in the manifest's order

  // Columns into which an exact evaluation transforms each input row before gathering: always, or
  // only where that is cheaper.
  LayerSize transformed = LayerSize::kNone;
  bool always_transforms = false;
  // Whether each transformed row comes with two scores per head, as a source and as a destination.
  bool has_scores = false;
  // Whether the bottom layer begins by gathering raw features: then they need not be copied, and
  // exact evaluations keep their sums.
  bool gathers_features = false;
  // Whether hidden rows always have norm 1.
  bool has_unit_rows = false;
  // Whether the first layer multiplies its input by one matrix before any non-linearity, so that
  // initial weights can compensate for the scale of features.
  bool is_scaled = true;
  // Whether devices with memory of their own implement the model's operators.
  bool on_devices = true;

  bool attends() const {
    return gathering == Gathering::kAttention || gathering == Gathering::kDot;
  }
  // Whether a destination's own row is among those that it gathers.
  bool gathers_self() const {
    return gathering == Gathering::kAttention || gathering == Gathering::kNormalized;
  }
  // Whether a layer multiplies a destination's own row by a matrix.
  constexpr bool reads_self() const {
    for (const TensorRule& rule : tensors) {
      if (rule.role == TensorRole::kWeightSelf || rule.role == TensorRole::kEpsilon) return true;
    }
    return false;
  }
};

inline constexpr TensorRule kGraphSageTensors[] = {
    {"lin_l.weight", TensorRole::kWeight, LayerSize::kOut, LayerSize::kIn, /*is_half=*/true},
    {"lin_l.bias", TensorRole::kBias, LayerSize::kOut},
    {"lin_r.weight", TensorRole::kWeightSelf, LayerSize::kOut, LayerSize::kIn, /*is_half=*/true}};

inline constexpr TensorRule kGcnTensors[] = {
    {"bias", TensorRole::kBias, LayerSize::kOut},
    {"lin.weight", TensorRole::kWeight, LayerSize::kOut, LayerSize::kIn}};

inline constexpr TensorRule kGatTensors[] = {
    {"att_src", TensorRole::kAttentionSource, LayerSize::kHeads, LayerSize::kColumns},
    {"att_dst", TensorRole::kAttentionDestination, LayerSize::kHeads, LayerSize::kColumns},
    {"bias", TensorRole::kBias, LayerSize::kOut},
    {"lin.weight", TensorRole::kWeight, LayerSize::kWide, LayerSize::kIn}};

inline constexpr TensorRule kGatV2Tensors[] = {
    {"att", TensorRole::kAttentionSource, LayerSize::kHeads, LayerSize::kColumns},
    {"bias", TensorRole::kBias, LayerSize::kOut},
    {"lin_l.weight", TensorRole::kWeight, LayerSize::kWide, LayerSize::kIn},
    {"lin_l.bias", TensorRole::kWeightBias, LayerSize::kWide},
    {"lin_r.weight", TensorRole::kWeightSelf, LayerSize::kWide, LayerSize::kIn},
    {"lin_r.bias", TensorRole::kWeightSelfBias, LayerSize::kWide}};

inline constexpr TensorRule kPinSageTensors[] = {
    {"lin.weight", TensorRole::kProjection, LayerSize::kIn, LayerSize::kIn},
    {"lin.bias", TensorRole::kProjectionBias, LayerSize::kIn},
    {"lin_l.weight", TensorRole::kWeight, LayerSize::kOut, LayerSize::kIn, /*is_half=*/true},
    {"lin_l.bias", TensorRole::kBias, LayerSize::kOut},
    {"lin_r.weight", TensorRole::kWeightSelf, LayerSize::kOut, LayerSize::kIn, /*is_half=*/true}};

inline constexpr TensorRule kGinTensors[] = {
    {"eps", TensorRole::kEpsilon, LayerSize::kOne},
    {"nn.lins.0.weight", TensorRole::kWeight, LayerSize::kHidden, LayerSize::kIn},
    {"nn.lins.0.bias", TensorRole::kBias, LayerSize::kHidden},
    {"nn.lins.1.weight", TensorRole::kSecondWeight, LayerSize::kOut, LayerSize::kHidden},
    {"nn.lins.1.bias", TensorRole::kSecondBias, LayerSize::kOut}};

inline constexpr TensorRule kTransformerTensors[] = {
    {"lin_key.weight", TensorRole::kKey, LayerSize::kWide, LayerSize::kIn},
    {"lin_key.bias", TensorRole::kKeyBias, LayerSize::kWide},
    {"lin_query.weight", TensorRole::kWeightSelf, LayerSize::kWide, LayerSize::kIn},
    {"lin_query.bias", TensorRole::kWeightSelfBias, LayerSize::kWide},
    {"lin_value.weight", TensorRole::kWeight, LayerSize::kWide, LayerSize::kIn},
    {"lin_value.bias", TensorRole::kWeightBias, LayerSize::kWide},
    {"lin_skip.weight", TensorRole::kSkip, LayerSize::kOut, LayerSize::kIn},
    {"lin_skip.bias", TensorRole::kBias, LayerSize::kOut}};

inline constexpr ModelKind kModelKinds[] = {
    {.type = ModelType::kGraphSage,
     .name = "GraphSAGE",
     .gathering = Gathering::kMean,
     .tensors = kGraphSageTensors,
     .transformed = LayerSize::kOut,
     .gathers_features = true},
    {.type = ModelType::kGcn,
     .name = "GCN",
     .gathering = Gathering::kNormalized,
     .tensors = kGcnTensors,
     .transformed = LayerSize::kOut,
     .gathers_features = true},
    {.type = ModelType::kGat,
     .name = "GAT",
     .gathering = Gathering::kAttention,
     .tensors = kGatTensors,
     .transformed = LayerSize::kWide,
     .always_transforms = true,
     .has_scores = true},
    {.type = ModelType::kGatV2,
     .name = "GATv2",
     .gathering = Gathering::kAttention,
     .tensors = kGatV2Tensors,
     .transformed = LayerSize::kWide,
     .always_transforms = true},
    {.type = ModelType::kPinSage,
     .name = "PinSAGE",
     .gathering = Gathering::kMean,
     .tensors = kPinSageTensors,
     .transformed = LayerSize::kIn,
     .always_transforms = true,
     .has_unit_rows = true,
     .is_scaled = false},
    {.type = ModelType::kScript,
     .name = "TorchScript",
     .input = ModelInput::kScript,
     .on_devices = false},
    {.type = ModelType::kSgc, .name = "SGC", .input = ModelInput::kRows},
    {.type = ModelType::kSign, .name = "SIGN", .input = ModelInput::kRows},
    {.type = ModelType::kHoga, .name = "HOGA", .input = ModelInput::kRows},
    {.type = ModelType::kGin,
     .name = "GIN",
     .gathering = Gathering::kSum,
     .tensors = kGinTensors,
     .transformed = LayerSize::kHidden,
     .gathers_features = true,
     .is_scaled = false},
    {.type = ModelType::kTransformer,
     .name = "Transformer",
     .gathering = Gathering::kDot,
     .tensors = kTransformerTensors,
     .transformed = LayerSize::kTwiceWide,
     .always_transforms = true,
     .on_devices = false},
    {.type = ModelType::kRsage,
     .name = "R-SAGE",
     .input = ModelInput::kRelations,
     .is_scaled = false,
     .on_devices = false},
    {.type = ModelType::kRgcn,
     .name = "R-GCN",
     .input = ModelInput::kRelations,
     .is_scaled = false,
     .on_devices = false},
    {.type = ModelType::kHgt,
     .name = "HGT",
     .input = ModelInput::kRelations,
     .is_scaled = false,
     .on_devices = false},
};

// Null for a number that is no type. kModelKinds is in the order of the types.
inline const ModelKind* FindKind(ModelType type) {
  const auto number = static_cast<uint32_t>(type);
  return number >= 1 && number <= std::size(kModelKinds) ? &kModelKinds[number - 1] : nullptr;
}

// REQUIRES: a valid type.
inline const ModelKind& KindOf(ModelType type) {
  const ModelKind* const kind = FindKind(type);
  GNND_CHECK(kind != nullptr && kind->type == type);
  return *kind;
}

// Whether a batch consists of rows instead of blocks.
inline bool TakesRows(ModelType type) { return KindOf(type).input == ModelInput::kRows; }
// Whether a batch has several types and relations.
inline bool TakesRelations(ModelType type) { return KindOf(type).input == ModelInput::kRelations; }
inline bool IsAttention(ModelType type) { return KindOf(type).attends(); }

}  // namespace gnnd
