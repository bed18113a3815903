#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/base/memfd.h"
#include "core/base/status.h"
#include "core/executor/train_work.h"
#include "core/ledger/executor_log.h"
#include "core/ledger/segment.h"

// The work of a Trainer whose arithmetic happens elsewhere: it lends each batch that is due to a
// reader, the process of a user who trains, and hands in a gradient of zeros once the reader has
// copied the batch. So the rules of the ledger hold for readers, which write nothing into the
// segment and cannot break it: each batch is lent in key order, a slot is reused only after its
// batch was copied, and a Sampler that dies is replaced as in any job.
//
// Offers run ahead of hand-ins. A READY record does not change before its batch is committed, and
// nobody but the Lender takes batches of its job, so the batches behind the one that is due are
// offered as soon as they are READY: ranks copy at the same time, each its own batch, and returns
// may come in any order. Batches are handed in in theirs.
//
// A job lives as long as its readers. When the batch that is due is of a reader that has gone, or
// of one that does not come in time, the Lender aborts the segment, which ends all loops.

namespace gnnd {

struct LenderOptions {
  std::string socket;         // abstract name, without the leading zero byte
  std::string features_path;  // an .npy file; empty: readers get none
  std::chrono::milliseconds patience = std::chrono::minutes(2);  // for each reader to come
};

class Lender : public TrainWork {
 public:
  // Listens at once. kIo: the name is taken, or the host has no such sockets.
  static Result<std::unique_ptr<Lender>> Create(Segment& segment, ExecutorId id,
                                                LenderOptions options);

  void InitParameters(std::span<float> parameters) override;
  Status Extract(const Sample& sample, uint32_t buffer, ExtractReport* report) override;
  // Lends the batch and waits for its return.
  Status ComputeGradient(const Sample& sample, uint32_t buffer, const ParametersView& parameters,
                         std::span<float> gradient, BatchReport* report) override;
  void Apply(const StepView& step) override;
  void PredictParameters(uint64_t version, uint64_t lag, std::span<const float> parameters,
                         std::span<const float> optimizer, std::span<float> predicted) override;
  // Nothing is evaluated.
  Result<EvalShape> PlanEvaluation(EvalNodes nodes, const Alive& alive) override;
  Status EvaluateChunk(const EvalTask& task, const ParametersView& parameters, const Alive& alive,
                       EvalResult* result) override;
  Status Reduce(const ReduceTask& task, const Alive& alive) override;
  Judgement Judge(const EvalResult& whole, std::span<std::byte> kept) const override;
  void EndEvaluation(const EvalRun& run) override;
  Sha256Digest DigestOf(std::span<const float> parameters) override;

 private:
  Lender(Segment& segment, ExecutorId id) : segment_(segment), log_(segment, id) {}

  struct Peer {
    UniqueFd socket;
    bool gone = false;  // its end was seen; it is not awaited, and no other gets its rank
  };

  // Waits until the reader of this batch has joined, in turn with signs of life.
  Status AwaitReader(uint64_t batch);
  Status AwaitReturn(uint64_t batch);
  bool Joined(uint64_t batch) const;
  // Counted from epoch 0 on, also by a job that begins with a later one: so ranks that go on get
  // the batches that they would have got.
  uint64_t RankOf(uint64_t batch) const;
  Peer& PeerOf(uint64_t batch) { return readers_[RankOf(batch)]; }
  void Offer(uint64_t batch);
  // Offers what is READY behind `batch`, which is lent.
  void OfferAhead(uint64_t batch);
  // Waits a moment for readers that come, go, or return batches.
  Status Look();
  Status AcceptReader();
  // Takes in what a reader has returned.
  Status Collect(uint64_t rank);
  Status Welcome(int reader);
  // Ends the job, which is over without its readers.
  Status End(const std::string& why);

  Segment& segment_;
  ExecutorLog log_;
  LenderOptions options_;
  UniqueFd listener_;
  UniqueFd lent_segment_;        // opened for reading only
  UniqueFd features_;            // not opened: there is none
  std::vector<Peer> readers_;    // by rank; empty before the first one came
  uint64_t due_ = 0;             // the batch that is awaited; those below are handed in
  uint64_t offered_ = 0;         // batches from due_ up to here are offered
  std::set<uint64_t> returned_;  // of those
};

}  // namespace gnnd
