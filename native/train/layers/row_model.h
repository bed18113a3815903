#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "core/draw/batch_key.h"
#include "train/layers/model.h"
#include "train/ops/workspace.h"

// SGC, SIGN and HOGA over rows of propagated features (core/model/row_manifest.h).

namespace gnnd {

struct RowBatch {
  // Rows by hop: for SGC [1][rows, in_dim], the last hop alone; else [tokens][rows, in_dim].
  std::vector<at::Tensor> tokens;
  BatchKey key;
  const uint32_t* nodes = nullptr;  // node ids of the rows, which key dropout
  bool training = false;            // else no dropout, and batch normalisation by running values
};

// A batch's value for a running statistic: tensor `index` of the manifest moves toward `value`.
struct RunningValue {
  size_t index;
  at::Tensor value;
};

// The logits [rows, out_dim]. `parameters` are in manifest order, of the tokens' element type.
// `running`, which may be null in evaluation, receives the statistics of batch normalisation. `tap`
// is told what layers give: hidden ones of SIGN, and the last of every model.
at::Tensor ForwardRows(const Model& model, std::span<const at::Tensor> parameters,
                       const RowBatch& batch, Workspace* workspace,
                       std::vector<RunningValue>* running, const LayerTap& tap = {});

}  // namespace gnnd
