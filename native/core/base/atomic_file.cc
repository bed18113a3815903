#include "core/base/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace gnnd {
namespace {

Status IoError(const std::string& what, int error) {
  return Status(Code::kIo, what + ": " + std::strerror(error));
}

// Makes a rename in the folder of `path` durable.
Status SyncFolder(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const UniqueFd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid() || fsync(fd.get()) != 0) return IoError("syncing " + folder, errno);
  return Status::Ok();
}

}  // namespace

AtomicFile::AtomicFile(std::string path)
    : path_(std::move(path)), temporary_(path_ + ".tmp-XXXXXX") {}

AtomicFile::~AtomicFile() {
  if (fd_.valid() && !committed_) unlink(temporary_.c_str());
}

Status AtomicFile::Create() {
  fd_ = UniqueFd(mkostemp(temporary_.data(), O_CLOEXEC));
  if (!fd_.valid()) return IoError("creating a file beside " + path_, errno);
  return Status::Ok();
}

Status AtomicFile::Write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return IoError("writing " + path_, errno);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return Status::Ok();
}

Status AtomicFile::Commit() {
  if (fsync(fd_.get()) != 0) return IoError("syncing " + path_, errno);
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    return IoError("renaming to " + path_, errno);
  }
  committed_ = true;
  return SyncFolder(path_);
}

}  // namespace gnnd
