#include "core/ledger/segment.h"

#include <fcntl.h>

#include <algorithm>
#include <cstring>

#include "core/base/failpoint.h"

namespace gnnd {
namespace {

Status Corrupted(const std::string& what) {
  return Status(Code::kShmCorrupted, "job segment: " + what);
}

// Whether the header describes this very file, written by this build.
Status CheckHeader(const SegmentHeader& header, uint64_t file_bytes) {
  if (header.magic != kSegmentMagic) return Corrupted("wrong magic; this is no job segment");
  const std::string build(header.build_id, strnlen(header.build_id, kBuildIdBytes));
  if (build != kBuildId) {
    return Corrupted("made by build " + build + ", this is " + kBuildId +
                     ": gnnd was replaced while the job ran");
  }
  if (header.total_bytes != file_bytes) {
    return Corrupted("is " + std::to_string(file_bytes) + " bytes, its header says " +
                     std::to_string(header.total_bytes));
  }
  const SegmentConfig& config = header.config;
  if (config.batches_per_epoch == 0 || config.group == 0 || config.num_slots == 0 ||
      config.epochs == 0 || Layout::Of(config).total_bytes != file_bytes) {
    return Corrupted("sizes in its header contradict each other");
  }
  return Status::Ok();
}

}  // namespace

Result<UniqueFd> Segment::Create(const SegmentSpec& spec) {
  GNND_TRY(ValidateSpec(spec));
  SegmentConfig config = spec;
  if (spec.batch_limit > 0 && spec.batch_limit < spec.batches_per_epoch) {
    config.batches_per_epoch = spec.batch_limit;
  }
  config.slot_bytes = RoundUp(spec.slot_bytes, kPageBytes);
  config.registered_bytes = RoundUp(spec.registered_bytes, kPageBytes);
  const Layout layout = Layout::Of(config);
  UniqueFd fd = GNND_VALUE(CreateMemfd("gnnd-job", layout.total_bytes));
  Mapping mapping = GNND_VALUE(Mapping::Map(fd.get(), true));
  auto* header = reinterpret_cast<SegmentHeader*>(mapping.data());
  std::memcpy(header->build_id, kBuildId, sizeof(kBuildId));
  header->total_bytes = layout.total_bytes;
  header->config = config;
  header->mutex.Init();
  if (config.history.bytes > 0) JobHistory::Init(mapping.data() + layout.history_at);
  header->magic = kSegmentMagic;
  LedgerTrace::Of(fd.get()).Created(config);
  return fd;
}

Result<Segment> Segment::Attach(int fd, Access access, const Registrar* registrar) {
  Segment segment;
  segment.mapping_ = GNND_VALUE(Mapping::Map(fd, true));
  if (segment.mapping_.size() < sizeof(SegmentHeader)) return Corrupted("shorter than its header");
  segment.header_ = reinterpret_cast<SegmentHeader*>(segment.mapping_.data());
  GNND_TRY(CheckHeader(*segment.header_, segment.mapping_.size()));
  const SegmentConfig& config = segment.header_->config;
  segment.layout_ = Layout::Of(config);
  segment.shape_ = JobShape{config.batches_per_epoch, config.epochs,    config.group,
                            config.staleness,         config.num_slots, config.born_ready};
  segment.fd_ = UniqueFd(fcntl(fd, F_DUPFD_CLOEXEC, 3));
  if (!segment.fd_.valid()) {
    return SystemError(Code::kIo, "duplicating the segment");
  }
  segment.trace_ = LedgerTrace::Of(fd);
  if (registrar != nullptr) segment.Register(*registrar);
  GNND_TRY(segment.Protect(access));
  return segment;
}

void Segment::Register(const Registrar& registrar) {
  std::vector<std::span<std::byte>> prefixes;
  for (uint64_t s = 0; s < shape_.num_slots && config().registered_bytes > 0; ++s) {
    prefixes.push_back(slot(s).first(config().registered_bytes));
  }
  Result<Registration> registration = Registration::Of(registrar, prefixes);
  registration_status_ = registration.status();
  if (registration.ok()) registration_ = std::move(*registration);
}

Status Segment::Protect(Access access) {
  uint64_t from = 0;
  uint64_t to = 0;
  if (access == Access::kSlotsReadOnly) {
    from = layout_.slots_at;
    to = layout_.total_bytes;
  } else if (access == Access::kModelReadOnly) {
    to = layout_.shared_at;
  }
  return gnnd::Protect({mapping_.data() + from, to - from}, Protection::kReadOnly);
}

uint64_t Segment::SeedsOfBatch(uint64_t index) const {
  const uint64_t first = index * config().batch_size;
  return std::min(config().batch_size, config().train_nodes - first);
}

bool Segment::EvaluationDue(uint64_t epoch_index) const {
  if (config().eval_chunks == 0) return false;
  const uint64_t every = config().evaluate_every;
  return epoch_index + 1 == config().epochs || (every > 0 && (epoch_index + 1) % every == 0);
}

std::optional<uint64_t> Segment::EvaluatedBefore(uint64_t epoch_index) const {
  const uint64_t every = config().evaluate_every;
  const uint64_t evaluations = config().eval_chunks == 0 || every == 0 ? 0 : epoch_index / every;
  if (evaluations == 0) return std::nullopt;
  return evaluations * every - 1;
}

bool Segment::EvaluationCommitted(uint64_t epoch_index) const {
  if (!EvaluationDue(epoch_index)) return true;
  // Acquire: pairs with CommitEvaluation's release, so that its report is visible.
  const uint64_t word = header_->evaluation.value.load(std::memory_order_acquire);
  return LedgerWord::InEpoch(word, epoch_index).state == BatchState::kCommitted;
}

uint64_t Segment::EpochsToTrain() const {
  if (config().early_stop.patience == 0) return shape_.epochs;
  // Acquire: pairs with CommitEvaluation's release.
  const LedgerWord last =
      LedgerWord::Unpack(header_->evaluation.value.load(std::memory_order_acquire));
  if (last.state != BatchState::kCommitted) return shape_.epochs;
  // Test nodes are evaluated when training has ended.
  if (last.epoch >= shape_.epochs) return Version() / shape_.GroupsPerEpoch();
  return epoch(last.epoch).stops == 0 ? shape_.epochs : uint64_t{last.epoch} + 1;
}

std::optional<uint64_t> Segment::LastEvaluated() const {
  // Acquire: pairs with CommitEvaluation's release.
  const LedgerWord last =
      LedgerWord::Unpack(header_->evaluation.value.load(std::memory_order_acquire));
  if (last.state != BatchState::kCommitted) return std::nullopt;
  if (last.epoch < shape_.epochs) return last.epoch;
  return Version() / shape_.GroupsPerEpoch() - 1;  // this epoch is always evaluated
}

std::optional<EvalRun> Segment::OpenRun() const {
  const uint64_t version = Version();
  const uint64_t groups = shape_.GroupsPerEpoch();
  if (config().eval_chunks == 0 || version == 0 || version % groups != 0) return std::nullopt;
  // Read after the version: while that is at the end of an epoch whose run is open, only that run's
  // commit moves either.
  const uint64_t word = header_->evaluation.value.load(std::memory_order_acquire);
  const uint64_t last = version / groups - 1;
  const auto done = [word](uint64_t number) {
    return LedgerWord::InEpoch(word, number).state == BatchState::kCommitted;
  };
  if (!done(last) && EvaluationDue(last)) {
    return EvalRun{static_cast<uint32_t>(last), EvalNodes::kValidation, last, false};
  }
  if (!EvaluationDue(last) || version != EpochsToTrain() * groups) return std::nullopt;
  const auto at_last = static_cast<uint32_t>(shape_.epochs);
  if (!done(at_last)) return EvalRun{at_last, EvalNodes::kTest, last, false};
  const uint64_t best = epoch(last).best_epoch;
  if (best == last || done(at_last + 1)) return std::nullopt;
  return EvalRun{at_last + 1, EvalNodes::kTest, best, true};
}

std::span<const float> Segment::ParametersOf(const EvalRun& run) const {
  if (run.is_best) return best(epoch(*LastEvaluated()).best_buffer);
  return parameters(VersionOf(run));
}

uint32_t Segment::ScaleOf(uint64_t epoch_index) const {
  const LocalityConfig& locality = config().locality;
  if (locality.adapts == 0) return locality.scale;
  // Visible with the commit of the epoch before, and no batch of this epoch is claimed earlier.
  return epoch_index == 0 ? kScaleOne : epoch(epoch_index - 1).next_scale.scale;
}

uint64_t Segment::ClaimEnd(uint64_t version) const {
  return std::min(shape_.ClaimEnd(version), EpochsToTrain() * shape_.batches_per_epoch);
}

bool Segment::TrainingDone() const {
  return Version() == EpochsToTrain() * shape_.GroupsPerEpoch();
}

bool Segment::Complete() const {
  return TrainingDone() && EvaluationCommitted(EpochsToTrain() - 1) && !OpenRun();
}

Status Segment::AbortStatus() const {
  // Acquire: pairs with Abort's release, so that the message is visible.
  const uint32_t code = header_->abort_code.load(std::memory_order_acquire);
  if (code < 2) return Status::Ok();
  return Status(Code::kAborted, header_->abort_message);
}

void Segment::WakeAll() {
  WakeSamplers();
  WakeTrainers();
}

std::span<float> Segment::optimizer(uint64_t version) const {
  const uint64_t buffers = GNND_BROKEN("optimizer-by-version") ? 2 : layout_.optimizer_buffers;
  const uint64_t at = layout_.optimizer_at + version % buffers * layout_.optimizer_stride;
  return {At<float>(at), config().optimizer_floats};
}

std::span<std::byte> Segment::slot(uint64_t slot_index) const {
  return {mapping_.data() + slot_offset(slot_index), config().slot_bytes};
}

uint64_t Segment::slot_offset(uint64_t slot_index) const {
  GNND_CHECK(slot_index < shape_.num_slots);
  return layout_.slots_at + slot_index * config().slot_bytes;
}

Status BeginWith(Segment& segment, std::span<const float> given) {
  const std::span<float> parameters = segment.parameters(0);
  if (given.size() != parameters.size()) {
    return Status(Code::kInvalidArgument, std::to_string(given.size()) +
                                              " parameters are given, the model has " +
                                              std::to_string(parameters.size()));
  }
  std::copy(given.begin(), given.end(), parameters.begin());
  // Release: pairs with EnsureParameters.
  segment.header().parameters_ready.store(1, std::memory_order_release);
  return Status::Ok();
}

}  // namespace gnnd
