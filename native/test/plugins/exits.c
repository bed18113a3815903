#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gnnd/sampler_plugin.h"

/* Ends its process with exit(0) at a pick: always, or, with the path of a file as options, when it
 * is the first to make that file, after some hundred picks. */

enum { kPicksBefore = 500 };

static int create(const gnnd_sampler_config* config, void** state, char* error,
                  size_t error_bytes) {
  (void)error;
  (void)error_bytes;
  char* copy = malloc(strlen(config->options) + 1);
  if (copy == NULL) return 1;
  *state = strcpy(copy, config->options);
  return 0;
}

static int64_t pick(const void* state, const gnnd_sampler_row* row, uint64_t* positions,
                    float* weights) {
  static int picks = 0;
  const char* path = state;
  (void)row;
  if (path[0] == '\0') exit(0);
  if (++picks == kPicksBefore && open(path, O_CREAT | O_EXCL, 0600) >= 0) exit(0);
  positions[0] = 0;
  if (weights != NULL) weights[0] = 1.0f;
  return 1;
}

static const gnnd_sampler_plugin plugin = {GNND_SAMPLER_ABI_VERSION, 0, create, pick, free};

GNND_PLUGIN_EXPORT const gnnd_sampler_plugin* gnnd_sampler_plugin_get(void);
const gnnd_sampler_plugin* gnnd_sampler_plugin_get(void) { return &plugin; }
