#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/mapping.h"
#include "core/base/status.h"
#include "core/draw/stream.h"
#include "core/graph/topology_view.h"
#include "core/sample/options.h"
#include "include/gnnd/sampler_plugin.h"

// The host's side of include/gnnd/sampler_plugin.h: loads a user's sampler and checks its answers.
// Only executors load it; the daemon reads its bytes and nothing more.

namespace gnnd {

// An array before a page that nobody may touch: a write past its end kills the process at once,
// before anything of ours is overwritten.
template <typename T>
class GuardedArray {
 public:
  // `count` elements must fill whole pages.
  explicit GuardedArray(uint64_t count);

  T* data() const { return reinterpret_cast<T*>(memory_.data()); }

 private:
  Mapping memory_;
};

// A user's sampler for one Sampler. Not thread-safe.
class SamplerPlugin {
 public:
  // Picks of a row; valid until the next Pick.
  struct Picks {
    std::span<const uint64_t> positions;
    const float* weights = nullptr;  // one per pick, or null
  };

  // Loads the file and creates its state for this graph (borrowed). kPluginFailed names the file:
  // other bytes than the frozen ones, no shared object or symbol, another ABI version, create
  // refused.
  static Result<std::shared_ptr<SamplerPlugin>> Load(const PluginSource& source,
                                                     const TopologyView& topology,
                                                     const std::vector<int32_t>& fanouts,
                                                     bool weighted);
  SamplerPlugin(const SamplerPlugin&) = delete;
  SamplerPlugin& operator=(const SamplerPlugin&) = delete;
  ~SamplerPlugin();

  // Asks for a row that has more neighbours than those at the positions `absent`, rising, which the
  // plug-in does not see: picks are positions among the others. kPluginFailed names file, node and
  // hop when the answer breaks the rules of the interface.
  Status Pick(const DrawStream& stream, uint32_t node, uint32_t hop, uint32_t fanout,
              std::span<const uint64_t> absent, Picks* picks);

 private:
  SamplerPlugin(std::string path, const TopologyView& topology, bool weighted);

  Status Open(const std::string& bytes);
  Status Create(const std::vector<int32_t>& fanouts, const std::string& options);
  Status Failed(const std::string& why) const;
  void LeaveOut(std::span<const uint64_t> absent, uint64_t start, gnnd_sampler_row* row);
  Status CheckPicks(const gnnd_sampler_row& row, int64_t count) const;

  std::string path_;
  TopologyView topology_;
  bool weighted_;
  std::vector<int32_t> fanouts_;
  std::string options_;
  const gnnd_sampler_plugin* functions_ = nullptr;
  void* state_ = nullptr;
  bool created_ = false;
  std::vector<uint32_t> others_;      // neighbours of a row that lacks some
  std::vector<float> others_weight_;  // of their edges
  GuardedArray<uint64_t> positions_;
  GuardedArray<float> weights_;
};

}  // namespace gnnd
