#include "train/ops/device_operators.h"
#include "train/ops/device_stream.h"

// What models over rows compute, by a device's kernels.

namespace gnnd {
namespace {

TrainStream& StreamOf(Workspace* workspace) { return TrainStream::Of(workspace->device()); }

void NormalizeBatch(const BatchNormRows<float>& op, uint32_t pass, Workspace* workspace, float* out,
                    float* grad_scale) {
  TrainStream& stream = StreamOf(workspace);
  gnnd_device_batch_norm_rows args{};
  args.pass = pass;
  args.rows = op.rows;
  args.columns = op.columns;
  args.x = op.x;
  args.scale = op.scale;
  args.shift = op.shift;
  args.moments = op.moments;
  args.inverse = op.inverse;
  args.grad = op.grad;
  args.out = out;
  args.grad_scale = grad_scale;
  if (pass != GNND_BATCH_NORM_GIVEN) {
    args.workspace =
        workspace->Get<std::byte>(stream.table().batch_norm_workspace_bytes(op.rows, op.columns));
  }
  stream.Launch(stream.table().batch_norm, args);
}

void BatchNorm(const BatchNormRows<float>& op, Workspace* workspace, float* out) {
  NormalizeBatch(op, GNND_BATCH_NORM_OWN, workspace, out, nullptr);
}

void BatchNormBy(const BatchNormRows<float>& op, Workspace* workspace, float* out) {
  NormalizeBatch(op, GNND_BATCH_NORM_GIVEN, workspace, out, nullptr);
}

void BatchNormGradient(const BatchNormRows<float>& op, Workspace* workspace, float* grad_in,
                       float* grad_scale) {
  NormalizeBatch(op, GNND_BATCH_NORM_GRADIENT, workspace, grad_in, grad_scale);
}

void PRelu(const PReluRows<float>& op, Workspace* workspace, float* out) {
  TrainStream& stream = StreamOf(workspace);
  gnnd_device_prelu_rows args{};
  args.rows = op.rows;
  args.columns = op.columns;
  args.x = op.x;
  args.slope = op.slope;
  args.out = out;
  stream.Launch(stream.table().prelu, args);
}

void PReluGradient(const PReluRows<float>& op, Workspace* workspace, float* grad_in,
                   float* grad_slope) {
  TrainStream& stream = StreamOf(workspace);
  gnnd_device_prelu_rows args{};
  args.rows = op.rows;
  args.columns = op.columns;
  args.x = op.x;
  args.slope = op.slope;
  args.grad = op.grad;
  args.out = grad_in;
  args.grad_slope = grad_slope;
  args.workspace = workspace->Get<std::byte>(stream.table().sum_workspace_bytes(op.rows, 1));
  stream.Launch(stream.table().prelu, args);
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
  TrainStream& stream = StreamOf(workspace);
  gnnd_device_tokens args = ArgsOf(op);
  args.out = op.out;
  args.random_seed = dropout.key.random_seed;
  args.epoch = dropout.key.epoch;
  args.batch = dropout.key.batch;
  args.layer = dropout.key.layer;
  args.scale = 1.0F / (1.0F - dropout.p);
  args.nodes = dropout.nodes;
  args.threshold = DropoutThreshold(dropout.p);
  stream.Launch(stream.table().token_attention, args);
}

void AttendGradient(const TokenRows<float>& op, Workspace* workspace) {
  TrainStream& stream = StreamOf(workspace);
  gnnd_device_tokens args = ArgsOf(op);
  args.grad = op.grad;
  args.grad_query = op.grad_query;
  args.grad_key = op.grad_key;
  args.grad_value = op.grad_value;
  args.workspace = workspace->Get<float>(op.rows * op.scores());
  stream.Launch(stream.table().token_attention, args);
}

}  // namespace

RowModelOperators<float> DeviceRowModels() {
  RowModelOperators<float> made{};
  made.batch_norm = &BatchNorm;
  made.batch_norm_by = &BatchNormBy;
  made.batch_norm_gradient = &BatchNormGradient;
  made.prelu = &PRelu;
  made.prelu_gradient = &PReluGradient;
  made.attend = &Attend;
  made.attend_gradient = &AttendGradient;
  return made;
}

}  // namespace gnnd
