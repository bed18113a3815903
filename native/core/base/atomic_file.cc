#include "core/base/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace gnnd {
namespace {

// Makes a rename in the folder of `path` durable.
Status SyncFolder(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const UniqueFd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid() || fsync(fd.get()) != 0) return SystemError(Code::kIo, "syncing " + folder);
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
  if (!fd_.valid()) return SystemError(Code::kIo, "creating a file beside " + path_);
  return Status::Ok();
}

Status AtomicFile::Write(std::span<const std::byte> bytes) {
  return WriteAll(fd_.get(), bytes) ? Status::Ok() : SystemError(Code::kIo, "writing " + path_);
}

Status AtomicFile::Commit() {
  if (fsync(fd_.get()) != 0) return SystemError(Code::kIo, "syncing " + path_);
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    return SystemError(Code::kIo, "renaming to " + path_);
  }
  committed_ = true;
  return SyncFolder(path_);
}

}  // namespace gnnd
