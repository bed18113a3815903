#include "gnnd/sampler_plugin.h"

/* Draws without replacement by Floyd's method, as gnnd's own uniform sampler does. Weights, where
 * they are asked for, are those of the edges, or 1. */

static int has_picked(const uint64_t* positions, uint32_t picked, uint64_t position) {
  for (uint32_t k = 0; k < picked; ++k) {
    if (positions[k] == position) return 1;
  }
  return 0;
}

static int64_t pick(const void* state, const gnnd_sampler_row* row, uint64_t* positions,
                    float* weights) {
  (void)state;
  const uint32_t count = row->degree < row->fanout ? (uint32_t)row->degree : row->fanout;
  for (uint32_t j = 0; j < count; ++j) {
    const uint64_t last = row->degree - count + j;
    const uint64_t t = row->degree <= row->fanout ? j : gnnd_random_below(row, j, (uint32_t)last + 1);
    positions[j] = has_picked(positions, j, t) ? last : t;
  }
  for (uint32_t j = 0; weights != NULL && j < count; ++j) {
    weights[j] = row->edge_weight == NULL ? 1.0f : row->edge_weight[positions[j]];
  }
  return count;
}

static const gnnd_sampler_plugin plugin = {GNND_SAMPLER_ABI_VERSION, 0, NULL, pick, NULL};

GNND_PLUGIN_EXPORT const gnnd_sampler_plugin* gnnd_sampler_plugin_get(void);
const gnnd_sampler_plugin* gnnd_sampler_plugin_get(void) { return &plugin; }
