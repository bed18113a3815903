#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/base/memfd.h"
#include "core/base/status.h"

namespace gnnd {

// A file that appears at its path when committed and otherwise never was. It is written beside its
// place (path + ".tmp-XXXXXX", which only a killed process leaves there), synced, then renamed.
//
// Whatever pieces it is written in, the system gets whole 2 MiB of it at a time, from places that
// are multiples of that: file systems that keep a write in one piece of memory (ext4, XFS) then let
// it be mapped by 2 MiB pages, and files that appear here are read at random for a long time.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  // All answer kIo with the path and the system's reason.
  Status Create();
  // The last bytes are written by Commit.
  Status Write(std::span<const std::byte> bytes);
  Status Commit();

 private:
  std::string path_;
  std::string temporary_;
  UniqueFd fd_;
  std::vector<std::byte> rest_;  // less than 2 MiB, not written yet
  bool committed_ = false;
};

}  // namespace gnnd
