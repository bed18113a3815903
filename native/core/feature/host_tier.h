#pragma once

#include <cstdint>
#include <span>

#include "core/base/mapping.h"
#include "core/base/memfd.h"
#include "core/base/registrar.h"
#include "core/base/status.h"
#include "core/graph/row_table.h"

// The hottest feature rows in a host's memory, in rank order, one copy per host: a memfd that
// devices register, so that they read rows that miss their caches without a processor's help. (The
// imported file cannot be registered, because no mapping of it may be written.) A process that may
// read the dataset makes it and shares its descriptor; every process protects its own mapping.

namespace gnnd {

inline constexpr uint64_t kHostTierMagic = 0x3152495448444E47;  // "GNDHTIR1", little-endian
inline constexpr uint32_t kHostTierVersion = 1;

// The first page of the memfd; the rows follow from the second one on.
struct HostTierHeader {
  uint64_t magic;
  uint32_t version;
  FeatureType type;
  uint64_t rows;  // rows of the ranks 0 to rows - 1
  uint64_t dim;
  uint64_t nodes;  // nodes of the dataset
  uint64_t bytes;  // size of the memfd, all of it allocated: what the memory account charges
};
static_assert(sizeof(HostTierHeader) == 48);

// Number of rows that fit `budget_bytes`, which includes the first page; at most all nodes' rows.
uint64_t HostTierRows(uint64_t budget_bytes, uint64_t row_bytes, uint64_t num_nodes);

struct HostTierOptions {
  RowTable features;                  // a row a node
  std::span<const uint32_t> order{};  // node of each rank
  uint64_t rows = 0;                  // number of ranks, from 0, whose rows are copied
};

// Creates an empty memfd for another process to fill, because reading a dataset can kill it.
Result<UniqueFd> ReserveHostTier();

// Sizes a reserved memfd for good and copies the rows into it. kInvalidArgument when sizes or nodes
// contradict each other, kShmAllocationFailed when memory runs out.
Status FillHostTier(int fd, const HostTierOptions& options);

// A mapping of such a memfd, read-only. Move-only.
class HostTier {
 public:
  HostTier() = default;

  // kShmCorrupted when the memfd is not FillHostTier's for a table like `features`. With
  // `registrar` all of it is registered first; a device's refusal is no error:
  // registration_status() says why, and registered_bytes() is 0.
  static Result<HostTier> Attach(int fd, const RowTable& features,
                                 const Registrar* registrar = nullptr);

  const RowTable& rows() const { return rows_; }  // row r is that of rank r
  uint64_t bytes() const { return mapping_.size(); }
  uint64_t registered_bytes() const { return registration_.bytes(); }
  // Address at which the device's kernels see the rows; null if they cannot.
  const std::byte* seen() const {
    return registration_.seen() == nullptr ? nullptr : registration_.seen() + kPageBytes;
  }
  const Status& registration_status() const { return registration_status_; }

 private:
  Mapping mapping_;
  Registration registration_;  // declared after the mapping, so that it ends first
  Status registration_status_;
  RowTable rows_;
};

}  // namespace gnnd
