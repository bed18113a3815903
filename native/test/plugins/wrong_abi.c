#include "gnnd/sampler_plugin.h"

/* Of another version, of which nothing but the first word may be read. */
static const uint32_t plugin[1] = {GNND_SAMPLER_ABI_VERSION + 1};

GNND_PLUGIN_EXPORT const gnnd_sampler_plugin* gnnd_sampler_plugin_get(void);
const gnnd_sampler_plugin* gnnd_sampler_plugin_get(void) {
  return (const gnnd_sampler_plugin*)(const void*)plugin;
}
