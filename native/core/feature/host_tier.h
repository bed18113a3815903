#pragma once

#include <cstdint>
#include <span>

#include "core/base/mapping.h"
#include "core/base/memfd.h"
#include "core/base/registrar.h"
#include "core/base/status.h"
#include "core/graph/row_table.h"

// The hottest feature rows in a host's memory, in rank order, once a host: a memfd that devices
// register, so that they read what misses their caches without a processor between. (The imported
// file cannot be registered: no mapping of it may be written.) Made by whoever may read the
// dataset, shared by descriptor; every process protects its own mapping.

namespace gnnd {

inline constexpr uint64_t kHostTierMagic = 0x3152495448444E47;  // "GNDHTIR1", little-endian
inline constexpr uint32_t kHostTierVersion = 1;

// The first page of the memfd; the rows follow from the second one on.
struct HostTierHeader {
  uint64_t magic;
  uint32_t version;
  FeatureType type;
  uint64_t rows;  // of ranks 0 to rows - 1
  uint64_t dim;
  uint64_t nodes;  // of the dataset
  uint64_t bytes;  // of the memfd, all of it real: what the account holds
};
static_assert(sizeof(HostTierHeader) == 48);

// Rows that fit a budget of so many bytes, the first page included; at most all nodes' rows.
uint64_t HostTierRows(uint64_t budget_bytes, uint64_t row_bytes, uint64_t num_nodes);

struct HostTierOptions {
  RowTable features;                  // a row a node
  std::span<const uint32_t> order{};  // node of each rank
  uint64_t rows = 0;                  // the first so many
};

// An empty memfd, for another process to fill: whoever reads a dataset's files can die of them.
Result<UniqueFd> ReserveHostTier();

// Copies the rows into a reserved memfd of a size that is final. kInvalidArgument when sizes or
// nodes contradict each other, kShmAllocationFailed when memory runs out.
Status FillHostTier(int fd, const HostTierOptions& options);

// A mapping of such a memfd, read-only. Move-only.
class HostTier {
 public:
  HostTier() = default;

  // kShmCorrupted when it is not what FillHostTier leaves for a table like `features`. With
  // `registrar` all of it is registered first; a device that refuses is no error:
  // registration_status() says why, and registered_bytes() is 0.
  static Result<HostTier> Attach(int fd, const RowTable& features,
                                 const Registrar* registrar = nullptr);

  const RowTable& rows() const { return rows_; }  // row r is that of rank r
  uint64_t bytes() const { return mapping_.size(); }
  uint64_t registered_bytes() const { return registration_.bytes(); }
  // Where the device's kernels see the rows; null where they cannot.
  const std::byte* seen() const {
    return registration_.seen() == nullptr ? nullptr : registration_.seen() + kPageBytes;
  }
  const Status& registration_status() const { return registration_status_; }

 private:
  Mapping mapping_;
  Registration registration_;  // of the mapping, so it ends first
  Status registration_status_;
  RowTable rows_;
};

}  // namespace gnnd
