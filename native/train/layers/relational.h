#pragma once

#include <ATen/core/Tensor.h>

#include <span>

#include "core/batch/sample.h"
#include "core/model/model_spec.h"
#include "train/layers/relation_layer.h"
#include "train/ops/workspace.h"

// The models over several types and relations (core/model/relation_manifest.h): R-SAGE, R-GCN, HGT.
// Rows are float32, or float64 in tests against dense references. Tensors that a function returns
// lie in the context's workspace, or in torch's memory.

namespace gnnd {

// Whether layers transform rows of sources, so that whoever computes a part of a level gathers the
// distinct rows that it needs. Other models take a matrix of all rows as cheaply.
bool GathersRows(const ModelSpec& spec);

// The rows at level 0 of the type: [rows, in_dim] to [rows, hidden_dim].
at::Tensor ProjectInput(const RelationalContext& context, const at::Tensor& x);

// The type's rows at level layer + 1, [num_dst, hidden_dim], after normalisation, activation and
// dropout; behind the last layer the logits, [num_dst, out_dim], of type 0. `relations` lead to the
// type, in rising order, each at most once; those that the layer does not take are left out
// (RelationNeeds). Of those along which no row has an edge `x` is not read. `own`: the rows
// themselves, [num_dst, hidden_dim].
at::Tensor ForwardRelations(const RelationalContext& context,
                            std::span<const RelationInput> relations, const at::Tensor& own);

// The seeds' logits, [num_seeds(0), out_dim], of a sample whose relations are those of the model's
// graph. inputs[t]: [nodes(t), in_dim] of type t, input dropout applied; undefined or without
// rows where the sample has no node of the type, or the model needs none.
at::Tensor ForwardTyped(const Model& model, std::span<const at::Tensor> parameters,
                        const Sample& sample, std::span<const at::Tensor> inputs, bool trains,
                        Workspace* workspace);

}  // namespace gnnd
