#include "core/base/bulk_reader.h"

#include <doctest/doctest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "core/base/huge_array.h"
#include "test/support/npy_files.h"

namespace gnnd {
namespace {

using test::TempFolder;

constexpr uint64_t kFileBytes = 37 * kPageBytes + 1234;  // ends within a page
constexpr ReadWay kWays[] = {ReadWay::kUring, ReadWay::kDirect, ReadWay::kBuffered};

std::string RandomBytes(uint64_t bytes, uint64_t seed) {
  std::string all(bytes, '\0');
  uint64_t state = seed;
  for (char& byte : all) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    byte = static_cast<char>(state >> 56);
  }
  return all;
}

// Two files, and reads of all their pages in stretches of three, the files in turns.
struct Fixture {
  Fixture() {
    for (uint64_t i = 0; i < 2; ++i) {
      content.push_back(RandomBytes(kFileBytes, i + 1));
      paths.push_back(folder / ("file" + std::to_string(i)));
      test::WriteFile(paths.back(), content.back());
    }
    uint64_t used = 0;
    for (uint64_t at = 0; at < kFileBytes; at += 3 * kPageBytes) {
      for (uint32_t file = 0; file < 2; ++file) {
        reads.push_back({file, at, 3 * kPageBytes, memory.data() + used});
        used += 3 * kPageBytes;
      }
    }
  }

  using Answer = decltype(BulkReader::Options::answer);

  BulkReader Open(ReadWay way, const Answer& answer = {}) const {
    Result<BulkReader> reader = BulkReader::Open({paths, way, answer});
    REQUIRE_MESSAGE(reader.ok(), reader.status().message());
    return std::move(*reader);
  }

  void Poison() { std::memset(memory.data(), 0x5A, memory.size()); }

  bool IsRight() const {
    return std::all_of(reads.begin(), reads.end(), [&](const BulkRead& read) {
      const uint64_t bytes = std::min(read.bytes, kFileBytes - read.offset);
      return std::memcmp(read.to, content[read.file].data() + read.offset, bytes) == 0;
    });
  }

  TempFolder folder;
  std::vector<std::string> content;
  std::vector<std::string> paths;
  HugeArray<std::byte> memory{100 * kPageBytes};
  std::vector<BulkRead> reads;
};

TEST_CASE("bulk reads: every way reads the same bytes, up to a file's end") {
  for (const ReadWay way : kWays) {
    Fixture f;
    BulkReader reader = f.Open(way);
    for (int again = 0; again < 3; ++again) {
      f.Poison();
      const Status status = reader.Read(f.reads);
      CHECK_MESSAGE(status.ok(), status.message());
      CHECK(f.IsRight());
    }
    CHECK(reader.Read({}).ok());
    CHECK(reader.file_bytes(1) == kFileBytes);
  }
}

TEST_CASE("bulk reads: what comes back short or busy is finished, in every way") {
  for (const ReadWay way : kWays) {
    for (const int64_t left :
         {int64_t{0}, int64_t{1}, int64_t{777}, int64_t{-EINTR}, int64_t{-EAGAIN}}) {
      CAPTURE(left);
      Fixture f;
      std::atomic<int> count = 0;
      const auto answer = [&](ReadWay, const BulkRead& read, int64_t result) {
        if (count.fetch_add(1) % 3 != 0) return result;
        const uint64_t kept = left < 0 ? 0 : static_cast<uint64_t>(left);
        std::memset(read.to + kept, 0x5A, read.bytes - kept);
        return left;
      };
      BulkReader reader = f.Open(way, answer);
      f.Poison();
      CHECK(reader.Read(f.reads).ok());
      CHECK(f.IsRight());
    }
  }
}

TEST_CASE("bulk reads: a disk's error names the file and the place; the next call works") {
  for (const ReadWay way : kWays) {
    Fixture f;
    std::atomic<bool> broken = true;
    const auto answer = [&](ReadWay, const BulkRead& read, int64_t result) {
      const bool hits = broken && read.file == 1 && read.offset == 6 * kPageBytes;
      return hits ? int64_t{-EIO} : result;
    };
    BulkReader reader = f.Open(way, answer);
    const Status status = reader.Read(f.reads);
    CHECK(status.code() == Code::kIo);
    CHECK(status.message().find(f.paths[1] + " at byte 24576") != std::string::npos);
    broken = false;
    f.Poison();
    CHECK(reader.Read(f.reads).ok());
    CHECK(f.IsRight());
  }
}

TEST_CASE("bulk reads: a file that has become shorter is an error, in every way") {
  for (const ReadWay way : kWays) {
    Fixture f;
    BulkReader reader = f.Open(way);
    REQUIRE(truncate(f.paths[0].c_str(), 5000) == 0);
    const Status status = reader.Read(f.reads);
    CHECK(status.code() == Code::kDatasetCorrupt);
    CHECK(status.message().find("file0 ends at byte") != std::string::npos);
  }
  const Result<BulkReader> none = BulkReader::Open({{"/nowhere/at/all"}, ReadWay::kUring, {}});
  CHECK(none.status().code() == Code::kNotFound);
}

TEST_CASE("bulk reads: a way that is refused in the middle gives place to the next, for good") {
  for (const int64_t refusal : {int64_t{-EINVAL}, int64_t{-EOPNOTSUPP}, int64_t{-EPERM}}) {
    Fixture f;
    std::mutex mutex;
    std::multiset<ReadWay> asked;
    const auto answer = [&](ReadWay way, const BulkRead& read, int64_t result) {
      const std::lock_guard lock(mutex);
      asked.insert(way);
      // The first two ways do some of it.
      return way != ReadWay::kBuffered && read.offset >= 9 * kPageBytes ? refusal : result;
    };
    BulkReader reader = f.Open(ReadWay::kUring, answer);
    f.Poison();
    CHECK(reader.Read(f.reads).ok());
    CHECK(f.IsRight());
    CHECK(reader.way() == ReadWay::kBuffered);
    const size_t before = asked.count(ReadWay::kUring) + asked.count(ReadWay::kDirect);
    CHECK(reader.Read(f.reads).ok());
    CHECK(asked.count(ReadWay::kUring) + asked.count(ReadWay::kDirect) == before);
  }
}

// Lets the kernel answer io_uring_setup with `error` in this process, as a container's filter does.
bool ForbidUring(uint32_t error) {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{std::size(program), program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST_CASE("bulk reads: where seccomp or the kernel refuses io_uring, threads read the same") {
  for (const uint32_t error : {uint32_t{ENOSYS}, uint32_t{EPERM}}) {
    Fixture f;
    const pid_t child = fork();
    if (child == 0) {
      if (!ForbidUring(error)) _exit(2);
      Result<BulkReader> reader = BulkReader::Open({f.paths, ReadWay::kUring, {}});
      if (!reader.ok() || reader->way() == ReadWay::kUring) _exit(3);
      f.Poison();
      if (!reader->Read(f.reads).ok()) _exit(4);
      _exit(f.IsRight() ? 0 : 5);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
  }
}

}  // namespace
}  // namespace gnnd
