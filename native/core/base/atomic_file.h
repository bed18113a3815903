#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "core/base/memfd.h"
#include "core/base/status.h"

namespace gnnd {

// A file that appears at its path when committed and otherwise never was. It is written beside its
// place (path + ".tmp-XXXXXX", which only a killed process leaves there), synced, then renamed.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  // All answer kIo with the path and the system's reason.
  Status Create();
  Status Write(std::span<const std::byte> bytes);
  Status Commit();

 private:
  std::string path_;
  std::string temporary_;
  UniqueFd fd_;
  bool committed_ = false;
};

}  // namespace gnnd
