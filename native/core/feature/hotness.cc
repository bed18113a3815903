#include "core/feature/hotness.h"

#include <algorithm>
#include <cmath>

#include "core/base/check.h"
#include "core/draw/philox.h"
#include "core/sample/weighted.h"

namespace gnnd {
namespace {

// log(1 - p), finite also where p is 1.
float LogOfComplement(double p) {
  constexpr double kLargest = 1.0 - 1e-12;
  return static_cast<float>(std::log1p(-std::min(p, kLargest)));
}

// Calls `visit(e)` for the entries of row v, and prefetches the slots of their targets in `values`.
template <typename Visit>
void ForEachEntry(const TopologyView& topology, uint32_t v, std::span<float> values,
                  const Visit& visit) {
  // Far enough ahead that random accesses overlap, near enough that lines are not evicted again.
  constexpr uint64_t kAhead = 24;
  const std::span<const uint32_t> indices = topology.indices;
  for (uint64_t e = topology.indptr[v]; e < topology.indptr[v + 1]; ++e) {
    if (e + kAhead < indices.size()) __builtin_prefetch(&values[indices[e + kAhead]], 1);
    visit(e);
  }
}

// The share of row v's weight that each entry has, computed from the row's alias table.
void WeightSharesOf(const TopologyView& topology, uint32_t v, std::vector<double>* shares) {
  const uint64_t degree = topology.degree(v);
  const AliasEntry* row = topology.alias.data() + topology.indptr[v];
  shares->assign(degree, 0.0);
  for (uint64_t i = 0; i < degree; ++i) {
    if (IsWeightless(row[i], static_cast<uint32_t>(i))) continue;
    const double own = row[i].alias == i ? 1.0 : row[i].threshold * 0x1p-32;
    (*shares)[i] += own / static_cast<double>(degree);
    (*shares)[row[i].alias] += (1.0 - own) / static_cast<double>(degree);
  }
}

// One hop of draws from rows: adds to `log_missed[u]` the logarithm of the probability that no row
// which lists u draws it. `expanded` is e_h.
void AddDraws(const TopologyView& topology, const SamplerOptions& sampler, int32_t fanout,
              std::span<const float> expanded, std::span<float> log_missed) {
  const bool by_weight = sampler.algorithm == Algorithm::kWeighted;
  std::vector<double> shares;
  for (uint32_t v = 0; v < topology.num_nodes(); ++v) {
    const uint64_t degree = topology.degree(v);
    if (degree == 0 || expanded[v] <= 0.0F) continue;
    const auto d = static_cast<double>(degree);
    const bool takes_all =
        fanout < 0 || (!sampler.replace && fanout >= static_cast<int64_t>(degree));
    if (by_weight && !takes_all) {
      WeightSharesOf(topology, v, &shares);
      ForEachEntry(topology, v, log_missed, [&](uint64_t e) {
        const double drawn = 1.0 - std::pow(1.0 - shares[e - topology.indptr[v]], fanout);
        log_missed[topology.indices[e]] +=
            LogOfComplement(static_cast<double>(expanded[v]) * drawn);
      });
      continue;
    }
    const double drawn = takes_all         ? 1.0
                         : sampler.replace ? 1.0 - std::pow(1.0 - 1.0 / d, fanout)
                                           : fanout / d;
    const float term = LogOfComplement(static_cast<double>(expanded[v]) * drawn);
    ForEachEntry(topology, v, log_missed,
                 [&](uint64_t e) { log_missed[topology.indices[e]] += term; });
  }
}

// One hop of random walks: follows the walkers' expected positions, step by step.
void AddWalks(const TopologyView& topology, const WalkOptions& walk, int32_t neighbours,
              std::span<const float> expanded, std::span<float> log_missed) {
  std::vector<float> walkers(expanded.begin(), expanded.end());  // each stands for walk.walks walks
  std::vector<float> next(topology.num_nodes());
  const double goes_on = 1.0 - walk.restart_prob;
  double steps = 0;  // expected steps of a walk
  for (uint32_t t = 0; t < walk.length; ++t) steps += std::pow(goes_on, t);
  // Share of the visited nodes that is kept.
  const double kept = std::min(1.0, neighbours / (walk.walks * steps));
  for (uint32_t t = 0; t < walk.length; ++t) {
    std::fill(next.begin(), next.end(), 0.0F);
    for (uint32_t v = 0; v < topology.num_nodes(); ++v) {
      if (walkers[v] <= 0.0F || topology.degree(v) == 0) continue;
      const auto part = static_cast<float>(static_cast<double>(walkers[v]) /
                                           static_cast<double>(topology.degree(v)));
      ForEachEntry(topology, v, next, [&](uint64_t e) { next[topology.indices[e]] += part; });
    }
    const auto visits = static_cast<float>(kept * walk.walks);
    for (uint32_t v = 0; v < topology.num_nodes(); ++v) {
      log_missed[v] -= visits * next[v];
      walkers[v] = static_cast<float>(static_cast<double>(next[v]) * goes_on);
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
                           const Reach& reach) {
  GNND_CHECK(reach.batch_size > 0 && HasEstimate(reach.sampler));
  const SamplerOptions& sampler = reach.sampler;
  const uint32_t num_nodes = topology.num_nodes();
  const bool by_node = reach.seed_shares.empty();
  const auto items = static_cast<double>(by_node ? train_nodes.size() : reach.items);
  const double batches = std::max(1.0, std::ceil(items / reach.batch_size));
  Hotness reached = by_node ? Hotness(num_nodes) : reach.seed_shares;
  GNND_CHECK(reached.size() == num_nodes);
  // Every training node is a seed in exactly one batch of an epoch.
  if (by_node) {
    for (const uint32_t node : train_nodes) reached[node] = static_cast<float>(1.0 / batches);
  }
  Hotness expanded = reached;
  std::vector<float> log_missed(num_nodes);
  for (const int32_t fanout : sampler.fanouts) {
    for (uint32_t v = 0; v < num_nodes; ++v) {
      log_missed[v] = LogOfComplement(static_cast<double>(reached[v]));
    }
    if (sampler.algorithm == Algorithm::kWalk) {
      AddWalks(topology, sampler.walk, fanout, expanded, log_missed);
    } else {
      AddDraws(topology, sampler, fanout, expanded, log_missed);
    }
    for (uint32_t v = 0; v < num_nodes; ++v) {
      const float now = -std::expm1(log_missed[v]);
      expanded[v] = sampler.expansion == Expansion::kNew ? now - reached[v] : now;
      reached[v] = now;
    }
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
