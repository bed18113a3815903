#include "train/ops/device_operators.h"

// What models over rows compute, by a device's kernels.

namespace gnnd {
namespace {

using Table = gnnd_device_plugin;

gnnd_device_batch_norm_rows ArgsOf(const BatchNormRows<float>& op, uint32_t pass, float* out) {
  return {.pass = pass,
          .rows = op.rows,
          .columns = op.columns,
          .x = op.x,
          .scale = op.scale,
          .shift = op.shift,
          .moments = op.moments,
          .inverse = op.inverse,
          .grad = op.grad,
          .out = out,
          .grad_scale = nullptr,
          .workspace = nullptr};
}

std::byte* WorkOf(const BatchNormRows<float>& op, Workspace* workspace) {
  return WorkOf(workspace, &Table::batch_norm_workspace_bytes, op.rows, op.columns);
}

void BatchNorm(const BatchNormRows<float>& op, Workspace* workspace, float* out) {
  gnnd_device_batch_norm_rows args = ArgsOf(op, GNND_BATCH_NORM_OWN, out);
  args.workspace = WorkOf(op, workspace);
  Launch(workspace, &Table::batch_norm, args);
}

void BatchNormBy(const BatchNormRows<float>& op, Workspace* workspace, float* out) {
  Launch(workspace, &Table::batch_norm, ArgsOf(op, GNND_BATCH_NORM_GIVEN, out));
}

void BatchNormGradient(const BatchNormRows<float>& op, Workspace* workspace, float* grad_in,
                       float* grad_scale) {
  gnnd_device_batch_norm_rows args = ArgsOf(op, GNND_BATCH_NORM_GRADIENT, grad_in);
  args.grad_scale = grad_scale;
  args.workspace = WorkOf(op, workspace);
  Launch(workspace, &Table::batch_norm, args);
}

void PRelu(const PReluRows<float>& op, Workspace* workspace, float* out) {
  Launch(workspace, &Table::prelu,
         {.rows = op.rows,
          .reserved = 0,
          .columns = op.columns,
          .x = op.x,
          .slope = op.slope,
          .grad = nullptr,
          .out = out,
          .grad_slope = nullptr,
          .workspace = nullptr});
}

void PReluGradient(const PReluRows<float>& op, Workspace* workspace, float* grad_in,
                   float* grad_slope) {
  Launch(workspace, &Table::prelu,
         {.rows = op.rows,
          .reserved = 0,
          .columns = op.columns,
          .x = op.x,
          .slope = op.slope,
          .grad = op.grad,
          .out = grad_in,
          .grad_slope = grad_slope,
          .workspace = WorkOf(workspace, &Table::sum_workspace_bytes, op.rows, 1)});
}

gnnd_device_tokens ArgsOf(const TokenRows<float>& op) {
  gnnd_device_tokens args{};
  args.rows = op.rows;
  args.queries = op.queries;
  args.tokens = op.tokens;
  args.heads = op.heads;
  args.head_width = op.head_width;
  args.query = op.query;
  args.key = op.key;
  args.value = op.value;
  args.probability = op.probability;
  args.mask = op.mask;
  return args;
}

void Attend(const TokenRows<float>& op, const TokenDropout& dropout, Workspace* workspace) {
  gnnd_device_tokens args = ArgsOf(op);
  args.out = op.out;
  args.random_seed = dropout.key.random_seed;
  args.epoch = dropout.key.epoch;
  args.batch = dropout.key.batch;
  args.layer = dropout.key.layer;
  args.scale = 1.0F / (1.0F - dropout.p);
  args.nodes = dropout.nodes;
  args.threshold = DropoutThreshold(dropout.p);
  Launch(workspace, &Table::token_attention, args);
}

void AttendGradient(const TokenRows<float>& op, Workspace* workspace) {
  gnnd_device_tokens args = ArgsOf(op);
  args.grad = op.grad;
  args.grad_query = op.grad_query;
  args.grad_key = op.grad_key;
  args.grad_value = op.grad_value;
  args.workspace = workspace->Get<float>(op.rows * op.scores());
  Launch(workspace, &Table::token_attention, args);
}

}  // namespace

RowModelOperators<float> DeviceRowModels() {
  return {.batch_norm = &BatchNorm,
          .batch_norm_by = &BatchNormBy,
          .batch_norm_gradient = &BatchNormGradient,
          .prelu = &PRelu,
          .prelu_gradient = &PReluGradient,
          .attend = &Attend,
          .attend_gradient = &AttendGradient};
}

}  // namespace gnnd
