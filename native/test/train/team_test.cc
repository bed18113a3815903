#include "train/ops/team.h"

#include <doctest/doctest.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <thread>
#include <vector>

#include "train/ops/parallel.h"

// Loops shared out among a thread's team.

namespace gnnd {
namespace {

// Loops of 1 to `threads` pieces, many behind each other, each piece of each done once and seen.
void RunLoops(uint32_t threads, uint32_t loops) {
  UseTeamOf(threads);
  Team& team = Team::Mine();
  REQUIRE(team.threads() == threads);
  std::vector<uint32_t> done(threads);
  std::vector<uint32_t> expected(threads);
  for (uint32_t loop = 0; loop < loops; ++loop) {
    const uint32_t pieces = 1 + loop % threads;
    team.Run(pieces, [&](uint32_t piece) { ++done[piece]; });  // no piece runs twice
    for (uint32_t piece = 0; piece < pieces; ++piece) ++expected[piece];
    REQUIRE(done == expected);
  }
}

TEST_CASE("a team does every piece of every loop once") {
  for (const uint32_t threads : {1U, 2U, 3U, 8U, 2U, 5U}) {
    CAPTURE(threads);
    RunLoops(threads, 3000);
  }
}

TEST_CASE("threads have teams of their own, also beside each other") {
  std::vector<std::thread> owners;
  for (uint32_t owner = 0; owner < 4; ++owner) {
    owners.emplace_back([owner] { RunLoops(2 + owner, 2000); });
  }
  for (std::thread& owner : owners) owner.join();
}

TEST_CASE("helpers that sleep are woken, and those that have slept through loops do no harm") {
  UseTeamOf(3);
  std::atomic<uint32_t> done{0};
  for (uint32_t loop = 0; loop < 50; ++loop) {
    std::this_thread::sleep_for(std::chrono::microseconds(loop % 2 == 0 ? 300 : 5));
    Team::Mine().Run(3, [&](uint32_t) { done.fetch_add(1, std::memory_order_relaxed); });
    for (uint32_t more = 0; more < 20; ++more) {  // most are over before a sleeper is awake
      Team::Mine().Run(2, [&](uint32_t) { done.fetch_add(1, std::memory_order_relaxed); });
    }
  }
  CHECK(done == 50 * (3 + 20 * 2));
}

std::atomic<bool> is_held{false};
std::atomic<bool> is_released{false};

// Holds the thread that it interrupts.
void Hold(int) {
  is_held = true;
  while (!is_released) sched_yield();
}

TEST_CASE("nobody waits for a helper that has not begun") {
  UseTeamOf(2);
  Team& team = Team::Mine();
  const std::thread::id owner = std::this_thread::get_id();
  std::atomic<pthread_t> helper{};
  team.Run(2, [&](uint32_t) {
    if (std::this_thread::get_id() != owner) helper = pthread_self();
    while (helper == pthread_t{}) sched_yield();
  });
  struct sigaction hold{};
  struct sigaction before{};
  hold.sa_handler = Hold;
  REQUIRE(sigaction(SIGUSR1, &hold, &before) == 0);
  REQUIRE(pthread_kill(helper, SIGUSR1) == 0);
  while (!is_held) sched_yield();
  uint32_t done = 0;
  for (uint32_t loop = 0; loop < 100; ++loop) team.Run(2, [&](uint32_t) { ++done; });
  CHECK(done == 200);
  is_released = true;
  sigaction(SIGUSR1, &before, nullptr);
}

TEST_CASE("a loop within a loop is its thread's own") {
  UseTeamOf(4);
  std::vector<uint32_t> sums(4);
  Team::Mine().Run(4, [&](uint32_t piece) {
    const std::thread::id self = std::this_thread::get_id();
    ParallelRows(1000, 1, [&](uint32_t begin, uint32_t end) {
      if (std::this_thread::get_id() == self) sums[piece] += end - begin;
    });
  });
  CHECK(sums == std::vector<uint32_t>(4, 1000));
}

TEST_CASE("rows, tasks and sums are each done once by a team") {
  for (const uint32_t threads : {1U, 3U}) {
    UseTeamOf(threads);
    for (const uint32_t rows : {0U, 1U, 2U, 7U, 1000U}) {
      for (const uint32_t grain : {1U, 4U, 2000U}) {
        std::vector<std::atomic<uint32_t>> seen(rows);
        const auto see = [&](uint32_t begin, uint32_t end) {
          for (uint32_t row = begin; row < end; ++row) ++seen[row];
        };
        ParallelRows(rows, grain, see);
        ParallelSums(rows, grain, see);
        ParallelTasks(rows, [&](uint32_t task) { see(task, task + 1); });
        CHECK(std::ranges::all_of(seen, [](const auto& times) { return times == 3; }));
      }
    }
  }
  UseTeamOf(1);
}

}  // namespace
}  // namespace gnnd
