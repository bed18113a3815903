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

// The ways in which files are read, the best first. Each way reads the same bytes.
enum class ReadWay : uint32_t {
  kUring = 0,     // past the page cache (O_DIRECT), many at once by io_uring
  kDirect = 1,    // past the page cache, by threads that each wait for one read after the other
  kBuffered = 2,  // by the same threads, through the page cache
};

const char* NameOf(ReadWay way);

// One stretch of a file to read. Offset, size and memory address are multiples of kPageBytes; a
// stretch that reaches beyond the end of the file is read up to there.
struct BulkRead {
  uint32_t file = 0;  // index in Options::paths
  uint64_t offset = 0;
  uint64_t bytes = 0;
  std::byte* to = nullptr;
};

// Reads long stretches of files, all those of a call at once. When the kernel or the file system
// refuses a way (seccomp, a kernel without io_uring, a file system without O_DIRECT), at opening or
// at any read, the next way replaces it for good. For use by one thread.
class BulkReader {
 public:
  struct Options {
    std::vector<std::string> paths;
    ReadWay way = ReadWay::kUring;  // the first to be tried
    // For tests: replaces the result of a read (bytes, or minus an errno), given the true one.
    std::function<int64_t(ReadWay, const BulkRead&, int64_t)> answer;
  };

  // kNotFound, kIo: a file cannot be opened.
  static Result<BulkReader> Open(Options options);

  ReadWay way() const { return way_; }
  uint64_t file_bytes(uint32_t file) const { return files_[file].bytes; }

  // Returns when no read is under way any more. kIo names the path, the place and the system's
  // reason; kDatasetCorrupt says that a file has become shorter since it was opened.
  Status Read(std::span<const BulkRead> reads);

 private:
  struct File {
    std::string path;
    uint64_t bytes = 0;
    UniqueFd buffered;
    UniqueFd direct;
  };
  // How a finished read is judged.
  struct Judged {
    bool refused = false;  // the present way cannot read this file
    Status status;
  };

  Status ReadByUring(std::span<const BulkRead> reads, bool* refused);
  Status ReadByThreads(std::span<const BulkRead> reads, bool* refused);
  // Judges a read that returned `result` in the present way, and finishes one that came back short.
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
