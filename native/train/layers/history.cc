#include "train/layers/history.h"

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "core/base/check.h"
#include "core/base/clock.h"
#include "core/base/contain.h"
#include "core/prepare/job_memory.h"
#include "train/ops/parallel.h"

namespace gnnd {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr uint32_t kGrainRows = 256;

// Most rows per level that the similarity metric looks at, and compares: few enough to be free.
constexpr uint32_t kMostLookedAt = 256;
constexpr uint64_t kMostCompared = 64;

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

template <typename T>
double CosineOf(const T* left, const T* right, uint32_t columns) {
  float dot[8] = {};
  ForLanes(columns, [&](uint32_t c, uint32_t lane) {
    dot[lane] += static_cast<float>(left[c]) * static_cast<float>(right[c]);
  });
  const double lengths = double{NormOf(left, columns)} * NormOf(right, columns);
  return lengths == 0 ? 0 : Total(dot) / lengths;
}

JobHistory HistoryOf(const HistoryUse& use, const RowTable& features) {
  if (use.shared == nullptr) {
    const bool has_features = use.config.cache_rows > 0;
    const uint64_t bytes = JobHistory::BytesOf(use.config, 1) + kHugePageBytes;
    return JobHistory(use.config, has_features ? AddressesNear(features, bytes) : 0);
  }
  return JobHistory(use.config, use.group, use.shared);
}

uint64_t RowBytes(const at::Tensor& rows) {
  return static_cast<uint64_t>(rows.size(1)) * rows.element_size();
}

// A copy in device memory; the original must stay until the stream has run.
template <typename T>
const T* CopiedIn(TrainStream* stream, const std::vector<T>& values, Workspace* workspace) {
  if (values.empty()) return nullptr;
  T* const to = workspace->Get<T>(values.size());
  stream->CopyIn(to, values.data(), values.size() * sizeof(T));
  return to;
}

// Copies by way of the workspace: a device's copies do not know memory that torch allocated.
void CopyOut(TrainStream* stream, const at::Tensor& rows, Workspace* workspace,
             std::vector<std::byte>* to) {
  at::Tensor copy = EmptyIn(workspace, rows, rows.size(0), rows.size(1));
  copy.copy_(rows);
  to->resize(static_cast<uint64_t>(rows.size(0)) * RowBytes(rows));
  stream->CopyOut(to->data(), copy.const_data_ptr(), to->size());
}

}  // namespace

