#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace gnnd {

using Sha256Digest = std::array<uint8_t, 32>;

// Lower-case hex.
std::string HexOf(const Sha256Digest& digest);

// SHA-256 (FIPS 180-4) of all bytes added, in order. It identifies trained parameters (hashed in
// place, once an epoch, by the process that evaluates them) and the arrays of imported datasets.
class Sha256 {
 public:
  enum class Speed { kPlain, kFastest };  // kFastest: by the processor's own instructions, if any

  explicit Sha256(Speed speed = Speed::kFastest);
  Sha256& Add(std::span<const std::byte> bytes);
  // Ends the message; the object must not be used afterwards.
  Sha256Digest Finish();

 private:
  // Takes whole blocks.
  void (*compress_)(std::array<uint32_t, 8>*, const uint8_t*, size_t);
  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> buffer_{};
  uint64_t length_ = 0;  // bytes added
};

}  // namespace gnnd
