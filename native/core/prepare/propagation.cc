#include "core/prepare/propagation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/graph/npy.h"
#include "core/item/item_range.h"
#include "core/prepare/range_moments.h"

namespace gnnd {
namespace {

constexpr uint32_t kMaxOperators = 16;
constexpr uint32_t kMaxHops = 64;
constexpr uint32_t kMaxTerms = 1000;
// Rows of this many floats are gathered at memory speed; a block of all columns needs no joining.
constexpr uint64_t kFastColumns = 256;
constexpr uint64_t kVectorColumns = 16;

Status Invalid(const std::string& what) { return Status(Code::kInvalidArgument, what); }

Status CheckOperator(const PropagationOperator& op, const std::string& path) {
  if (op.kind < OperatorKind::kSymmetric || op.kind > OperatorKind::kHeat) {
    return Invalid(path + ".kind is unknown");
  }
  if (op.kind == OperatorKind::kPpr && !(op.alpha > 0 && op.alpha <= 1)) {
    return Invalid(path + ".alpha must be in (0, 1], is " + std::to_string(op.alpha));
  }
  if (op.kind == OperatorKind::kHeat && !(op.time > 0 && std::isfinite(op.time))) {
    return Invalid(path + ".time must be above 0, is " + std::to_string(op.time));
  }
  if (IsSeries(op) && (op.terms < 1 || op.terms > kMaxTerms)) {
    return Invalid(path + ".terms must be 1 to " + std::to_string(kMaxTerms));
  }
  return Status::Ok();
}

void AppendSplit(std::span<const int64_t> ids, uint32_t split, const PropagationPlan& plan,
                 std::vector<uint32_t>* order) {
  const auto n = static_cast<uint32_t>(ids.size());
  std::vector<uint32_t> places(n);
  if (plan.permuted && n > 0) {
    ItemOrder{plan.random_seed, kRowOrderEpoch + split, n}.Write({0, n}, places.data());
  } else {
    for (uint32_t i = 0; i < n; ++i) places[i] = i;
  }
  for (const uint32_t place : places) order->push_back(static_cast<uint32_t>(ids[place]));
}

bool HasSeries(const PropagationPlan& plan) {
  return std::any_of(plan.operators.begin(), plan.operators.end(), IsSeries);
}

}  // namespace

bool IsSeries(const PropagationOperator& op) {
  return op.kind == OperatorKind::kPpr || op.kind == OperatorKind::kHeat;
}

std::vector<float> SeriesOf(const PropagationOperator& op) {
  std::vector<float> series(op.terms);
  double term = op.kind == OperatorKind::kPpr ? op.alpha : std::exp(-op.time);
  for (uint32_t i = 0; i < op.terms; ++i) {
    series[i] = static_cast<float>(term);
    term *= op.kind == OperatorKind::kPpr ? 1 - op.alpha : op.time / (i + 1);
  }
  return series;
}

Status CheckPlan(const PropagationPlan& plan) {
  if (plan.operators.empty() || plan.operators.size() > kMaxOperators) {
    return Invalid("operators must be 1 to " + std::to_string(kMaxOperators));
  }
  for (size_t k = 0; k < plan.operators.size(); ++k) {
    GNND_TRY(CheckOperator(plan.operators[k], "operators[" + std::to_string(k) + "]"));
  }
  if (plan.hops < 1 || plan.hops > kMaxHops) {
    return Invalid("hops must be 1 to " + std::to_string(kMaxHops));
  }
  if (plan.row_type > RowType::kBfloat16) return Invalid("row_type is unknown");
  return Status::Ok();
}

std::string RowFile(uint32_t op, uint32_t hop) {
  if (hop == 0) return "hop0.npy";
  return "op" + std::to_string(op) + "-hop" + std::to_string(hop) + ".npy";
}

std::string MomentsFile(uint32_t op, uint32_t hop) { return RowFile(op, hop) + ".moments"; }

std::vector<uint32_t> RowNodes(const Dataset& dataset, const PropagationPlan& plan) {
  std::vector<uint32_t> order;
  if (plan.all_nodes) {
    order.resize(dataset.num_nodes());
    std::iota(order.begin(), order.end(), 0U);
    return order;
  }
  order.reserve(dataset.train().size() + dataset.val().size() + dataset.test().size());
  AppendSplit(dataset.train(), 0, plan, &order);
  AppendSplit(dataset.val(), 1, plan, &order);
  AppendSplit(dataset.test(), 2, plan, &order);
  return order;
}

Result<PropagationSizes> SizesOf(const DatasetCounts& counts, const PropagationPlan& plan,
                                 uint64_t memory_bytes, uint64_t columns) {
  PropagationSizes sizes;
  sizes.rows = plan.all_nodes ? counts.num_nodes : counts.train + counts.val + counts.test;
  const uint64_t files = uint64_t{plan.hops} * plan.operators.size() + 1;
  const uint64_t hop_bytes = sizes.rows * counts.num_features * BytesOf(plan.row_type);
  sizes.file_bytes = files * (kRowAlignment + hop_bytes) + 2 * (128 + 4 * sizes.rows);
  if (plan.standardize) sizes.file_bytes += files * 2 * sizeof(double) * counts.num_features;
  // The previous hop, the present one, the sum of a series; and the rows to be written.
  const uint64_t states = HasSeries(plan) ? 3 : 2;
  const uint64_t column_bytes = 4 * (states * counts.num_nodes + sizes.rows) +
                                (plan.standardize ? RangeMoments::BytesOf(counts.num_nodes, 1) : 0);
  const uint64_t room = memory_bytes / column_bytes;
  if (room == 0) {
    return Invalid("one column of " + std::to_string(counts.num_nodes) + " nodes takes " +
                   std::to_string(column_bytes) + " bytes, and memory_bytes is " +
                   std::to_string(memory_bytes));
  }
  uint64_t width = std::min({room, kFastColumns, counts.num_features});
  if (columns > 0) {
    width = std::min(columns, counts.num_features);
  } else if (width > kVectorColumns && width < counts.num_features) {
    width = width / kVectorColumns * kVectorColumns;
  }
  sizes.block_columns = width;
  sizes.blocks = (counts.num_features + width - 1) / width;
  sizes.memory_bytes = width * column_bytes;
  // Joined files exist twice for a while, and so does the state of a block.
  sizes.peak_bytes =
      sizes.file_bytes + (sizes.blocks > 1 ? hop_bytes : 0) + 2 * 4 * width * counts.num_nodes;
  for (const PropagationOperator& op : plan.operators) {
    sizes.steps += uint64_t{plan.hops} * (IsSeries(op) ? op.terms - 1 : 1) * sizes.blocks;
  }
  return sizes;
}

}  // namespace gnnd
