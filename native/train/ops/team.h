#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "core/base/futex.h"

namespace gnnd {

// Threads that help their owner with its loops, one piece each.
//
// Nobody waits for a helper that has not begun: whoever takes a piece first does it, a helper its
// own one if it comes in time. So on a host with other work a loop takes as long as the running
// threads need. With a barrier, as in OpenMP, every loop waits until the scheduler has run the last
// thread: a training step of 7 ms took 60 to 80 beside one busy process a core.
class Team {
 public:
  // The team of the calling thread, which lives as long as that.
  static Team& Mine();

  Team() = default;
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  ~Team();

  // Sets the number of threads, the caller included; fewer if the system refuses them. Helpers
  // without a piece in a loop sleep.
  void Use(uint32_t threads);

  // Number of threads that may work on the calling thread's next loop: 1 within a piece.
  uint32_t threads() const;

  // Calls piece(i) for every i below `pieces`, each once, and returns when all have returned.
  // REQUIRES: pieces <= threads(); `piece` does not throw.
  template <typename Piece>
  void Run(uint32_t pieces, const Piece& piece) {
    RunAll(pieces,
           {[](const void* context, uint32_t i) { (*static_cast<const Piece*>(context))(i); },
            &piece});
  }

 private:
  struct Loop {
    void (*run)(const void* context, uint32_t piece) = nullptr;
    const void* context = nullptr;
  };
  // The number of the last loop whose piece of this index has been taken.
  struct alignas(64) Taken {
    std::atomic<uint64_t> number{0};
  };

  void RunAll(uint32_t pieces, const Loop& loop);
  void Help(uint32_t self);
  // Takes and runs pieces of the call, beginning with `first`, until all are taken.
  void Work(uint64_t call, uint32_t first);
  // Ends all helpers.
  void Dismiss();

  uint32_t threads_ = 1;
  std::vector<std::thread> helpers_;
  std::unique_ptr<Taken[]> taken_;
  uint64_t number_ = 0;  // loops so far
  Loop loop_;            // unchanged until all its pieces are done

  alignas(64) std::atomic<uint64_t> call_{0};  // number of the loop << 16 | its pieces
  EventWord calls_{};                          // helpers sleep on it
  alignas(64) std::atomic<uint32_t> left_{0};  // pieces that are not done
  EventWord done_{};                           // the calling thread sleeps on it
};

}  // namespace gnnd
