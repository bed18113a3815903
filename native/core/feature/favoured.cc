#include "core/feature/favoured.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/atomic_file.h"
#include "core/base/check.h"

namespace gnnd {

std::vector<double> LongerPaths(const TopologyView& topology, std::span<const double> paths) {
  GNND_CHECK(paths.size() == topology.num_nodes());
  std::vector<double> longer(paths.size());
  for (uint32_t v = 0; v < topology.num_nodes(); ++v) {
    double sum = 0;
    for (uint64_t e = topology.indptr[v]; e < topology.indptr[v + 1]; ++e) {
      sum += paths[topology.indices[e]];
    }
    longer[v] = sum;
  }
  return longer;
}

std::vector<std::vector<uint32_t>> FavouredSets(const TopologyView& topology,
                                                std::span<const uint32_t> placed, uint32_t layers,
                                                uint32_t most) {
  std::vector<std::vector<uint32_t>> sets;
  std::vector<double> paths(topology.num_nodes());
  for (const uint32_t node : placed) paths[node] = 1;
  for (uint32_t layer = 0; layer < layers; ++layer) {
    std::vector<uint32_t>& nodes = sets.emplace_back();
    if (layer == 0) {
      nodes.assign(placed.begin(), placed.end());
      std::sort(nodes.begin(), nodes.end());
      continue;
    }
    paths = LongerPaths(topology, paths);
    for (uint32_t v = 0; v < topology.num_nodes(); ++v) {
      if (paths[v] > 0) nodes.push_back(v);
    }
    const size_t kept = std::min<size_t>(most, nodes.size());
    std::partial_sort(nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(kept), nodes.end(),
                      [&](uint32_t one, uint32_t other) {
                        return paths[one] != paths[other] ? paths[one] > paths[other] : one < other;
                      });
    nodes.resize(kept);
  }
  return sets;
}

std::vector<uint8_t> FavouredHops(const TopologyView& topology, std::span<const uint32_t> placed,
                                  uint32_t hops, uint32_t most) {
  GNND_CHECK(hops <= 8);
  std::vector<uint8_t> bytes(topology.num_nodes());
  const std::vector<std::vector<uint32_t>> sets = FavouredSets(topology, placed, hops, most);
  for (uint32_t layer = 0; layer < hops; ++layer) {
    const auto bit = static_cast<uint8_t>(1U << (hops - 1 - layer));
    for (const uint32_t node : sets[layer]) bytes[node] |= bit;
  }
  return bytes;
}

Status WriteFavoured(std::span<const uint8_t> hops, const std::string& path) {
  const std::array<uint64_t, 1> words{(hops.size() + 3) / 4};
  AtomicFile file(path);
  GNND_TRY(file.Create());
  const std::string header = NpyHeader(NpyType::kUint32, words);
  GNND_TRY(file.Write(std::as_bytes(std::span(header.data(), header.size()))));
  GNND_TRY(file.Write(std::as_bytes(hops)));
  const std::array<std::byte, 3> rest{};
  GNND_TRY(file.Write(std::span(rest).first(4 * words[0] - hops.size())));
  return file.Commit();
}

Result<FavouredMap> FavouredMap::Open(const std::string& path, uint32_t num_nodes) {
  NpyArray array = GNND_VALUE(NpyArray::Open(path));
  GNND_TRY(array.Expect({NpyType::kUint32}, {(uint64_t{num_nodes} + 3) / 4}));
  FavouredMap map;
  map.array_ = std::move(array);
  map.num_nodes_ = num_nodes;
  return map;
}

std::span<const uint8_t> FavouredMap::hops() const {
  if (num_nodes_ == 0) return {};
  const std::span<const std::byte> bytes = std::as_bytes(array_.values<uint32_t>());
  return {reinterpret_cast<const uint8_t*>(bytes.data()), num_nodes_};
}

}  // namespace gnnd
