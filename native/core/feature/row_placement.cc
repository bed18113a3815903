#include "core/feature/row_placement.h"

#include <algorithm>
#include <string>

namespace gnnd {
namespace {

Status Invalid(const std::string& what) {
  return Status(Code::kInvalidArgument, "placement of feature rows: " + what);
}

constexpr uint32_t kNobody = 0xFFFFFFFF;

}  // namespace

uint32_t RowPlacement::Line::Dealt(uint32_t hand) const {
  const uint32_t ranks = to - from;
  const auto hands = static_cast<uint32_t>(places.size());
  return ranks / hands + (hand < ranks % hands ? 1 : 0);
}

RowPlacement RowPlacement::Prefix(uint64_t rows) {
  RowPlacement placement;
  if (rows > 0) placement.lines.push_back({0, static_cast<uint32_t>(rows), {{0, 0}}});
  return placement;
}

uint64_t RowPlacement::RowsOf(uint32_t other) const {
  uint64_t rows = 0;
  for (const Line& line : lines) {
    for (uint32_t hand = 0; hand < line.places.size(); ++hand) {
      const Place& place = line.places[hand];
      if (place.device == other) rows = std::max(rows, uint64_t{place.row} + line.Dealt(hand));
    }
  }
  return rows;
}

Result<std::vector<uint32_t>> RowPlacement::OwnNodes(std::span<const uint32_t> order) const {
  uint32_t end = 0;
  for (const Line& line : lines) {
    if (line.from < end || line.to <= line.from || line.places.empty()) {
      return Invalid("ranks " + std::to_string(line.from) + " to " + std::to_string(line.to) +
                     " after rank " + std::to_string(end));
    }
    end = line.to;
  }
  if (end > order.size()) {
    return Invalid(std::to_string(end) + " ranks of " + std::to_string(order.size()));
  }
  const uint64_t rows = RowsOf(device);
  if (rows > end) return Invalid(std::to_string(rows) + " rows for as many ranks");
  std::vector<uint32_t> nodes(rows, kNobody);
  for (const Line& line : lines) {
    const auto hands = static_cast<uint32_t>(line.places.size());
    for (uint32_t hand = 0; hand < hands; ++hand) {
      if (line.places[hand].device != device) continue;
      uint32_t row = line.places[hand].row;
      for (uint64_t rank = uint64_t{line.from} + hand; rank < line.to; rank += hands, ++row) {
        if (nodes[row] != kNobody) return Invalid("row " + std::to_string(row) + " twice");
        nodes[row] = order[rank];
      }
    }
  }
  const auto missing = std::ranges::find(nodes, kNobody);
  if (missing != nodes.end()) {
    return Invalid("nobody has row " + std::to_string(missing - nodes.begin()));
  }
  return nodes;
}

std::vector<uint32_t> RowPlacement::Peers() const {
  std::vector<uint32_t> peers;
  for (const Line& line : lines) {
    for (const Place& place : line.places) {
      if (place.device != device && place.device != kHost) peers.push_back(place.device);
    }
  }
  std::ranges::sort(peers);
  const auto rest = std::ranges::unique(peers);
  peers.erase(rest.begin(), rest.end());
  return peers;
}

}  // namespace gnnd
