#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "core/base/futex.h"

namespace gnnd {

// Threads that help the one that they belong to with its loops, a piece each.
//
// Nobody waits for a helper that has not begun: a piece is done by whoever takes it first, a helper
// its own one if it comes in time. So on a host with other work a loop takes as long as those need
// that run. With a barrier, as OpenMP has it, it takes as long as the scheduler lets the last one
// wait, for every loop: a training step of 7 ms took 60 to 80 beside one busy process a core.
class Team {
 public:
  // Of the calling thread, until that ends.
  static Team& Mine();

  Team() = default;
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  ~Team();

  // As many threads from now on, with the calling one; fewer where the system refuses them. Those
  // whom a loop has no piece for sleep.
  void Use(uint32_t threads);

  // Who may work on the calling thread's next loop: 1 within a piece.
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
  // The last loop of which somebody has taken this piece.
  struct alignas(64) Taken {
    std::atomic<uint64_t> number{0};
  };

  void RunAll(uint32_t pieces, const Loop& loop);
  void Help(uint32_t self);
  // Takes and does pieces of the call, beginning with `first`, until all are taken.
  void Work(uint64_t call, uint32_t first);
  // Ends all helpers.
  void Dismiss();

  uint32_t threads_ = 1;
  std::vector<std::thread> helpers_;
  std::unique_ptr<Taken[]> taken_;
  uint64_t number_ = 0;  // of loops so far
  Loop loop_;            // stays as it is while a piece of it is not done

  alignas(64) std::atomic<uint64_t> call_{0};  // number of the loop << 16 | its pieces
  EventWord calls_{};                          // where helpers sleep
  alignas(64) std::atomic<uint32_t> left_{0};  // pieces that are not done
  EventWord done_{};                           // where the calling thread sleeps
};

}  // namespace gnnd
