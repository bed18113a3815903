#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "core/base/mapping.h"
#include "core/kernels/row_tiers.h"
#include "core/vec/convert.h"
#include "test/cuda/values.h"
#include "test/device/memory.h"

// Kernels of feature rows as the table has them.

namespace gnnd {
namespace {

using test::Arrays;
using test::Get;
using test::Random;
using test::SimPlugin;

constexpr uint32_t kNoRank = 0xFFFFFFFF;
constexpr uint32_t kNodes = 90;
constexpr uint32_t kCached = 20;
constexpr uint32_t kRanked = 50;

// A table of rows, all of them ranked: node of each rank, and rank of each node.
struct Table {
  explicit Table(uint32_t row_bytes, uint64_t seed) : row(row_bytes), order(kNodes), rank(kNodes) {
    Random random(seed);
    rows.resize(uint64_t{kNodes} * row_bytes);
    for (uint8_t& byte : rows) byte = static_cast<uint8_t>(random.Below(256));
    std::iota(order.begin(), order.end(), 0U);
    for (uint32_t i = kNodes; i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
    for (uint32_t r = 0; r < kNodes; ++r) rank[order[r]] = r;
  }
  // The rows of the first ranks.
  std::vector<uint8_t> Hottest(uint32_t count) const {
    std::vector<uint8_t> hottest(uint64_t{count} * row);
    for (uint32_t r = 0; r < count; ++r) {
      std::memcpy(hottest.data() + uint64_t{r} * row, rows.data() + uint64_t{order[r]} * row, row);
    }
    return hottest;
  }

  uint32_t row;
  std::vector<uint8_t> rows;
  std::vector<uint32_t> order;
  std::vector<uint32_t> rank;
};

// Host memory that a device may read.
struct Registered {
  Registered(const Device& device, const std::vector<uint8_t>& bytes)
      : memory(Get(Mapping::Anonymous(RoundUp(bytes.size() + 1, kPageBytes)))) {
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<uint8_t*>(memory.data()));
    registration = Get(HostRegistration::Register(device, std::span(memory.data(), memory.size())));
  }
  const void* seen() const { return registration->seen(); }

