#include "train/history.h"

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "core/base/check.h"
#include "core/base/clock.h"
#include "train/parallel.h"

namespace gnnd {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr uint32_t kGrainRows = 256;

Status Invalid(const std::string& what) { return Status(Code::kInvalidArgument, what); }

template <typename T>
float NormOf(const T* row, uint32_t columns) {
  float sum[8] = {};
  ForLanes(columns, [&](uint32_t c, uint32_t lane) {
    const auto value = static_cast<float>(row[c]);
    sum[lane] += value * value;
  });
  return std::sqrt(Total(sum));
}

JobHistory HistoryOf(const HistoryUse& use) {
  if (use.shared == nullptr) return JobHistory(use.config);
  return JobHistory(use.config, use.group, use.shared);
}

uint64_t RowBytes(const at::Tensor& rows) {
  return static_cast<uint64_t>(rows.size(1)) * rows.element_size();
}

}  // namespace

uint32_t HistoryRowBytes(const ModelSpec& spec, Precision precision) {
  // As FinishLayer gives them.
  const bool is_plain =
      NormalizationOf(spec) == Normalization::kNone && spec.activation == Activation::kRelu;
  const bool is_narrow = precision == Precision::kBfloat16 && is_plain && !IsAttention(spec.type);
  return spec.hidden_dim * (is_narrow ? 2 : 4);
}

Status CheckHistory(const HistoryUse& use, const ModelSpec& spec, Precision precision,
                    uint64_t num_nodes) {
  const HistoryConfig& config = use.config;
  if (config.bytes == 0) return Status::Ok();
  if (spec.type == ModelType::kScript || TakesRows(spec.type)) {
    return Invalid("history: the model has no layers whose rows could be kept");
  }
  const uint32_t inner = (1U << spec.num_layers) - 2;
  if (use.levels == 0 || (use.levels & ~inner) != 0) {
    return Invalid("history.levels: must be inner levels of " + std::to_string(spec.num_layers) +
                   " layers");
  }
  if (config.levels != static_cast<uint32_t>(__builtin_popcount(use.levels)) ||
      config.row_bytes != HistoryRowBytes(spec, precision) || config.num_nodes != num_nodes) {
    return Invalid("history: its memory is another model's or graph's");
  }
  if (use.p_grad >= 0 && use.p_grad <= 1) return Status::Ok();
  return Invalid("history.p_grad: must be in [0, 1], is " + std::to_string(use.p_grad));
}

