#include "core/image/image.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <span>

#include "core/base/atomic_file.h"
#include "core/base/clock.h"
#include "core/base/failpoint.h"
#include "core/base/huge_array.h"
#include "core/base/memfd.h"
#include "core/image/image_file.h"
#include "core/image/image_history.h"

namespace gnnd {
namespace {

constexpr uint64_t kLockSliceNs = kNsPerSecond;
constexpr int kLockTries = 10;

// The part of the config that must be the same in the segment that goes on, because later results
// depend on it. Slots, devices, budgets and chunks may differ.
struct ImageShape {
  uint64_t batches_per_epoch;
  uint64_t epochs;
  uint64_t first_epoch;
  uint64_t group;
  uint64_t staleness;
  uint64_t parameter_floats;
  uint64_t optimizer_floats;
  uint64_t batch_size;
  uint64_t train_nodes;
  uint64_t compensation;
  uint64_t born_ready;
  uint64_t evaluates;
  uint64_t evaluate_every;
  uint64_t stop_patience;
  double stop_min_delta;
  uint64_t history_bytes;  // size of the history that Trainers share; 0: none
  uint64_t locality;       // the largest scale; from bit 32 on whether it adapts
};
static_assert(sizeof(ImageShape) == 136);

struct ImageHeader {
  uint64_t magic;
  uint32_t format;
  uint32_t header_bytes;
  char build_id[kBuildIdBytes];
  uint64_t total_bytes;  // file size, digest included
  ImageShape shape;
  uint64_t version;
  uint64_t evaluation;        // the segment's word: the last committed run
  uint64_t taken_ns;          // time of the image, by the clock of all its times
  uint64_t epochs;            // number of entries
  uint64_t parameter_copies;  // copies of as many versions, up to `version`
  uint64_t optimizer_copies;  // copies of as many versions' optimizer state
  uint64_t best_copies;       // 1 if anything was evaluated
  uint64_t saved_history_bytes;
  char owner[kImageOwnerBytes];
};
static_assert(sizeof(ImageHeader) == 336);

// Offsets of the sections in their order in the file, without gaps; the digest follows.
struct Sections {
  uint64_t sums_at;
  uint64_t parameters_at;
  uint64_t optimizer_at;
  uint64_t best_at;
  uint64_t entries_at;
  uint64_t starts_at;  // start times of the epochs with an entry, and of the epoch in progress
  uint64_t history_at;
  uint64_t digest_at;
  uint64_t total_bytes;
};

Sections SectionsOf(const ImageHeader& header) {
  const uint64_t parameters = header.shape.parameter_floats * sizeof(float);
  const uint64_t optimizer = header.shape.optimizer_floats * sizeof(float);
  Sections at{};
  at.sums_at = sizeof(ImageHeader);
  at.parameters_at = at.sums_at + sizeof(EpochSums);
  at.optimizer_at = at.parameters_at + header.parameter_copies * parameters;
  at.best_at = at.optimizer_at + header.optimizer_copies * optimizer;
  // All sections from here on consist of whole words.
  at.entries_at = RoundUp(at.best_at + header.best_copies * parameters, 64);
  at.starts_at = at.entries_at + header.epochs * sizeof(EpochEntry);
  at.history_at = at.starts_at + (header.epochs + 1) * sizeof(uint64_t);
  at.digest_at = RoundUp(at.history_at + header.saved_history_bytes, 8);
  at.total_bytes = at.digest_at + sizeof(Sha256Digest);
  return at;
}

EpochEntry EntryAt(const std::byte* image, const Sections& at, uint64_t epoch) {
  EpochEntry entry{};
  std::memcpy(&entry, image + at.entries_at + epoch * sizeof(entry), sizeof(entry));
  return entry;
}

ImageShape ShapeOf(const SegmentConfig& config) {
  ImageShape shape{};
  shape.batches_per_epoch = config.batches_per_epoch;
  shape.epochs = config.epochs;
  shape.first_epoch = config.first_epoch;
  shape.group = config.group;
  shape.staleness = config.staleness;
  shape.parameter_floats = config.parameter_floats;
  shape.optimizer_floats = config.optimizer_floats;
  shape.batch_size = config.batch_size;
  shape.train_nodes = config.train_nodes;
  shape.compensation = static_cast<uint64_t>(config.compensation);
  shape.born_ready = config.born_ready ? 1 : 0;
  shape.evaluates = config.eval_chunks > 0 ? 1 : 0;
  shape.evaluate_every = config.evaluate_every;
  shape.stop_patience = config.early_stop.patience;
  shape.stop_min_delta = config.early_stop.min_delta;
  shape.history_bytes = JobHistory::BytesOf(WithoutCache(config.history), config.group);
  shape.locality = uint64_t{config.locality.adapts} << 32 | config.locality.scale;
  return shape;
}

// Number of versions that later steps may need: groups in flight are computed on as many earlier
// versions as S allows within the epoch.
uint64_t ParameterCopies(const JobShape& shape, uint64_t version) {
  return version - shape.RequiredVersion(version) + 1;
}

// The next step reads optimizer state, and so do predictions, together with the parameters.
uint64_t OptimizerCopies(const SegmentConfig& config, const JobShape& shape, uint64_t version) {
  const bool predicts = config.compensation == StalenessCompensation::kPredict;
  return predicts ? ParameterCopies(shape, version) : 1;
}

// The start of the epoch in progress; 0 after the last epoch.
uint64_t StartOf(const Segment& segment, uint64_t epoch_index) {
  if (epoch_index >= segment.config().epochs) return 0;
  return segment.epoch_start(epoch_index).load(std::memory_order_relaxed);
}

ImageHeader HeaderOf(const Segment& segment) {
  const JobShape& shape = segment.shape();
  ImageHeader header{};
  header.magic = kImageMagic;
  header.format = kImageFormat;
  header.header_bytes = sizeof(ImageHeader);
  std::memcpy(header.build_id, kBuildId, sizeof(header.build_id));
  header.shape = ShapeOf(segment.config());
  header.version = segment.Version();
  // Acquire: pairs with the evaluation's commit.
  header.evaluation = segment.header().evaluation.value.load(std::memory_order_acquire);
  header.taken_ns = MonotonicNs();
  header.epochs = header.version / shape.GroupsPerEpoch();
  header.parameter_copies = ParameterCopies(shape, header.version);
  header.optimizer_copies = OptimizerCopies(segment.config(), shape, header.version);
  header.best_copies = segment.LastEvaluated() ? 1 : 0;
  header.total_bytes = SectionsOf(header).total_bytes;
  return header;
}

// The header of the longest image that the job can have.
ImageHeader LargestOf(const Segment& segment) {
  ImageHeader header{};
  header.format = kImageFormat;
  header.shape = ShapeOf(segment.config());
  header.parameter_copies = segment.shape().staleness + 1;
  header.optimizer_copies = segment.shape().staleness + 1;
  header.best_copies = 1;
  header.epochs = segment.config().epochs;
  header.saved_history_bytes = JobHistory::MostSavedBytes(segment.config().history);
  return header;
}

void Put(std::byte* at, std::span<const float> floats) {
  std::memcpy(at, floats.data(), floats.size_bytes());
}

// REQUIRES: the segment's mutex is held.
ImageHeader CopyInto(const Segment& segment, const std::string& owner, const JobHistory* history,
                     std::byte* image) {
  ImageHeader header = HeaderOf(segment);
  if (history != nullptr) {
    header.saved_history_bytes = history->SavedBytes();
    header.total_bytes = SectionsOf(header).total_bytes;
  }
  owner.copy(header.owner, kImageOwnerBytes - 1);
  const Sections at = SectionsOf(header);
  const uint64_t parameter_bytes = header.shape.parameter_floats * sizeof(float);
  const uint64_t optimizer_bytes = header.shape.optimizer_floats * sizeof(float);
  std::memcpy(image, &header, sizeof(header));
  std::memcpy(image + at.sums_at, &segment.sums(header.version), sizeof(EpochSums));
  const uint64_t last = header.version;
  for (uint64_t i = 0; i < header.parameter_copies; ++i) {
    const uint64_t version = last - (header.parameter_copies - 1 - i);
    Put(image + at.parameters_at + i * parameter_bytes, segment.parameters(version));
  }
  GNND_FAILPOINT("image.between");
  for (uint64_t i = 0; i < header.optimizer_copies; ++i) {
    const uint64_t version = last - (header.optimizer_copies - 1 - i);
    Put(image + at.optimizer_at + i * optimizer_bytes, segment.optimizer(version));
  }
  if (const std::optional<uint64_t> evaluated = segment.LastEvaluated()) {
    Put(image + at.best_at, segment.best(segment.epoch(*evaluated).best_buffer));
  }
  for (uint64_t e = 0; e < header.epochs; ++e) {
    std::memcpy(image + at.entries_at + e * sizeof(EpochEntry), &segment.epoch(e),
                sizeof(EpochEntry));
  }
  for (uint64_t e = 0; e <= header.epochs; ++e) {
    const uint64_t start = StartOf(segment, e);
    std::memcpy(image + at.starts_at + e * sizeof(uint64_t), &start, sizeof(start));
  }
  if (history != nullptr) history->Save(image + at.history_at);
  return header;
}

// The text of a field that is padded with zeros.
template <size_t N>
std::string TextOf(const char (&field)[N]) {
  return std::string(field, strnlen(field, N));
}

std::string NameOf(const ImageHeader& header, const JobShape& shape) {
  const uint64_t batches = shape.CommittedBatches(header.version);
  char name[48];
  std::snprintf(name, sizeof name, "epoch-%08llu-batch-%010llu.image",
                static_cast<unsigned long long>(header.epochs),
                static_cast<unsigned long long>(batches - header.epochs * shape.batches_per_epoch));
  return name;
}

ImageFacts FactsOf(const ImageHeader& header, const JobShape& shape, const Sha256Digest& sha256,
                   const std::string& path) {
  return ImageFacts{header.version,
                    shape.CommittedBatches(header.version),
                    header.epochs,
                    TextOf(header.build_id),
                    header.total_bytes,
                    sha256,
                    path};
}

Status Corrupted(const std::string& path, const std::string& why) {
  return Status(Code::kDatasetCorrupt, path + ": " + why);
}

// Checks that the bytes are those that were written.
Status CheckBytes(const ImageHeader& header, const ImageBytes& bytes, const std::string& path) {
  if (header.magic != kImageMagic) return Corrupted(path, "is no image of a job");
  if (header.format != kImageFormat || header.header_bytes != sizeof(ImageHeader)) {
    return Corrupted(path, "was made by another version of gnnd (format " +
                               std::to_string(header.format) + "; this one reads " +
                               std::to_string(kImageFormat) + "): the job goes on without it");
  }
  if (header.total_bytes != bytes.size || bytes.size < sizeof(ImageHeader) + sizeof(Sha256Digest)) {
    return Corrupted(path, "is " + std::to_string(bytes.size) + " bytes, its header says " +
                               std::to_string(header.total_bytes));
  }
  const std::byte* image = bytes.memory.data();
  const uint64_t digest_at = bytes.size - sizeof(Sha256Digest);
  const Sha256Digest digest = Sha256().Add({image, digest_at}).Finish();
  if (std::memcmp(image + digest_at, digest.data(), digest.size()) == 0) return Status::Ok();
  return Corrupted(path, "its SHA-256 is another one than was written");
}

struct Field {
  const char* name;
  uint64_t wanted;
  uint64_t found;
};

Status CheckShape(const ImageShape& wanted, const ImageShape& found, const std::string& path) {
  const Field fields[] = {
      {"batches_per_epoch", wanted.batches_per_epoch, found.batches_per_epoch},
      {"epochs", wanted.epochs, found.epochs},
      {"first_epoch", wanted.first_epoch, found.first_epoch},
      {"group", wanted.group, found.group},
      {"staleness", wanted.staleness, found.staleness},
      {"parameter_floats", wanted.parameter_floats, found.parameter_floats},
      {"optimizer_floats", wanted.optimizer_floats, found.optimizer_floats},
      {"batch_size", wanted.batch_size, found.batch_size},
      {"train_nodes", wanted.train_nodes, found.train_nodes},
      {"compensation", wanted.compensation, found.compensation},
      {"born_ready", wanted.born_ready, found.born_ready},
      {"evaluates", wanted.evaluates, found.evaluates},
      {"evaluate_every", wanted.evaluate_every, found.evaluate_every},
      {"early_stop.patience", wanted.stop_patience, found.stop_patience},
      {"bytes of history", wanted.history_bytes, found.history_bytes},
      {"locality", wanted.locality, found.locality},
  };
  for (const Field& field : fields) {
    if (field.wanted == field.found) continue;
    return Status(Code::kInvalidArgument, path + ": " + field.name + " is " +
                                              std::to_string(field.found) + ", the job's is " +
                                              std::to_string(field.wanted));
  }
  if (wanted.stop_min_delta == found.stop_min_delta) return Status::Ok();
  return Status(Code::kInvalidArgument, path + ": early_stop.min_delta is another one");
}

// Whether this run can be the last committed one after that many epochs.
bool MayBeLastRun(uint64_t word, const ImageHeader& header) {
  if (word == 0) return header.best_copies == 0;
  const LedgerWord run = LedgerWord::Unpack(word);
  const bool in_order = run.epoch < header.epochs ||
                        (run.epoch >= header.shape.epochs && run.epoch <= header.shape.epochs + 1);
  return run.state == BatchState::kCommitted && header.best_copies == 1 && header.epochs > 0 &&
         in_order;
}

// Checks that every number that later serves as an index is in range.
Status CheckPlaces(const Segment& segment, const ImageHeader& header, const std::byte* bytes,
                   const std::string& path) {
  const JobShape& shape = segment.shape();
  const bool sound =
      header.version <= shape.TotalGroups() &&
      header.epochs == header.version / shape.GroupsPerEpoch() &&
      header.parameter_copies == ParameterCopies(shape, header.version) &&
      header.optimizer_copies == OptimizerCopies(segment.config(), shape, header.version) &&
      MayBeLastRun(header.evaluation, header) &&
      header.total_bytes == SectionsOf(header).total_bytes;
  if (!sound) return Corrupted(path, "numbers in its header contradict each other");
  for (uint64_t e = 0; e < header.epochs; ++e) {
    const EpochEntry entry = EntryAt(bytes, SectionsOf(header), e);
    if (entry.best_epoch > e || entry.best_buffer > 1 || entry.stop_reference > e ||
        !segment.config().locality.MayFollow(entry.next_scale)) {
      return Corrupted(path, "epoch " + std::to_string(e) + " contradicts itself");
    }
  }
  return Status::Ok();
}

// Converts times of the image's clock to this host's; 0 stays "never". After a reboot the clock may
// show less time than has passed since; times are then clamped to its beginning.
class Clock {
 public:
  explicit Clock(uint64_t taken_ns) : taken_ns_(taken_ns), now_ns_(MonotonicNs()) {}
  uint64_t Now(uint64_t ns) const {
    const uint64_t ago = taken_ns_ - std::min(taken_ns_, ns);
    return ns == 0 ? 0 : std::max<uint64_t>(1, now_ns_ - std::min(now_ns_, ago));
  }

