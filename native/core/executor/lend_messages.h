#pragma once

#include <cstdint>

// The words between a Lender (lender.h) and a reader, which is the process of a user who trains
// (native/reader). They meet at a socket of packets in the abstract namespace; each has the user id
// of the other checked by the kernel.
//
//   reader -> Lender   LendHello    once
//   Lender -> reader   LendWelcome  once, with the segment (opened for reading) and, of a graph of
//                                   one type, the file of feature rows
//   Lender -> reader   LendOffer    a batch whose record the reader may read where it lies
//   reader -> Lender   LendReturn   the batch was copied; its slot is read no more
//
// Batches are offered in the order of their numbers; reader `rank` of `world` gets those whose
// number, counted from epoch 0 on, is rank modulo world. A reader may be offered a batch before it
// has returned the one before.

namespace gnnd {

inline constexpr uint32_t kLendMagic = 0x4C444E47;  // "GNDL"
inline constexpr uint32_t kLendVersion = 1;
inline constexpr uint32_t kMaxReaders = 1024;

struct LendHello {
  uint32_t magic = kLendMagic;
  uint32_t version = kLendVersion;
  uint32_t rank = 0;
  uint32_t world = 1;
};

struct LendWelcome {
  uint32_t magic = kLendMagic;
  uint32_t version = kLendVersion;
  uint64_t slots_at = 0;  // within the segment
  uint64_t slot_bytes = 0;
  uint64_t num_slots = 0;
  uint64_t batches_per_epoch = 0;
  uint64_t epochs = 0;
};

struct LendOffer {
  uint64_t batch = 0;  // counted over the job; its record is in slot `batch` modulo num_slots
};

struct LendReturn {
  uint64_t batch = 0;
};

}  // namespace gnnd
