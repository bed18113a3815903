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

// What a topology is made of, where it lies in a dataset's folder.
struct SourceFiles {
  GraphView graph;                   // with edge weights, where there are any
  std::vector<std::string> edges;    // of each relation: how the names of its files begin
  std::vector<std::string> sources;  // of each relation: what its indices are
  std::string nodes;                 // how the names of the splits' files begin
  std::span<const int64_t> train;
  std::span<const int64_t> val;
  std::span<const int64_t> test;
};

// Offsets were not negative when they were checked.
std::span<const uint64_t> OffsetsOf(std::span<const int64_t> indptr) {
  return {reinterpret_cast<const uint64_t*>(indptr.data()), indptr.size()};
}

SourceFiles FilesOf(const Dataset& dataset) {
  TopologyView view;
  view.indptr = OffsetsOf(dataset.indptr());
  view.indices = dataset.indices();
  view.edge_weight = dataset.edge_weights();
  return {GraphView::Of(view), {""}, {"nodes"}, "", dataset.train(), dataset.val(), dataset.test()};
}

SourceFiles FilesOf(const TypedDataset& dataset) {
  const Schema& schema = dataset.schema();
  SourceFiles files{
      dataset.graph(), {}, {}, FolderOf(schema.types[0]), dataset.train(), dataset.val(),
      dataset.test()};
  for (const Relation& relation : schema.relations) {
    files.edges.push_back(FolderOf(schema, relation));
    files.sources.push_back("nodes of " + schema.types[relation.source].name);
  }
  return files;
}

// Header and tables in a process's own memory.
struct TopologyTables {
  TopologyHeader header{};
  std::vector<TopologyRelation> relations{};
  std::vector<uint64_t> num_nodes{};

  static constexpr uint64_t BytesOf(uint64_t num_types, uint64_t num_relations) {
    return sizeof(TopologyHeader) + num_relations * sizeof(TopologyRelation) +
           num_types * sizeof(uint64_t);
  }

  // As they lie in the memfd.
  std::vector<std::byte> Packed() const {
    std::vector<std::byte> packed(BytesOf(num_nodes.size(), relations.size()));
    std::byte* at = packed.data();
    const auto add = [&at](std::span<const std::byte> bytes) {
      if (!bytes.empty()) std::memcpy(at, bytes.data(), bytes.size());
      at += bytes.size();
    };
    add(std::as_bytes(std::span(&header, 1)));
    add(std::as_bytes(std::span(relations)));
    add(std::as_bytes(std::span(num_nodes)));
    return packed;
  }

  // Those of a memfd whose numbers of types and relations fit its size.
  static TopologyTables Read(const TopologyHeader& header, const std::byte* data) {
    TopologyTables tables{header, std::vector<TopologyRelation>(header.num_relations),
                          std::vector<uint64_t>(header.num_types)};
    const std::byte* at = data + sizeof header;
    const auto take = [&at](std::span<std::byte> into) {
      if (!into.empty()) std::memcpy(into.data(), at, into.size());
      at += into.size();
    };
    take(std::as_writable_bytes(std::span(tables.relations)));
    take(std::as_writable_bytes(std::span(tables.num_nodes)));
    return tables;
  }

  // End of the last array, or of the tables.
  uint64_t ArraysEnd() const {
    if (relations.empty()) return BytesOf(num_nodes.size(), 0);
    const TopologyRelation& last = relations.back();
    if (last.alias_at != 0) return last.alias_at + last.num_edges * sizeof(AliasEntry);
    return last.indices_at + last.num_edges * sizeof(uint32_t);
  }

  // Places the arrays of relations whose ends and counts are set.
  void Place(TopologyPlace place, bool alias) {
    header = {};
    header.magic = kTopologyMagic;
    header.version = kTopologyVersion;
    header.place = place;
    header.num_types = static_cast<uint32_t>(num_nodes.size());
    header.num_relations = static_cast<uint32_t>(relations.size());
    uint64_t end = BytesOf(num_nodes.size(), relations.size());
    header.bytes = RoundUp(end, kPageBytes);
    if (place == TopologyPlace::kFile) return;
    for (TopologyRelation& relation : relations) {
      relation.indptr_at = RoundUp(end, kAlignment);
      end = relation.indptr_at + (num_nodes[relation.dst_type] + 1) * sizeof(uint64_t);
      relation.indices_at = RoundUp(end, kAlignment);
      end = relation.indices_at + relation.num_edges * sizeof(uint32_t);
      if (!alias) continue;
      relation.alias_at = RoundUp(end, kAlignment);
      end = relation.alias_at + relation.num_edges * sizeof(AliasEntry);
    }
    header.bytes = RoundUp(end, kHugePageBytes);
  }
};

