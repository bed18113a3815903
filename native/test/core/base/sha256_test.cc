#include "core/base/sha256.h"

#include <doctest/doctest.h>

#include <string>

namespace gnnd {
namespace {

std::string HashOf(const std::string& text) {
  return HexOf(Sha256().Add(std::as_bytes(std::span(text))).Finish());
}

}  // namespace

TEST_CASE("SHA-256: the standard's examples") {
  CHECK(HashOf("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(HashOf("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(HashOf("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(HashOf(std::string(1'000'000, 'a')) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("SHA-256: how a message is cut into pieces does not matter") {
  std::string message;
  for (int i = 0; i < 300; ++i) message += static_cast<char>('a' + i % 26);
  const std::string whole = HashOf(message);
  for (size_t step = 1; step < 150; ++step) {
    Sha256 hash;
    for (size_t at = 0; at < message.size(); at += step) {
      hash.Add(std::as_bytes(std::span(message)).subspan(at, std::min(step, message.size() - at)));
    }
    CHECK(HexOf(hash.Finish()) == whole);
  }
}

TEST_CASE("SHA-256: the processor's instructions give what the loop gives") {
  std::string message;
  for (int i = 0; i < 1000; ++i) message += static_cast<char>(i * 37 % 251);
  for (size_t length = 0; length <= message.size(); ++length) {
    const auto bytes = std::as_bytes(std::span(message).first(length));
    CHECK(Sha256(Sha256::Speed::kPlain).Add(bytes).Finish() == Sha256().Add(bytes).Finish());
  }
}

}  // namespace gnnd