 private:
  uint64_t taken_ns_;
  uint64_t now_ns_;
};

void Get(std::span<float> floats, const std::byte* at) {
  std::memcpy(floats.data(), at, floats.size_bytes());
}

void CopyEpochs(Segment& segment, const ImageHeader& header, const std::byte* image) {
  const Sections at = SectionsOf(header);
  const Clock clock(header.taken_ns);
  for (uint64_t e = 0; e <= header.epochs && e < segment.config().epochs; ++e) {
    uint64_t start = 0;
    std::memcpy(&start, image + at.starts_at + e * sizeof(start), sizeof(start));
    segment.epoch_start(e).store(clock.Now(start), std::memory_order_relaxed);
    if (e == header.epochs) break;
    EpochEntry& entry = segment.epoch(e);
    entry = EntryAt(image, at, e);
    entry.end_ns = clock.Now(entry.end_ns);
    entry.eval_end_ns = clock.Now(entry.eval_end_ns);
  }
}

void CopyFrom(Segment& segment, const ImageHeader& header, const std::byte* image) {
  const Sections at = SectionsOf(header);
  const uint64_t parameter_bytes = header.shape.parameter_floats * sizeof(float);
  const uint64_t optimizer_bytes = header.shape.optimizer_floats * sizeof(float);
  std::memcpy(&segment.sums(header.version), image + at.sums_at, sizeof(EpochSums));
  const uint64_t last = header.version;
  for (uint64_t i = 0; i < header.parameter_copies; ++i) {
    const uint64_t version = last - (header.parameter_copies - 1 - i);
    Get(segment.parameters(version), image + at.parameters_at + i * parameter_bytes);
  }
  for (uint64_t i = 0; i < header.optimizer_copies; ++i) {
    const uint64_t version = last - (header.optimizer_copies - 1 - i);
    Get(segment.optimizer(version), image + at.optimizer_at + i * optimizer_bytes);
  }
  CopyEpochs(segment, header, image);
  SegmentHeader& live = segment.header();
  live.evaluation.value.store(header.evaluation, std::memory_order_relaxed);
  live.version.value.store(header.version, std::memory_order_release);
  // Runs after the version is set, by which LastEvaluated finds the last evaluated epoch.
  if (const std::optional<uint64_t> evaluated = segment.LastEvaluated()) {
    Get(segment.best(segment.epoch(*evaluated).best_buffer), image + at.best_at);
  }
  live.parameters_ready.store(1, std::memory_order_release);
  using Word = LedgerTrace::Word;
  const auto set = [&](Word word, uint64_t value) {
    segment.trace().Note(LedgerTrace::Kind::kSet, 0, {static_cast<uint64_t>(word), 0, value});
  };
  const uint64_t last_epoch = segment.EpochsToTrain() - 1;
  segment.trace().Note(LedgerTrace::Kind::kStops, 0, {last_epoch});
  set(Word::kEvaluation, header.evaluation);
  set(Word::kVersion, header.version);
}

}  // namespace

Result<ImageFacts> WriteImage(const Segment& segment, const std::string& folder,
                              const std::string& owner) {
  SegmentHeader& live = segment.header();
  if (owner.size() >= kImageOwnerBytes) return Status(Code::kInvalidArgument, "owner: too long");
  // Acquire: pairs with EnsureParameters.
  if (live.parameters_ready.load(std::memory_order_acquire) == 0) {
    return Status(Code::kNotFound, "no parameters yet");
  }
  // Allocates the largest size, because the actual one is known only under the mutex. The pages of
  // the model are touched beforehand, so that Trainers need not wait for page faults.
  HugeArray<std::byte> image(SectionsOf(LargestOf(segment)).total_bytes);
  std::memset(image.data(), 0, SectionsOf(HeaderOf(segment)).entries_at);
  LockResult locked = LockResult::kTimedOut;
  for (int i = 0; i < kLockTries && locked == LockResult::kTimedOut; ++i) {
    locked = live.mutex.Lock(kLockSliceNs);
  }
  // A former owner's death leaves nothing to repair.
  if (locked == LockResult::kTimedOut) {
    return Status(Code::kAborted, "an executor kept the segment's mutex");
  }
  if (GNND_BROKEN("image-under-mutex")) live.mutex.Unlock();
  GNND_FAILPOINT("image.locked");
  const Result<std::optional<JobHistory>> history = HistoryAt(segment, segment.Version());
  ImageHeader header{};
  if (history.ok()) {
    header = CopyInto(segment, owner, history->has_value() ? &**history : nullptr, image.data());
  }
  if (!GNND_BROKEN("image-under-mutex")) live.mutex.Unlock();
  GNND_TRY(history.status());
  GNND_FAILPOINT("image.copied");
  const uint64_t digest_at = SectionsOf(header).digest_at;
  const Sha256Digest digest = Sha256().Add({image.data(), digest_at}).Finish();
  std::memcpy(image.data() + digest_at, digest.data(), digest.size());
  const std::string path = folder + "/" + NameOf(header, segment.shape());
  AtomicFile file(path);
  GNND_TRY(file.Create());
  GNND_TRY(file.Write({image.data(), header.total_bytes}));
  GNND_FAILPOINT("image.written");
  GNND_TRY(file.Commit());
  GNND_FAILPOINT("image.committed");
  return FactsOf(header, segment.shape(), digest, path);
}

Result<ImageFacts> LoadImage(Segment& segment, const std::string& path, const std::string& owner) {
  if (segment.header().next_row.load(std::memory_order_acquire) != 0) {
    return Status(Code::kInvalidArgument, "executors are registered already");
  }
  const uint64_t most_bytes = SectionsOf(LargestOf(segment)).total_bytes;
  const ImageBytes bytes = GNND_VALUE(ReadImageFile(path, sizeof(ImageHeader), most_bytes));
  const std::byte* image = bytes.memory.data();
  ImageHeader header{};
  std::memcpy(&header, image, sizeof(header));
  GNND_TRY(CheckBytes(header, bytes, path));
  if (TextOf(header.owner) != owner) {
    return Status(Code::kInvalidArgument,
                  path + ": owner is " + TextOf(header.owner) + ", the job is " + owner);
  }
  GNND_TRY(CheckShape(ShapeOf(segment.config()), header.shape, path));
  GNND_TRY(CheckPlaces(segment, header, image, path));
  const std::byte* saved = image + SectionsOf(header).history_at;
  if (!RestoreHistory(segment, {saved, header.saved_history_bytes}, header.version)) {
    return Corrupted(path, "its history contradicts itself");
  }
  CopyFrom(segment, header, image);
  Sha256Digest digest{};
  std::memcpy(digest.data(), image + bytes.size - digest.size(), digest.size());
  return FactsOf(header, segment.shape(), digest, path);
}

Result<std::vector<float>> ReadImageParameters(const std::string& path, bool best) {
  const ImageBytes bytes = GNND_VALUE(ReadImageFile(path, sizeof(ImageHeader), UINT64_MAX));
  ImageHeader header{};
  std::memcpy(&header, bytes.memory.data(), sizeof(header));
  GNND_TRY(CheckBytes(header, bytes, path));
  if (best && header.best_copies == 0) return Status(Code::kNotFound, path + ": has no best yet");
  const Sections at = SectionsOf(header);
  const uint64_t size = header.shape.parameter_floats * sizeof(float);
  const uint64_t from = best ? at.best_at : at.optimizer_at - size;
  if (header.total_bytes != at.total_bytes || from > bytes.size || size > bytes.size - from) {
    return Corrupted(path, "numbers in its header contradict each other");
  }
  const auto* first = reinterpret_cast<const float*>(bytes.memory.data() + from);
  return std::vector<float>(first, first + header.shape.parameter_floats);
}

}  // namespace gnnd
