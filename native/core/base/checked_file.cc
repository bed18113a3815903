#include "core/base/checked_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>

#include "core/base/memfd.h"
#include "core/base/sha256.h"

namespace gnnd {

Result<std::string> ReadFrozenFile(const std::string& path, const std::string& sha256) {
  const auto failed = [&path](const std::string& why) {
    return Status(Code::kPluginFailed, path + ": " + why);
  };
  // O_NONBLOCK: opening a FIFO must not wait for its writer.
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info{};
  if (!fd.valid() || fstat(fd.get(), &info) != 0) {
    return failed(std::string("cannot be opened: ") + std::strerror(errno));
  }
  if (!S_ISREG(info.st_mode)) return failed("is no regular file");
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(fdopen(fd.Release(), "rb"),
                                                             std::fclose);
  std::string bytes;
  std::array<char, 65536> chunk;
  for (size_t got = chunk.size(); got == chunk.size();) {
    got = std::fread(chunk.data(), 1, chunk.size(), file.get());
    bytes.append(chunk.data(), got);
  }
  if (std::ferror(file.get()) != 0) return failed("cannot be read");
  const std::string found =
      HexOf(Sha256().Add(std::as_bytes(std::span(bytes.data(), bytes.size()))).Finish());
  if (found != sha256) {
    return failed("its SHA-256 is " + found + "; the job was created with " + sha256);
  }
  return bytes;
}

}  // namespace gnnd
