#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace gnnd {

// Threads that share the pieces of one piece of work after another with the thread that asks.
class CopyCrew {
 public:
  explicit CopyCrew(uint32_t threads) {
    for (uint32_t i = 1; i < threads; ++i) helpers_.emplace_back([this] { Help(); });
  }
  CopyCrew(const CopyCrew&) = delete;
  CopyCrew& operator=(const CopyCrew&) = delete;
  ~CopyCrew() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    begun_.notify_all();
    for (std::thread& helper : helpers_) helper.join();
  }

  // Calls work(0) … work(pieces - 1), each once, and returns when all have ended. A helper that
  // comes when nothing is left to take is not waited for: its core may be another's for long.
  void Run(uint64_t pieces, const std::function<void(uint64_t)>& work) {
    if (helpers_.empty() || pieces < 2) {
      for (uint64_t piece = 0; piece < pieces; ++piece) work(piece);
      return;
    }
    {
      const std::lock_guard lock(mutex_);
      work_ = &work;
      pieces_ = pieces;
      next_.store(0, std::memory_order_relaxed);
      ++round_;
    }
    begun_.notify_all();
    Take(work, pieces);
    std::unique_lock lock(mutex_);
    work_ = nullptr;
    ended_.wait(lock, [this] { return busy_ == 0; });
  }

 private:
  void Take(const std::function<void(uint64_t)>& work, uint64_t pieces) {
    while (true) {
      const uint64_t piece = next_.fetch_add(1, std::memory_order_relaxed);
      if (piece >= pieces) return;
      work(piece);
    }
  }

  void Help() {
    uint64_t seen = 0;
    std::unique_lock lock(mutex_);
    while (true) {
      begun_.wait(lock, [&] { return ending_ || round_ != seen; });
      if (ending_) return;
      seen = round_;
      const auto* work = work_;
      if (work == nullptr) continue;
      const uint64_t pieces = pieces_;
      ++busy_;
      lock.unlock();
      Take(*work, pieces);
      lock.lock();
      if (--busy_ == 0) ended_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable begun_;
  std::condition_variable ended_;
  const std::function<void(uint64_t)>* work_ = nullptr;  // null: nothing is left to take
  uint64_t pieces_ = 0;
  uint64_t round_ = 0;
  size_t busy_ = 0;  // helpers that take pieces
  bool ending_ = false;
  std::atomic<uint64_t> next_{0};
  // Declared last: threads use all of the above.
  std::vector<std::thread> helpers_;
};

}  // namespace gnnd
