#include "core/base/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "core/base/mapping.h"

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
  const auto write = [this](std::span<const std::byte> some) {
    return WriteAll(fd_.get(), some) ? Status::Ok() : SystemError(Code::kIo, "writing " + path_);
  };
  if (!rest_.empty()) {
    const uint64_t room = std::min<uint64_t>(kHugePageBytes - rest_.size(), bytes.size());
    rest_.insert(rest_.end(), bytes.begin(), bytes.begin() + static_cast<int64_t>(room));
    bytes = bytes.subspan(room);
    if (rest_.size() < kHugePageBytes) return Status::Ok();
    GNND_TRY(write(rest_));
    rest_.clear();
  }
  const uint64_t whole = bytes.size() / kHugePageBytes * kHugePageBytes;
  GNND_TRY(write(bytes.first(whole)));
  rest_.assign(bytes.begin() + static_cast<int64_t>(whole), bytes.end());
  return Status::Ok();
}

Status AtomicFile::Commit() {
  if (!WriteAll(fd_.get(), rest_)) return SystemError(Code::kIo, "writing " + path_);
  if (fsync(fd_.get()) != 0) return SystemError(Code::kIo, "syncing " + path_);
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    return SystemError(Code::kIo, "renaming to " + path_);
  }
  committed_ = true;
  return SyncFolder(path_);
}

}  // namespace gnnd
