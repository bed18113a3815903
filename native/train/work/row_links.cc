#include <algorithm>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/executor/eval_scratch.h"
#include "core/model/row_manifest.h"
#include "core/sample/link_seeds.h"
#include "train/evaluate/eval_input.h"
#include "train/evaluate/row_results.h"
#include "train/input/link_use.h"
#include "train/ops/ops.h"
#include "train/ops/parallel.h"
#include "train/work/compute_side.h"
#include "train/work/pair_task.h"
#include "train/work/row_evaluation.h"
#include "train/work/row_training.h"

// Links over rows of propagated features: pairs of rows, for which nothing is sampled.

namespace gnnd {
namespace {

// The pairs of a batch whose rows were read.
class KeptPairs {
 public:
  void Keep(const PairsView& pairs) {
    const auto copy = [](std::span<const uint32_t> from, std::vector<uint32_t>* to) {
      to->assign(from.begin(), from.end());
    };
    copy(pairs.source, &source_);
    copy(pairs.destination, &destination_);
    copy(pairs.negatives, &negatives_);
    copy(pairs.items, &items_);
    copy(pairs.masked, &masked_);
    per_pair_ = pairs.per_pair;
    in_batch_ = pairs.in_batch;
  }
  PairsView view() const {
    return {source_, destination_, negatives_, items_, masked_, per_pair_, in_batch_};
  }

 private:
  std::vector<uint32_t> source_;
  std::vector<uint32_t> destination_;
  std::vector<uint32_t> negatives_;
  std::vector<uint32_t> items_;
  std::vector<uint32_t> masked_;
  uint32_t per_pair_ = 0;
  bool in_batch_ = false;
};

LinkOptions WithoutSkips(LinkOptions options) {
  options.exclude = LinkExclusion::kNone;  // no edge is drawn
  return options;
}

class OnRowLinks final : public Training {
 public:
  OnRowLinks(const RowInput& input, const RowLinks& links, ComputeSide* side, RowBatches* batches)
      : input_(input),
        side_(*side),
        batches_(*batches),
        seeds_(WithoutSkips(links.batches), links.train, input.options.batch_size, links.topology),
        task_(TaskOfPairs(input.model, *links.use)) {}

  Status Extract(const Sample& sample, uint32_t number, ExtractReport* report) override {
    GNND_CHECK(sample.kind() == SampleKind::kRows);
    UseTeamOf(ExtractThreads(owner_, input_.options.threads));
    const BatchKey key{input_.options.random_seed, sample.key().epoch, sample.key().batch};
    GNND_TRY(seeds_.Make(key));
    const PairsView pairs = seeds_.batch().pairs;
    if (pairs.size() != sample.num_seeds()) {
      return Status(Code::kShmCorrupted, "the segment's batches are not those of the links");
    }
    pairs_[number].Keep(pairs);
    runs_.clear();
    for (const uint32_t node : seeds_.seeds()) runs_.push_back({node, 1});
    batches_.buffer(number).Begin(key, runs_);
    // Nobody knows the rows of a later batch before it is made.
    GNND_TRY(batches_.Bring(number, [](uint32_t, std::vector<RowRun>*) {}));
    report->work_bytes = side_.told_bytes();
    return batches_.Tell(number, report);
  }

  Status ComputeGradient(const Sample& sample, uint32_t number, const ParametersView& parameters,
                         std::span<float> gradient, BatchReport* report) override {
    const PairsView pairs = pairs_[number].view();
    Workspace* const memory = &side_.memory();
    const auto outputs_of = [&](std::span<const at::Tensor> leaves, const at::Tensor& rows) {
      const at::Tensor outputs = task_->Outputs({pairs, leaves, rows}, memory).contiguous();
      const auto loss = [&, outputs](const at::Tensor& grad, BatchReport* told) {
        return task_->Loss(pairs, {outputs, grad, memory}, told);
      };
      return BatchOutputs{outputs, loss};
    };
    const RowStep step{input_, side_, batches_, sample, number, pairs.size()};
    return WriteRowGradient(step, parameters, outputs_of, gradient, report);
  }