TopologyTables TablesOf(const GraphView& graph, TopologyPlace place, bool alias) {
  TopologyTables tables;
  tables.num_nodes.assign(graph.num_nodes.begin(), graph.num_nodes.end());
  for (const RelationView& relation : graph.relations) {
    tables.relations.push_back(
        {relation.src_type, relation.dst_type, relation.rows.num_edges(), 0, 0, 0});
  }
  tables.Place(place, alias);
  return tables;
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

Status WriteIndptr(int fd, const SourceFiles& files, size_t r, const TopologyRelation& place) {
  const auto corrupt = [&](uint64_t at, int64_t value, const std::string& rule) {
    return Status(Code::kDatasetCorrupt, files.edges[r] + "indptr.npy: " + rule + ", found " +
                                             std::to_string(value) + " at index " +
                                             std::to_string(at));
  };
  const std::span<const uint64_t> offsets = files.graph.relations[r].rows.indptr;
  const std::span indptr(reinterpret_cast<const int64_t*>(offsets.data()), offsets.size());
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
  GNND_TRY(WriteChecked(fd, indptr, place.indptr_at, check));
  if (static_cast<uint64_t>(last) == place.num_edges) return Status::Ok();
  return corrupt(indptr.size() - 1, last,
                 "must end at the " + std::to_string(place.num_edges) + " edges");
}

Status WriteIndices(int fd, const SourceFiles& files, size_t r, const TopologyRelation& place) {
  const uint32_t num_nodes = files.graph.num_nodes[place.src_type];
  const auto check = [&](uint64_t from, std::span<const uint32_t> chunk) {
    // The maximum is a branch-free loop; the offender is looked for only when there is one.
    uint32_t largest = 0;
    for (const uint32_t node : chunk) largest = std::max(largest, node);
    if (largest < num_nodes) return Status::Ok();
    const auto first = std::find_if(chunk.begin(), chunk.end(),
                                    [num_nodes](uint32_t node) { return node >= num_nodes; });
    const uint64_t at = from + static_cast<uint64_t>(first - chunk.begin());
    return Status(Code::kDatasetCorrupt, files.edges[r] + "indices.npy: must be below the " +
                                             std::to_string(num_nodes) + " " + files.sources[r] +
                                             ", found " + std::to_string(*first) + " at index " +
                                             std::to_string(at));
  };
  return WriteChecked(fd, files.graph.relations[r].rows.indices, place.indices_at, check);
}

// Checks that a split's ids are ascending node ids: they index the topology as its own entries do.
Status CheckSplit(const std::string& file, std::span<const int64_t> nodes, uint32_t num_nodes) {
  for (uint64_t i = 0; i < nodes.size(); ++i) {
    const bool is_first = i == 0;
    if (nodes[i] < 0 || nodes[i] >= num_nodes || (!is_first && nodes[i] <= nodes[i - 1])) {
      return Status(Code::kDatasetCorrupt, file + ": must be ascending ids below the " +
                                               std::to_string(num_nodes) + " nodes, found " +
                                               std::to_string(nodes[i]) + " at index " +
                                               std::to_string(i));
    }
  }
  return Status::Ok();
}

Status CheckSplits(const SourceFiles& files) {
  const uint32_t num_nodes = files.graph.num_nodes[0];
  GNND_TRY(CheckSplit(files.nodes + "train.npy", files.train, num_nodes));
  GNND_TRY(CheckSplit(files.nodes + "val.npy", files.val, num_nodes));
  return CheckSplit(files.nodes + "test.npy", files.test, num_nodes);
}

// Writes the alias tables row by row, a chunk at a time. The rows have been checked already.
Status WriteAlias(int fd, const SourceFiles& files, size_t r, const TopologyRelation& place) {
  const TopologyView& rows = files.graph.relations[r].rows;
  const auto indptr = rows.indptr;
  const auto weights = rows.edge_weight;
  AliasBuilder builder;
  std::vector<AliasEntry> entries;
  uint64_t at = place.alias_at;
  const auto flush = [&] {
    const Status written = WriteAt(fd, std::as_bytes(std::span(entries)), at);
    at += entries.size() * sizeof(AliasEntry);
    entries.clear();
    return written;
  };
  for (uint32_t v = 0; v < rows.num_nodes(); ++v) {
    const uint64_t begin = indptr[v];
    const auto row = weights.subspan(begin, indptr[v + 1] - begin);
    const auto bad = std::find_if(row.begin(), row.end(), [](float weight) {
      return !(weight >= 0) || weight > std::numeric_limits<float>::max();
    });
    if (bad != row.end()) {
      return Status(Code::kDatasetCorrupt,
                    files.edges[r] + "edge_weights.npy: must be finite and not negative, found " +
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

// Checks all elements of the relations, and copies them unless they stay in their files.
Status WriteRelations(int fd, const SourceFiles& files, const TopologyTables& tables) {
  const int into = tables.header.place == TopologyPlace::kFile ? kNowhere : fd;
  for (size_t r = 0; r < tables.relations.size(); ++r) {
    const TopologyRelation& place = tables.relations[r];
    GNND_TRY(WriteIndptr(into, files, r, place));
    GNND_TRY(WriteIndices(into, files, r, place));
    if (place.alias_at != 0) GNND_TRY(WriteAlias(fd, files, r, place));
  }
  return Status::Ok();
}

Status CheckOptions(const SourceFiles& files, const TopologyOptions& options) {
  if (!options.alias) return Status::Ok();
  for (size_t r = 0; r < files.edges.size(); ++r) {
    const TopologyView& rows = files.graph.relations[r].rows;
    if (rows.edge_weight.size() == rows.num_edges()) continue;
    const std::string name = files.edges[r].empty() ? "the dataset" : files.edges[r];
    return Status(Code::kInvalidArgument, name + " has no edge weights");
  }
  if (options.place != TopologyPlace::kFile) return Status::Ok();
  return Status(Code::kInvalidArgument, "alias tables need the topology in memory");
}

Status Fill(int fd, const SourceFiles& files, const TopologyOptions& options) {
  GNND_TRY(CheckOptions(files, options));
  GNND_TRY(CheckSplits(files));
  const TopologyTables tables = TablesOf(files.graph, options.place, options.alias);
  GNND_TRY(SizeMemfd(fd, tables.header.bytes));
  GNND_TRY(WriteAt(fd, tables.Packed(), 0));
  GNND_TRY(WriteRelations(fd, files, tables));
  if (options.place == TopologyPlace::kFile) return SealReadOnly(fd);
  // Zeros fill the last huge page, because the kernel collapses only full ones.
  const uint64_t end = tables.ArraysEnd();
  GNND_TRY(WriteAt(fd, std::vector<std::byte>(tables.header.bytes - end), end));
  if (options.place != TopologyPlace::kRegistered) GNND_TRY(SealReadOnly(fd));
  // Collapses after sealing: the kernel refuses to seal pages that are collapsed already.
  const Result<Mapping> mapping = Mapping::Map(fd, false);
  if (mapping.ok()) CollapseToHugePages(*mapping);
  return Status::Ok();
}

template <typename AnyDataset>
Result<UniqueFd> Create(const AnyDataset& dataset, const TopologyOptions& options) {
  UniqueFd memfd = GNND_VALUE(ReserveTopology());
  GNND_TRY(FillTopology(memfd.get(), dataset, options));
  return memfd;
}

Status Corrupted(const std::string& message) {
  return Status(Code::kShmCorrupted, "topology: " + message);
}

// The tables of a mapped memfd. What follows from its counts is checked against its size.
Result<TopologyTables> TablesIn(const Mapping& mapping) {
  const uint64_t bytes = mapping.size();
  if (bytes < sizeof(TopologyHeader)) return Corrupted("shorter than its header");
  TopologyHeader header;
  std::memcpy(&header, mapping.data(), sizeof header);
  if (header.magic != kTopologyMagic) return Corrupted("wrong magic");
  if (header.version != kTopologyVersion) {
    return Corrupted("version " + std::to_string(header.version) + ", expected " +
                     std::to_string(kTopologyVersion));
  }
  const Status bad = Corrupted("sizes do not fit its " + std::to_string(bytes) + " bytes");
  const bool listed = header.num_types > 0 && header.num_types <= Schema::kMaxTypes &&
                      header.num_relations <= Schema::kMaxRelations &&
                      TopologyTables::BytesOf(header.num_types, header.num_relations) <= bytes;
  if (!listed) return bad;
  TopologyTables tables = TopologyTables::Read(header, mapping.data());
  // The counts are bounded first, so that the sizes computed from them cannot overflow.
  for (const uint64_t nodes : tables.num_nodes) {
    if (nodes == 0 || nodes >= std::numeric_limits<uint32_t>::max()) return bad;
  }
  bool alias = false;
  for (const TopologyRelation& relation : tables.relations) {
    const bool in_file = header.place == TopologyPlace::kFile;
    if (std::max(relation.src_type, relation.dst_type) >= header.num_types) return bad;
    if (!in_file && relation.num_edges > bytes / sizeof(uint32_t)) return bad;
    alias = alias || relation.alias_at != 0;
  }
  TopologyTables expected = tables;
  for (TopologyRelation& relation : expected.relations) {
    relation = {relation.src_type, relation.dst_type, relation.num_edges, 0, 0, 0};
  }
  expected.Place(header.place, alias);
  if (expected.header.bytes != bytes || expected.Packed() != tables.Packed()) return bad;
  return tables;
}

// The views of the dataset's files; the kernel caches what is read most.
Result<GraphView> ViewOfFiles(const TopologyTables& tables, GraphView graph) {
  if (TablesOf(graph, TopologyPlace::kFile, false).Packed() != tables.Packed()) {
    return Corrupted("it is that of other files");
  }
  // A read takes a few entries at a random place: reading ahead would only evict other pages.
  for (RelationView& relation : graph.relations) {
    relation.rows.edge_weight = {};
    Advise(std::as_bytes(relation.rows.indices), Advice::kRandom);
  }
  return graph;
}

// The views of what a mapped memfd holds.
Result<GraphView> ViewOfMemory(const TopologyTables& tables, const std::byte* data) {
  GraphView graph;
  for (const uint64_t nodes : tables.num_nodes) {
    graph.num_nodes.push_back(static_cast<uint32_t>(nodes));
  }
  for (const TopologyRelation& place : tables.relations) {
    TopologyView rows;
    rows.indptr = {reinterpret_cast<const uint64_t*>(data + place.indptr_at),
                   tables.num_nodes[place.dst_type] + 1};
    rows.indices = {reinterpret_cast<const uint32_t*>(data + place.indices_at), place.num_edges};
    if (place.alias_at != 0) {
      rows.alias = {reinterpret_cast<const AliasEntry*>(data + place.alias_at), place.num_edges};
    }
    if (rows.indptr.front() != 0 || rows.indptr.back() != place.num_edges) {
      return Corrupted("its rows do not cover its edges");
    }
    graph.relations.push_back({place.src_type, place.dst_type, rows});
  }
  return graph;
}

// Whether both have the same types, and relations of as many edges.
bool SameShape(const GraphView& one, const GraphView& other) {
  return TablesOf(one, TopologyPlace::kFile, false).Packed() ==
         TablesOf(other, TopologyPlace::kFile, false).Packed();
}

}  // namespace

Result<UniqueFd> ReserveTopology() { return ReserveMemfd("gnnd-topology"); }

Status FillTopology(int fd, const Dataset& dataset, const TopologyOptions& options) {
  return Fill(fd, FilesOf(dataset), options);
}

Status FillTopology(int fd, const TypedDataset& dataset, const TopologyOptions& options) {
  return Fill(fd, FilesOf(dataset), options);
}

Result<UniqueFd> CreateTopology(const Dataset& dataset, const TopologyOptions& options) {
  return Create(dataset, options);
}

Result<UniqueFd> CreateTopology(const TypedDataset& dataset, const TopologyOptions& options) {
  return Create(dataset, options);
}

Result<Topology> Topology::Attach(int fd, const Dataset& dataset, const Registrar* registrar) {
  Topology topology =
      GNND_VALUE(AttachTo(fd, [&dataset] { return FilesOf(dataset).graph; }, registrar));
  const GraphView& graph = topology.graph();
  if (graph.num_nodes.size() == 1 && graph.relations.size() == 1) return topology;
  return Corrupted("it has " + std::to_string(graph.num_nodes.size()) + " types and " +
                   std::to_string(graph.relations.size()) + " relations, expected one of each");
}

Result<Topology> Topology::Attach(int fd, const TypedDataset& dataset, const Registrar* registrar) {
  Topology topology = GNND_VALUE(AttachTo(fd, [&dataset] { return dataset.graph(); }, registrar));
  if (SameShape(topology.graph(), dataset.graph())) return topology;
  return Corrupted("it has other types or relations than the dataset");
}

Result<Topology> Topology::AttachTo(int fd, const Files& files, const Registrar* registrar) {
  constexpr int kSize = F_SEAL_SHRINK | F_SEAL_GROW;
  const int seals = fcntl(fd, F_GET_SEALS);
  const bool unchanging = (seals & F_SEAL_WRITE) != 0;
  if (seals < 0 || (seals & kSize) != kSize) return Corrupted("not a sealed memfd");
  Mapping mapping = GNND_VALUE(Mapping::Map(fd, registrar != nullptr && !unchanging));
  const TopologyTables tables = GNND_VALUE(TablesIn(mapping));
  Topology topology;
  topology.place_ = tables.header.place;
  if (unchanging == (topology.place_ == TopologyPlace::kRegistered)) {
    return Corrupted("not a sealed memfd");
  }
  if (topology.place_ == TopologyPlace::kFile) {
    topology.graph_ = GNND_VALUE(ViewOfFiles(tables, files()));
    return topology;
  }
  topology.graph_ = GNND_VALUE(ViewOfMemory(tables, mapping.data()));
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
