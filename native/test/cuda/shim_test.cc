#include "cuda/shim/shim.h"

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <vector>

#include "cuda/dev.h"

// The shim itself: that kernels which keep the rules give the same results in every order, and that
// each way to break them is seen. What a sanitizer must see is planted at the end, in cases that
// test/sanitize.mjs runs one by one and wants to fail.

namespace gnnd::cuda {
namespace {

GNND_KERNEL AddOne(uint32_t* to, uint64_t n) {
  for (uint64_t i = GridThread(); i < n; i += GridThreads()) to[i] += 1;
}

// Sums of pairs through shared memory, warp functions and atomics.
GNND_KERNEL SumBlocks(const uint32_t* from, uint64_t n, uint32_t* sums, uint32_t* total) {
  GNND_SHARED(uint32_t, warps, kMaxThreads / kWarpLanes);
  uint32_t sum = 0;
  for (uint64_t i = GridThread(); i < n; i += GridThreads()) sum += from[i];
  for (uint32_t bits = 1; bits < kWarpLanes; bits *= 2) sum += ShuffleXor(kFullMask, sum, bits);
  if (Lane() == 0) warps[ThreadInBlock() / kWarpLanes] = sum;
  BlockSync();
  if (ThreadInBlock() != 0) return;
  sum = 0;
  for (uint32_t w = 0; w < BlockThreads() / kWarpLanes; ++w) sum += warps[w];
  sums[BlockIndex()] = sum;
  AtomicAdd(total, sum);
}

GNND_KERNEL WarpFunctions(uint32_t* out) {
  const uint32_t lane = Lane();
  const uint32_t half = GroupMask(16);
  uint32_t* const mine = out + lane * 4;
  mine[0] = Shuffle(half, lane, 3, 16);
  mine[1] = Ballot(half, lane % 3 == 0);
  mine[2] = MatchAny(kFullMask, lane / 5);
  mine[3] = ShuffleUp(kFullMask, lane, 2);
}

GNND_KERNEL Stencil(const uint32_t* from, uint32_t* to) {
  GNND_DYNAMIC_SHARED(uint32_t, tile);
  const uint32_t t = ThreadInBlock();
  for (uint32_t round = 0; round < 3; ++round) {
    tile[t] = from[t] + round;
    BlockSync();
    to[round * BlockThreads() + t] = tile[(t + 1) % BlockThreads()];
    BlockSync();
  }
}

constexpr std::array<shim::Options, 5> kAllOptions = {{
    {},
    {.shuffled = true, .random_seed = 3},
    {.shuffled = true, .random_seed = 4, .poison = 0x5A},
    {.portable_switch = true},
    {.shuffled = true, .random_seed = 5, .poison = 0, .portable_switch = true},
}};

template <typename Check>
void InAllOrders(const Check& check) {
  for (const shim::Options& options : kAllOptions) {
    CAPTURE(options.random_seed);
    CAPTURE(options.portable_switch);
    shim::SetOptions(options);
    check();
  }
  shim::SetOptions({});
}

std::string FaultOf(const std::function<void()>& run) {
  try {
    run();
  } catch (const shim::Fault& fault) {
    return fault.what();
  }
  return "none";
}

bool Says(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a grid covers its work at the borders of a warp, a block and a grid") {
  CHECK(PlanGrid(0, 256, 8) == 0);
  CHECK(PlanGrid(1, 256, 8) == 1);
  CHECK(PlanGrid(256, 256, 8) == 1);
  CHECK(PlanGrid(257, 256, 8) == 2);
  CHECK(PlanGrid(2048, 256, 8) == 8);
  CHECK(PlanGrid(2049, 256, 8) == 8);
  constexpr uint32_t kMost = 0x7FFFFFFF;
  CHECK(PlanGrid(uint64_t{1} << 31, 256, kMost) == 1U << 23);
  CHECK(PlanGrid(uint64_t{1} << 39, 256, kMost) == kMost);
  CHECK(PlanGrid(UINT64_MAX, 256, kMost) == kMost);
  CHECK(PlanGrid(UINT64_MAX, 1, kMost) == kMost);
}

TEST_CASE("every element is visited once, in every order and by any grid") {
  InAllOrders([] {
    for (const uint32_t n : {0U, 1U, 31U, 32U, 33U, 255U, 256U, 257U, 3000U}) {
      for (const uint32_t blocks : {1U, 3U, 64U}) {
        std::vector<uint32_t> values(n, 7);
        LaunchFor(Queue{nullptr, blocks}, n, AddOne, values.data(), n);
        CHECK(values == std::vector<uint32_t>(n, 8));
      }
    }
  });
}

TEST_CASE("shared memory, warp functions and atomics agree with a plain loop") {
  std::vector<uint32_t> from(1000);
  uint32_t expected = 0;
  for (uint32_t i = 0; i < 1000; ++i) expected += from[i] = i * i;
  InAllOrders([&] {
    std::vector<uint32_t> sums(3, 0);
    uint32_t total = 0;
    Launch({nullptr, 8}, SumBlocks, 3, 128, 0, from.data(), 1000, sums.data(), &total);
    CHECK(total == expected);
    CHECK(sums[0] + sums[1] + sums[2] == expected);
  });
}

TEST_CASE("warp functions are those of the device's manual") {
  InAllOrders([] {
    std::vector<uint32_t> out(kWarpLanes * 4);
    Launch({nullptr, 1}, WarpFunctions, 1, kWarpLanes, 0, out.data());
    for (uint32_t lane = 0; lane < kWarpLanes; ++lane) {
      CHECK(out[lane * 4] == lane / 16 * 16 + 3);
      CHECK(out[lane * 4 + 1] == (lane < 16 ? 0x9249U : 0x49240000U));
      const uint32_t first = lane / 5 * 5;
      const uint32_t last = first + 5 < kWarpLanes ? first + 5 : kWarpLanes;
      CHECK(out[lane * 4 + 2] == ((uint64_t{1} << last) - (uint64_t{1} << first)));
      CHECK(out[lane * 4 + 3] == (lane >= 2 ? lane - 2 : lane));
    }
  });
}

TEST_CASE("barriers separate rounds that share an array") {
  std::vector<uint32_t> from(64);
  for (uint32_t i = 0; i < 64; ++i) from[i] = i * 10;
  InAllOrders([&] {
    std::vector<uint32_t> to(192);
    Launch({nullptr, 1}, Stencil, 1, 64, 64 * sizeof(uint32_t), from.data(), to.data());
    for (uint32_t i = 0; i < 192; ++i) CHECK(to[i] == (i + 1) % 64 * 10 + i / 64);
  });
}

TEST_CASE("a stream takes launches and runs them when it likes") {
  struct Later : shim::Stream {
    std::vector<std::function<void()>> works;
    void Add(std::function<void()> work) override { works.push_back(std::move(work)); }
  } later;
  std::vector<uint32_t> values(10, 0);
  const Queue queue{reinterpret_cast<StreamHandle>(static_cast<shim::Stream*>(&later)), 4};
  LaunchFor(queue, 10, AddOne, values.data(), 10);
  LaunchFor(queue, 0, AddOne, values.data(), 0);
  CHECK(values[3] == 0);
  CHECK(later.works.size() == 1);
  later.works[0]();
  later.works[0]();
  CHECK(values == std::vector<uint32_t>(10, 2));
}

namespace {

GNND_KERNEL LeavesEarly(uint32_t threads) {
  if (ThreadInBlock() >= threads) return;
  BlockSync();
}
GNND_KERNEL HalfOfAMask() {
  if (Lane() < 16) WarpSync(kFullMask);
}
GNND_KERNEL OtherMasks() { WarpSync(Lane() < 16 ? kFullMask : 0xFFFFFFFEU); }
GNND_KERNEL TwoMasks() { WarpSync(Lane() % 2 == 0 ? kFullMask : 0xFFFFFFFEU); }
GNND_KERNEL OtherFunctions(uint32_t* out) {
  out[Lane()] = Lane() < 16 ? Ballot(kFullMask, true) : MatchAny(kFullMask, 1);
}
GNND_KERNEL OtherLines() {
  if (Lane() < 16) {
    WarpSync(kFullMask);
  } else {
    WarpSync(kFullMask);
  }
}
GNND_KERNEL OtherBarriers() {
  if (Lane() < 16) {
    BlockSync();
  } else {
    BlockSync();
  }
}
GNND_KERNEL NotInMask() { WarpSync(1); }
GNND_KERNEL ReadsOutside(uint32_t* out) {
  const uint32_t half = GroupMask(16);
  out[Lane()] = Shuffle(half, Lane(), 20);
}
GNND_KERNEL TooMuchShared() {
  GNND_SHARED(uint8_t, first, 40 << 10);
  GNND_SHARED(uint8_t, second, 9 << 10);
  first[0] = second[0] = 0;
}
GNND_KERNEL ReadsUnwritten(uint8_t* out) {
  GNND_SHARED(uint8_t, bytes, 32);
  if (Lane() < 31) bytes[Lane()] = 1;
  BlockSync();
  out[Lane()] = bytes[Lane()];
}
GNND_KERNEL LastOneWins(uint32_t* out) {
  uint32_t before = LoadRelaxed(out);
  AtomicCas(out, before, static_cast<uint32_t>(GridThread() + 1));
}

}  // namespace

TEST_CASE("planted: each broken rule is a fault that names thread and line") {
  const Queue queue{nullptr, 4};
  std::vector<uint32_t> out(32);
  InAllOrders([&] {
    const auto fault = [&](auto kernel, uint32_t threads, const auto&... arguments) {
      return FaultOf([&] { Launch(queue, kernel, 2, threads, 0, arguments...); });
    };
    const std::string left = fault(LeavesEarly, 64, 63);
    CHECK(Says(left, "of block"));
    CHECK((Says(left, "leaves the kernel") || Says(left, "others left the kernel")));
    CHECK(fault(LeavesEarly, 64, 64) == "none");
    CHECK(Says(fault(HalfOfAMask, 32), "waits for ever in WarpSync"));
    CHECK(Says(fault(HalfOfAMask, 32), "came 0000ffff"));
    CHECK(Says(fault(OtherMasks, 32), "waits for ever"));
    CHECK(Says(fault(TwoMasks, 32), "waits for ever"));
    CHECK(Says(fault(OtherFunctions, 32, out.data()), "another function or line"));
    CHECK(Says(fault(OtherLines, 32), "another function or line"));
    CHECK(Says(fault(OtherBarriers, 32), "others wait at that of line"));
    CHECK(Says(fault(NotInMask, 32), "not in its own mask"));
    CHECK(Says(fault(ReadsOutside, 32, out.data()), "outside its mask"));
    CHECK(Says(fault(TooMuchShared, 32), "more shared memory"));
    CHECK(Says(fault(HalfOfAMask, 288), "threads a block"));
    CHECK(Says(fault(HalfOfAMask, 33), "threads a block"));
    // No trace of the fault stays.
    CHECK(fault(LeavesEarly, 256, 256) == "none");
  });
}

TEST_CASE("planted: what nobody wrote differs with the poison") {
  const auto read = [](uint8_t poison) {
    shim::SetOptions({.poison = poison});
    std::vector<uint8_t> out(32);
    Launch({nullptr, 1}, ReadsUnwritten, 2, 32, 0, out.data());
    shim::SetOptions({});
    return out;
  };
  CHECK(read(0xA5) != read(0x5A));
}

TEST_CASE("planted: what depends on order differs with the order") {
  uint32_t seen = 0;
  uint32_t first = 0;
  for (uint64_t seed = 1; seed < 20; ++seed) {
    shim::SetOptions({.shuffled = true, .random_seed = seed});
    uint32_t out = 0;
    Launch({nullptr, 4}, LastOneWins, 4, 32, 0, &out);
    if (seed == 1) first = out;
    seen += out != first ? 1 : 0;
  }
  shim::SetOptions({});
  CHECK(seen > 0);
}

// For sanitizers: each of these cases must end the program (test/sanitize.mjs).
namespace {

GNND_KERNEL WritesBeyond(uint32_t* out, uint32_t at) {
  GNND_SHARED(uint32_t, array, 8);
  array[at + Lane() / kWarpLanes] = 1;
  BlockSync();
  out[Lane()] = array[Lane() % 8];
}
GNND_KERNEL NoBarrier(uint32_t* out) {
  GNND_SHARED(uint32_t, array, kWarpLanes);
  array[Lane()] = Lane();
  out[Lane()] = array[(Lane() + 1) % kWarpLanes];
}
GNND_KERNEL PlainUpdate(uint32_t* out) { *out += 1; }

}  // namespace

TEST_CASE("planted for address: a write beyond a shared array" * doctest::skip()) {
  std::vector<uint32_t> out(32);
  Launch({nullptr, 1}, WritesBeyond, 1, 32, 0, out.data(), 8);
}

TEST_CASE("planted for thread: a neighbour is read without a barrier" * doctest::skip()) {
  std::vector<uint32_t> out(32);
  Launch({nullptr, 1}, NoBarrier, 1, 32, 0, out.data());
}

TEST_CASE("planted for thread: a plain update by all threads" * doctest::skip()) {
  uint32_t out = 0;
  Launch({nullptr, 1}, PlainUpdate, 1, 32, 0, &out);
}

TEST_CASE("planted for thread: a plain update by blocks" * doctest::skip()) {
  shim::SetOptions({.block_fibers = true});
  uint32_t out = 0;
  Launch({nullptr, 2}, PlainUpdate, 2, 32, 0, &out);
}

}  // namespace gnnd::cuda
