#include "core/feature/feature_store.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "core/base/check.h"
#include "core/feature/hot_order.h"
#include "core/graph/features.h"

namespace gnnd {
namespace {

Status CheckOptions(const FeatureStore::Options& options) {
  const auto invalid = [](const std::string& what) {
    return Status(Code::kInvalidArgument, "feature store: " + what);
  };
  const uint64_t num_nodes = options.features.num_rows();
  if (num_nodes == 0) return invalid("no features");
  if (num_nodes > std::numeric_limits<uint32_t>::max()) return invalid("too many nodes");
  if (options.cache_rows > options.order.size() || options.cache_rows > num_nodes) {
    return invalid("a cache of " + std::to_string(options.cache_rows) + " rows for " +
                   std::to_string(options.order.size()) + " ranks and " +
                   std::to_string(num_nodes) + " nodes");
  }
  const RowTable& host = options.host;
  if (host.num_rows() > num_nodes ||
      (host.num_rows() > 0 &&
       (host.dim() != options.features.dim() || host.type() != options.features.type()))) {
    return invalid("the host tier's rows are of other features");
  }
  if (options.lent != nullptr && host.num_rows() > 0) return invalid("a lent cache beside others");
  for (const uint32_t node : options.order.first(options.cache_rows)) {
    if (node >= num_nodes) return invalid("node " + std::to_string(node) + " is not in the graph");
  }
  return Status::Ok();
}

}  // namespace

void AskForRows(const RowTable& table, std::span<const uint32_t> rows) {
  for (const uint32_t row : rows) Advise({table.row(row), table.row_bytes()}, Advice::kWillNeed);
}

Result<FeatureStore> FeatureStore::Create(const Options& options) {
  GNND_TRY(CheckOptions(options));
  FeatureStore store;
  store.features_ = options.features;
  store.table_ = options.features;
  if (options.on_disk) Advise(options.features.bytes(), Advice::kRandom);
  const std::byte* cache = nullptr;
  if (options.lent != nullptr) {
    GNND_CHECK(BytesToRows(options.lent, options.features) == 0);
    if (store.Reach(options.lent, options.cache_rows)) cache = options.lent;
  } else if (options.cache_rows > 0) {
    std::byte* own = GNND_VALUE(store.AllocateNearTable(options.cache_rows));
    if (own != nullptr) {
      CopyRows(options.features, options.order.first(options.cache_rows), own);
    }
    cache = own;
  }
  if (cache != nullptr) {
    store.cache_rows_ = store.most_cache_rows_ = options.cache_rows;
    const uint64_t bytes = store.cache_bytes();
    const RowTable rows(options.features.type(), {cache, bytes}, options.features.dim());
    store.AddTier({Tier::kDevice, rows, options.cache_rows, true, store.first_cached_});
  }
  if (options.host.num_rows() > store.cache_rows_) {
    store.AddTier({Tier::kHost, options.host, options.host.num_rows(), true, 0});
    store.flat_ = false;
  }
  store.AddTier({options.on_disk ? Tier::kDisk : Tier::kHost, options.features,
                 options.features.num_rows(), false, store.first_host_});
  return store;
}

uintptr_t AddressesNear(const RowTable& table, uint64_t bytes) {
  const auto host = reinterpret_cast<uintptr_t>(table.row(0));
  return host > 2 * bytes ? (host - 2 * bytes) / kHugePageBytes * kHugePageBytes : 0;
}

uint64_t BytesToRows(const std::byte* begin, const RowTable& table) {
  const auto from = reinterpret_cast<uintptr_t>(begin);
  const auto host = reinterpret_cast<uintptr_t>(table.row(0));
  const uint64_t row_bytes = table.row_bytes();
  if (from < host) return (host - from) % row_bytes;
  return (row_bytes - (from - host) % row_bytes) % row_bytes;
}

Result<std::byte*> FeatureStore::AllocateNearTable(uint64_t rows) {
  const uint64_t row_bytes = features_.row_bytes();
  // One more row, so that the start can move to a whole number of rows from the table.
  const uint64_t bytes = RoundUp(rows * row_bytes + row_bytes, kHugePageBytes);
  Result<Mapping> memory = Mapping::Anonymous(bytes, {.near = AddressesNear(features_, bytes)});
  if (!memory.ok()) return Status(memory.status().code(), "a cache: " + memory.status().message());
  std::byte* cache = memory->data() + BytesToRows(memory->data(), features_);
  if (!Reach(cache, rows)) return nullptr;
  memory_ = std::move(*memory);
  return cache;
}

bool FeatureStore::Reach(const std::byte* cache, uint64_t rows) {
  const std::byte* const host = features_.row(0);
  const bool below = reinterpret_cast<uintptr_t>(cache) < reinterpret_cast<uintptr_t>(host);
  const auto bytes = static_cast<uint64_t>(below ? host - cache : cache - host);
  const uint64_t distance = bytes / features_.row_bytes();
  const uint64_t end = distance + (below ? features_.num_rows() : rows);
  if (end > std::numeric_limits<uint32_t>::max()) return false;
  first_cached_ = below ? 0 : static_cast<uint32_t>(distance);
  first_host_ = below ? static_cast<uint32_t>(distance) : 0;
  const std::byte* first = below ? cache : host;
  table_ = RowTable(features_.type(), {first, end * features_.row_bytes()}, features_.dim());
  return true;
}

void FeatureStore::set_border(uint64_t rank) {
  if (most_cache_rows_ == 0) return;
  GNND_CHECK(flat_);
  cache_rows_ = tiers_[0].end_rank = std::min(rank, most_cache_rows_);
}

std::span<const uint32_t> FeatureStore::Locate(std::span<const uint32_t> nodes,
                                               std::span<const uint32_t> ranks,
                                               uint32_t* scratch) const {
  GNND_CHECK(flat_);
  if (most_cache_rows_ == 0) return nodes;
  GNND_CHECK(ranks.empty() || ranks.size() == nodes.size());
  if (ranks.empty()) {
    for (size_t i = 0; i < nodes.size(); ++i) scratch[i] = first_host_ + nodes[i];
    return {scratch, nodes.size()};
  }
  const auto capacity = static_cast<uint32_t>(cache_rows_);
  for (size_t i = 0; i < nodes.size(); ++i) {
    scratch[i] = ranks[i] < capacity ? first_cached_ + ranks[i] : first_host_ + nodes[i];
  }
  return {scratch, nodes.size()};
}

void FeatureStore::Ask(std::span<const uint32_t> rows) const {
  GNND_CHECK(flat_);
  if (!on_disk()) return;
  for (const uint32_t row : rows) {
    if (row - first_host_ >= features_.num_rows()) continue;  // cached; wraps below the first row
    Advise({table_.row(row), table_.row_bytes()}, Advice::kWillNeed);
  }
}

void FeatureStore::Ask(std::span<const uint32_t> nodes, std::span<const uint32_t> ranks) const {
  if (!on_disk()) return;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const RowPlace place = PlaceOf(nodes[i], ranks.empty() ? kNoRank : ranks[i]);
    if (place.tier + 1 < num_tiers_) continue;
    Advise({features_.row(place.row), features_.row_bytes()}, Advice::kWillNeed);
  }
}

