#include "core/sample/plugin.h"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/base/check.h"
#include "core/base/checked_file.h"
#include "core/base/confine.h"
#include "core/base/memfd.h"
#include "core/batch/layout.h"

namespace gnnd {
namespace {

// Room for picks: twice the largest fanout, so that a plug-in that writes a few too many gets an
// error message.
constexpr uint64_t kRoom = uint64_t{2} * kMaxFanout;

// Makes a sealed copy in memory, so that the bytes that are loaded are the ones that were checked.
Result<UniqueFd> CopyOf(const std::string& bytes) {
  UniqueFd fd = GNND_VALUE(CreateMemfd("gnnd-plugin", bytes.size()));
  if (!WriteAll(fd.get(), std::as_bytes(std::span(bytes)), 0)) {
    return SystemError(Code::kShmAllocationFailed, "copying a plug-in to memory");
  }
  GNND_TRY(SealReadOnly(fd.get()));
  return fd;
}

// The dynamic loader's error without the name of the copy.
std::string LoaderError(const std::string& copy) {
  const char* said = dlerror();
  std::string text = said == nullptr ? "unknown error" : said;
  if (text.starts_with(copy + ": ")) text.erase(0, copy.size() + 2);
  return text;
}

std::string PositionText(uint64_t position) { return "position " + std::to_string(position); }

}  // namespace

template <typename T>
GuardedArray<T>::GuardedArray(uint64_t count)
    : memory_(AnonymousOrThrow(count * sizeof(T) + kPageBytes, {.huge_pages = false})) {
  const uint64_t bytes = count * sizeof(T);
  GNND_CHECK(bytes % kPageBytes == 0);
  if (!Protect({memory_.data() + bytes, kPageBytes}, Protection::kNone).ok()) {
    throw std::bad_alloc();
  }
}

SamplerPlugin::SamplerPlugin(std::string path, const TopologyView& topology, bool weighted)
    : path_(std::move(path)),
      topology_(topology),
      weighted_(weighted),
      positions_(kRoom),
      weights_(kRoom) {}

SamplerPlugin::~SamplerPlugin() {
  if (created_ && functions_->destroy != nullptr) functions_->destroy(state_);
}

Result<std::shared_ptr<SamplerPlugin>> SamplerPlugin::Load(const PluginSource& source,
                                                           const TopologyView& topology,
                                                           const std::vector<int32_t>& fanouts,
                                                           bool weighted) {
  const std::string bytes = GNND_VALUE(ReadFrozenFile(source.path, source.sha256));
  std::shared_ptr<SamplerPlugin> plugin(new SamplerPlugin(source.path, topology, weighted));
  GNND_TRY(plugin->Open(bytes));
  GNND_TRY(plugin->Create(fanouts, source.options));
  return plugin;
}

Status SamplerPlugin::Failed(const std::string& why) const {
  return Status(Code::kPluginFailed, "sampler " + path_ + ": " + why);
}

Status SamplerPlugin::Open(const std::string& bytes) {
  UniqueFd fd = GNND_VALUE(CopyOf(bytes));
  GNND_TRY(ConfineForeignCode());
  const std::string copy = "/proc/self/fd/" + std::to_string(fd.get());
  void* handle = dlopen(copy.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return Failed("cannot be loaded: " + LoaderError(copy));
  // The loader identifies an object by its name: the descriptor stays open, so that no other
  // plug-in in this process can get the same name, and the object stays loaded.
  fd.Release();
  const auto get =
      reinterpret_cast<gnnd_sampler_plugin_get_fn>(dlsym(handle, GNND_SAMPLER_PLUGIN_SYMBOL));
  if (get == nullptr) return Failed("exports no function " GNND_SAMPLER_PLUGIN_SYMBOL);
  functions_ = get();
  if (functions_ == nullptr) return Failed(GNND_SAMPLER_PLUGIN_SYMBOL " returned NULL");
  if (functions_->abi_version != GNND_SAMPLER_ABI_VERSION) {
    return Failed("was built for version " + std::to_string(functions_->abi_version) +
                  " of gnnd/sampler_plugin.h, this gnnd has version " +
                  std::to_string(GNND_SAMPLER_ABI_VERSION));
  }
  if (functions_->pick == nullptr) return Failed("has no pick function");
  return Status::Ok();
}

Status SamplerPlugin::Create(const std::vector<int32_t>& fanouts, const std::string& options) {
  if (functions_->create == nullptr) {
    return options.empty() ? Status::Ok() : Failed("takes no options");
  }
  fanouts_ = fanouts;
  options_ = options;
  gnnd_sampler_config config{};
  config.abi_version = GNND_SAMPLER_ABI_VERSION;
  config.num_hops = static_cast<uint32_t>(fanouts_.size());
  config.fanouts = fanouts_.data();
  config.weighted = weighted_ ? 1 : 0;
  config.id_bytes = sizeof(uint32_t);
  config.num_nodes = topology_.num_nodes();
  config.num_edges = topology_.num_edges();
  config.indptr = topology_.indptr.data();
  config.indices = topology_.indices.data();
  config.edge_weight = topology_.edge_weight.empty() ? nullptr : topology_.edge_weight.data();
  config.options = options_.c_str();
  std::array<char, 512> error{};
  if (functions_->create(&config, &state_, error.data(), error.size()) != 0) {
    error.back() = '\0';
    const std::string why = error.data();
    return Failed("create refused: " + (why.empty() ? "it gave no reason" : why));
  }
  created_ = true;
  return Status::Ok();
}

Status SamplerPlugin::CheckPicks(const gnnd_sampler_row& row, int64_t count) const {
  const auto failed = [&](const std::string& why) {
    return Failed("node " + std::to_string(row.node) + " at hop " + std::to_string(row.hop) + ": " +
                  why);
  };
  if (count < 0) return failed("pick returned " + std::to_string(count));
  if (count > row.fanout) {
    return failed(std::to_string(count) + " picks, the fanout is " + std::to_string(row.fanout));
  }
  for (int64_t k = 0; k < count; ++k) {
    const uint64_t position = positions_.data()[k];
    if (position >= row.degree) {
      return failed(PositionText(position) + " in a row of " + std::to_string(row.degree));
    }
    const float weight = weighted_ ? weights_.data()[k] : 1.0F;
    if (!std::isfinite(weight) || weight < 0) {
      return failed(PositionText(position) + " has weight " + std::to_string(weight));
    }
  }
  return Status::Ok();
}

// Shows a row as if it had no neighbours at these positions.
void SamplerPlugin::LeaveOut(std::span<const uint64_t> absent, uint64_t start,
                             gnnd_sampler_row* row) {
  others_.clear();
  others_weight_.clear();
  size_t next = 0;
  for (uint64_t position = 0; position < row->degree; ++position) {
    if (next < absent.size() && absent[next] == position) {
      ++next;
      continue;
    }
    others_.push_back(topology_.indices[start + position]);
    if (row->edge_weight != nullptr) others_weight_.push_back(row->edge_weight[position]);
  }
  row->degree = others_.size();
  row->neighbours = others_.data();
  if (row->edge_weight != nullptr) row->edge_weight = others_weight_.data();
}

Status SamplerPlugin::Pick(const DrawStream& stream, uint32_t node, uint32_t hop, uint32_t fanout,
                           std::span<const uint64_t> absent, Picks* picks) {
  const uint64_t start = topology_.indptr[node];
  gnnd_sampler_row row{};
  row.node = node;
  row.degree = topology_.degree(node);
  row.hop = hop;
  row.fanout = fanout;
  row.id_bytes = sizeof(uint32_t);
  row.neighbours = topology_.indices.data() + start;
  if (!topology_.edge_weight.empty()) row.edge_weight = topology_.edge_weight.data() + start;
  if (!absent.empty()) LeaveOut(absent, start, &row);
  row.random = {{stream.key.lo, stream.key.hi},
                {stream.counter.word[0], stream.counter.word[1], stream.counter.word[2],
                 stream.counter.word[3]}};
  const int64_t count =
      functions_->pick(state_, &row, positions_.data(), weighted_ ? weights_.data() : nullptr);
  GNND_TRY(CheckPicks(row, count));
  picks->positions = {positions_.data(), static_cast<size_t>(count)};
  picks->weights = weighted_ ? weights_.data() : nullptr;
  return Status::Ok();
}

}  // namespace gnnd
