#pragma once

#include <cstdint>
#include <limits>

// Which edges a seed sees of a graph whose edges have times, and which of these a row takes.

namespace gnnd {

enum class TimeCompare : uint32_t {
  kBefore = 1,    // edges strictly before the seed's time, so never the event that is asked about
  kNotAfter = 2,  // also those at the seed's time, as torch_geometric does
};

enum class TimePick : uint32_t {
  kUniform = 1,  // any of the edges that are seen, each alike
  kRecent = 2,   // the last ones
};

struct TimeOptions {
  TimeCompare compare = TimeCompare::kBefore;
  TimePick pick = TimePick::kUniform;
  // How far back edges are seen, in units of the times; 0: all the way. A window w before t is
  // [t - w, t), not after t (t - w, t]: as long either way.
  uint64_t window = 0;
};

// Times from `first` to `last`, both included; none if first > last.
struct TimeRange {
  int64_t first = std::numeric_limits<int64_t>::min();
  int64_t last = std::numeric_limits<int64_t>::max();

  bool operator==(const TimeRange&) const = default;
};

// The times of the edges that a seed at `time` sees. A bound beyond the ends of int64 stays there.
constexpr TimeRange SeenAt(int64_t time, const TimeOptions& options) {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  if (options.compare == TimeCompare::kBefore && time == kMin) return {kMax, kMin};
  const int64_t last = options.compare == TimeCompare::kBefore ? time - 1 : time;
  const uint64_t back = options.window - 1;
  // last - kMin, which no int64 may hold.
  const uint64_t room = static_cast<uint64_t>(last) - static_cast<uint64_t>(kMin);
  if (options.window == 0 || back > room) return {kMin, last};
  return {static_cast<int64_t>(static_cast<uint64_t>(last) - back), last};
}

}  // namespace gnnd
