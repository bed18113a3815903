#pragma once

#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <span>

// The least of io_uring that reads many places of a file at once: no library, one thread.

namespace gnnd::bench {

struct FileRead {
  uint64_t offset = 0;
  uint32_t bytes = 0;
  std::byte* to = nullptr;
};

class Uring {
 public:
  static constexpr uint32_t kDepth = 128;

  // False where the kernel has none or forbids it.
  bool Open() {
    io_uring_params params{};
    fd_ = static_cast<int>(syscall(SYS_io_uring_setup, kDepth, &params));
    if (fd_ < 0) return false;
    const uint64_t sq_bytes = params.sq_off.array + params.sq_entries * sizeof(uint32_t);
    const uint64_t cq_bytes = params.cq_off.cqes + params.cq_entries * sizeof(io_uring_cqe);
    std::byte* sq = Map(sq_bytes, IORING_OFF_SQ_RING);
    std::byte* cq = Map(cq_bytes, IORING_OFF_CQ_RING);
    std::byte* entries = Map(params.sq_entries * sizeof(io_uring_sqe), IORING_OFF_SQES);
    if (sq == nullptr || cq == nullptr || entries == nullptr) return false;
    sq_tail_ = reinterpret_cast<uint32_t*>(sq + params.sq_off.tail);
    sq_mask_ = *reinterpret_cast<uint32_t*>(sq + params.sq_off.ring_mask);
    sq_array_ = reinterpret_cast<uint32_t*>(sq + params.sq_off.array);
    cq_head_ = reinterpret_cast<uint32_t*>(cq + params.cq_off.head);
    cq_tail_ = reinterpret_cast<uint32_t*>(cq + params.cq_off.tail);
    cq_mask_ = *reinterpret_cast<uint32_t*>(cq + params.cq_off.ring_mask);
    completions_ = reinterpret_cast<io_uring_cqe*>(cq + params.cq_off.cqes);
    entries_ = reinterpret_cast<io_uring_sqe*>(entries);
    return true;
  }

  // Reads all; false when one came back short.
  bool Read(int file, std::span<const FileRead> reads) {
    uint64_t sent = 0;
    uint64_t done = 0;
    while (done < reads.size()) {
      uint32_t added = 0;
      for (; sent < reads.size() && sent - done < kDepth; ++sent, ++added) Add(file, reads, sent);
      const long taken =
          syscall(SYS_io_uring_enter, fd_, added, 1, IORING_ENTER_GETEVENTS, nullptr, 0);
      if (taken < 0) return false;
      if (!Reap(reads, &done)) return false;
    }
    return true;
  }

 private:
  std::byte* Map(uint64_t bytes, uint64_t at) const {
    void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd_,
                         static_cast<off_t>(at));
    return address == MAP_FAILED ? nullptr : static_cast<std::byte*>(address);
  }

  void Add(int file, std::span<const FileRead> reads, uint64_t index) {
    const uint32_t tail = *sq_tail_;
    io_uring_sqe& entry = entries_[tail & sq_mask_];
    entry = {};
    entry.opcode = IORING_OP_READ;
    entry.fd = file;
    entry.off = reads[index].offset;
    entry.len = reads[index].bytes;
    entry.addr = reinterpret_cast<uint64_t>(reads[index].to);
    entry.user_data = index;
    sq_array_[tail & sq_mask_] = tail & sq_mask_;
    // Pairs with the kernel's acquire of the tail.
    std::atomic_ref(*sq_tail_).store(tail + 1, std::memory_order_release);
  }

  bool Reap(std::span<const FileRead> reads, uint64_t* done) {
    uint32_t head = *cq_head_;
    // Pairs with the kernel's release of the tail.
    const uint32_t tail = std::atomic_ref(*cq_tail_).load(std::memory_order_acquire);
    for (; head != tail; ++head, ++*done) {
      const io_uring_cqe& completion = completions_[head & cq_mask_];
      const auto wanted = static_cast<int32_t>(reads[completion.user_data].bytes);
      if (completion.res != wanted) return false;
    }
    std::atomic_ref(*cq_head_).store(head, std::memory_order_release);
    return true;
  }

  int fd_ = -1;
  uint32_t* sq_tail_ = nullptr;
  uint32_t* sq_array_ = nullptr;
  uint32_t* cq_head_ = nullptr;
  uint32_t* cq_tail_ = nullptr;
  uint32_t sq_mask_ = 0;
  uint32_t cq_mask_ = 0;
  io_uring_sqe* entries_ = nullptr;
  io_uring_cqe* completions_ = nullptr;
};

}  // namespace gnnd::bench
