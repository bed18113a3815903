#pragma once

#include <cstdint>

#include "core/base/memfd.h"
#include "core/base/registrar.h"
#include "core/base/status.h"
#include "core/graph/dataset.h"
#include "core/graph/topology_view.h"

// A host's one copy of a graph's topology: a sealed memfd that all Samplers map, on 2 MiB pages
// where the kernel allows (sampling is 1.5 times faster there than on 4 KiB pages). Or, where
// memory has no room for it, a sealed memfd that says so: the dataset's own files are mapped then,
// and the kernel keeps of them what it can (decision 0032).

namespace gnnd {

inline constexpr uint64_t kTopologyMagic = 0x31504F54444E4E47;  // "GNNDTOP1", little-endian
inline constexpr uint32_t kTopologyVersion = 1;

enum class TopologyPlace : uint32_t {
  kMemory = 0,
  kFile = 1,
  // In memory that devices register: what is sealed against writing cannot be registered, so this
  // is not. Every process protects its own mapping instead.
  kRegistered = 2,
};

// First 64 bytes of the memfd. Offsets count from its start and are multiples of 64; the memfd's
// size is a multiple of 2 MiB, zero after the arrays. In place kFile there is no array: all offsets
// are 0, and the size is one page.
struct TopologyHeader {
  uint64_t magic;
  uint32_t version;
  TopologyPlace place;
  uint64_t num_nodes;
  uint64_t num_edges;
  uint64_t indptr_at;   // uint64[num_nodes + 1]
  uint64_t indices_at;  // uint32[num_edges]
  uint64_t bytes;       // size of the memfd
  uint64_t alias_at;    // AliasEntry[num_edges], 0 = none
};
static_assert(sizeof(TopologyHeader) == 64);

// An empty memfd, for another process to fill: whoever reads a dataset's files can die of them.
Result<UniqueFd> ReserveTopology();

struct TopologyOptions {
  TopologyPlace place = TopologyPlace::kMemory;
  bool alias = false;  // with the rows' alias tables, of the edge weights; not in place kFile
};

// Checks every element of the topology of `dataset` and of the splits, copies the topology into a
// reserved memfd unless it is to stay in its files, and seals that: nobody can write (but in place
// kRegistered), grow or shrink it any more. Puts it on 2 MiB pages. kInvalidArgument for alias
// tables without edge weights, or beside files. kDatasetCorrupt names file, place and value;
// kShmAllocationFailed when memory runs out.
Status FillTopology(int fd, const Dataset& dataset, const TopologyOptions& options);

// Both in one process.
Result<UniqueFd> CreateTopology(const Dataset& dataset, const TopologyOptions& options = {});

// A mapping of such a memfd. Move-only; views live as long as it does.
class Topology {
 public:
  Topology() = default;

  // Maps `fd` (which stays the caller's and may be closed afterwards) read-only and asks for 2 MiB
  // pages in this mapping. kShmCorrupted when seals, magic, version or sizes are not what
  // CreateTopology leaves; elements are not read again, the seals vouch for them. Where it stays in
  // its files they are those of `dataset`, whose mappings must outlive this.
  //
  // With `registrar`, one in place kRegistered is mapped for writing, registered, and then
  // protected; other places are not registered. A device that refuses is no error:
  // registration_status() says why, and registered_bytes() is 0.
  static Result<Topology> Attach(int fd, const Dataset& dataset,
                                 const Registrar* registrar = nullptr);
  uint64_t registered_bytes() const { return registration_.bytes(); }
  const Status& registration_status() const { return registration_status_; }

  TopologyView view() const { return view_; }
  TopologyPlace place() const { return place_; }
  uint64_t bytes() const { return mapping_.size(); }
  uint64_t huge_bytes() const { return huge_bytes_; }  // how much of it lies on 2 MiB pages

 private:
  Mapping mapping_;
  Registration registration_;  // of the mapping, so it ends first
  Status registration_status_;
  TopologyView view_;
  TopologyPlace place_ = TopologyPlace::kMemory;
  uint64_t huge_bytes_ = 0;
};

}  // namespace gnnd
