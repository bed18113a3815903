#pragma once

#include <cstdint>
#include <limits>

// Decides when a standby Trainer takes a batch (GNNLab, section 5.3 "dynamic switching"):
//
//   P = M_r * T_t / N_t - T_t'      taken iff P > 0
//
// In words: it pays if the standby Trainer finishes one batch before the normal Trainers would have
// drained the queue. Exact in integer nanoseconds.

namespace gnnd {

inline constexpr int64_t kInfiniteProfitNs = std::numeric_limits<int64_t>::max();

// The wide intermediate: M_r * T_t may exceed 64 bits for absurd inputs, and must not wrap.
__extension__ typedef unsigned __int128 Uint128;

// P in nanoseconds, with the quotient rounded up, so that its sign is that of the exact value.
//   m_r        batches waiting in the queue
//   t_t_ns     time per batch of a normal Trainer
//   n_t        normal Trainers; 0 gives kInfiniteProfitNs
//   t_t_prime_ns  time per batch of the standby Trainer
// Clamped to the range of int64_t below kInfiniteProfitNs.
inline int64_t SwitchProfitNs(uint64_t m_r, uint64_t t_t_ns, uint64_t n_t, uint64_t t_t_prime_ns) {
  if (n_t == 0) return kInfiniteProfitNs;
  const Uint128 drain_ns = (static_cast<Uint128>(m_r) * t_t_ns + n_t - 1) / n_t;
  constexpr auto kMost = static_cast<Uint128>(kInfiniteProfitNs - 1);
  if (drain_ns >= t_t_prime_ns) {
    const Uint128 profit = drain_ns - t_t_prime_ns;
    return static_cast<int64_t>(profit < kMost ? profit : kMost);
  }
  const Uint128 loss = static_cast<Uint128>(t_t_prime_ns) - drain_ns;
  return -static_cast<int64_t>(loss < kMost ? loss : kMost);
}

// The rule itself: strict, so that a tie leaves the device to its Sampler.
inline bool SwitchIsProfitable(uint64_t m_r, uint64_t t_t_ns, uint64_t n_t, uint64_t t_t_prime_ns) {
  return SwitchProfitNs(m_r, t_t_ns, n_t, t_t_prime_ns) > 0;
}

}  // namespace gnnd