Status CheckHistory(const HistoryUse& use, const ModelSpec& spec, Precision precision,
                    uint64_t num_nodes) {
  const HistoryConfig& config = use.config;
  if (config.bytes == 0) return Status::Ok();
  if (KindOf(spec.type).input != ModelInput::kBlocks) {
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
  if (use.shared != nullptr && config.cache_rows > 0 && use.file.fd < 0) {
    return Invalid("history: cached rows in shared memory that is of no file");
  }
  if (use.p_grad >= 0 && use.p_grad <= 1) return Status::Ok();
  return Invalid("history.p_grad: must be in [0, 1], is " + std::to_string(use.p_grad));
}

// Autograd function from {computed rows, the history's level} to all rows of the level.
class MergeFunction : public torch::autograd::Function<MergeFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& computed,
                            TrainerHistory* history, uint32_t level, Workspace* workspace) {
    context->saved_data["history"] = reinterpret_cast<int64_t>(history);
    context->saved_data["level"] = static_cast<int64_t>(level);
    context->saved_data["workspace"] = reinterpret_cast<int64_t>(workspace);
    return history->stream_ == nullptr ? history->MergeOnHost(level, computed, workspace)
                                       : history->MergeOnDevice(level, computed, workspace);
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    auto* history = reinterpret_cast<TrainerHistory*>(context->saved_data["history"].toInt());
    auto* workspace = reinterpret_cast<Workspace*>(context->saved_data["workspace"].toInt());
    const auto level = static_cast<uint32_t>(context->saved_data["level"].toInt());
    const at::Tensor grad = grads[0].contiguous();
    const at::Tensor to = history->stream_ == nullptr
                              ? history->SplitOnHost(level, grad, workspace)
                              : history->SplitOnDevice(level, grad, workspace);
    return {to, at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

at::Tensor TrainerHistory::MergeOnHost(uint32_t level, const at::Tensor& computed,
                                       Workspace* workspace) const {
  const LevelRows& rows = pruner_.rows(level);
  const Level& mine = levels_[level];
  const auto count = static_cast<uint32_t>(rows.places.size());
  at::Tensor out = EmptyIn(workspace, computed, count, computed.size(1));
  const uint64_t bytes = RowBytes(computed);
  const auto* from = static_cast<const std::byte*>(computed.const_data_ptr());
  auto* to = static_cast<std::byte*>(out.data_ptr());
  const HistoryBuffer& buffer = history_.buffer();
  ParallelRows(count, kGrainRows, [&](uint32_t begin, uint32_t end) {
    for (uint32_t i = begin; i < end; ++i) {
      const std::byte* row = mine.is_stored[i] != 0 ? buffer.embedding(rows.places[i]).data()
                                                    : from + mine.row[i] * bytes;
      std::memcpy(to + i * bytes, row, bytes);
    }
  });
  return out;
}

// Returns the gradients of computed rows, and notes the norms of all rows' gradients.
at::Tensor TrainerHistory::SplitOnHost(uint32_t level, const at::Tensor& grad,
                                       Workspace* workspace) {
  Level& mine = levels_[level];
  const auto columns = static_cast<uint32_t>(grad.size(1));
  at::Tensor to = EmptyIn(workspace, grad, rows(level).computed, columns);
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
  return to;
}

at::Tensor TrainerHistory::MergeOnDevice(uint32_t level, const at::Tensor& computed,
                                         Workspace* workspace) {
  const LevelRows& rows = pruner_.rows(level);
  Level& mine = levels_[level];
  const uint64_t bytes = RowBytes(computed);
  mine.computed_at.clear();
  mine.stored_at.clear();
  mine.stored_rows.resize(rows.stored * bytes);
  for (uint32_t i = 0; i < rows.places.size(); ++i) {
    if (mine.is_stored[i] == 0) {
      mine.computed_at.push_back(i);
      continue;
    }
    std::memcpy(mine.stored_rows.data() + mine.stored_at.size() * bytes,
                history_.buffer().embedding(rows.places[i]).data(), bytes);
    mine.stored_at.push_back(i);
  }
  at::Tensor out =
      EmptyIn(workspace, computed, static_cast<int64_t>(rows.places.size()), computed.size(1));
  const auto put = [&](const std::vector<uint32_t>& at, const void* from) {
    if (at.empty()) return;
    gnnd_device_scatter scatter{};
    scatter.positions = CopiedIn(stream_, at, workspace);
    scatter.count = at.size();
    scatter.rows = from;
    scatter.row_bytes = static_cast<uint32_t>(bytes);
    scatter.out = out.data_ptr();
    scatter.out_stride = bytes;
    stream_->Launch(stream_->table().scatter, scatter);
  };
  put(mine.computed_at, computed.const_data_ptr());
  put(mine.stored_at, CopiedIn(stream_, mine.stored_rows, workspace));
  CopyOut(stream_, computed, workspace, &mine.computed_rows);
  return out;
}

at::Tensor TrainerHistory::SplitOnDevice(uint32_t level, const at::Tensor& grad,
                                         Workspace* workspace) {
  Level& mine = levels_[level];
  at::Tensor to =
      EmptyIn(workspace, grad, static_cast<int64_t>(mine.computed_at.size()), grad.size(1));
  if (!mine.computed_at.empty()) {
    gnnd_device_gather gather{};
    gather.nodes = CopiedIn(stream_, mine.computed_at, workspace);
    gather.count = mine.computed_at.size();
    gather.row_bytes = static_cast<uint32_t>(RowBytes(grad));
    gather.tiers.by_node = grad.const_data_ptr();
    gather.out = to.data_ptr();
    gather.out_stride = gather.row_bytes;
    stream_->Launch(stream_->table().gather, gather);
  }
  CopyOut(stream_, grad, workspace, &mine.grad_rows);
  return to;
}

// Notes the norms of gradients that a device sends, after waiting for them.
void TrainerHistory::NoteNorms() {
  stream_->Synchronize();
  for (uint32_t level = 1; level < kMaxHops; ++level) {
    Level& mine = levels_[level];
    if (mine.grad_rows.empty()) continue;
    const auto columns = static_cast<uint32_t>(mine.computed.size(1));
    mine.norms.resize(mine.row.size());
    InRowTypeOf(mine.computed, [&]<typename T>(T) {
      const T* grad = reinterpret_cast<const T*>(mine.grad_rows.data());
      ParallelRows(static_cast<uint32_t>(mine.row.size()), kGrainRows,
                   [&](uint32_t begin, uint32_t end) {
                     for (uint32_t i = begin; i < end; ++i) {
                       mine.norms[i] = NormOf(grad + uint64_t{i} * columns, columns);
                     }
                   });
    });
  }
}

const std::byte* TrainerHistory::ComputedRows(const Level& level) const {
  if (stream_ != nullptr) return level.computed_rows.data();
  return static_cast<const std::byte*>(level.computed.const_data_ptr());
}

TrainerHistory::TrainerHistory(const HistoryUse& use, const RowTable& features, TrainStream* stream)
    : use_(use), stream_(stream), history_(HistoryOf(use, features)), pruner_(use.levels) {}

Result<std::unique_ptr<BatchHistory>> BatchHistory::Of(const HistoryUse& use,
                                                       const RowTable& features,
                                                       TrainStream* stream) {
  if (use.config.bytes == 0) return std::make_unique<BatchHistory>();
  std::unique_ptr<BatchHistory> history;
  GNND_TRY(Contained([&] {
    history.reset(new TrainerHistory(use, features, stream));
    return Status::Ok();
  }));
  return history;
}

Result<FeatureStore> TrainerHistory::MakeStore(FeatureStore::Options options) {
  if (use_.config.cache_rows > 0) {
    const HistoryFile file = use_.shared == nullptr ? HistoryFile() : use_.file;
    cache_ = GNND_VALUE(
        HistoryCache::Create(use_.config, file, options.features, options.order, &history_));
    options.cache_rows = use_.config.cache_rows;
    options.lent = cache_.rows();
  }
  FeatureStore store = GNND_VALUE(FeatureStore::Create(options));
  SetBorder(&store);
  return store;
}

void TrainerHistory::SetBorder(FeatureStore* store) const {
  if (use_.config.cache_rows > 0) store->set_border(history_.features());
}

Status TrainerHistory::BringTo(const BatchPoint& point, FeatureStore* store) {
  const uint64_t start_ns = MonotonicNs();
  point_ = point;
  if (history_.is_private()) {
    history_.BringUp();
  } else {
    GNND_TRY(history_.BringTo(point.version, point.batches_before));
  }
  SetBorder(store);
  bring_ns_ = MonotonicNs() - start_ns;
  return Status::Ok();
}

const Sample& TrainerHistory::Prune(const Sample& sample, HistoryReport* report) {
  const uint64_t start_ns = MonotonicNs();
  num_seeds_ = sample.num_seeds();
  const Sample& pruned = pruner_.Prune(sample, history_.buffer(), point_.version);
  for (uint32_t level = 1; level < sample.num_hops(); ++level) {
    Level& mine = levels_[level];
    mine.computed = at::Tensor();
    mine.norms.clear();
    mine.grad_rows.clear();
    const LevelRows& rows = pruner_.rows(level);
    const auto count = static_cast<uint32_t>(rows.places.size());
    mine.row.resize(count);
    mine.is_stored.resize(count);
    report->look_ups += keeps(level) ? count - num_seeds_ : 0;
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
  return MergeFunction::apply(computed, this, level, workspace);
}

at::ScalarType TrainerHistory::RowType(uint32_t columns) const {
  return use_.config.row_bytes == columns * 2 ? at::kBFloat16 : at::kFloat;
}

// Measures how far rows have moved since they were stored: rows that were computed although they
// are stored (seeds' or stale ones), with other neighbours drawn. Runs before the batch's update.
void TrainerHistory::Compare(uint32_t level, HistoryUpdate* update) const {
  const Level& mine = levels_[level];
  const LevelRows& rows = pruner_.rows(level);
  const HistoryBuffer& buffer = history_.buffer();
  const auto columns = static_cast<uint32_t>(mine.computed.size(1));
  const auto count = static_cast<uint32_t>(rows.nodes.size());
  const uint32_t stride = 1 + count / kMostLookedAt;
  uint64_t compared = 0;
  InRowTypeOf(mine.computed, [&]<typename T>(T) {
    const T* data = reinterpret_cast<const T*>(ComputedRows(mine));
    for (uint32_t i = 0; i < count && compared < kMostCompared; i += stride) {
      if (mine.is_stored[i] != 0) continue;
      const auto held = buffer.Held(pruner_.index_of(level), rows.nodes[i]);
      if (!held) continue;
      const auto* stored = reinterpret_cast<const T*>(buffer.embedding(*held).data());
      const double cosine = CosineOf(data + uint64_t{mine.row[i]} * columns, stored, columns);
      ++compared;
      update->similar += cosine >= kSimilarCosine ? 1 : 0;
      update->cosine_millionths += static_cast<uint64_t>(std::max(0.0, cosine) * 1e6);
      update->lag += buffer.AgeOf(*held, point_.version);
    }
  });
  update->compared += compared;
}

// Judges the rows that are not seeds'; seeds' rows are never kept, and stored ones are evicted.
HistoryVerdict TrainerHistory::Judge(uint32_t level) const {
  const Level& mine = levels_[level];
  HistoryVerdict verdict =
      JudgeByGradient(std::span(mine.norms).subspan(num_seeds_),
                      std::span(mine.is_stored).subspan(num_seeds_), use_.p_grad);
  for (uint32_t& row : verdict.admitted) row += num_seeds_;
  for (uint32_t& row : verdict.evicted) row += num_seeds_;
  const LevelRows& rows = pruner_.rows(level);
  const uint32_t index = pruner_.index_of(level);
  std::vector<uint32_t> places(num_seeds_);
  history_.buffer().FindAll(index, rows.nodes.first(num_seeds_), point_.version, places);
  for (uint32_t row = 0; row < num_seeds_; ++row) {
    if (places[row] != kNoEmbedding) verdict.evicted.push_back(row);
  }
  return verdict;
}

HistoryUpdate TrainerHistory::Update() {
  const uint64_t start_ns = MonotonicNs();
  HistoryNote note;
  HistoryUpdate update;
  if (stream_ != nullptr) NoteNorms();
  for (uint32_t level = 1; level < kMaxHops; ++level) {
    const Level& mine = levels_[level];
    if (!keeps(level) || mine.norms.empty()) continue;
    const uint32_t index = pruner_.index_of(level);
    const LevelRows& rows = pruner_.rows(level);
    Compare(level, &update);
    const HistoryVerdict verdict = Judge(level);
    for (const uint32_t row : verdict.evicted) note.evicted.push_back({index, rows.nodes[row]});
    const std::byte* data = ComputedRows(mine);
    for (const uint32_t row : verdict.admitted) {
      note.admitted.push_back({index, rows.nodes[row]});
      note.rows.push_back(data + uint64_t{mine.row[row]} * use_.config.row_bytes);
    }
  }
  const bool is_early = point_.version < use_.config.start_version;
  if (is_early) note = HistoryNote();
  history_.Write(point_.version, history_.is_private() ? 0 : point_.place, note);
  update.admitted = note.admitted.size();
  update.evicted = note.evicted.size();
  update.rows = history_.buffer().embedding_places();
  update.overwritten = history_.buffer().overwritten();
  update.ns = bring_ns_ + MonotonicNs() - start_ns;
  return update;
}

}  // namespace gnnd
