#include "core/feature/host_tier.h"

#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/features.h"

namespace gnnd {
namespace {

// Bytes gathered and then written while they are in the cache.
constexpr uint64_t kChunkBytes = uint64_t{256} << 10;

HostTierHeader HeaderOf(const RowTable& features, uint64_t rows) {
  HostTierHeader header{};
  header.magic = kHostTierMagic;
  header.version = kHostTierVersion;
  header.type = features.type();
  header.rows = rows;
  header.dim = features.dim();
  header.nodes = features.num_rows();
  header.bytes = RoundUp(kPageBytes + rows * features.row_bytes(), kPageBytes);
  return header;
}

}  // namespace

uint64_t HostTierRows(uint64_t budget_bytes, uint64_t row_bytes, uint64_t num_nodes) {
  const uint64_t whole_pages = budget_bytes / kPageBytes * kPageBytes;
  if (whole_pages < kPageBytes || row_bytes == 0) return 0;
  return std::min((whole_pages - kPageBytes) / row_bytes, num_nodes);
}

Result<UniqueFd> ReserveHostTier() { return ReserveMemfd("gnnd-features"); }

Status FillHostTier(int fd, const HostTierOptions& options) {
  const RowTable& features = options.features;
  const auto invalid = [](const std::string& what) {
    return Status(Code::kInvalidArgument, "host tier: " + what);
  };
  if (options.rows > options.order.size() || options.rows > features.num_rows()) {
    return invalid(std::to_string(options.rows) + " rows of " +
                   std::to_string(options.order.size()) + " ranks and " +
                   std::to_string(features.num_rows()) + " nodes");
  }
  const auto order = options.order.first(options.rows);
  for (const uint32_t node : order) {
    if (node >= features.num_rows()) {
      return invalid("node " + std::to_string(node) + " is not in the graph");
    }
  }
  const HostTierHeader header = HeaderOf(features, options.rows);
  GNND_TRY(SizeMemfd(fd, header.bytes));
  // Uses pwrite, not stores: running out of memory is then an error, not a signal.
  const auto write = [fd](std::span<const std::byte> bytes, uint64_t at) {
    if (WriteAll(fd, bytes, at)) return Status::Ok();
    return SystemError(Code::kShmAllocationFailed, "writing the host tier of features");
  };
  std::vector<std::byte> chunk(kPageBytes);
  std::memcpy(chunk.data(), &header, sizeof header);
  GNND_TRY(write(chunk, 0));
  const uint64_t row_bytes = features.row_bytes();
  const uint64_t step = std::max<uint64_t>(1, kChunkBytes / row_bytes);
  for (uint64_t from = 0; from < order.size(); from += step) {
    const auto nodes = order.subspan(from, std::min<uint64_t>(step, order.size() - from));
    chunk.resize(nodes.size() * row_bytes);
    CopyRows(features, nodes, chunk.data());
    GNND_TRY(write(chunk, kPageBytes + from * row_bytes));
  }
  const uint64_t end = kPageBytes + order.size() * row_bytes;
  return write(std::vector<std::byte>(header.bytes - end), end);
}

Result<HostTier> HostTier::Attach(int fd, const RowTable& features, const Registrar* registrar) {
  const auto corrupted = [](const std::string& what) {
    return Status(Code::kShmCorrupted, "host tier of features: " + what);
  };
  constexpr int kSize = F_SEAL_SHRINK | F_SEAL_GROW;
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & kSize) != kSize) return corrupted("not a memfd of a final size");
  HostTier tier;
  tier.mapping_ = GNND_VALUE(Mapping::Map(fd, registrar != nullptr));
  if (tier.bytes() < kPageBytes) return corrupted("shorter than its header");
  HostTierHeader header;
  std::memcpy(&header, tier.mapping_.data(), sizeof header);
  // The rows are bounded by the size first, so that sizes computed from them cannot overflow.
  if (header.rows > tier.bytes() / features.row_bytes()) return corrupted("rows beyond its size");
  const HostTierHeader expected = HeaderOf(features, header.rows);
  if (std::memcmp(&expected, &header, sizeof header) != 0 || header.bytes != tier.bytes()) {
    return corrupted("it is that of other features");
  }
  if (registrar != nullptr) {
    const std::span<std::byte> all{tier.mapping_.data(), tier.mapping_.size()};
    Result<Registration> registration = Registration::Of(*registrar, std::span(&all, 1));
    tier.registration_status_ = registration.status();
    if (registration.ok()) tier.registration_ = std::move(*registration);
    GNND_TRY(Protect(all, Protection::kReadOnly));
  }
  const auto rows = tier.mapping_.bytes().subspan(kPageBytes, header.rows * features.row_bytes());
  tier.rows_ = RowTable(header.type, rows, header.dim);
  return tier;
}

}  // namespace gnnd