 private:
  const RowInput& input_;
  ComputeSide& side_;
  RowBatches& batches_;
  LinkSeeds seeds_;  // of the thread that extracts
  std::unique_ptr<PairTask> task_;
  KeptPairs pairs_[kExtractBuffers];
  const std::thread::id owner_ = std::this_thread::get_id();  // computes
  std::vector<RowRun> runs_;
};

class Pairs final : public Evaluation {
 public:
  Pairs(RowLogits* logits, PairPhase* pairs)
      : logits_(*logits), model_(logits->input().model), pairs_(*pairs) {}

  Result<EvalShape> Plan(EvalNodes nodes, const Alive&) override {
    GNND_TRY(OpenScratch());
    Planned& plan = plans_[static_cast<uint32_t>(nodes)];
    if (plan.shape.phases > 0) return plan.shape;
    plan.targets.nodes = pairs_.NodesOf(nodes);
    plan.targets.rows = plan.targets.nodes;
    const uint64_t rows = plan.targets.rows.size();
    if (rows == 0) return plan.shape;
    plan.chunks_of_rows = static_cast<uint32_t>((rows + kRowsOfChunk - 1) / kRowsOfChunk);
    plan.shape = {2, pairs_.ChunksOf(nodes, plan.chunks_of_rows), rows + pairs_.items(nodes)};
    GNND_CHECK(plan.shape.chunks >= plan.chunks_of_rows);
    return plan.shape;
  }

  Status RunChunk(const EvalTask& task, const ParametersView& parameters, const Alive& alive,
                  EvalResult* result) override {
    const Planned& plan = plans_[static_cast<uint32_t>(task.run.nodes)];
    GNND_CHECK(task.phase < plan.shape.phases);
    if (!alive()) return EvaluationAborted();
    if (task.phase == 0) {
      *result = EvalResult{};
      if (task.chunk >= plan.chunks_of_rows) return Status::Ok();
      const uint32_t last = logits_.last();
      const auto keep = [&](uint64_t first, const LayerRows& rows) {
        const auto nodes = std::span(plan.targets.nodes).subspan(first, rows.nodes.size());
        ScatterRows(rows.values.data(), nodes, Columns(), scratch_->at(0));
        result->rows = nodes.size();
        return Status::Ok();
      };
      return logits_.OfChunk(parameters, task.chunk, plan.targets, std::span(&last, 1), keep);
    }
    const auto host = ViewsOf(model_.manifest, parameters.floats, at::kCPU);
    const LayerParameters head = ParametersOf(model_, host, model_.spec.num_layers);
    const RowTable rows(std::span<const float>(scratch_->at(0), Floats()), Columns());
    return pairs_.Run(task, plan.shape.chunks, {rows, head}, alive, result);
  }

  void End() override {
    if (scratch_) scratch_->Clear(Bytes());
  }
  int scratch_fd() const override { return scratch_ ? scratch_->fd() : -1; }

 private:
  struct Planned {
    EvalShape shape;
    RowTargets targets;
    uint32_t chunks_of_rows = 0;
  };

  uint64_t Columns() const { return model_.spec.out_dim; }
  uint64_t Floats() const {
    return logits_.input().options.links->topology.num_nodes() * Columns();
  }
  uint64_t Bytes() const { return Floats() * sizeof(float); }

  Status OpenScratch() {
    if (scratch_) return Status::Ok();
    const int shared = logits_.input().options.scratch_fd;
    UniqueFd own;
    if (shared < 0) own = GNND_VALUE(EvalScratch::Create(Bytes(), ""));
    scratch_ = GNND_VALUE(EvalScratch::Attach(own.valid() ? own.get() : shared, Bytes()));
    return Status::Ok();
  }

  RowLogits& logits_;
  const Model& model_;
  PairPhase& pairs_;
  std::optional<EvalScratch> scratch_;
  Planned plans_[2];  // by EvalNodes
};

}  // namespace

std::unique_ptr<Training> RowLinkTraining(const RowInput& input, ComputeSide* side,
                                          RowBatches* batches) {
  return std::make_unique<OnRowLinks>(input, *input.options.links, side, batches);
}

std::unique_ptr<Evaluation> RowPairs(RowLogits* logits, PairPhase* pairs) {
  return std::make_unique<Pairs>(logits, pairs);
}

}  // namespace gnnd
