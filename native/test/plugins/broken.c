#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gnnd/sampler_plugin.h"

/* Breaks the rule that its options name. */

static int create(const gnnd_sampler_config* config, void** state, char* error,
                  size_t error_bytes) {
  if (strcmp(config->options, "refuse") == 0) {
    snprintf(error, error_bytes, "no graph of %llu nodes, please",
             (unsigned long long)config->num_nodes);
    return 1;
  }
  char* copy = malloc(strlen(config->options) + 1);
  if (copy == NULL) return 1;
  *state = strcpy(copy, config->options);
  return 0;
}

static int64_t pick(const void* state, const gnnd_sampler_row* row, uint64_t* positions,
                    float* weights) {
  const char* how = state;
  positions[0] = 0;
  if (weights != NULL) weights[0] = strcmp(how, "weight") == 0 ? -1.0f : 1.0f;
  if (strcmp(how, "position") == 0) positions[0] = row->degree;
  if (strcmp(how, "negative") == 0) return -7;
  if (strcmp(how, "crash") == 0) abort();
  if (strcmp(how, "many") == 0) {
    for (uint32_t k = 0; k <= row->fanout; ++k) positions[k] = 0;
    return (int64_t)row->fanout + 1;
  }
  /* Past all the room there is. */
  for (uint64_t k = 0; strcmp(how, "overrun") == 0 && k < 1000000; ++k) positions[k] = k;
  return 1;
}

static const gnnd_sampler_plugin plugin = {GNND_SAMPLER_ABI_VERSION, 0, create, pick, free};

GNND_PLUGIN_EXPORT const gnnd_sampler_plugin* gnnd_sampler_plugin_get(void);
const gnnd_sampler_plugin* gnnd_sampler_plugin_get(void) { return &plugin; }
