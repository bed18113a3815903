#pragma once

#include <cstdint>
#include <functional>

#include "core/base/check.h"
#include "core/base/memfd.h"
#include "core/base/registrar.h"
#include "core/base/status.h"
#include "core/graph/dataset.h"
#include "core/graph/topology_view.h"
#include "core/graph/typed_dataset.h"

// A host's one copy of a graph's topology, of one type and relation or of several: a sealed memfd
// that all Samplers map, on 2 MiB pages where the kernel allows (sampling is 1.5 times faster there
// than on 4 KiB pages). Where memory has no room for it, the sealed memfd says so instead: Samplers
// map the dataset's own files, and the kernel caches what it can of them (decision 0032).

namespace gnnd {

inline constexpr uint64_t kTopologyMagic = 0x31504F54444E4E47;  // "GNNDTOP1", little-endian
inline constexpr uint32_t kTopologyVersion = 2;

enum class TopologyPlace : uint32_t {
  kMemory = 0,
  kFile = 1,
  // The memfd is registered with devices. Memory sealed against writing cannot be registered, so
  // this one is not; every process protects its own mapping instead.
  kRegistered = 2,
};

// First 64 bytes of the memfd. The tables follow without a gap: TopologyRelation[num_relations],
// then uint64 num_nodes[num_types]. Offsets count from the memfd's start and are multiples of 64;
// its size is a multiple of 2 MiB, zero after the arrays. In place kFile there is no array: all
// offsets are 0, and the size is as many pages as the tables take.
struct TopologyHeader {
  uint64_t magic;
  uint32_t version;
  TopologyPlace place;
  uint32_t num_types;
  uint32_t num_relations;
  uint64_t bytes;  // size of the memfd
  uint64_t reserved[4];
};
static_assert(sizeof(TopologyHeader) == 64);

struct TopologyRelation {
  uint32_t src_type;
  uint32_t dst_type;
  uint64_t num_edges;
  uint64_t indptr_at;   // uint64[num_nodes[dst_type] + 1]
  uint64_t indices_at;  // uint32[num_edges]
  uint64_t alias_at;    // AliasEntry[num_edges], 0 = none
};
static_assert(sizeof(TopologyRelation) == 40);

// Creates an empty memfd for another process to fill, because reading a dataset can kill it.
Result<UniqueFd> ReserveTopology();

struct TopologyOptions {
  TopologyPlace place = TopologyPlace::kMemory;
  bool alias = false;  // includes the alias tables of the edge weights; not in place kFile
};

// Checks every element of the topology of `dataset` and of the splits, copies the topology into a
// reserved memfd unless it stays in its files, and seals the memfd: nobody can grow, shrink or
// (except in place kRegistered) write it any more. Puts it on 2 MiB pages. kInvalidArgument for
// alias tables without edge weights or in place kFile. kDatasetCorrupt names file, place and value;
// kShmAllocationFailed when memory runs out.
Status FillTopology(int fd, const Dataset& dataset, const TopologyOptions& options);
// The same of several types and relations; splits are those of type 0. Relations have no weights,
// so there are no alias tables.
Status FillTopology(int fd, const TypedDataset& dataset, const TopologyOptions& options);

// ReserveTopology and FillTopology in one process.
Result<UniqueFd> CreateTopology(const Dataset& dataset, const TopologyOptions& options = {});
Result<UniqueFd> CreateTopology(const TypedDataset& dataset, const TopologyOptions& options = {});

// A mapping of such a memfd. Move-only; views live as long as it does.
class Topology {
 public:
  Topology() = default;

  // Maps `fd` (which stays the caller's and may be closed afterwards) read-only and asks for 2 MiB
  // pages in this mapping. kShmCorrupted when seals, magic, version or sizes are not those of
  // CreateTopology; elements are not read again, the seals vouch for them. In place kFile the view
  // reads the files of `dataset`, whose mappings must outlive this object.
  //
  // With `registrar`, a memfd in place kRegistered is mapped for writing, registered, and then
  // protected; other places are not registered. A device's refusal is no error:
  // registration_status() says why, and registered_bytes() is 0.
  static Result<Topology> Attach(int fd, const Dataset& dataset,
                                 const Registrar* registrar = nullptr);
  // That of several types, which must have the types and relations of `dataset`: kShmCorrupted.
  static Result<Topology> Attach(int fd, const TypedDataset& dataset,
                                 const Registrar* registrar = nullptr);
  uint64_t registered_bytes() const { return registration_.bytes(); }
  const Status& registration_status() const { return registration_status_; }

  // All types and relations.
  const GraphView& graph() const { return graph_; }
  // Of a graph of one type and one relation; empty before there is any.
  TopologyView view() const {
    GNND_CHECK(graph_.relations.size() <= 1);
    return graph_.relations.empty() ? TopologyView() : graph_.relations[0].rows;
  }
  TopologyPlace place() const { return place_; }
  uint64_t bytes() const { return mapping_.size(); }
  uint64_t huge_bytes() const { return huge_bytes_; }  // how much of it lies on 2 MiB pages

 private:
  // Gives the views of a dataset's files; called in place kFile alone.
  using Files = std::function<GraphView()>;
  static Result<Topology> AttachTo(int fd, const Files& files, const Registrar* registrar);

  Mapping mapping_;
  Registration registration_;  // declared after the mapping, so that it ends first
  Status registration_status_;
  GraphView graph_;
  TopologyPlace place_ = TopologyPlace::kMemory;
  uint64_t huge_bytes_ = 0;
};

}  // namespace gnnd
