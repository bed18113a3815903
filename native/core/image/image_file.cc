#include "core/image/image_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "core/base/memfd.h"
#include "core/base/sha256.h"
#include "core/draw/locality.h"
#include "core/image/image.h"
#include "core/ledger/layout.h"

namespace gnnd {
namespace {

Status Corrupted(const std::string& path, const std::string& why) {
  return Status(Code::kDatasetCorrupt, path + ": " + why);
}

Status ReadAll(int fd, std::span<std::byte> bytes, const std::string& path) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got =
        pread(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SystemError(Code::kIo, "reading " + path);
    if (got == 0) return Corrupted(path, "ends early");
    done += static_cast<size_t>(got);
  }
  return Status::Ok();
}

// Bytes of format 2 and where its numbers lie, and what format 3 has in their places.
constexpr uint64_t kHeader2 = 328;
constexpr uint64_t kHeader3 = 336;
constexpr uint64_t kLocalityAt = 200;  // a word behind the shape, which format 2 has not
constexpr uint64_t kSums2 = 64;
constexpr uint64_t kEntryHead = 64;  // of an entry, before its sums
constexpr uint64_t kEntryTail = 128;
constexpr uint64_t kEntry2 = kEntryHead + kSums2 + kEntryTail;
constexpr uint64_t kEntry3 = kEntryHead + sizeof(EpochSums) + kEntryTail;
static_assert(offsetof(EpochEntry, val_metrics) == kEntry3);

class Format2 {
 public:
  explicit Format2(std::span<const std::byte> bytes) : bytes_(bytes) {}

  // None where the bytes are no image of that format, or not as they were written.
  std::optional<ImageBytes> AsFormat3() const {
    if (!IsWhole()) return std::nullopt;
    const uint64_t floats =
        4 * (Word(232) * Word(112) + Word(240) * Word(120) + Word(248) * Word(112));
    const uint64_t epochs = Word(224);
    const uint64_t behind = (epochs + 1) * sizeof(uint64_t) + Word(256);  // starts, history
    const uint64_t entries2 = RoundedUp(kHeader2 + kSums2 + floats, 64);
    const uint64_t floats3 = kHeader3 + sizeof(EpochSums);
    const uint64_t entries3 = RoundedUp(floats3 + floats, 64);
    const uint64_t starts2 = entries2 + epochs * kEntry2;
    const uint64_t starts3 = entries3 + epochs * kEntry3;
    const uint64_t digest_at = RoundedUp(starts3 + behind, 8);
    if (bytes_.size() != RoundedUp(starts2 + behind, 8) + sizeof(Sha256Digest)) return std::nullopt;
    ImageBytes made{HugeArray<std::byte>(digest_at + sizeof(Sha256Digest)),
                    digest_at + sizeof(Sha256Digest)};
    std::byte* const to = made.memory.data();
    const auto copy = [&](uint64_t from, uint64_t at, uint64_t count) {
      std::memcpy(to + at, bytes_.data() + from, count);
    };
    copy(0, 0, kLocalityAt);
    copy(kLocalityAt, kLocalityAt + 8, kHeader2 - kLocalityAt);
    const uint32_t format[2] = {3, kHeader3};
    std::memcpy(to + 8, format, sizeof(format));
    std::memcpy(to + 64, &made.size, sizeof(made.size));
    const uint64_t nobody = kScaleOne;
    std::memcpy(to + kLocalityAt, &nobody, sizeof(nobody));
    copy(kHeader2, kHeader3, kSums2);
    copy(kHeader2 + kSums2, floats3, floats);
    for (uint64_t e = 0; e < epochs; ++e) {
      const uint64_t from = entries2 + e * kEntry2;
      const uint64_t at = entries3 + e * kEntry3;
      copy(from, at, kEntryHead + kSums2);
      copy(from + kEntryHead + kSums2, at + kEntryHead + sizeof(EpochSums), kEntryTail);
    }
    copy(starts2, starts3, behind);
    const Sha256Digest digest = Sha256().Add({to, digest_at}).Finish();
    std::memcpy(to + digest_at, digest.data(), digest.size());
    return made;
  }

 private:
  static uint64_t RoundedUp(uint64_t value, uint64_t unit) {
    return (value + unit - 1) / unit * unit;
  }
  uint64_t Word(uint64_t at) const {
    uint64_t word = 0;
    std::memcpy(&word, bytes_.data() + at, sizeof(word));
    return word;
  }

  bool IsWhole() const {
    if (bytes_.size() < kHeader2 + sizeof(Sha256Digest)) return false;
    if (Word(0) != kImageMagic || Word(8) != (kHeader2 << 32 | 2)) return false;
    const auto written = bytes_.first(bytes_.size() - sizeof(Sha256Digest));
    const Sha256Digest digest = Sha256().Add(written).Finish();
    return std::memcmp(bytes_.data() + written.size(), digest.data(), digest.size()) == 0;
  }

  std::span<const std::byte> bytes_;
};

}  // namespace

Result<ImageBytes> ReadImageFile(const std::string& path, uint64_t least_bytes,
                                 uint64_t most_bytes) {
  // A FIFO must keep nobody waiting for its writer.
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info{};
  if (!fd.valid() || fstat(fd.get(), &info) != 0) {
    return SystemError(errno == ENOENT ? Code::kNotFound : Code::kIo, "opening " + path);
  }
  if (!S_ISREG(info.st_mode)) return Corrupted(path, "is no regular file");
  ImageBytes bytes;
  bytes.size = static_cast<uint64_t>(info.st_size);
  if (bytes.size < least_bytes) return Corrupted(path, "is shorter than its header");
  if (bytes.size > most_bytes) {
    return Status(Code::kInvalidArgument, path + ": is longer than an image of the job can be");
  }
  bytes.memory = HugeArray<std::byte>(bytes.size);
  const std::span<std::byte> all(bytes.memory.data(), bytes.size);
  GNND_TRY(ReadAll(fd.get(), all, path));
  if (std::optional<ImageBytes> newer = Format2(all).AsFormat3()) return std::move(*newer);
  return bytes;
}

}  // namespace gnnd
