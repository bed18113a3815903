#include "core/table/text_ids.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace gnnd {
namespace {

constexpr size_t kSlotsAtFirst = 2048;
constexpr unsigned kHalf = 32;

// Of a slot that is in use.
uint32_t NumberIn(uint64_t slot) { return static_cast<uint32_t>(slot) - 1; }

// Eight bytes at a time, each mixed in by a multiplication (of the golden ratio's bits).
uint32_t HashOf(std::string_view text) {
  constexpr uint64_t kFactor = 0x9E3779B97F4A7C15ULL;
  uint64_t hash = text.size() * kFactor;
  const char* at = text.data();
  size_t left = text.size();
  for (; left >= sizeof(uint64_t); left -= sizeof(uint64_t), at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, at, sizeof(word));
    hash = (hash ^ word) * kFactor;
    hash ^= hash >> kHalf;
  }
  uint64_t word = 0;
  std::memcpy(&word, at, left);
  hash = (hash ^ word) * kFactor;
  return static_cast<uint32_t>(hash ^ (hash >> kHalf));
}

}  // namespace

TextIds::TextIds() : slots_(kSlotsAtFirst) {}

std::string_view TextIds::At(uint32_t number) const {
  const uint64_t place = places_[number];
  const char* const text = blocks_[place / kPieceBytes].bytes.get() + place % kPieceBytes;
  return {text, static_cast<const char*>(std::memchr(text, '\n', kTextBytesMax + 1))};
}

size_t TextIds::NextSlot(size_t slot, uint32_t hash) const {
  const size_t mask = slots_.size() - 1;
  for (slot &= mask; slots_[slot] != 0 && slots_[slot] >> kHalf != hash;) slot = (slot + 1) & mask;
  return slot;
}

bool TextIds::IsAt(uint64_t place, std::string_view text) const {
  const Block& block = blocks_[place / kPieceBytes];
  const size_t begin = place % kPieceBytes;
  const char* const own = block.bytes.get() + begin;
  return block.length - begin > text.size() && own[text.size()] == '\n' &&
         std::memcmp(own, text.data(), text.size()) == 0;
}

size_t TextIds::SlotOf(std::string_view text, uint32_t hash) const {
  size_t slot = NextSlot(hash, hash);
  while (slots_[slot] != 0 && !IsAt(places_[NumberIn(slots_[slot])], text)) {
    slot = NextSlot(slot + 1, hash);
  }
  return slot;
}

bool TextIds::FindAll(std::span<const std::string_view> texts, uint32_t* numbers) const {
  constexpr size_t kAtOnce = 32;
  std::array<uint32_t, kAtOnce> hashes;
  std::array<uint64_t, kAtOnce> places;
  const size_t mask = slots_.size() - 1;
  for (size_t first = 0; first < texts.size(); first += kAtOnce) {
    const size_t count = std::min(kAtOnce, texts.size() - first);
    for (size_t at = 0; at < count; ++at) {
      if (texts[first + at].size() > kTextBytesMax) return false;
      hashes[at] = HashOf(texts[first + at]);
      __builtin_prefetch(&slots_[hashes[at] & mask]);
    }
    for (size_t at = 0; at < count; ++at) {
      const uint64_t slot = slots_[NextSlot(hashes[at], hashes[at])];
      if (slot == 0) return false;
      numbers[first + at] = NumberIn(slot);
      __builtin_prefetch(&places_[NumberIn(slot)]);
    }
    for (size_t at = 0; at < count; ++at) {
      places[at] = places_[numbers[first + at]];
      __builtin_prefetch(blocks_[places[at] / kPieceBytes].bytes.get() + places[at] % kPieceBytes);
    }
    for (size_t at = 0; at < count; ++at) {
      if (IsAt(places[at], texts[first + at])) continue;
      // Another text has the same hash.
      const std::optional<uint32_t> found = Find(texts[first + at]);
      if (!found) return false;
      numbers[first + at] = *found;
    }
  }
  return true;
}

uint32_t TextIds::Put(size_t slot, std::string_view text, uint32_t hash) {
  if (blocks_.empty() || blocks_.back().length + text.size() + 1 > kPieceBytes) {
    blocks_.push_back({std::make_unique_for_overwrite<char[]>(kPieceBytes), 0});
  }
  Block& block = blocks_.back();
  places_.push_back((blocks_.size() - 1) * kPieceBytes + block.length);
  std::memcpy(block.bytes.get() + block.length, text.data(), text.size());
  block.length += text.size() + 1;
  block.bytes[block.length - 1] = '\n';
  slots_[slot] = uint64_t{hash} << kHalf | places_.size();
  if (4 * places_.size() > 3 * slots_.size()) Grow();
  return static_cast<uint32_t>(places_.size() - 1);
}

std::optional<uint32_t> TextIds::Add(std::string_view text) {
  const uint32_t hash = HashOf(text);
  const size_t slot = SlotOf(text, hash);
  if (slots_[slot] != 0) return std::nullopt;
  return Put(slot, text, hash);
}

uint64_t TextIds::AddLines(std::string_view texts) {
  uint64_t added = 0;
  for (size_t at = 0; at <= texts.size(); ++added) {
    const size_t end = std::min(texts.find('\n', at), texts.size());
    const std::string_view text = texts.substr(at, end - at);
    const bool is_plain =
        text.size() <= kPlainBytesMax && text.find('\r') == std::string_view::npos;
    if (!is_plain || !Add(text)) break;
    at = end + 1;
  }
  return added;
}

uint32_t TextIds::NumberOf(std::string_view text) {
  const uint32_t hash = HashOf(text);
  const size_t slot = SlotOf(text, hash);
  return slots_[slot] != 0 ? NumberIn(slots_[slot]) : Put(slot, text, hash);
}

std::optional<uint32_t> TextIds::Find(std::string_view text) const {
  if (text.size() > kTextBytesMax) return std::nullopt;
  const uint64_t slot = slots_[SlotOf(text, HashOf(text))];
  if (slot == 0) return std::nullopt;
  return NumberIn(slot);
}

void TextIds::Grow() {
  std::vector<uint64_t> slots(2 * slots_.size());
  const size_t mask = slots.size() - 1;
  for (const uint64_t each : slots_) {
    if (each == 0) continue;
    size_t slot = (each >> kHalf) & mask;
    while (slots[slot] != 0) slot = (slot + 1) & mask;
    slots[slot] = each;
  }
  slots_ = std::move(slots);
}

}  // namespace gnnd
