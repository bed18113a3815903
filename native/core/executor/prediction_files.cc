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
                                              RowOutputs outputs) {
  PredictionFiles files;
  const uint64_t rows = targets.nodes.size();
  const std::string out = place.folder + "/out/";
  files.journal_.path = place.folder + "/chunks.bin";
  files.journal_.fd =
      UniqueFd(open(files.journal_.path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!files.journal_.fd.valid()) return SystemError(Code::kIo, "opening " + files.journal_.path);
  if (!targets.are_all) GNND_TRY(WriteNodes(out + "nodes.npy", targets.nodes));
  for (std::unique_ptr<RowOutput>& output : outputs) {
    files.layers_.push_back(output->layer());
    File file;
    GNND_TRY(OpenFile(out + output->name(), NpyHeader(output->type(), output->ShapeOf(rows)),
                      rows * output->bytes_per_node(), &file));
    files.outputs_.push_back({std::move(output), std::move(file)});
  }
  std::ranges::sort(files.layers_);
  const auto repeated = std::ranges::unique(files.layers_);
  files.layers_.erase(repeated.begin(), repeated.end());
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

Status PredictionFiles::Write(uint32_t layer, uint64_t first, std::span<const float> rows) {
  const auto wrong = std::ranges::find_if(rows, [](float value) { return !std::isfinite(value); });
  uint32_t begun = 0;
  for (const auto& [output, file] : outputs_) {
    if (output->layer() != layer) continue;
    if (begun++ == 1) GNND_FAILPOINT("predict.writing");
    if (wrong != rows.end()) {
      const auto at = static_cast<uint64_t>(wrong - rows.begin());
      return Status(Code::kNumericDivergence,
                    "a number of layer " + std::to_string(uint64_t{layer} + 1) + " in row " +
                        std::to_string(first + at / output->width()) + " is not finite");
    }
    made_.clear();
    output->Append(rows, &made_);
    const uint64_t at = file.data_at + first * output->bytes_per_node();
    GNND_TRY(WriteAt(file.fd.get(), at, made_, file.path));
  }
  return Status::Ok();
}

Status PredictionFiles::Finish(uint32_t word, uint64_t rows, int scratch) const {
  for (const auto& [output, file] : outputs_) GNND_TRY(SyncData(file.fd.get(), file.path));
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
