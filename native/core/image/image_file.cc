#include "core/image/image_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <span>

#include "core/base/memfd.h"

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

}  // namespace

Result<ImageBytes> ReadImageFile(const std::string& path, uint64_t least_bytes,
                                 uint64_t most_bytes) {
  // O_NONBLOCK: opening a FIFO must not wait for its writer.
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
  GNND_TRY(ReadAll(fd.get(), {bytes.memory.data(), bytes.size}, path));
  return bytes;
}

}  // namespace gnnd
