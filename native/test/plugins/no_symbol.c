#include "gnnd/sampler_plugin.h"

/* A shared object, but none of ours. */
GNND_PLUGIN_EXPORT int gnnd_something_else(void);
int gnnd_something_else(void) { return 1; }
