#include "core/prepare/row_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

#include "core/base/contain.h"
#include "core/base/mapping.h"
#include "core/base/sha256.h"
#include "core/graph/npy.h"
#include "core/vec/convert.h"

namespace gnnd {
namespace {

constexpr uint64_t kWriteBytes = uint64_t{4} << 20;  // size of one write(2), for each thread

// Converts rows [0, count) of float32 to a row type.
Status Narrow(const float* from, uint64_t count, RowType type, std::byte* to) {
  switch (type) {
    case RowType::kFloat32:
      std::memcpy(to, from, count * sizeof(float));
      return Status::Ok();
    case RowType::kBfloat16:
      Convert(from, count, reinterpret_cast<Bfloat16*>(to));
      return Status::Ok();
    case RowType::kFloat16:
      break;
  }
  auto* const halves = reinterpret_cast<Half*>(to);
  bool fits = true;
  for (uint64_t i = 0; i < count; ++i) {
    halves[i] = ToHalf(from[i]);
    fits = fits && (static_cast<uint32_t>(halves[i]) & kHalfExponentBits) != kHalfExponentBits;
  }
  if (fits) return Status::Ok();
  const float* lost = std::find_if(from, from + count, [](float value) {
    return (static_cast<uint32_t>(ToHalf(value)) & kHalfExponentBits) == kHalfExponentBits;
  });
  return Status(Code::kDatasetCorrupt,
                "a row holds " + std::to_string(*lost) +
                    ", and float16 ends at 65504: store float32 or bfloat16");
}

Result<Mapping> MapFile(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return SystemError(Code::kIo, "opening " + path);
  return Mapping::Map(fd.get(), false);
}

}  // namespace

Status ForRanges(uint32_t threads, uint64_t count, uint64_t grain,
                 const std::function<Status(uint64_t, uint64_t)>& body) {
  std::atomic<uint64_t> next = 0;
  std::mutex mutex;
  Status failed;
  const auto run = [&] {
    while (true) {
      const uint64_t begin = next.fetch_add(grain, std::memory_order_relaxed);
      if (begin >= count) return;
      Status status = Contained([&] { return body(begin, std::min(begin + grain, count)); });
      if (status.ok()) continue;
      next.store(count, std::memory_order_relaxed);
      const std::lock_guard lock(mutex);
      if (failed.ok()) failed = std::move(status);
    }
  };
  const uint64_t ranges = (count + grain - 1) / grain;
  {
    std::vector<std::jthread> others;  // end before the variables that they use
    for (uint64_t i = 1; i < std::min<uint64_t>(threads, ranges); ++i) others.emplace_back(run);
    run();
  }
  return failed;
}

Status WriteRows(const RowSource& source, RowType type, const std::string& header,
                 const std::string& path, uint32_t threads) {
  AtomicFile file(path);
  GNND_TRY(file.Create());
  GNND_TRY(file.Write(std::as_bytes(std::span(header.data(), header.size()))));
  const uint64_t row_bytes = source.columns * BytesOf(type);
  const uint64_t grain = std::max<uint64_t>(1, kWriteBytes / row_bytes);
  const uint64_t stretch = grain * threads;
  std::vector<std::byte> narrow(std::min(stretch, source.row_count) * row_bytes);
  for (uint64_t from = 0; from < source.row_count; from += stretch) {
    const uint64_t rows = std::min(stretch, source.row_count - from);
    GNND_TRY(ForRanges(threads, rows, grain, [&](uint64_t begin, uint64_t end) {
      std::byte* const out = narrow.data() + begin * row_bytes;
      const uint64_t count = (end - begin) * source.columns;
      if (type == RowType::kFloat32) {
        source.rows(from + begin, from + end, reinterpret_cast<float*>(out));
        return Status::Ok();
      }
      std::vector<float> wide(count);
      source.rows(from + begin, from + end, wide.data());
      return Narrow(wide.data(), count, type, out);
    }));
    GNND_TRY(file.Write({narrow.data(), rows * row_bytes}));
  }
  return file.Commit();
}

Status JoinParts(std::span<const RowPart> parts, uint64_t row_count, const std::string& header,
                 const std::string& path) {
  std::vector<Mapping> mapped;
  uint64_t row_bytes = 0;
  for (const RowPart& part : parts) {
    mapped.push_back(GNND_VALUE(MapFile(part.path)));
    if (mapped.back().size() != row_count * part.row_bytes) {
      return Status(Code::kIo, part.path + " has another size than it was written with");
    }
    row_bytes += part.row_bytes;
  }
  AtomicFile file(path);
  GNND_TRY(file.Create());
  GNND_TRY(file.Write(std::as_bytes(std::span(header.data(), header.size()))));
  const uint64_t grain = std::max<uint64_t>(1, kWriteBytes / row_bytes);
  std::vector<std::byte> whole(grain * row_bytes);
  for (uint64_t from = 0; from < row_count; from += grain) {
    const uint64_t rows = std::min(grain, row_count - from);
    uint64_t column = 0;
    for (size_t p = 0; p < parts.size(); ++p) {
      const uint64_t bytes = parts[p].row_bytes;
      for (uint64_t row = 0; row < rows; ++row) {
        std::memcpy(whole.data() + row * row_bytes + column,
                    mapped[p].data() + (from + row) * bytes, bytes);
      }
      column += bytes;
    }
    GNND_TRY(file.Write({whole.data(), rows * row_bytes}));
  }
  return file.Commit();
}

std::string RowHeader(RowType type, uint64_t row_count, uint64_t columns) {
  constexpr NpyType kTypes[] = {NpyType::kFloat32, NpyType::kFloat16, NpyType::kUint16};
  const uint64_t shape[] = {row_count, columns};
  return NpyHeader(kTypes[static_cast<uint32_t>(type)], shape, kRowAlignment);
}

bool IsThere(const std::string& path, uint64_t bytes) {
  struct stat info{};
  if (stat(path.c_str(), &info) != 0) return false;
  if (S_ISREG(info.st_mode) && static_cast<uint64_t>(info.st_size) == bytes) return true;
  unlink(path.c_str());
  return false;
}

Result<DigestedFile> DigestFile(const std::string& folder, const std::string& name) {
  const Mapping file = GNND_VALUE(MapFile(folder + "/" + name));
  return DigestedFile{name, file.size(), HexOf(Sha256().Add(file.bytes()).Finish())};
}

}  // namespace gnnd
