#include "core/cache/hotness.h"

#include <algorithm>
#include <cmath>

#include "core/base/check.h"
#include "core/base/philox.h"

namespace gnnd {
namespace {

// log(1 - p), finite also where p is 1.
float LogOfComplement(double p) {
  constexpr double kLargest = 1.0 - 1e-12;
  return static_cast<float>(std::log1p(-std::min(p, kLargest)));
}

// One hop: adds to `log_missed[u]` the logarithm of the probability that no row which lists u draws
// it. `reached` are the probabilities before the hop.
void AddHop(const TopologyView& topology, int32_t fanout, std::span<const float> reached,
            std::span<float> log_missed) {
  // Far enough ahead that the random accesses overlap, near enough that lines are still there.
  constexpr uint64_t kAhead = 24;
  const std::span<const uint32_t> indices = topology.indices;
  for (uint32_t v = 0; v < topology.num_nodes(); ++v) {
    const uint64_t degree = topology.degree(v);
    if (degree == 0 || reached[v] == 0.0F) continue;
    const double share =
        fanout < 0 ? 1.0 : std::min(1.0, static_cast<double>(fanout) / static_cast<double>(degree));
    const float term = LogOfComplement(static_cast<double>(reached[v]) * share);
    for (uint64_t e = topology.indptr[v]; e < topology.indptr[v + 1]; ++e) {
      if (e + kAhead < indices.size()) __builtin_prefetch(&log_missed[indices[e + kAhead]], 1);
      log_missed[indices[e]] += term;
    }
  }
}

}  // namespace

Hotness DegreeHotness(const TopologyView& topology) {
  std::vector<uint32_t> listed(topology.num_nodes());
  for (const uint32_t u : topology.indices) ++listed[u];
  return Hotness(listed.begin(), listed.end());
}

Hotness RandomHotness(uint64_t random_seed, uint32_t num_nodes) {
  Hotness hotness(num_nodes);
  for (uint32_t v = 0; v < num_nodes; ++v) {
    const PhiloxCounter counter = CounterOf(Purpose::kCacheOrder, 0, 0, 0, v, 0);
    hotness[v] = UnitDraw(Philox(KeyOf(random_seed), counter).word[0]);
  }
  return hotness;
}

Hotness ProbabilityHotness(const TopologyView& topology, std::span<const uint32_t> train_nodes,
                           const KhopReach& reach) {
  GNND_CHECK(reach.batch_size > 0);
  const double batches =
      std::max(1.0, std::ceil(static_cast<double>(train_nodes.size()) / reach.batch_size));
  Hotness reached(topology.num_nodes());
  // Every training node is a seed once an epoch, in one of the batches.
  for (const uint32_t node : train_nodes) reached[node] = static_cast<float>(1.0 / batches);
  std::vector<float> log_missed(topology.num_nodes());
  for (const int32_t fanout : reach.fanouts) {
    for (uint32_t v = 0; v < topology.num_nodes(); ++v) {
      log_missed[v] = LogOfComplement(static_cast<double>(reached[v]));
    }
    AddHop(topology, fanout, reached, log_missed);
    for (uint32_t v = 0; v < topology.num_nodes(); ++v) reached[v] = -std::expm1(log_missed[v]);
  }
  for (float& value : reached) value = static_cast<float>(value * batches);
  return reached;
}

Hotness PresampledHotness(std::span<const uint32_t> counts, uint32_t epochs) {
  GNND_CHECK(epochs > 0);
  Hotness hotness(counts.size());
  for (size_t v = 0; v < counts.size(); ++v) {
    hotness[v] = static_cast<float>(counts[v]) / static_cast<float>(epochs);
  }
  return hotness;
}

Hotness CombinedHotness(std::span<const uint32_t> counts, uint32_t epochs,
                        std::span<const float> estimate, float weight) {
  GNND_CHECK(epochs > 0 && counts.size() == estimate.size());
  Hotness hotness(counts.size());
  const float total = static_cast<float>(epochs) + weight;
  for (size_t v = 0; v < counts.size(); ++v) {
    hotness[v] = (static_cast<float>(counts[v]) + weight * estimate[v]) / total;
  }
  return hotness;
}

}  // namespace gnnd
