#include "core/base/uring.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include "core/base/check.h"

namespace gnnd {
namespace {

// A word of a ring, which the kernel reads and writes, too.
std::atomic_ref<uint32_t> WordAt(const Mapping& ring, uint32_t offset) {
  return std::atomic_ref(*reinterpret_cast<uint32_t*>(ring.data() + offset));
}

}  // namespace

Result<Uring> Uring::Open(uint32_t depth) {
  io_uring_params params{};
  Uring uring;
  uring.fd_ = UniqueFd(static_cast<int>(syscall(SYS_io_uring_setup, depth, &params)));
  if (!uring.fd_.valid()) return SystemError(Code::kIo, "io_uring_setup");
  const int fd = uring.fd_.get();
  const uint64_t indices = params.sq_off.array + params.sq_entries * sizeof(uint32_t);
  const uint64_t ends = params.cq_off.cqes + params.cq_entries * sizeof(io_uring_cqe);
  uring.submissions_ = GNND_VALUE(Mapping::Ring(fd, IORING_OFF_SQ_RING, indices));
  uring.completions_ = GNND_VALUE(Mapping::Ring(fd, IORING_OFF_CQ_RING, ends));
  uring.entries_ =
      GNND_VALUE(Mapping::Ring(fd, IORING_OFF_SQES, params.sq_entries * sizeof(io_uring_sqe)));
  // The kernel rounds `depth` up; its completion ring has room for twice as many entries.
  uring.depth_ = params.sq_entries;
  uring.at_ = params.sq_off;
  uring.ended_at_ = params.cq_off;
  return uring;
}

void Uring::Read(int file, uint64_t offset, std::span<std::byte> to, uint64_t tag) {
  GNND_CHECK(!full());
  const std::atomic_ref<uint32_t> tail = WordAt(submissions_, at_.tail);
  // Only this thread writes the tail.
  const uint32_t next = tail.load(std::memory_order_relaxed);
  const uint32_t index = next & WordAt(submissions_, at_.ring_mask).load();
  io_uring_sqe& entry = reinterpret_cast<io_uring_sqe*>(entries_.data())[index];
  entry = {};
  entry.opcode = IORING_OP_READ;
  entry.fd = file;
  entry.off = offset;
  entry.len = static_cast<uint32_t>(to.size());
  entry.addr = reinterpret_cast<uint64_t>(to.data());
  entry.user_data = tag;
  reinterpret_cast<uint32_t*>(submissions_.data() + at_.array)[index] = index;
  // Pairs with the kernel's acquire of the tail.
  tail.store(next + 1, std::memory_order_release);
  ++prepared_;
  ++in_flight_;
}

Status Uring::Wait(const std::function<void(uint64_t tag, int64_t result)>& ended) {
  GNND_CHECK(in_flight_ > 0);
  while (true) {
    const long sent =
        syscall(SYS_io_uring_enter, fd_.get(), prepared_, 1, IORING_ENTER_GETEVENTS, nullptr, 0);
    if (sent >= 0) {
      prepared_ -= static_cast<uint32_t>(sent);
      break;
    }
    if (errno != EINTR) return SystemError(Code::kIo, "io_uring_enter");
  }
  const std::atomic_ref<uint32_t> head = WordAt(completions_, ended_at_.head);
  const uint32_t mask = WordAt(completions_, ended_at_.ring_mask).load();
  uint32_t at = head.load(std::memory_order_relaxed);
  // Pairs with the kernel's release of the tail.
  const uint32_t tail = WordAt(completions_, ended_at_.tail).load(std::memory_order_acquire);
  const auto* const all =
      reinterpret_cast<const io_uring_cqe*>(completions_.data() + ended_at_.cqes);
  for (; at != tail; ++at) {
    const io_uring_cqe completion = all[at & mask];
    // Pairs with the kernel's acquire of the head: the kernel may reuse the entry from now on.
    head.store(at + 1, std::memory_order_release);
    --in_flight_;
    ended(completion.user_data, completion.res);
  }
  return Status::Ok();
}

}  // namespace gnnd
