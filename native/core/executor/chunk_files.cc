#include "core/executor/chunk_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/atomic_file.h"
#include "core/base/check.h"
#include "core/base/failpoint.h"

namespace gnnd {
namespace {

Status WriteAt(int fd, uint64_t at, std::span<const std::byte> bytes, const std::string& path) {
  if (WriteAll(fd, bytes, at)) return Status::Ok();
  return SystemError(Code::kIo, "writing " + path);
}

Status SyncData(int fd, const std::string& what) {
  return fdatasync(fd) == 0 ? Status::Ok() : SystemError(Code::kIo, "syncing " + what);
}

}  // namespace

uint64_t ChunkArray::row_bytes() const {
  GNND_CHECK(!shape.empty());
  uint64_t bytes = BytesOf(type);
  for (const uint64_t extent : std::span(shape).subspan(1)) bytes *= extent;
  return bytes;
}

Status WriteIdsOnce(const std::string& path, std::span<const uint64_t> shape,
                    std::span<const uint32_t> ids) {
  if (access(path.c_str(), F_OK) == 0) return Status::Ok();
  AtomicFile file(path);
  GNND_TRY(file.Create());
  const std::string header = NpyHeader(NpyType::kInt64, shape);
  GNND_TRY(file.Write(std::as_bytes(std::span(header.data(), header.size()))));
  std::array<int64_t, 4096> wide;
  for (size_t from = 0; from < ids.size(); from += wide.size()) {
    const auto part = ids.subspan(from, std::min(wide.size(), ids.size() - from));
    std::copy(part.begin(), part.end(), wide.begin());
    GNND_TRY(file.Write(std::as_bytes(std::span(wide.data(), part.size()))));
  }
  return file.Commit();
}

Status ChunkFiles::OpenFile(const std::string& path, const std::string& header, uint64_t bytes,
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

Result<ChunkFiles> ChunkFiles::Open(const std::string& folder, std::span<const ChunkArray> arrays) {
  ChunkFiles files;
  files.journal_.path = folder + "/chunks.bin";
  files.journal_.fd =
      UniqueFd(open(files.journal_.path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!files.journal_.fd.valid()) return SystemError(Code::kIo, "opening " + files.journal_.path);
  for (const ChunkArray& array : arrays) {
    File file;
    file.row_bytes = array.row_bytes();
    GNND_TRY(OpenFile(folder + "/out/" + array.name, NpyHeader(array.type, array.shape),
                      array.shape.front() * file.row_bytes, &file));
    files.files_.push_back(std::move(file));
  }
  return files;
}

Result<std::optional<uint64_t>> ChunkFiles::Done(uint32_t word) const {
  ChunkMark mark;
  const auto at = static_cast<off_t>(word * sizeof(mark));
  const ssize_t read = pread(journal_.fd.get(), &mark, sizeof(mark), at);
  if (read < 0) return SystemError(Code::kIo, "reading " + journal_.path);
  if (read < static_cast<ssize_t>(sizeof(mark)) || mark.rows_and_one == 0) {
    return std::optional<uint64_t>();
  }
  return std::optional<uint64_t>(mark.rows_and_one - 1);
}

Status ChunkFiles::WriteRows(size_t array, uint64_t first, std::span<const std::byte> rows) const {
  const File& file = files_[array];
  return WriteAt(file.fd.get(), file.data_at + first * file.row_bytes, rows, file.path);
}

Status ChunkFiles::Finish(uint32_t word, uint64_t rows, int scratch) const {
  for (const File& file : files_) GNND_TRY(SyncData(file.fd.get(), file.path));
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
