#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace gnnd::cuda {

// Ranges of addresses that do not overlap, each with a value.
template <typename Value>
class Ranges {
 public:
  struct Entry {
    uint64_t bytes;
    Value value;
  };

  // Adds a range; false, changing nothing, if it would overlap another one.
  bool Add(const void* start, uint64_t bytes, Value value) {
    const uintptr_t at = AddressOf(start);
    const auto next = entries_.lower_bound(at);
    if (next != entries_.end() && next->first < at + bytes) return false;
    if (next != entries_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second.bytes > at) return false;
    }
    entries_.emplace(at, Entry{bytes, value});
    return true;
  }

  // Removes the range that starts there.
  bool Remove(const void* start, Entry* entry) {
    const auto found = entries_.find(AddressOf(start));
    if (found == entries_.end()) return false;
    *entry = found->second;
    entries_.erase(found);
    return true;
  }

  // Whether [start, start + bytes) lies within one range.
  bool Covers(const void* start, uint64_t bytes) const {
    const uintptr_t at = AddressOf(start);
    auto next = entries_.upper_bound(at);
    if (next == entries_.begin()) return false;
    const auto& [first, entry] = *std::prev(next);
    return at - first <= entry.bytes && bytes <= entry.bytes - (at - first);
  }

  const std::map<uintptr_t, Entry>& entries() const { return entries_; }
  void Clear() { entries_.clear(); }

 private:
  static uintptr_t AddressOf(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

  std::map<uintptr_t, Entry> entries_;
};

}  // namespace gnnd::cuda
