#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

// Explores all states that a model can reach, breadth first, and reports what is wrong with them.

namespace gnnd::test {

struct Exploration {
  uint64_t states = 0;
  uint64_t steps = 0;
  std::string violation;  // the first one found: what, after which steps
  uint64_t stuck = 0;     // states from which the end cannot be reached any more
  std::string stuck_after;
  bool good() const { return violation.empty() && stuck == 0; }
};

// A Model has
//   State: trivially copyable, every byte significant
//   State Initial() const
//   void Next(const State&, emit) const: calls emit(name of the step, state after it, violation or
//     nullptr) for each step that is possible
//   bool Ends(const State&) const
template <typename Model>
class Explorer {
 public:
  using State = typename Model::State;
  static_assert(std::has_unique_object_representations_v<State>);

  explicit Explorer(const Model& model) : model_(model) { table_.assign(1024, kNone); }

  Exploration Run() {
    Add(model_.Initial(), kNone, "start");
    for (uint32_t id = 0; id < states_.size() && result_.violation.empty(); ++id) {
      first_edge_.push_back(static_cast<uint32_t>(edges_.size()));
      const State state = states_[id];
      model_.Next(state, [&](const char* step, const State& next, const char* violation) {
        ++result_.steps;
        const uint32_t to = Add(next, id, step);
        edges_.push_back(to);
        if (violation == nullptr || !result_.violation.empty()) return;
        result_.violation = std::string(violation) + " after" + PathTo(id) + ' ' + step;
      });
    }
    result_.states = states_.size();
    if (result_.violation.empty()) FindStuck();
    return result_;
  }

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};

  static uint64_t HashOf(const State& state) {
    uint64_t hash = 0x9E3779B97F4A7C15;
    unsigned char bytes[(sizeof(State) + 7) / 8 * 8] = {};
    std::memcpy(bytes, &state, sizeof(State));
    for (size_t at = 0; at < sizeof bytes; at += 8) {
      uint64_t word = 0;
      std::memcpy(&word, bytes + at, 8);
      hash = (hash ^ word) * 0xD6E8FEB86659FD93;
      hash ^= hash >> 32;
    }
    return hash;
  }

  // The number of a state, new or not.
  uint32_t Add(const State& state, uint32_t from, const char* step) {
    if (2 * states_.size() >= table_.size()) Grow();
    for (uint64_t at = HashOf(state);; ++at) {
      uint32_t& entry = table_[at & (table_.size() - 1)];
      if (entry == kNone) {
        entry = static_cast<uint32_t>(states_.size());
        states_.push_back(state);
        origin_.push_back({from, step});
        return entry;
      }
      if (std::memcmp(&states_[entry], &state, sizeof(State)) == 0) return entry;
    }
  }

  void Grow() {
    table_.assign(2 * table_.size(), kNone);
    for (uint32_t id = 0; id < states_.size(); ++id) {
      uint64_t at = HashOf(states_[id]);
      while (table_[at & (table_.size() - 1)] != kNone) ++at;
      table_[at & (table_.size() - 1)] = id;
    }
  }

  std::string PathTo(uint32_t id) const {
    std::string path;
    for (; origin_[id].from != kNone; id = origin_[id].from) {
      path = ' ' + std::string(origin_[id].step) + path;
    }
    return path;
  }

  // Backwards from the ends, along the steps.
  void FindStuck() {
    const auto count = static_cast<uint32_t>(states_.size());
    std::vector<uint32_t> first(count + 1, 0);
    for (const uint32_t to : edges_) ++first[to + 1];
    for (uint32_t id = 0; id < count; ++id) first[id + 1] += first[id];
    std::vector<uint32_t> before(edges_.size());
    std::vector<uint32_t> fill(first.begin(), first.end() - 1);
    for (uint32_t id = 0; id < count; ++id) {
      const size_t end = id + 1 < count ? first_edge_[id + 1] : edges_.size();
      for (size_t edge = first_edge_[id]; edge < end; ++edge) before[fill[edges_[edge]]++] = id;
    }
    std::vector<bool> ends(count, false);
    std::vector<uint32_t> todo;
    for (uint32_t id = 0; id < count; ++id) {
      if (!model_.Ends(states_[id])) continue;
      ends[id] = true;
      todo.push_back(id);
    }
    while (!todo.empty()) {
      const uint32_t id = todo.back();
      todo.pop_back();
      for (uint32_t at = first[id]; at < first[id + 1]; ++at) {
        if (ends[before[at]]) continue;
        ends[before[at]] = true;
        todo.push_back(before[at]);
      }
    }
    for (uint32_t id = 0; id < count; ++id) {
      if (!ends[id] && result_.stuck++ == 0) result_.stuck_after = PathTo(id);
    }
  }

  struct Origin {
    uint32_t from;
    const char* step;
  };

  const Model& model_;
  Exploration result_;
  std::vector<State> states_;
  std::vector<Origin> origin_;
  std::vector<uint32_t> table_;  // numbers of states, by hash
  std::vector<uint32_t> edges_;  // edges of state 0, then of state 1, ...
  std::vector<uint32_t> first_edge_;
};

}  // namespace gnnd::test
