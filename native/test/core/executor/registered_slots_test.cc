#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/ledger/batches.h"
#include "job_harness.h"
#include "test/support/fake_registrar.h"

// Slots whose beginnings devices have registered: in the budget always, real, and never punched.

namespace gnnd::test {
namespace {

Segment MakeRegistered(const FakeJob& job, uint64_t registered_bytes) {
  SegmentSpec spec = job.Spec();
  spec.registered_bytes = registered_bytes;
  Result<UniqueFd> fd = Segment::Create(spec);
  GNND_CHECK(fd.ok());
  Result<Segment> segment = Segment::Attach(fd->get(), Access::kReadWrite);
  GNND_CHECK(segment.ok());
  return std::move(*segment);
}

Segment AttachWith(const Segment& segment, Access access, FakeRegistrar* device) {
  const Registrar hook = device->hook();
  Result<Segment> attached = Segment::Attach(segment.fd(), access, &hook);
  GNND_CHECK(attached.ok());
  return std::move(*attached);
}

uint64_t RealBytes(const Segment& segment) {
  struct stat info{};
  GNND_CHECK(fstat(segment.fd(), &info) == 0);
  return static_cast<uint64_t>(info.st_blocks) * 512;
}

}  // namespace

TEST_CASE("each process registers the slots' prefixes, and a Trainer may not write them then") {
  FakeJob job;
  job.num_slots = 3;
  Segment segment = MakeRegistered(job, kPageBytes + 1);  // two pages each
  CHECK(segment.config().registered_bytes == 2 * kPageBytes);
  const uint64_t before = RealBytes(segment);
  FakeRegistrar samplers;
  FakeRegistrar trainers;
  const Segment sampler = AttachWith(segment, Access::kModelReadOnly, &samplers);
  CHECK(RealBytes(segment) >= before + 3 * 2 * kPageBytes);  // at once, whatever is written
  const Segment trainer = AttachWith(segment, Access::kSlotsReadOnly, &trainers);
  for (const auto& [mine, device] : {std::pair(&sampler, &samplers), {&trainer, &trainers}}) {
    CHECK(mine->registered_bytes() == 3 * 2 * kPageBytes);
    CHECK(mine->registration_status().ok());
    REQUIRE(device->ranges.size() == 3);
    for (uint64_t s = 0; s < 3; ++s) {
      CHECK(device->ranges[s].data() == mine->slot(s).data());
      CHECK(device->ranges[s].size() == 2 * kPageBytes);
      CHECK(IsWritable(mine->slot(s).data()) == (mine == &sampler));
    }
  }
  // Both devices see what is written.
  sampler.slot(1)[7] = std::byte{42};
  CHECK(trainers.Sees(trainer.slot(1).data() + 7) == std::byte{42});
  CHECK(samplers.Sees(sampler.slot(1).data() + 7) == std::byte{42});
}

TEST_CASE("registrations end with the segment; a device that refuses leaves one that works") {
  FakeJob job;
  job.num_slots = 3;
  const Segment segment = MakeRegistered(job, kPageBytes);
  FakeRegistrar device;
  {
    const Segment mine = AttachWith(segment, Access::kSlotsReadOnly, &device);
  }
  CHECK(device.ranges.empty());
  device.refuses_after = 2;
  const Segment mine = AttachWith(segment, Access::kSlotsReadOnly, &device);
  CHECK(device.ranges.empty());
  CHECK(mine.registered_bytes() == 0);
  CHECK(mine.registration_status().message() ==
        "registering 4096 bytes with the device: not supported");
  CHECK_FALSE(IsWritable(mine.slot(0).data()));
}

TEST_CASE("what is registered counts in the budget from the start, and records beyond it only") {
  FakeJob job;
  job.num_slots = 3;
  job.queue_max_bytes = 3 * kPageBytes + 200;
  Segment segment = MakeRegistered(job, kPageBytes);
  CHECK(QueueBytes(segment) == 3 * kPageBytes);
  Batches batches(segment, *segment.RegisterExecutor(Role::kSampler, 0));
  const auto make = [&](uint64_t payload, uint64_t extent) {
    const std::optional<uint64_t> batch = batches.Claim();
    GNND_CHECK(batch.has_value());
    GNND_CHECK(batches.Publish(*batch, payload, extent).ok());
    QueueAccount account;
    CHECK(account.Bytes(segment) == QueueBytes(segment));
    return QueueBytes(segment) - 3 * kPageBytes;
  };
  CHECK(make(4000, kPageBytes) == 0);           // lies within it
  CHECK(make(5000, kPageBytes + 150) == 150);   // reaches beyond it
  CHECK_FALSE(batches.Claim().has_value());     // a third one might, too
  segment.header().version.value.fetch_add(2);  // as steps would
  CHECK(make(100, 3 * kPageBytes) == 100);      // Its few bytes lie in far sections.
  CHECK(segment.Snapshot().largest_record_bytes == 5000);

  SegmentSpec spec = job.Spec();
  spec.registered_bytes = kPageBytes + 1;
  CHECK(ValidateSpec(spec).message().rfind("registered_bytes", 0) == 0);
  spec.queue_max_bytes = uint64_t{1} << 40;
  CHECK(ValidateSpec(spec).ok());
  spec.registered_bytes = kFakeSlotBytes + 1;
  CHECK(ValidateSpec(spec).message().rfind("registered_bytes", 0) == 0);
}

TEST_CASE("a slot that grew is trimmed beyond what is registered") {
  const std::vector<const char*> rules = {"", "trim-beyond-prefix"};
  for (const char* rule : rules) {
    INFO(rule);
    const NoDeadlines none;
    FakeJob job;
    job.num_slots = 2;
    Segment segment = MakeRegistered(job, 2 * kPageBytes);
    FakeRegistrar device;
    const Segment on_device = AttachWith(segment, Access::kReadWrite, &device);
    // As if slot 1 had held a record of 100 pages once.
    segment.slot_entry(1).peak_bytes.store(100 * kPageBytes);
    std::memset(segment.slot(1).data() + kFakeSlotBytes - 8, 0x5A, 8);
    failpoint::Break(rule);
    ThreadCrew crew(segment);
    crew.depth = 2;
    crew.AddSampler(0);
    crew.AddTrainer(Role::kTrainer, 1);
    CHECK(crew.Finish());
    failpoint::Break("");
    CHECK(segment.Snapshot().executors[0].counters[static_cast<uint32_t>(Counter::kSlotsTrimmed)] ==
          1);
    CHECK(segment.slot(1).back() == std::byte{0});
    // What the device sees is what lies there; dropped, it is a page that is nobody's.
    segment.slot(1)[9] = std::byte{77};
    CHECK((device.Sees(on_device.slot(1).data() + 9) == std::byte{77}) == (*rule == 0));
    CHECK(OutcomeOf(segment) == Expected(job));
  }
}

}  // namespace gnnd::test
