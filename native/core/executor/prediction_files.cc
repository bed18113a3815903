#include "core/executor/prediction_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

#include "core/base/atomic_file.h"
#include "core/base/failpoint.h"
#include "core/graph/npy.h"

namespace gnnd {
namespace {

Status WriteAt(int fd, uint64_t at, std::span<const std::byte> bytes, const std::string& path) {
  if (WriteAll(fd, bytes, at)) return Status::Ok();
  return SystemError(Code::kIo, "writing " + path);
}

Status SyncData(int fd, const std::string& what) {
  return fdatasync(fd) == 0 ? Status::Ok() : SystemError(Code::kIo, "syncing " + what);
}

// Writes ascending node ids as int64 unless the file exists: it appears whole.
Status WriteNodes(const std::string& path, std::span<const uint32_t> nodes) {
  if (access(path.c_str(), F_OK) == 0) return Status::Ok();
  AtomicFile file(path);
  GNND_TRY(file.Create());
  const std::string header = NpyHeader(NpyType::kInt64, std::array{uint64_t{nodes.size()}});
  GNND_TRY(file.Write(std::as_bytes(std::span(header.data(), header.size()))));
  std::array<int64_t, 4096> wide;
  for (size_t from = 0; from < nodes.size(); from += wide.size()) {
    const auto part = nodes.subspan(from, std::min(wide.size(), nodes.size() - from));
    std::copy(part.begin(), part.end(), wide.begin());
    GNND_TRY(file.Write(std::as_bytes(std::span(wide.data(), part.size()))));
  }
  return file.Commit();
}

}  // namespace

Status PredictionFiles::OpenFile(const std::string& path, const std::string& header, uint64_t bytes,
                                 File* file) {
  file->path = path;
  file->data_at = header.size();
  file->fd = UniqueFd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  const auto size = static_cast<off_t>(header.size() + bytes);
  struct stat info{};
  if (!file->fd.valid() || fstat(file->fd.get(), &info) != 0) {
    return SystemError(Code::kIo, "opening " + path);
  }
  if (info.st_size != size && ftruncate(file->fd.get(), size) != 0) {
    return SystemError(Code::kIo, "sizing " + path);
  }
  return WriteAt(file->fd.get(), 0, std::as_bytes(std::span(header.data(), header.size())), path);
}

Result<PredictionFiles> PredictionFiles::Open(const PredictionPlace& place, const Nodes& targets,
                                              const Predictions& predictions) {
  PredictionFiles files(predictions);
  const uint64_t rows = targets.nodes.size();
  const uint64_t outputs = predictions.outputs();
  const std::string out = place.folder + "/out/";
  files.journal_.path = place.folder + "/chunks.bin";
  files.journal_.fd =
      UniqueFd(open(files.journal_.path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!files.journal_.fd.valid()) return SystemError(Code::kIo, "opening " + files.journal_.path);
  if (!targets.are_all) GNND_TRY(WriteNodes(out + "nodes.npy", targets.nodes));
  const uint64_t wide[] = {rows, outputs};
  const auto rows_of = [&](const char* name, File* file) {
    return OpenFile(out + name, NpyHeader(NpyType::kFloat32, wide), rows * outputs * sizeof(float),
                    file);
  };
  GNND_TRY(OpenFile(out + "predictions.npy",
                    NpyHeader(predictions.rule().predicted_type(), predictions.ShapeOf(rows)),
                    rows * predictions.bytes_per_node(), &files.predictions_));
  if (place.logits) GNND_TRY(rows_of("logits.npy", &files.logits_));
  if (place.probabilities) GNND_TRY(rows_of("probabilities.npy", &files.probabilities_));
  return files;
}

Result<std::optional<uint64_t>> PredictionFiles::Done(uint32_t word) const {
  ChunkMark mark;
  const auto at = static_cast<off_t>(word * sizeof(mark));
  const ssize_t read = pread(journal_.fd.get(), &mark, sizeof(mark), at);
  if (read < 0) return SystemError(Code::kIo, "reading " + journal_.path);
  if (read < static_cast<ssize_t>(sizeof(mark)) || mark.rows_and_one == 0) {
    return std::optional<uint64_t>();
  }
  return std::optional<uint64_t>(mark.rows_and_one - 1);
}

Status PredictionFiles::Write(uint64_t first, std::span<const float> logits) {
  const uint64_t outputs = kind_.outputs();
  const uint64_t rows = logits.size() / outputs;
  shares_.resize(probabilities_.fd.valid() ? logits.size() : 0);
  for (uint64_t r = 0; r < rows; ++r) {
    const auto row = logits.subspan(r * outputs, outputs);
    if (!std::all_of(row.begin(), row.end(), [](float logit) { return std::isfinite(logit); })) {
      return Status(Code::kNumericDivergence,
                    "a logit of row " + std::to_string(first + r) + " is not finite");
    }
    if (shares_.empty()) continue;
    const auto shares = std::span(shares_).subspan(r * outputs, outputs);
    kind_.rule().Probabilities(row, shares);
  }
  predicted_.clear();
  kind_.Append(logits, &predicted_);
  const uint64_t at = first * outputs * sizeof(float);
  GNND_TRY(WriteAt(predictions_.fd.get(), predictions_.data_at + first * kind_.bytes_per_node(),
                   predicted_, predictions_.path));
  GNND_FAILPOINT("predict.writing");
  if (logits_.fd.valid()) {
    GNND_TRY(WriteAt(logits_.fd.get(), logits_.data_at + at, std::as_bytes(logits), logits_.path));
  }
  if (shares_.empty()) return Status::Ok();
  return WriteAt(probabilities_.fd.get(), probabilities_.data_at + at,
                 std::as_bytes(std::span(shares_)), probabilities_.path);
}

Status PredictionFiles::Finish(uint32_t word, uint64_t rows, int scratch) const {
  for (const File* file : {&predictions_, &logits_, &probabilities_}) {
    if (file->fd.valid()) GNND_TRY(SyncData(file->fd.get(), file->path));
  }
  if (scratch >= 0) GNND_TRY(SyncData(scratch, "hidden rows"));
  const uint64_t at = word * sizeof(ChunkMark);
  GNND_FAILPOINT("predict.before_mark");
  ChunkMark mark;
  if (pread(journal_.fd.get(), &mark, sizeof(mark), static_cast<off_t>(at)) < 0) {
    return SystemError(Code::kIo, "reading " + journal_.path);
  }
  // Not synced: a mark that is lost with its host repeats one chunk, and no mark is on the disk
  // before the rows that it vouches for.
  mark = {static_cast<uint32_t>(rows) + 1, mark.times + 1};
  GNND_TRY(WriteAt(journal_.fd.get(), at, std::as_bytes(std::span(&mark, 1)), journal_.path));
  GNND_FAILPOINT("predict.after_mark");
  return Status::Ok();
}

}  // namespace gnnd
