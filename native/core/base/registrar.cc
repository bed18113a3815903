#include "core/base/registrar.h"

#include <algorithm>
#include <string>

#include "core/base/check.h"

namespace gnnd {

Registration::~Registration() {
  while (!pieces_.empty()) {
    registrar_.remove(registrar_.context, pieces_.back());
    pieces_.pop_back();
  }
}

Result<Registration> Registration::Of(const Registrar& registrar,
                                      std::span<const std::span<std::byte>> ranges) {
  GNND_CHECK(registrar.add != nullptr && registrar.remove != nullptr && registrar.most_bytes > 0);
  Registration registration;
  registration.registrar_ = registrar;
  bool is_one = ranges.size() == 1;
  for (const std::span<std::byte> range : ranges) {
    for (uint64_t at = 0; at < range.size(); at += registrar.most_bytes) {
      const auto piece = range.subspan(at, std::min(registrar.most_bytes, range.size() - at));
      std::byte* seen = nullptr;
      const Status added = registrar.add(registrar.context, piece, &seen);
      if (!added.ok()) {
        return Status(added.code(), "registering " + std::to_string(piece.size()) +
                                        " bytes with the device: " + added.message());
      }
      if (registration.pieces_.empty()) registration.seen_ = seen;
      is_one = is_one && seen == registration.seen_ + at;
      registration.pieces_.push_back(piece);
      registration.bytes_ += piece.size();
    }
  }
  if (!is_one) registration.seen_ = nullptr;
  return registration;
}

}  // namespace gnnd
