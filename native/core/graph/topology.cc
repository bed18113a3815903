#include "core/graph/topology.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/graph/alias.h"

namespace gnnd {
namespace {

constexpr uint64_t kAlignment = 64;
// Bytes checked and then copied while they are in the cache.
constexpr uint64_t kChunkBytes = uint64_t{256} << 10;

TopologyHeader HeaderOf(TopologyPlace place, uint64_t num_nodes, uint64_t num_edges, bool alias) {
  TopologyHeader header{};
  header.magic = kTopologyMagic;
  header.version = kTopologyVersion;
  header.place = place;
  header.num_nodes = num_nodes;
  header.num_edges = num_edges;
  header.indptr_at = sizeof(TopologyHeader);
  header.indices_at = RoundUp(header.indptr_at + (num_nodes + 1) * sizeof(uint64_t), kAlignment);
  uint64_t end = header.indices_at + num_edges * sizeof(uint32_t);
  if (alias) {
    header.alias_at = RoundUp(end, kAlignment);
    end = header.alias_at + num_edges * sizeof(AliasEntry);
  }
  header.bytes = RoundUp(end, kHugePageBytes);
  return header;
}

// Uses pwrite, not stores through a mapping: running out of memory is then an error, not a signal,
// and sealing finds no writable mapping.
Status WriteAt(int fd, std::span<const std::byte> bytes, uint64_t at) {
  if (WriteAll(fd, bytes, at)) return Status::Ok();
  return SystemError(Code::kShmAllocationFailed, "writing the topology");
}

constexpr int kNowhere = -1;

// Writes `values` to `at`, chunk by chunk; `check(from, chunk)` sees each chunk just before. If
// `fd` is kNowhere the values are only checked.
template <typename T, typename Check>
Status WriteChecked(int fd, std::span<const T> values, uint64_t at, const Check& check) {
  constexpr uint64_t kStep = kChunkBytes / sizeof(T);
  for (uint64_t from = 0; from < values.size(); from += kStep) {
    const auto chunk = values.subspan(from, std::min<uint64_t>(kStep, values.size() - from));
    GNND_TRY(check(from, chunk));
    if (fd != kNowhere) GNND_TRY(WriteAt(fd, std::as_bytes(chunk), at + from * sizeof(T)));
  }
  return Status::Ok();
}

Status WriteIndptr(int fd, const Dataset& dataset, const TopologyHeader& header) {
  const auto corrupt = [](uint64_t at, int64_t value, const std::string& rule) {
    return Status(Code::kDatasetCorrupt, "indptr.npy: " + rule + ", found " +
                                             std::to_string(value) + " at index " +
                                             std::to_string(at));
  };
  const std::span<const int64_t> indptr = dataset.indptr();
  if (indptr.front() != 0) return corrupt(0, indptr.front(), "must start at 0");
  int64_t last = 0;
  const auto check = [&](uint64_t from, std::span<const int64_t> chunk) {
    for (uint64_t i = 0; i < chunk.size(); ++i) {
      if (chunk[i] < last) {
        return corrupt(from + i, chunk[i], "must not decrease from " + std::to_string(last));
      }
      last = chunk[i];
    }
    return Status::Ok();
  };
  GNND_TRY(WriteChecked(fd, indptr, header.indptr_at, check));
  if (static_cast<uint64_t>(last) == dataset.num_edges()) return Status::Ok();
  return corrupt(indptr.size() - 1, last,
                 "must end at the " + std::to_string(dataset.num_edges()) + " edges");
}

Status WriteIndices(int fd, const Dataset& dataset, const TopologyHeader& header) {
  const uint32_t num_nodes = dataset.num_nodes();
  const auto check = [num_nodes](uint64_t from, std::span<const uint32_t> chunk) {
    // The maximum is a branch-free loop; the offender is looked for only when there is one.
    uint32_t largest = 0;
    for (const uint32_t node : chunk) largest = std::max(largest, node);
    if (largest < num_nodes) return Status::Ok();
    const auto first = std::find_if(chunk.begin(), chunk.end(),
                                    [num_nodes](uint32_t node) { return node >= num_nodes; });
    const uint64_t at = from + static_cast<uint64_t>(first - chunk.begin());
    return Status(Code::kDatasetCorrupt,
                  "indices.npy: must be below the " + std::to_string(num_nodes) + " nodes, found " +
                      std::to_string(*first) + " at index " + std::to_string(at));
  };
  return WriteChecked(fd, dataset.indices(), header.indices_at, check);
}

// Checks that a split's ids are ascending node ids: they index the topology as its own entries do.
Status CheckSplit(const char* file, std::span<const int64_t> nodes, uint32_t num_nodes) {
  for (uint64_t i = 0; i < nodes.size(); ++i) {
    const bool is_first = i == 0;
    if (nodes[i] < 0 || nodes[i] >= num_nodes || (!is_first && nodes[i] <= nodes[i - 1])) {
      return Status(Code::kDatasetCorrupt,
                    std::string(file) + ": must be ascending ids below the " +
                        std::to_string(num_nodes) + " nodes, found " + std::to_string(nodes[i]) +
                        " at index " + std::to_string(i));
    }
  }
  return Status::Ok();
}

// Writes the alias tables row by row, a chunk at a time. The rows have been checked already.
Status WriteAlias(int fd, const Dataset& dataset, const TopologyHeader& header) {
  const auto indptr = dataset.indptr();
  const auto weights = dataset.edge_weights();
  AliasBuilder builder;
  std::vector<AliasEntry> entries;
  uint64_t at = header.alias_at;
  const auto flush = [&] {
    const Status written = WriteAt(fd, std::as_bytes(std::span(entries)), at);
    at += entries.size() * sizeof(AliasEntry);
    entries.clear();
    return written;
  };
  for (uint32_t v = 0; v < dataset.num_nodes(); ++v) {
    const auto begin = static_cast<uint64_t>(indptr[v]);
    const auto row = weights.subspan(begin, static_cast<uint64_t>(indptr[v + 1]) - begin);
    const auto bad = std::find_if(row.begin(), row.end(), [](float weight) {
      return !(weight >= 0) || weight > std::numeric_limits<float>::max();
    });
    if (bad != row.end()) {
      return Status(Code::kDatasetCorrupt,
                    "edge_weights.npy: must be finite and not negative, found " +
                        std::to_string(*bad) + " at index " +
                        std::to_string(begin + static_cast<uint64_t>(bad - row.begin())));
    }
    const uint64_t size = entries.size();
    entries.resize(size + row.size());
    builder.Build(row, entries.data() + size);
    if (entries.size() * sizeof(AliasEntry) >= kChunkBytes) GNND_TRY(flush());
  }
  return flush();
}

TopologyHeader FileHeaderOf(uint64_t num_nodes, uint64_t num_edges) {
  TopologyHeader header{};
  header.magic = kTopologyMagic;
  header.version = kTopologyVersion;
  header.place = TopologyPlace::kFile;
  header.num_nodes = num_nodes;
  header.num_edges = num_edges;
  header.bytes = kPageBytes;
  return header;
}

// Fills the memfd of a topology that stays in its files, whose elements have been checked.
Status ReferToFiles(int fd, const Dataset& dataset) {
  const TopologyHeader header = FileHeaderOf(dataset.num_nodes(), dataset.num_edges());
  GNND_TRY(SizeMemfd(fd, header.bytes));
  GNND_TRY(WriteAt(fd, std::as_bytes(std::span(&header, 1)), 0));
  GNND_TRY(WriteIndptr(kNowhere, dataset, header));
  GNND_TRY(WriteIndices(kNowhere, dataset, header));
  return SealReadOnly(fd);
}

// The view of the dataset's files; the kernel caches what is read most.
Result<TopologyView> ViewOfFiles(const TopologyHeader& header, const Dataset& dataset) {
  const TopologyHeader expected = FileHeaderOf(dataset.num_nodes(), dataset.num_edges());
  if (std::memcmp(&expected, &header, sizeof header) != 0) {
    return Status(Code::kShmCorrupted, "topology: it is that of other files");
  }
  // The int64 values were checked not to be negative.
  const auto indptr = dataset.indptr();
  TopologyView view;
  view.indptr = {reinterpret_cast<const uint64_t*>(indptr.data()), indptr.size()};
  view.indices = dataset.indices();
  // A read takes a few entries at a random place: reading ahead would only evict other pages.
  Advise(std::as_bytes(view.indices), Advice::kRandom);
  return view;
}

}  // namespace

Result<UniqueFd> ReserveTopology() { return ReserveMemfd("gnnd-topology"); }

Status FillTopology(int fd, const Dataset& dataset, const TopologyOptions& options) {
  const bool alias = options.alias;
  if (alias && dataset.edge_weights().size() != dataset.num_edges()) {
    return Status(Code::kInvalidArgument, "the dataset has no edge weights");
  }
  if (alias && options.place == TopologyPlace::kFile) {
    return Status(Code::kInvalidArgument, "alias tables need the topology in memory");
  }
  GNND_TRY(CheckSplit("train.npy", dataset.train(), dataset.num_nodes()));
  GNND_TRY(CheckSplit("val.npy", dataset.val(), dataset.num_nodes()));
  GNND_TRY(CheckSplit("test.npy", dataset.test(), dataset.num_nodes()));
  if (options.place == TopologyPlace::kFile) return ReferToFiles(fd, dataset);
  const TopologyHeader header =
      HeaderOf(options.place, dataset.num_nodes(), dataset.num_edges(), alias);
  GNND_TRY(SizeMemfd(fd, header.bytes));
  GNND_TRY(WriteAt(fd, std::as_bytes(std::span(&header, 1)), 0));
  GNND_TRY(WriteIndptr(fd, dataset, header));
  GNND_TRY(WriteIndices(fd, dataset, header));
  if (alias) GNND_TRY(WriteAlias(fd, dataset, header));
  // Zeros fill the last huge page, because the kernel collapses only full ones.
  const uint64_t end = alias ? header.alias_at + dataset.num_edges() * sizeof(AliasEntry)
                             : header.indices_at + dataset.num_edges() * sizeof(uint32_t);
  GNND_TRY(WriteAt(fd, std::vector<std::byte>(header.bytes - end), end));
  if (options.place != TopologyPlace::kRegistered) GNND_TRY(SealReadOnly(fd));
  // Collapses after sealing: the kernel refuses to seal pages that are collapsed already.
  const Result<Mapping> mapping = Mapping::Map(fd, false);
  if (mapping.ok()) CollapseToHugePages(*mapping);
  return Status::Ok();
}

Result<UniqueFd> CreateTopology(const Dataset& dataset, const TopologyOptions& options) {
  UniqueFd memfd = GNND_VALUE(ReserveTopology());
  GNND_TRY(FillTopology(memfd.get(), dataset, options));
  return memfd;
}

Result<Topology> Topology::Attach(int fd, const Dataset& dataset, const Registrar* registrar) {
  const auto corrupted = [](const std::string& message) {
    return Status(Code::kShmCorrupted, "topology: " + message);
  };
  constexpr int kSize = F_SEAL_SHRINK | F_SEAL_GROW;
  const int seals = fcntl(fd, F_GET_SEALS);
  const bool unchanging = (seals & F_SEAL_WRITE) != 0;
  if (seals < 0 || (seals & kSize) != kSize) return corrupted("not a sealed memfd");
  Mapping mapping = GNND_VALUE(Mapping::Map(fd, registrar != nullptr && !unchanging));
  const uint64_t bytes = mapping.size();
  if (bytes < sizeof(TopologyHeader)) return corrupted("shorter than its header");
  TopologyHeader header;
  std::memcpy(&header, mapping.data(), sizeof header);
  if (header.magic != kTopologyMagic) return corrupted("wrong magic");
  if (header.version != kTopologyVersion) {
    return corrupted("version " + std::to_string(header.version) + ", expected " +
                     std::to_string(kTopologyVersion));
  }
  if (unchanging == (header.place == TopologyPlace::kRegistered)) {
    return corrupted("not a sealed memfd");
  }
  if (header.place == TopologyPlace::kFile) {
    Topology topology;
    topology.view_ = GNND_VALUE(ViewOfFiles(header, dataset));
    topology.place_ = TopologyPlace::kFile;
    return topology;
  }
  // The counts are bounded by the size first, so that the sizes computed from them cannot overflow.
  const bool bounded = header.num_nodes > 0 && header.num_nodes < bytes / sizeof(uint64_t) &&
                       header.num_edges <= bytes / sizeof(uint32_t);
  const TopologyHeader expected =
      bounded ? HeaderOf(header.place, header.num_nodes, header.num_edges, header.alias_at != 0)
              : TopologyHeader{};
  if (!bounded || header.bytes != bytes || std::memcmp(&expected, &header, sizeof header) != 0) {
    return corrupted("sizes do not fit its " + std::to_string(bytes) + " bytes");
  }
  Topology topology;
  topology.view_.indptr = {reinterpret_cast<const uint64_t*>(mapping.data() + header.indptr_at),
                           header.num_nodes + 1};
  topology.view_.indices = {reinterpret_cast<const uint32_t*>(mapping.data() + header.indices_at),
                            header.num_edges};
  if (header.alias_at != 0) {
    topology.view_.alias = {reinterpret_cast<const AliasEntry*>(mapping.data() + header.alias_at),
                            header.num_edges};
  }
  if (topology.view_.indptr.front() != 0 || topology.view_.indptr.back() != header.num_edges) {
    return corrupted("its rows do not cover its edges");
  }
  topology.place_ = header.place;
  const std::span<std::byte> all{mapping.data(), mapping.size()};
  if (registrar != nullptr && !unchanging) {
    Result<Registration> registration = Registration::Of(*registrar, std::span(&all, 1));
    topology.registration_status_ = registration.status();
    if (registration.ok()) topology.registration_ = std::move(*registration);
    GNND_TRY(Protect(all, Protection::kReadOnly));
  }
  // Registered pages must stay where they are, so they are not collapsed.
  if (topology.registered_bytes() == 0) topology.huge_bytes_ = CollapseToHugePages(mapping);
  topology.mapping_ = std::move(mapping);
  return topology;
}

}  // namespace gnnd