// {computed rows, the history's level} -> rows.
class MergeFunction : public torch::autograd::Function<MergeFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& computed,
                            TrainerHistory* history, uint32_t level, Workspace* workspace) {
    context->saved_data["history"] = reinterpret_cast<int64_t>(history);
    context->saved_data["level"] = static_cast<int64_t>(level);
    context->saved_data["workspace"] = reinterpret_cast<int64_t>(workspace);
    const LevelRows& rows = history->rows(level);
    const TrainerHistory::Level& mine = history->levels_[level];
    const auto count = static_cast<uint32_t>(rows.places.size());
    at::Tensor out = EmptyIn(workspace, computed, count, computed.size(1));
    const uint64_t bytes = RowBytes(computed);
    const auto* from = static_cast<const std::byte*>(computed.const_data_ptr());
    auto* to = static_cast<std::byte*>(out.data_ptr());
    const HistoryBuffer& buffer = history->history_.buffer();
    ParallelRows(count, kGrainRows, [&](uint32_t begin, uint32_t end) {
      for (uint32_t i = begin; i < end; ++i) {
        const std::byte* row = mine.is_stored[i] != 0 ? buffer.embedding(rows.places[i]).data()
                                                      : from + mine.row[i] * bytes;
        std::memcpy(to + i * bytes, row, bytes);
      }
    });
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    auto* history = reinterpret_cast<TrainerHistory*>(context->saved_data["history"].toInt());
    auto* workspace = reinterpret_cast<Workspace*>(context->saved_data["workspace"].toInt());
    const auto level = static_cast<uint32_t>(context->saved_data["level"].toInt());
    TrainerHistory::Level& mine = history->levels_[level];
    const at::Tensor grad = grads[0].contiguous();
    const auto columns = static_cast<uint32_t>(grad.size(1));
    at::Tensor to = EmptyIn(workspace, grad, history->rows(level).computed, columns);
    mine.norms.resize(mine.row.size());
    InRowTypeOf(grad, [&]<typename T>(T) {
      const T* from = static_cast<const T*>(grad.const_data_ptr());
      T* out = static_cast<T*>(to.data_ptr());
      ParallelRows(static_cast<uint32_t>(mine.row.size()), kGrainRows,
                   [&](uint32_t begin, uint32_t end) {
                     for (uint32_t i = begin; i < end; ++i) {
                       const T* row = from + uint64_t{i} * columns;
                       mine.norms[i] = NormOf(row, columns);
                       if (mine.is_stored[i] != 0) continue;
                       std::copy_n(row, columns, out + uint64_t{mine.row[i]} * columns);
                     }
                   });
    });
    return {to, at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

TrainerHistory::TrainerHistory(const HistoryUse& use)
    : use_(use), history_(HistoryOf(use)), pruner_(use.levels) {}

Status TrainerHistory::BringTo(const BatchPoint& point) {
  const uint64_t start_ns = MonotonicNs();
  point_ = point;
  if (history_.is_private()) {
    history_.BringUp();
  } else {
    GNND_TRY(history_.BringTo(point.version, point.batches_before));
  }
  bring_ns_ = MonotonicNs() - start_ns;
  return Status::Ok();
}

const Sample& TrainerHistory::Prune(const Sample& sample, HistoryReport* report) {
  const uint64_t start_ns = MonotonicNs();
  const Sample& pruned = pruner_.Prune(sample, history_.buffer(), point_.version);
  for (uint32_t level = 1; level < sample.num_hops(); ++level) {
    Level& mine = levels_[level];
    mine.computed = at::Tensor();
    mine.norms.clear();
    const LevelRows& rows = pruner_.rows(level);
    const auto count = static_cast<uint32_t>(rows.places.size());
    mine.row.resize(count);
    mine.is_stored.resize(count);
    report->look_ups += count;
    report->level_hits[level - 1] += keeps(level) ? rows.stored : 0;
    uint32_t computed = 0;
    for (uint32_t i = 0; i < count; ++i) {
      const bool is_stored = rows.places[i] != kNoEmbedding;
      mine.is_stored[i] = is_stored ? 1 : 0;
      mine.row[i] = is_stored ? 0 : computed++;
      if (!is_stored) continue;
      const uint64_t age = history_.buffer().AgeOf(rows.places[i], point_.version);
      const uint64_t most = std::max<uint64_t>(1, use_.config.t_stale);
      ++report->ages[std::min<uint64_t>(kHistoryBuckets - 1, (age - 1) * kHistoryBuckets / most)];
    }
  }
  report->pruned_rows = sample.nodes().size() - pruned.nodes().size();
  report->prune_ns = MonotonicNs() - start_ns;
  return pruned;
}

at::Tensor TrainerHistory::Merge(uint32_t level, const at::Tensor& computed, Workspace* workspace) {
  GNND_CHECK(RowBytes(computed) == use_.config.row_bytes);
  levels_[level].computed = computed.detach();
  // Where nothing was computed no parameter has a gradient, but the norms are wanted.
  const at::Tensor source =
      computed.requires_grad() ? computed : computed.detach().requires_grad_(true);
  return MergeFunction::apply(source, this, level, workspace);
}

uint32_t TrainerHistory::StoredLevel(uint32_t num_layers) const {
  for (uint32_t level = num_layers - 1; level > 0; --level) {
    if (keeps(level) && rows(level).computed == 0) return level;
  }
  return 0;
}

at::Tensor TrainerHistory::NoRows(uint32_t columns) const {
  const at::ScalarType type = use_.config.row_bytes == columns * 2 ? at::kBFloat16 : at::kFloat;
  return at::empty({0, static_cast<int64_t>(columns)}, type);
}

HistoryUpdate TrainerHistory::Update() {
  const uint64_t start_ns = MonotonicNs();
  HistoryNote note;
  for (uint32_t level = 1; level < kMaxHops; ++level) {
    const Level& mine = levels_[level];
    if (!keeps(level) || mine.norms.empty()) continue;
    const uint32_t index = pruner_.index_of(level);
    const LevelRows& rows = pruner_.rows(level);
    const HistoryVerdict verdict = JudgeByGradient(mine.norms, mine.is_stored, use_.p_grad);
    for (const uint32_t row : verdict.evicted) note.evicted.push_back({index, rows.nodes[row]});
    const auto* data = static_cast<const std::byte*>(mine.computed.const_data_ptr());
    for (const uint32_t row : verdict.admitted) {
      note.admitted.push_back({index, rows.nodes[row]});
      note.rows.push_back(data + uint64_t{mine.row[row]} * use_.config.row_bytes);
    }
  }
  const bool is_early = point_.version < use_.config.start_version;
  if (is_early) note = HistoryNote();
  history_.Write(point_.version, history_.is_private() ? 0 : point_.place, note);
  HistoryUpdate update;
  update.admitted = note.admitted.size();
  update.evicted = note.evicted.size();
  update.rows = history_.buffer().embedding_places();
  update.overwritten = history_.buffer().overwritten();
  update.ns = bring_ns_ + MonotonicNs() - start_ns;
  return update;
}

}  // namespace gnnd
