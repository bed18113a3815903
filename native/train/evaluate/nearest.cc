#include "train/evaluate/nearest.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "core/executor/eval_scratch.h"
#include "train/evaluate/eval_plan.h"
#include "train/ops/ops.h"
#include "train/ops/parallel.h"
#include "train/tasks/eval_targets.h"

namespace gnnd {
namespace {

constexpr uint32_t kGrainNodes = 32;

uint64_t GroupsOf(uint64_t nodes) { return (nodes + kLinkGroup - 1) / kLinkGroup; }

}  // namespace

Nearest::Nearest(const LinkUse& use, const TopologyView& topology, const ModelSpec& spec,
                 std::span<const uint32_t> nodes)
    : question_(use.question),
      topology_(topology),
      head_(HeadOf(*spec.head)),
      dim_(spec.out_dim),
      nodes_(nodes),
      known_(topology, use.question.known, use.symmetric) {}

Result<std::unique_ptr<Nearest>> Nearest::Open(const LinkUse& use, const TopologyView& topology,
                                               const ModelSpec& spec, const Of& of,
                                               const std::string& folder) {
  std::unique_ptr<Nearest> nearest(new Nearest(use, topology, spec, of.nodes));
  const uint64_t nodes = of.nodes.size();
  const uint64_t k = use.question.k;
  const ChunkArray arrays[] = {{"nearest.npy", NpyType::kInt64, {nodes, k}},
                               {"scores.npy", NpyType::kFloat32, {nodes, k}}};
  nearest->files_ = std::make_shared<ChunkFiles>(GNND_VALUE(ChunkFiles::Open(folder, arrays)));
  if (!of.are_all) {
    GNND_TRY(WriteIdsOnce(folder + "/out/nodes.npy", std::array{nodes}, of.nodes));
  }
  return nearest;
}

uint64_t Nearest::items(EvalNodes which) const {
  return which == EvalNodes::kValidation ? nodes_.size() : 0;
}

std::vector<uint32_t> Nearest::NodesOf(EvalNodes which) const {
  std::vector<uint32_t> nodes;
  if (items(which) == 0) return nodes;
  if (question_.among.empty()) {
    nodes.resize(topology_.num_nodes());
    std::iota(nodes.begin(), nodes.end(), 0U);
    return nodes;
  }
  NodeSet needed(topology_.num_nodes());
  for (const uint32_t node : nodes_) needed.Add(node);
  for (const uint32_t node : question_.among) needed.Add(node);
  needed.List(0, topology_.num_nodes(), &nodes);
  return nodes;
}

uint32_t Nearest::ChunksOf(EvalNodes which, uint32_t planned) const {
  return std::max(planned, PairChunks(GroupsOf(items(which))));
}

uint64_t Nearest::num_candidates() const {
  return question_.among.empty() ? topology_.num_nodes() : question_.among.size();
}

Status Nearest::Run(const EvalTask& task, uint32_t chunks, const Rows& rows, const Alive& alive,
                    EvalResult* result) {
  *result = EvalResult{};
  const uint64_t groups = GroupsOf(items(task.run.nodes));
  const uint64_t last = groups * (task.chunk + 1) / chunks;
  for (uint64_t group = groups * task.chunk / chunks; group < last; ++group) {
    const uint64_t first = group * kLinkGroup;
    const auto sources =
        nodes_.subspan(first, std::min<uint64_t>(kLinkGroup, nodes_.size() - first));
    GNND_TRY(FindGroup(rows, alive, sources, first));
    result->rows += sources.size();
  }
  return Status::Ok();
}

Status Nearest::FindGroup(const Rows& rows, const Alive& alive, std::span<const uint32_t> sources,
                          uint64_t first) {
  memory_.Reset();
  sources_.Reset();
  const at::Tensor prepared =
      head_.Prepared({rows.head, &sources_}, GatheredRows<float>(rows.table, sources, &sources_));
  best_.assign(sources.size(), {});
  bars_.assign(sources.size(), -std::numeric_limits<float>::infinity());
  const uint64_t block = RankedBlock(sources.size() * head_.CostOfPair(dim_));
  std::vector<uint32_t> own;
  const uint64_t candidates = num_candidates();
  for (uint64_t from = 0; from < candidates; from += block) {
    if (!alive()) return EvaluationAborted();
    memory_.Reset();
    const uint64_t count = std::min(block, candidates - from);
    std::span<const uint32_t> nodes;
    if (question_.among.empty()) {
      own.resize(count);
      std::iota(own.begin(), own.end(), static_cast<uint32_t>(from));
      nodes = own;
    } else {
      nodes = question_.among.subspan(from, count);
    }
    const at::Tensor scores = Scores(rows, prepared, nodes);
    GNND_TRY(Take(scores.const_data_ptr<float>(), nodes, sources));
  }
  return Write(first);
}

at::Tensor Nearest::Scores(const Rows& rows, const at::Tensor& prepared,
                           std::span<const uint32_t> nodes) {
  const HeadContext context{rows.head, &memory_};
  if (!question_.among.empty()) {
    return head_.RankedBy(context, prepared, GatheredRows<float>(rows.table, nodes, &memory_));
  }
  // All nodes' rows lie one after the other.
  const float* const at = rows.table.values<float>().data() + nodes.front() * dim_;
  return head_.RankedBy(context, prepared,
                        ViewOf(const_cast<float*>(at), static_cast<int64_t>(nodes.size()),
                               static_cast<int64_t>(dim_)));
}

// Takes those of a block's nodes that are among the best of each source.
Status Nearest::Take(const float* scores, std::span<const uint32_t> nodes,
                     std::span<const uint32_t> sources) {
  const auto width = static_cast<uint32_t>(sources.size());
  places_.clear();
  marks_.assign(nodes.size() * width, 0);
  if (!question_.with_known) known_.Mark(sources, nodes, &marks_, &places_);
  for (uint32_t s = 0; s < width; ++s) {
    const auto self = std::ranges::lower_bound(nodes, sources[s]);
    if (self == nodes.end() || *self != sources[s]) continue;
    marks_[static_cast<uint64_t>(self - nodes.begin()) * width + s] = 1;
  }
  std::atomic<bool> is_finite = true;
  ParallelRows(width, kGrainNodes, [&](uint32_t begin, uint32_t end) {
    bool finite = true;
    for (uint64_t n = 0; n < nodes.size(); ++n) {
      const float* const row = scores + n * width;
      uint32_t above = 0;
      uint32_t usual = 0;
      for (uint32_t i = begin; i < end; ++i) {
        above += row[i] > bars_[i] ? 1U : 0U;
        usual += std::abs(row[i]) <= std::numeric_limits<float>::max() ? 1U : 0U;
      }
      finite = finite && usual == end - begin;
      if (above > 0) TakeRow(row, marks_.data() + n * width, nodes[n], begin, end);
    }
    if (!finite) is_finite.store(false, std::memory_order_relaxed);
  });
  if (is_finite.load(std::memory_order_relaxed)) return Status::Ok();
  return Status(Code::kNumericDivergence, "a score of a pair is not finite");
}

// Nodes come in ascending order, so that one with an equal score is never better.
void Nearest::TakeRow(const float* scores, const uint8_t* marks, uint32_t node, uint32_t begin,
                      uint32_t end) {
  for (uint32_t i = begin; i < end; ++i) {
    if (!(scores[i] > bars_[i]) || marks[i] != 0) continue;
    Best& best = best_[i];
    if (best.size() == question_.k) {
      std::pop_heap(best.begin(), best.end());
      best.pop_back();
    }
    best.push_back({scores[i], node});
    std::push_heap(best.begin(), best.end());
    if (best.size() == question_.k) bars_[i] = best.front().score;
  }
}

Status Nearest::Write(uint64_t first) {
  std::vector<int64_t> found;
  std::vector<float> scores;
  for (Best& best : best_) {
    std::sort(best.begin(), best.end());
    for (const Found& one : best) {
      found.push_back(one.node);
      scores.push_back(one.score);
    }
    const uint64_t missing = question_.k - best.size();
    found.insert(found.end(), missing, -1);
    scores.insert(scores.end(), missing, std::numeric_limits<float>::quiet_NaN());
  }
  GNND_TRY(files_->WriteRows(0, first, std::as_bytes(std::span(found))));
  return files_->WriteRows(1, first, std::as_bytes(std::span(scores)));
}

}  // namespace gnnd
