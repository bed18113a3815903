/* gnnd: the interface of samplers in shared objects (docs/plugins.md is the tutorial). C11 and C++.
 *
 * A sampler plug-in decides one thing: which neighbours a row draws. A row is one node's list of
 * in-neighbours; a hop draws a row for every node that it expands. Seeds, hops, deduplication,
 * renumbering, records, the queue and recovery stay gnnd's.
 *
 * The shared object exports one function:
 *
 *   GNND_PLUGIN_EXPORT const gnnd_sampler_plugin* gnnd_sampler_plugin_get(void);
 *
 * Duties. A row's draw must be a function of its gnnd_sampler_row and of the gnnd_sampler_config
 * alone: no clock, no file, no counter, no random numbers but those below. Then a batch is the same
 * in every process, and again after a crash, and so is the model. One thread of each Sampler
 * process makes all calls; several processes load the object at the same time. No C++ exception may
 * leave a function.
 *
 * The file must stand alone: it is loaded from a copy in memory whose SHA-256 was checked, so it
 * has no folder of its own to find other libraries in. It runs with the rights of the daemon's
 * user.
 */
#ifndef GNND_SAMPLER_PLUGIN_H
#define GNND_SAMPLER_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes when a struct or a rule of this file changes; plug-in and gnnd must have the same. */
#define GNND_SAMPLER_ABI_VERSION 1u

#define GNND_PLUGIN_EXPORT __attribute__((visibility("default")))

/* Keyed random numbers: Philox 4x32-10 (Salmon et al., SC'11) at a counter that holds the batch and
 * the hop. Stateless: the same arguments give the same words. */
typedef struct gnnd_random {
  uint32_t key[2];
  uint32_t counter[4]; /* the counter of node 0, block 0 */
} gnnd_random;

/* Given once, to create. Pointers stay valid until destroy. */
typedef struct gnnd_sampler_config {
  uint32_t abi_version; /* of the caller */
  uint32_t num_hops;
  const int32_t* fanouts; /* [num_hops], hop 0 is at the seeds; -1: the hop takes whole rows
                             without calling pick */
  uint32_t weighted;      /* 1: sampling.plugin.weights is true, pick gives every pick a weight */
  uint32_t id_bytes;      /* bytes of an id in indices and neighbours: 4 while no graph has more
                             than 2^32 - 2 nodes; gnnd_id reads either width */
  uint64_t num_nodes;
  uint64_t num_edges;
  const uint64_t* indptr;   /* [num_nodes + 1]: where rows start and end in indices */
  const void* indices;      /* [num_edges]: in-neighbours; rows in the order of the dataset */
  const float* edge_weight; /* [num_edges], or NULL where the dataset has no edge weights */
  const char* options;      /* sampling.plugin.options, "" when not set */
} gnnd_sampler_config;

/* A row to draw. */
typedef struct gnnd_sampler_row {
  uint64_t node;
  uint64_t degree; /* at least 1: pick is not called for empty rows */
  uint32_t hop;
  uint32_t fanout;          /* largest number of picks, 1 to 4096 */
  uint32_t relation;        /* kind of the row's edges: 0 while graphs have only one */
  uint32_t id_bytes;        /* as in gnnd_sampler_config */
  const void* neighbours;   /* [degree] */
  const float* edge_weight; /* [degree], or NULL */
  gnnd_random random;       /* keyed by the batch and hop */
} gnnd_sampler_row;

/* The result of gnnd_sampler_plugin_get; lives as long as the process. */
typedef struct gnnd_sampler_plugin {
  uint32_t abi_version; /* GNND_SAMPLER_ABI_VERSION */
  uint32_t reserved;    /* 0 */

  /* Makes the state that pick gets. Returns 0 on success; otherwise writes a sentence to `error`
   * (error_bytes large), and the job ends. NULL: there is no state, and no options are accepted. */
  int (*create)(const gnnd_sampler_config* config, void** state, char* error, size_t error_bytes);

  /* Writes at most row->fanout positions, each below row->degree, in the order that the record
   * keeps; a position may repeat. `weights` is NULL unless sampling.plugin.weights is true; then
   * every pick gets a weight, finite and at least 0, and models take weighted means. Returns the
   * number of picks, 0 for an empty row; a negative number ends the job, and so does a break of
   * these rules. */
  int64_t (*pick)(const void* state, const gnnd_sampler_row* row, uint64_t* positions,
                  float* weights);

  /* Frees the state. May be NULL. */
  void (*destroy)(void* state);
} gnnd_sampler_plugin;

/* The only symbol that gnnd looks up. */
#define GNND_SAMPLER_PLUGIN_SYMBOL "gnnd_sampler_plugin_get"
typedef const gnnd_sampler_plugin* (*gnnd_sampler_plugin_get_fn)(void);

/* Id `at` of an array of ids. */
static inline uint64_t gnnd_id(const void* ids, uint32_t id_bytes, uint64_t at) {
  return id_bytes == 8 ? ((const uint64_t*)ids)[at] : ((const uint32_t*)ids)[at];
}

/* Neighbour `position` of the row. */
static inline uint64_t gnnd_neighbour(const gnnd_sampler_row* row, uint64_t position) {
  return gnnd_id(row->neighbours, row->id_bytes, position);
}

/* Philox 4x32-10. */
static inline void gnnd_philox(const uint32_t key[2], const uint32_t counter[4],
                               uint32_t words[4]) {
  uint32_t c0 = counter[0];
  uint32_t c1 = counter[1];
  uint32_t c2 = counter[2];
  uint32_t c3 = counter[3];
  uint32_t k0 = key[0];
  uint32_t k1 = key[1];
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = (uint64_t)0xD2511F53u * c0;
    const uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
    const uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
    const uint32_t n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
    c1 = (uint32_t)p1;
    c3 = (uint32_t)p0;
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  words[0] = c0;
  words[1] = c1;
  words[2] = c2;
  words[3] = c3;
}

/* Four words for a node below 2^44: the row's node or, if rows must agree on something, a
 * neighbour. Each 2^16 blocks have a key of their own, and the first ones the key of `random`. */
static inline void gnnd_random_block(const gnnd_random* random, uint64_t node, uint32_t block,
                                     uint32_t words[4]) {
  const uint32_t counter[4] = {
      (uint32_t)node, random->counter[1] | (uint32_t)(node >> 32) << 20 | (block & 0xFFFFu),
      random->counter[2], random->counter[3]};
  const uint32_t page[4] = {block >> 16, 0, 0, 240u << 24};
  uint32_t key[4] = {random->key[0], random->key[1], 0, 0};
  if (page[0] != 0) gnnd_philox(random->key, page, key);
  gnnd_philox(key, counter, words);
}

/* 32 random bits: draw `draw` of the row. */
static inline uint32_t gnnd_random_word(const gnnd_sampler_row* row, uint32_t draw) {
  uint32_t words[4];
  gnnd_random_block(&row->random, row->node, draw / 4, words);
  return words[draw % 4];
}

/* Uniform in [0, bound), from one word; bias below bound / 2^32. */
static inline uint32_t gnnd_random_below(const gnnd_sampler_row* row, uint32_t draw,
                                         uint32_t bound) {
  return (uint32_t)(((uint64_t)gnnd_random_word(row, draw) * bound) >> 32);
}

/* Uniform in [0, 1), 24 bits, exact in float. */
static inline float gnnd_random_unit(const gnnd_sampler_row* row, uint32_t draw) {
  return (float)(gnnd_random_word(row, draw) >> 8) * (1.0f / 16777216.0f);
}

#ifdef __cplusplus
}
#endif

#endif
