#include "core/base/bulk_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <thread>
#include <utility>

#include "core/base/check.h"
#include "core/base/contain.h"
#include "core/base/mapping.h"

namespace gnnd {
namespace {

// Reads under way that one device handles well; more would only wait in line.
constexpr uint32_t kDepth = 64;
constexpr uint32_t kThreads = 8;

// Whether an error says nothing about the file or its disk, but that the way is refused.
bool IsRefusal(int64_t result) {
  return result == -EINVAL || result == -EOPNOTSUPP || result == -ENOSYS || result == -EPERM ||
         result == -EACCES;
}

Status ErrorOf(const std::string& path, uint64_t at, int64_t result) {
  errno = static_cast<int>(-result);
  return SystemError(Code::kIo, "reading " + path + " at byte " + std::to_string(at));
}

}  // namespace

const char* NameOf(ReadWay way) {
  constexpr const char* kNames[] = {"io_uring", "direct reads", "buffered reads"};
  return kNames[static_cast<uint32_t>(way)];
}

Result<BulkReader> BulkReader::Open(Options options) {
  BulkReader reader;
  reader.way_ = options.way;
  for (const std::string& path : options.paths) {
    File file;
    file.path = path;
    file.buffered = UniqueFd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.buffered.valid()) {
      return SystemError(errno == ENOENT ? Code::kNotFound : Code::kIo, "opening " + path);
    }
    struct stat info{};
    if (fstat(file.buffered.get(), &info) != 0) return SystemError(Code::kIo, "fstat of " + path);
    file.bytes = static_cast<uint64_t>(info.st_size);
    if (reader.way_ != ReadWay::kBuffered) {
      file.direct = UniqueFd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT));
      if (!file.direct.valid()) reader.way_ = ReadWay::kBuffered;
    }
    reader.files_.push_back(std::move(file));
  }
  if (reader.way_ == ReadWay::kUring) {
    Result<Uring> uring = Uring::Open(kDepth);
    if (uring.ok()) {
      reader.uring_ = std::move(*uring);
    } else {
      reader.way_ = ReadWay::kDirect;
    }
  }
  reader.options_ = std::move(options);
  return reader;
}

Status BulkReader::Read(std::span<const BulkRead> reads) {
  done_.assign(reads.size(), 0);
  while (true) {
    bool refused = false;
    GNND_TRY(way_ == ReadWay::kUring ? ReadByUring(reads, &refused)
                                     : ReadByThreads(reads, &refused));
    if (!refused) return Status::Ok();
    if (way_ == ReadWay::kBuffered) {
      return Status(Code::kIo, "the kernel refuses to read " + files_[reads[0].file].path);
    }
    way_ = static_cast<ReadWay>(static_cast<uint32_t>(way_) + 1);
    uring_.reset();
  }
}

Status BulkReader::ReadByUring(std::span<const BulkRead> reads, bool* refused) {
  Status failed;
  const auto ended = [&](uint64_t index, int64_t result) {
    const Judged judged = Judge(reads[index], result);
    *refused |= judged.refused;
    if (!judged.status.ok() && failed.ok()) failed = judged.status;
    if (!judged.refused && judged.status.ok()) done_[index] = 1;
  };
  size_t next = 0;
  while (next < reads.size() || uring_->in_flight() > 0) {
    const bool ends = *refused || !failed.ok();
    for (; !ends && next < reads.size() && !uring_->full(); ++next) {
      const BulkRead& read = reads[next];
      GNND_DCHECK(read.offset % kPageBytes == 0 && read.bytes % kPageBytes == 0);
      uring_->Read(FdOf(read), read.offset, {read.to, read.bytes}, next);
    }
    // Reads under way write into the caller's memory, so this loop ends only when all have ended.
    if (uring_->in_flight() == 0) break;
    GNND_TRY(uring_->Wait(ended));
  }
  return failed;
}

Status BulkReader::ReadByThreads(std::span<const BulkRead> reads, bool* refused) {
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  Status failed;
  const auto run = [&] {
    while (true) {
      const size_t index = next.fetch_add(1, std::memory_order_relaxed);
      if (index >= reads.size()) return;
      if (done_[index] != 0) continue;
      const BulkRead& read = reads[index];
      const ssize_t bytes = pread(FdOf(read), read.to, read.bytes, static_cast<off_t>(read.offset));
      const Judged judged = Judge(read, bytes < 0 ? -errno : bytes);
      if (!judged.refused && judged.status.ok()) {
        done_[index] = 1;
        continue;
      }
      next.store(reads.size(), std::memory_order_relaxed);
      const std::lock_guard lock(mutex);
      *refused |= judged.refused;
      if (failed.ok()) failed = judged.status;
    }
  };
  const Status started = Contained([&] {
    std::vector<std::jthread> others;  // end before the variables that they use
    for (size_t i = 1; i < std::min<size_t>(kThreads, reads.size()); ++i) others.emplace_back(run);
    run();
    return Status::Ok();
  });
  return failed.ok() ? started : failed;
}

BulkReader::Judged BulkReader::Judge(const BulkRead& read, int64_t result) const {
  if (options_.answer) result = options_.answer(way_, read, result);
  if (result >= static_cast<int64_t>(WantedOf(read))) return {};
  if (IsRefusal(result)) return {true, Status::Ok()};
  const bool is_busy = result == -EINTR || result == -EAGAIN;
  if (result < 0 && !is_busy) {
    return {false, ErrorOf(files_[read.file].path, read.offset, result)};
  }
  return {false, FinishBuffered(read, is_busy ? 0 : static_cast<uint64_t>(result))};
}

// Reads the rest of a read that came back short: rare, and at a place that O_DIRECT would not take.
Status BulkReader::FinishBuffered(const BulkRead& read, uint64_t done) const {
  const File& file = files_[read.file];
  const uint64_t wanted = WantedOf(read);
  while (done < wanted) {
    const ssize_t bytes = pread(file.buffered.get(), read.to + done, wanted - done,
                                static_cast<off_t>(read.offset + done));
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return ErrorOf(file.path, read.offset + done, -errno);
    if (bytes == 0) {
      return Status(Code::kDatasetCorrupt,
                    file.path + " ends at byte " + std::to_string(read.offset + done) +
                        ", and had " + std::to_string(file.bytes) + " bytes when it was opened");
    }
    done += static_cast<uint64_t>(bytes);
  }
  return Status::Ok();
}

uint64_t BulkReader::WantedOf(const BulkRead& read) const {
  const uint64_t bytes = files_[read.file].bytes;
  return read.offset >= bytes ? 0 : std::min(read.bytes, bytes - read.offset);
}

int BulkReader::FdOf(const BulkRead& read) const {
  const File& file = files_[read.file];
  return way_ == ReadWay::kBuffered ? file.buffered.get() : file.direct.get();
}

}  // namespace gnnd