  Mapping memory;
  std::unique_ptr<HostRegistration> registration;
};

TEST_CASE("rows come from the first tier that has them, and what none has stays as it is") {
  const SimPlugin plugin(SimPlugin::Environment{});
  const auto device = plugin.Open();
  for (const uint32_t row_bytes : {2U, 6U, 16U, 20U, 400U}) {
    const Table table(row_bytes, row_bytes);
    const Registered whole(*device, table.rows);
    const Registered ranked(*device, table.Hottest(kRanked));
    for (const uint32_t count : {0U, 1U, 33U, 300U}) {
      for (const int tiers : {0, 1, 2, 3}) {  // beside the cache: by rank, by node
        CAPTURE(row_bytes);
        CAPTURE(count);
        CAPTURE(tiers);
        Arrays arrays(*device);
        Random random(count + tiers);
        std::vector<uint32_t> nodes(count);
        std::vector<uint32_t> ranks(count);
        for (uint32_t i = 0; i < count; ++i) {
          nodes[i] = random.Below(kNodes);
          ranks[i] = random.Below(8) == 0 ? kNoRank : table.rank[nodes[i]];
        }
        const uint32_t stride = row_bytes + 2 * random.Below(3);
        std::vector<uint8_t> wanted(uint64_t{count} * stride, 0xEE);
        gnnd_device_gather args{};
        args.nodes = arrays.Put(nodes);
        args.ranks = arrays.Put(ranks);
        args.count = count;
        args.row_bytes = row_bytes;
        args.blocks = random.Below(3);
        std::vector<uint32_t> positions;
        const bool takes_all = random.Below(2) == 0;
        if (!takes_all) {
          for (uint32_t i = 0; i < count; ++i) {
            if (random.Below(3) == 0) positions.push_back(i);
          }
          args.positions = arrays.Put(positions);
          args.count = positions.size();
        }
        AddPrefix(&args.tiers, kCached, arrays.Put(table.Hottest(kCached)));
        if ((tiers & 1) != 0) AddPrefix(&args.tiers, kRanked, ranked.seen());
        if ((tiers & 2) != 0) args.tiers.by_node = whole.seen();
        uint8_t* const out = arrays.Put(wanted);
        args.out = out;
        args.out_stride = stride;
        for (uint32_t i = 0; i < count; ++i) {
          const bool has =
              ranks[i] < kCached || (ranks[i] < kRanked && (tiers & 1) != 0) || (tiers & 2) != 0;
          const bool is_asked = takes_all || std::ranges::binary_search(positions, i);
          if (!has || !is_asked) continue;
          std::memcpy(wanted.data() + uint64_t{i} * stride,
                      table.rows.data() + uint64_t{nodes[i]} * row_bytes, row_bytes);
        }
        arrays.Call(arrays.table().gather, args);
        CHECK(arrays.Take(out, wanted.size()) == wanted);
      }
    }
  }
}

TEST_CASE(
    "rows that are dealt to places come from each of them, and from the host for who is gone") {
  for (const uint64_t seed : {1, 2, 3}) {
    const SimPlugin plugin = SimPlugin::InOrder(seed);
    const auto device = plugin.Open();
    constexpr uint32_t kRow = 20;
    const Table table(kRow, 5);
    const Registered ranked(*device, table.Hottest(kRanked));
    constexpr uint32_t kBorder = 8;
    constexpr uint32_t kEnd = 41;
    for (const uint32_t hands : {1U, 2U, 3U, 7U}) {
      for (const uint32_t gone : {0U, 1U, hands}) {  // by hand; hands: nobody
        CAPTURE(hands);
        CAPTURE(gone);
        Arrays arrays(*device);
        std::vector<uint32_t> nodes(120);
        std::vector<uint32_t> ranks(nodes.size());
        Random random(hands);
        for (size_t i = 0; i < nodes.size(); ++i) {
          nodes[i] = random.Below(kNodes);
          ranks[i] = table.rank[nodes[i]];
        }
        // A place's rows: those of the border, which all have, then what is dealt to it.
        std::vector<const void*> places;
        for (uint32_t hand = 0; hand < hands; ++hand) {
          std::vector<uint8_t> rows = table.Hottest(kBorder);
          for (uint32_t rank = kBorder + hand; rank < kEnd; rank += hands) {
            const uint8_t* const row = table.rows.data() + uint64_t{table.order[rank]} * kRow;
            rows.insert(rows.end(), row, row + kRow);
          }
          places.push_back(arrays.Put(rows) + uint64_t{kBorder} * kRow);
        }
        const void* const own = static_cast<const uint8_t*>(places[0]) - uint64_t{kBorder} * kRow;
        for (uint32_t hand = 0; hand < hands; ++hand) {
          if (hand == gone) places[hand] = nullptr;
        }
        for (const bool has_host : {true, false}) {
          gnnd_device_gather args{};
          args.nodes = arrays.Put(nodes);
          args.ranks = arrays.Put(ranks);
          args.count = nodes.size();
          args.row_bytes = kRow;
          args.out_stride = kRow;
          AddPrefix(&args.tiers, kBorder, own);
          AddLine(&args.tiers, kBorder, kEnd, places);
          if (has_host) AddPrefix(&args.tiers, kRanked, ranked.seen());
          std::vector<uint8_t> wanted(nodes.size() * kRow, 0xEE);
          uint8_t* const out = arrays.Put(wanted);
          args.out = out;
          for (size_t i = 0; i < nodes.size(); ++i) {
            const uint32_t rank = ranks[i];
            const bool is_dealt =
                rank >= kBorder && rank < kEnd && (rank - kBorder) % hands != gone;
            if (rank >= kBorder && !is_dealt && !(has_host && rank < kRanked)) continue;
            std::memcpy(wanted.data() + i * kRow, table.rows.data() + uint64_t{nodes[i]} * kRow,
                        kRow);
          }
          arrays.Call(arrays.table().gather, args);
          CHECK(arrays.Take(out, wanted.size()) == wanted);
        }
      }
    }
  }
}

TEST_CASE("rows that have come are put in their places") {
  const SimPlugin plugin(SimPlugin::Environment{});
  const auto device = plugin.Open();
  for (const uint32_t count : {0U, 1U, 70U}) {
    Arrays arrays(*device);
    Random random(count);
    constexpr uint32_t kRow = 12;
    std::vector<uint32_t> positions(count);
    std::iota(positions.begin(), positions.end(), 3U);
    for (uint32_t i = count; i > 1; --i) std::swap(positions[i - 1], positions[random.Below(i)]);
    std::vector<uint8_t> rows(uint64_t{count} * kRow);
    for (uint8_t& byte : rows) byte = static_cast<uint8_t>(random.Below(256));
    std::vector<uint8_t> wanted((count + 3ULL) * (kRow + 4), 0x11);
    gnnd_device_scatter args{};
    args.positions = arrays.Put(positions);
    args.count = count;
    args.rows = arrays.Put(rows);
    args.row_bytes = kRow;
    uint8_t* const out = arrays.Put(wanted);
    args.out = out;
    args.out_stride = kRow + 4;
    for (uint32_t i = 0; i < count; ++i) {
      std::memcpy(wanted.data() + uint64_t{positions[i]} * args.out_stride,
                  rows.data() + uint64_t{i} * kRow, kRow);
    }
    arrays.Call(arrays.table().scatter, args);
    CHECK(arrays.Take(out, wanted.size()) == wanted);
  }
}

template <typename From, typename To>
void CheckConversion(const Device& device, uint32_t element, uint32_t out_element) {
  for (const uint32_t count : {0U, 1U, 1000U}) {
    Arrays arrays(device);
    const auto from = Random(count).Many<From>(count);
    std::vector<To> wanted(count);
    if constexpr (std::is_same_v<From, Half>) {
      for (uint32_t i = 0; i < count; ++i) {
        if constexpr (std::is_same_v<To, float>) {
          wanted[i] = ToFloat(from[i]);
        } else {
          wanted[i] = ToBfloat16(ToFloat(from[i]));
        }
      }
    } else {
      Convert(from.data(), count, wanted.data());
    }
    To* const out = arrays.Room<To>(count);
    arrays.Call(arrays.table().convert,
                gnnd_device_convert{element, out_element, count, arrays.Put(from), out});
    CHECK(test::SameBits(arrays.Take(out, count), wanted));
  }
}

TEST_CASE("elements become those of another type as on the processor") {
  const SimPlugin plugin(SimPlugin::Environment{});
  const auto device = plugin.Open();
  CheckConversion<float, Bfloat16>(*device, GNND_ELEMENT_FLOAT32, GNND_ELEMENT_BFLOAT16);
  CheckConversion<Bfloat16, float>(*device, GNND_ELEMENT_BFLOAT16, GNND_ELEMENT_FLOAT32);
  CheckConversion<Half, float>(*device, GNND_ELEMENT_FLOAT16, GNND_ELEMENT_FLOAT32);
  CheckConversion<Half, Bfloat16>(*device, GNND_ELEMENT_FLOAT16, GNND_ELEMENT_BFLOAT16);
}

TEST_CASE("a kernel of feature rows names the field that cannot be") {
  const SimPlugin plugin(SimPlugin::Environment{});
  const auto device = plugin.Open();
  Arrays arrays(*device);
  const gnnd_device_plugin& table = arrays.table();
  const auto& refused = test::CheckRefused;
  uint32_t* const words = arrays.Room<uint32_t>(64);
  gnnd_device_gather gather{};
  gather.count = 4;
  gather.row_bytes = 8;
  gather.out_stride = 8;
  gather.out = words;
  gather.tiers.by_node = words;
  refused(arrays.Try(table.gather, gather), "nodes");
  gather.nodes = words;
  gather.row_bytes = 7;
  refused(arrays.Try(table.gather, gather), "row_bytes");
  gather.row_bytes = 12;
  refused(arrays.Try(table.gather, gather), "out_stride");
  gather.row_bytes = 8;
  const gnnd_device_row_tiers fit = gather.tiers;
  gather.tiers.lines = GNND_DEVICE_ROW_LINES + 1;
  refused(arrays.Try(table.gather, gather), "tiers.line");
  gather.tiers = fit;
  AddPrefix(&gather.tiers, 1, words);
  gather.tiers.line[0].hands = 2;  // hands of one place
  refused(arrays.Try(table.gather, gather), "tiers.line");
  gather.tiers.line[0].hands = 0;
  refused(arrays.Try(table.gather, gather), "tiers.line");
  gather.tiers.line[0].hands = 1;
  gather.tiers.place[0] = reinterpret_cast<uint8_t*>(words) + 1;
  refused(arrays.Try(table.gather, gather), "tiers.place");
  gather.tiers = fit;
  gather.out = reinterpret_cast<uint8_t*>(words) + 1;
  refused(arrays.Try(table.gather, gather), "out");
  refused(arrays.Try(table.scatter, gnnd_device_scatter{nullptr, 4, words, 8, 0, words, 8}),
          "positions");
  refused(arrays.Try(table.convert, gnnd_device_convert{GNND_ELEMENT_FLOAT64, GNND_ELEMENT_FLOAT32,
                                                        4, words, words}),
          "out_element");
  refused(arrays.Try(table.convert, gnnd_device_convert{9, GNND_ELEMENT_FLOAT32, 4, words, words}),
          "element");
}

}  // namespace
}  // namespace gnnd
