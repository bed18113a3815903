#include "train/input/row_batch.h"

#include <algorithm>
#include <utility>

#include "core/base/prefetch.h"
#include "core/item/item_range.h"
#include "train/ops/ops.h"
#include "train/ops/parallel.h"

namespace gnnd {
namespace {

constexpr uint32_t kGrainRows = 16;
constexpr uint32_t kGrainDraws = 128;  // places in an epoch's order
constexpr uint64_t kMostStride = 64;   // of Trainers that take turns

// to[i] = from[rows[i]] for begin <= i < end; lines are asked for ahead, one for each element.
void Take(std::span<const uint32_t> from, std::span<const uint32_t> rows, uint32_t begin,
          uint32_t end, std::vector<uint32_t>* to) {
  constexpr uint32_t kAhead = 64;
  const PrefetchLevel level = BestPrefetchLevel();
  for (uint32_t i = begin; i < end; ++i) {
    if (i + kAhead < end) Prefetch(level, &from[rows[i + kAhead]]);
    (*to)[i] = from[rows[i]];
  }
}

bool Draws(const ModelSpec& model) {
  return model.dropout > 0 || model.input_dropout > 0 || model.attention_dropout > 0;
}

}  // namespace

void RowBuffer::Begin(const BatchKey& of, std::span<const RowRun> its_runs) {
  key = of;
  runs.assign(its_runs.begin(), its_runs.end());
  size_t count = 0;
  for (const RowRun& run : runs) count += run.count;
  rows.resize(count);
  size_t at = 0;
  for (const RowRun& run : runs) {
    for (uint32_t i = 0; i < run.count; ++i) rows[at++] = run.first + i;
  }
}

void RowBatchOrder::RunsOf(const BatchKey& key, std::vector<RowRun>* runs) {
  const auto train = static_cast<uint32_t>(options_.train);
  const ItemRange range = ItemRange::OfBatch(key.batch, options_.batch_size, train);
  runs->clear();
  if (options_.chunk == 1) {
    // The same order, many positions at a time.
    permuted_.resize(range.size());
    const ItemOrder order{options_.random_seed, key.epoch, train};
    ParallelRows(range.size(), kGrainDraws, [&](uint32_t from, uint32_t to) {
      order.Write({range.begin + from, range.begin + to}, permuted_.data() + from);
    });
    runs->resize(permuted_.size());
    for (size_t i = 0; i < permuted_.size(); ++i) (*runs)[i] = {permuted_[i], 1};
    return;
  }
  const RowOrder order =
      RowOrderOf(gnnd::KeyOf(options_.random_seed), key.epoch, train, options_.chunk);
  for (uint32_t at = range.begin; at < range.end; at += runs->back().count) {
    runs->push_back(RowRunAt(order, at, range.end));
  }
}

NextRuns RowBatchOrder::After(const BatchKey& key) {
  const uint64_t batches = BatchesPerEpoch();
  const uint64_t place = key.epoch * batches + key.batch;
  if (place > last_place_) stride_ = std::min(place - last_place_, kMostStride);
  last_place_ = place;
  return [this, batches, place](uint32_t ahead, std::vector<RowRun>* runs) {
    const uint64_t next = place + ahead * stride_;
    RunsOf(KeyOf(static_cast<uint32_t>(next / batches), static_cast<uint32_t>(next % batches)),
           runs);
  };
}

RowBatchReader::RowBatchReader(const RowInput& input)
    : input_(input), draws_(Draws(input.options.model)) {}

Status RowBatchReader::Read(RowBuffer* buffer, const NextRuns& next) const {
  Begin(buffer);
  GNND_TRY(input_.files.tokens->Stage(buffer->runs, next));
  CopyStaged(buffer, 0, buffer->rows.size());
  return Status::Ok();
}

Status RowBatchReader::ReadInStretches(RowBuffer* buffer) const {
  Begin(buffer);
  const RowRun all = buffer->runs[0];
  const auto most = static_cast<uint32_t>(StretchRows(input_.options));
  const auto stretch_at = [&](uint32_t begin, std::vector<RowRun>* runs) {
    if (begin < all.count) runs->assign(1, {all.first + begin, std::min(most, all.count - begin)});
  };
  std::vector<RowRun> stretch;
  for (uint32_t begin = 0; begin < all.count; begin += most) {
    stretch_at(begin, &stretch);
    GNND_TRY(input_.files.tokens->Stage(stretch, [&](uint32_t ahead, std::vector<RowRun>* runs) {
      stretch_at(begin + ahead * most, runs);
    }));
    CopyStaged(buffer, begin, stretch[0].count);
  }
  return Status::Ok();
}

void RowBatchReader::ReadTargets(RowBuffer* buffer) const {
  const RowFiles& files = input_.files;
  buffer->nodes.resize(buffer->rows.size());
  const bool classifies = !files.targets.labels.empty();
  const bool learns_nodes = !input_.options.model.head;
  if (learns_nodes && !classifies) files.targets.Read(buffer->rows, &buffer->targets);
  buffer->targets.labels.resize(classifies ? buffer->rows.size() : 0);
  const auto count = static_cast<uint32_t>(buffer->rows.size());
  ParallelRows(count, kGrainDraws, [&](uint32_t begin, uint32_t end) {
    // Nobody else wants to know the nodes.
    if (draws_) Take(files.nodes.values<uint32_t>(), buffer->rows, begin, end, &buffer->nodes);
    if (!classifies) return;
    const std::span<const uint32_t> labels = files.labels.values<uint32_t>();
    Take(labels, buffer->rows, begin, end, &buffer->targets.labels);
  });
}

void RowBatchReader::Begin(RowBuffer* buffer) const {
  ReadTargets(buffer);
  buffer->memory.Reset();
  buffer->tokens.clear();
  const uint64_t columns = input_.options.model.in_dim;
  for (uint32_t token = 0; token < num_tokens(); ++token) {
    float* const out = buffer->memory.Get<float>(buffer->rows.size() * columns);
    buffer->tokens.push_back(
        ViewOf(out, static_cast<int64_t>(buffer->rows.size()), static_cast<int64_t>(columns)));
  }
}

// Copies staged rows to rows [at, at + count) of the buffer, widened to float32.
void RowBatchReader::CopyStaged(RowBuffer* buffer, uint64_t at, uint64_t count) const {
  const uint64_t columns = input_.options.model.in_dim;
  ParallelRows(static_cast<uint32_t>(count), kGrainRows, [&](uint32_t begin, uint32_t end) {
    for (uint32_t token = 0; token < num_tokens(); ++token) {
      float* const out = buffer->tokens[token].data_ptr<float>() + at * columns;
      input_.files.tokens->Copy(token, begin, end, out + begin * columns);
    }
  });
}

}  // namespace gnnd