void FeatureStore::Read(std::span<const uint32_t> nodes, std::span<const uint32_t> ranks,
                        std::byte* out) const {
  GNND_CHECK(ranks.empty() || ranks.size() == nodes.size());
  if (num_tiers_ == 1) return CopyRows(features_, nodes, out);
  const uint64_t row_bytes = features_.row_bytes();
  // Works in parts, so that the lists of rows stay in the processor's cache.
  constexpr size_t kPart = 1024;
  uint32_t rows[kPart];
  uint32_t to[kPart];
  std::byte* begin = out;
  for (size_t from = 0; from < nodes.size(); from += kPart, begin += kPart * row_bytes) {
    const size_t count = std::min(kPart, nodes.size() - from);
    for (uint32_t tier = 0; tier < num_tiers_; ++tier) {
      size_t found = 0;
      for (size_t i = 0; i < count; ++i) {
        const RowPlace place = PlaceOf(nodes[from + i], ranks.empty() ? kNoRank : ranks[from + i]);
        if (place.tier != tier) continue;
        rows[found] = place.row;
        to[found++] = static_cast<uint32_t>(i);
      }
      CopyRowsTo(tiers_[tier].rows, {rows, found}, {to, found}, begin);
    }
  }
}

TierTraffic FeatureStore::TrafficOf(std::span<const uint32_t> nodes,
                                    std::span<const uint32_t> ranks) const {
  TierTraffic traffic;
  uint64_t before = 0;  // rows in the tiers so far
  for (uint32_t tier = 0; tier < num_tiers_; ++tier) {
    const uint64_t end = tiers_[tier].end_rank;
    const bool last = tier + 1 == num_tiers_;
    const auto below =
        last ? nodes.size()
             : static_cast<uint64_t>(std::count_if(ranks.begin(), ranks.end(),
                                                   [end](uint32_t rank) { return rank < end; }));
    traffic.rows[static_cast<uint32_t>(tiers_[tier].kind)] += below - before;
    before = below;
  }
  for (uint32_t kind = 0; kind < kNumTiers; ++kind) {
    traffic.bytes[kind] = traffic.rows[kind] * features_.row_bytes();
  }
  return traffic;
}

}  // namespace gnnd
