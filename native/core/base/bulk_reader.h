#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/memfd.h"
#include "core/base/status.h"
#include "core/base/uring.h"

namespace gnnd {

// How files are read, the best first. Each reads the same bytes.
enum class ReadWay : uint32_t {
  kUring = 0,     // past the page cache (O_DIRECT), many at once by io_uring
  kDirect = 1,    // past the page cache, by threads that read one after the other
  kBuffered = 2,  // likewise, through the page cache
};

const char* NameOf(ReadWay way);

// A stretch of a file. Its place, its size and its memory are multiples of kPageBytes; where the
// file ends within it, it is read up to there.
struct BulkRead {
  uint32_t file = 0;  // of those that were opened
  uint64_t offset = 0;
  uint64_t bytes = 0;
  std::byte* to = nullptr;
};

// Reads long stretches of files, all of a call at once. A way that the kernel or the file system
// refuses (seccomp, a kernel without io_uring, a file system without O_DIRECT) gives place to the
// next one, at opening or at any read, for good. One thread's.
class BulkReader {
 public:
  struct Options {
    std::vector<std::string> paths;
    ReadWay way = ReadWay::kUring;  // the first to be tried
    // For tests: what a read came to (bytes, or minus an errno), from what it really came to.
    std::function<int64_t(ReadWay, const BulkRead&, int64_t)> answer;
  };

  // kNotFound, kIo: a file cannot be opened.
  static Result<BulkReader> Open(Options options);

  ReadWay way() const { return way_; }
  uint64_t file_bytes(uint32_t file) const { return files_[file].bytes; }

  // Returns when nothing is under way any more. kIo with the path, the place and the system's
  // reason; kDatasetCorrupt: a file has become shorter than it was when it was opened.
  Status Read(std::span<const BulkRead> reads);

 private:
  struct File {
    std::string path;
    uint64_t bytes = 0;
    UniqueFd buffered;
    UniqueFd direct;
  };
  // What became of a read.
  struct Judged {
    bool refused = false;  // the present way does not do this
    Status status;
  };

  Status ReadByUring(std::span<const BulkRead> reads, bool* refused);
  Status ReadByThreads(std::span<const BulkRead> reads, bool* refused);
  // Of a read that came to `result` in the present way; a short one is finished here.
  Judged Judge(const BulkRead& read, int64_t result) const;
  Status FinishBuffered(const BulkRead& read, uint64_t done) const;
  uint64_t WantedOf(const BulkRead& read) const;
  int FdOf(const BulkRead& read) const;

  Options options_;
  std::vector<File> files_;
  ReadWay way_ = ReadWay::kBuffered;
  std::optional<Uring> uring_;
  std::vector<uint8_t> done_;  // [reads of the present call]; bytes, so that threads may set them
};

}  // namespace gnnd
