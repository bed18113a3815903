#include "core/executor/reading_ahead.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <numeric>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/mapping.h"
#include "test/support/record_builder.h"

namespace gnnd {
namespace {

constexpr uint32_t kDim = 64;  // 256 bytes: 16 rows a page
constexpr uint32_t kRowsPerPage = kPageBytes / (kDim * sizeof(float));

using Nodes = std::vector<std::vector<uint32_t>>;

// Makes records that name the nodes it was told; node i of a list has hot rank i.
class GivenNodes final : public SampleWork {
 public:
  explicit GivenNodes(Nodes nodes) : nodes_(std::move(nodes)) {}

  Status Start(const SampleTask&) override { return Status::Ok(); }
  Status Finish(const SampleTask& task, SampleReport* report) override {
    const std::vector<uint32_t>& nodes = nodes_[task.batch];
    const std::span<std::byte> slot = task.slot;
    const test::TestRecord record({}, {{0, task.epoch, task.batch}, nodes, {}, false});
    std::memcpy(slot.data(), record.bytes().data(), record.bytes().size());
    const uint64_t ranks_at = slot.size() / 2;
    auto* ranks = reinterpret_cast<uint32_t*>(slot.data() + ranks_at);
    std::iota(ranks, ranks + nodes.size(), 0U);
    RecordTables tables = OwnTables(slot);
    tables.nodes[0].ranks_at = ranks_at;
    WriteTables(&tables, slot);
    *report = SampleReport{};
    return Status::Ok();
  }

 private:
  Nodes nodes_;
};

// A table that is never read, and the pages of it that were asked for.
struct Disk {
  Disk()
      : memory(AnonymousOrThrow(100 * kPageBytes)),
        table({reinterpret_cast<const float*>(memory.data()), memory.size() / sizeof(float)},
              kDim) {}

  void Ask(std::span<const std::byte> bytes) {
    const std::lock_guard lock(mutex);
    ++calls;
    const auto first = static_cast<uint64_t>(bytes.data() - memory.data());
    for (uint64_t at = first / kPageBytes; at <= (first + bytes.size() - 1) / kPageBytes; ++at) {
      pages.push_back(at);
    }
  }
  std::vector<uint64_t> Pages() {
    const std::lock_guard lock(mutex);
    return pages;
  }

  // False when so many were not asked for within ten seconds.
  bool Reaches(uint64_t count) {
    for (int look = 0; look < 10'000 && Pages().size() < count; ++look) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return Pages().size() >= count;
  }

  Mapping memory;
  RowTable table;
  std::mutex mutex;
  uint64_t calls = 0;
  std::vector<uint64_t> pages;
};

ReadingAhead::Options OptionsOf(Disk* disk, const std::atomic<uint32_t>* head) {
  ReadingAhead::Options options;
  options.features = disk->table;
  options.window_bytes = 2 * kPageBytes;
  options.is_over = [head](uint32_t, uint32_t batch) { return batch < head->load(); };
  options.ask = [disk](std::span<const std::byte> bytes) { disk->Ask(bytes); };
  return options;
}

class Slot {
 public:
  std::span<std::byte> bytes() { return {memory_.data(), memory_.size()}; }

 private:
  Mapping memory_ = AnonymousOrThrow(uint64_t{1} << 20);
};

void SampleAll(ReadingAhead* work, uint32_t batches) {
  Slot slot;
  for (uint32_t batch = 0; batch < batches; ++batch) {
    SampleReport report;
    REQUIRE(work->Sample({0, batch, slot.bytes()}, &report).ok());
  }
}

TEST_CASE("reading ahead asks for every page of a batch once, neighbours together") {
  Disk disk;
  std::atomic<uint32_t> head = 0;
  // Rows of pages 40, 2, 3, 90; two of them in one page.
  const std::vector<uint32_t> nodes = {40 * kRowsPerPage + 3, 2 * kRowsPerPage,
                                       40 * kRowsPerPage + 9, 3 * kRowsPerPage + 15,
                                       90 * kRowsPerPage};
  auto options = OptionsOf(&disk, &head);
  options.window_bytes = 8 * kPageBytes;
  ReadingAhead work(std::make_unique<GivenNodes>(Nodes{nodes}), std::move(options));
  SampleAll(&work, 1);
  REQUIRE(disk.Reaches(4));
  CHECK(disk.Pages() == std::vector<uint64_t>{2, 3, 40, 90});
  CHECK(disk.calls == 3);
}

TEST_CASE("reading ahead keeps to its window, and goes on as batches are committed") {
  Disk disk;
  std::atomic<uint32_t> head = 0;
  Nodes nodes;
  for (uint32_t batch = 0; batch < 8; ++batch) nodes.push_back({batch * 10 * kRowsPerPage});
  ReadingAhead work(std::make_unique<GivenNodes>(nodes), OptionsOf(&disk, &head));
  SampleAll(&work, 8);
  REQUIRE(disk.Reaches(2));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(disk.Pages() == std::vector<uint64_t>{0, 10});
  head = 1;
  REQUIRE(disk.Reaches(3));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(disk.Pages() == std::vector<uint64_t>{0, 10, 20});
  head = 6;  // 3, 4 and 5 are over before they were asked for
  REQUIRE(disk.Reaches(5));
  CHECK(disk.Pages() == std::vector<uint64_t>{0, 10, 20, 60, 70});
}

TEST_CASE("reading ahead asks for as much of a batch as the window has room for") {
  Disk disk;
  std::atomic<uint32_t> head = 0;
  const Nodes nodes = {{10 * kRowsPerPage}, {80 * kRowsPerPage, 20 * kRowsPerPage}};
  ReadingAhead work(std::make_unique<GivenNodes>(nodes), OptionsOf(&disk, &head));
  SampleAll(&work, 2);
  REQUIRE(disk.Reaches(2));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(disk.Pages() == std::vector<uint64_t>{10, 20});
}

TEST_CASE("reading ahead leaves out what caches hold, and ends with work left") {
  Disk disk;
  std::atomic<uint32_t> head = 0;
  const Nodes nodes(5, {50 * kRowsPerPage, 60 * kRowsPerPage, 5 * kRowsPerPage});
  auto options = OptionsOf(&disk, &head);
  options.window_bytes = 1;
  options.cache_rows = 2;
  {
    ReadingAhead work(std::make_unique<GivenNodes>(nodes), std::move(options));
    SampleAll(&work, 5);
    REQUIRE(disk.Reaches(1));
  }
  CHECK(disk.Pages() == std::vector<uint64_t>{5});
}

}  // namespace
}  // namespace gnnd
