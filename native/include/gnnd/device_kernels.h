/* gnnd: what the kernels of a device are asked for, as structs. Part of device_plugin.h, which says
 * who calls, in which order things happen, and where pointers point; its version counts for both.
 */
#ifndef GNND_DEVICE_KERNELS_H
#define GNND_DEVICE_KERNELS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum gnnd_element {
  GNND_ELEMENT_FLOAT32 = 1,
  GNND_ELEMENT_FLOAT16 = 2,
  GNND_ELEMENT_BFLOAT16 = 3,
  GNND_ELEMENT_FLOAT64 = 4,
};

/* ---- Sampling. ---- */

#define GNND_DEVICE_MAX_HOPS 8u

enum gnnd_device_algorithm { /* as Algorithm of core/sample/options.h */
                             GNND_SAMPLE_UNIFORM = 1,
                             GNND_SAMPLE_WEIGHTED = 2,
                             GNND_SAMPLE_WALK = 3,
                             GNND_SAMPLE_LABOR = 4,
};

enum gnnd_device_weights { /* as EdgeWeights there */
                           GNND_WEIGHTS_NONE = 0,
                           GNND_WEIGHTS_GCN = 1,
                           GNND_WEIGHTS_VISITS = 2,
                           GNND_WEIGHTS_INVERSE = 3,
};

/* Where a hop's block lies in a record, in bytes from its start (docs/formats/record.md). */
typedef struct gnnd_device_hop {
  int32_t fanout; /* -1: whole rows */
  uint32_t max_dst;
  uint32_t max_edges;
  uint32_t reserved;
  uint64_t indptr_at;
  uint64_t src_at;
  uint64_t weight_at;      /* 0 = no edge weights */
  uint64_t self_weight_at; /* 0 = none */
} gnnd_device_hop;

/* Pointers marked D are in the arena or registered host memory and stay until destroy; others are
 * read during create. */
typedef struct gnnd_device_sampler_config {
  uint64_t random_seed;
  uint64_t num_nodes;
  uint64_t num_edges;
  uint64_t max_degree;
  const uint64_t* indptr;      /* D [num_nodes + 1] */
  const uint32_t* indices;     /* D [num_edges] */
  const void* alias;           /* D [num_edges] of core/draw/alias.h, WEIGHTED only, else NULL */
  const uint32_t* ranks;       /* D [num_nodes] hot rank of each node, or NULL: no mark stage */
  const uint32_t* train_nodes; /* [num_train], whose keyed permutation the batches are */
  uint64_t num_train;
  uint32_t batch_size;
  uint32_t algorithm; /* enum gnnd_device_algorithm */
  uint32_t weights;   /* enum gnnd_device_weights */
  uint32_t replace;
  uint32_t expansion; /* 1 every node so far, 2 only new ones */
  uint32_t walks;
  uint32_t walk_length;
  uint32_t labor_window;
  double restart_prob;
  uint32_t num_hops;
  uint32_t max_nodes;                         /* input nodes of a record at most */
  gnnd_device_hop hops[GNND_DEVICE_MAX_HOPS]; /* hop 0 is at the seeds */
  uint64_t nodes_at;                          /* of the record's input nodes */
  uint64_t ranks_at;                          /* 0 = the record has no ranks */
  uint64_t slot_bytes;
  uint32_t depth;      /* samples in flight at most: 1 or 2, each with a workspace */
  uint32_t force_hash; /* 1: relabel by hashing even where a word a node would fit (tests) */
} gnnd_device_sampler_config;

typedef struct gnnd_device_sample_hop {
  uint32_t num_dst;
  uint32_t num_src;
  uint32_t num_edges;
  uint32_t reserved;
} gnnd_device_sample_hop;

/* What a record holds. Its header is not written: that is the caller's, from these numbers. */
typedef struct gnnd_device_sample_report {
  uint32_t num_seeds;
  uint32_t num_nodes;
  gnnd_device_sample_hop hops[GNND_DEVICE_MAX_HOPS];
  uint64_t sample_ns; /* by events on the device */
  uint64_t mark_ns;
  uint64_t copy_ns;
  uint64_t direct_bytes; /* written by the device straight into registered memory */
  uint64_t staged_bytes; /* through the pinned ring */
} gnnd_device_sample_report;

/* ---- Features. ---- */

/* Rows of `row_bytes` (a multiple of 2) for `count` nodes:
 *
 *   out[i] = ranks != NULL && ranks[i] < cached_rows ? cache[ranks[i]] : host[nodes[i]]
 *
 * Without host_rows, rows that are not cached stay untouched: `split` lists them, and `scatter`
 * puts them there once they have come. Loading a cache is a gather whose nodes are the hot order.
 */
typedef struct gnnd_device_gather {
  const uint32_t* nodes;
  const uint32_t* ranks; /* or NULL */
  uint64_t count;
  uint32_t row_bytes;
  uint32_t blocks; /* grid at most, so that others have multiprocessors, too; 0 = all */
  const void* cache;
  uint64_t cached_rows;
  const void* host_rows; /* registered, of a row for every node; or NULL */
  void* out;
  uint64_t out_stride; /* bytes */
} gnnd_device_gather;

/* misses[0 .. *num_misses) = positions i, ascending, with ranks[i] >= cached_rows. */
typedef struct gnnd_device_split {
  const uint32_t* ranks;
  uint64_t count;
  uint64_t cached_rows;
  uint32_t* misses;     /* [count] */
  uint32_t* num_misses; /* [1] */
  void* workspace;      /* [split_workspace_bytes(count)] */
} gnnd_device_split;

/* out[positions[k]] = rows[k], k < count. */
typedef struct gnnd_device_scatter {
  const uint32_t* positions;
  uint64_t count;
  const void* rows; /* packed */
  uint32_t row_bytes;
  uint32_t reserved;
  void* out;
  uint64_t out_stride; /* bytes */
} gnnd_device_scatter;

/* ranks_of[i] = rank_of_node[nodes[i]]. */
typedef struct gnnd_device_mark {
  const uint32_t* nodes;
  uint64_t count;
  const uint32_t* rank_of_node;
  uint32_t* ranks_of;
} gnnd_device_mark;

/* ---- Training. Field by field as the structs of core/kernels, whose comments hold. ---- */

typedef struct gnnd_device_spmm { /* Spmm */
  uint32_t element;               /* of x and self, enum gnnd_element */
  uint32_t out_element;           /* of out; sums run in float32, or float64 for float64 */
  uint32_t rows;
  uint32_t columns;
  const void* x;
  uint64_t x_stride; /* elements */
  const uint32_t* indptr;
  const uint32_t* index;
  const void* weight;
  const void* self;
  uint64_t self_stride;
  const uint32_t* self_index;
  const void* self_weight;
  const void* scale;
  uint32_t self_rows;
  uint32_t reserved;
  void* out;
  uint64_t out_stride;
} gnnd_device_spmm;

/* The transpose of a block: edges of each source in ascending order of edge. */
typedef struct gnnd_device_transpose {
  const uint32_t* indptr; /* [num_dst + 1] */
  const uint32_t* src;    /* [num_edges] */
  uint32_t num_dst;
  uint32_t num_src;
  uint64_t num_edges;
  uint32_t* transposed_indptr; /* [num_src + 1] */
  uint32_t* transposed_dst;    /* [num_edges] */
  uint32_t* transposed_edge;   /* [num_edges] */
  void* workspace;             /* [transpose_workspace_bytes(...)] */
} gnnd_device_transpose;

typedef struct gnnd_device_dropout { /* DropoutRows */
  uint32_t element;
  uint32_t rows;
  uint32_t columns;
  uint32_t relu;
  uint64_t random_seed; /* DropoutKey: the batch's key and the layer */
  uint32_t epoch;
  uint32_t batch;
  uint32_t layer;
  uint32_t reserved;
  const uint32_t* nodes;
  void* in_out;
  uint64_t stride; /* elements */
  uint64_t threshold;
  double scale;
} gnnd_device_dropout;

typedef struct gnnd_device_loss { /* CrossEntropy, a row a thread */
  uint32_t element;               /* float32 or float64 */
  uint32_t rows;
  uint32_t columns;
  uint32_t reserved;
  const void* logits;
  uint64_t stride; /* elements, of grad as well */
  const uint32_t* labels;
  void* grad;        /* or NULL */
  double* losses;    /* [rows], to be added in row order */
  uint32_t* correct; /* [rows], 1 where the first largest logit is the label; or NULL */
} gnnd_device_loss;

typedef struct gnnd_device_attention { /* AttentionRows */
  uint32_t element;
  uint32_t pass; /* AttentionPass: 0 forward, 1 backward, 2 backward of the sources */
  uint32_t num_dst;
  uint32_t heads;
  uint32_t columns;
  uint32_t reserved;
  uint64_t num_edges;
  uint64_t num_src;
  const uint32_t* indptr;
  const uint32_t* index;
  const uint32_t* self_index;
  const void* source;
  const void* source_score;
  const void* destination_score;
  const void* destination;
  const void* attention;
  void* alpha;
  const void* weight;
  double weight_scale;
  const void* grad_out;
  void* grad_score;
  void* grad_destination;
  void* grad_attention;
  const uint32_t* transposed_indptr;
  const uint32_t* transposed_dst;
  const uint32_t* transposed_edge;
  void* grad_source;
} gnnd_device_attention;

typedef struct gnnd_device_drop_attention { /* DropAttention, of all destinations */
  gnnd_device_attention attention;          /* alpha is read */
  uint64_t random_seed;
  uint32_t epoch;
  uint32_t batch;
  uint32_t layer;
  uint32_t reserved;
  const uint32_t* nodes;
  uint64_t threshold;
  void* weight;
} gnnd_device_drop_attention;

/* Consecutive parameters that decay alike. */
typedef struct gnnd_device_tensor {
  uint64_t at;     /* first float */
  uint64_t floats; /* without padding, which becomes zero */
  uint64_t padded;
  uint32_t decays;
  uint32_t reserved;
} gnnd_device_tensor;

#define GNND_DEVICE_MAX_GRADIENTS 64u

typedef struct gnnd_device_optimizer { /* OptimizerOptions and OptimizerStep */
  uint32_t type;                       /* 1 Adam, 2 AdamW, 3 SGD */
  uint32_t nesterov;
  double learning_rate; /* of this step */
  double beta1;
  double beta2;
  double epsilon;
  double momentum;
  double weight_decay;
  double clip; /* factor on the mean gradient, 1 = none */
  uint64_t step;
  uint64_t num_seeds;
  uint64_t num_floats;
  uint32_t num_gradients;
  uint32_t num_tensors;
  const float* gradients[GNND_DEVICE_MAX_GRADIENTS]; /* added in this order */
  const gnnd_device_tensor* tensors;                 /* in the arena */
  const float* parameters_in;
  const float* memory_in;
  float* parameters_out;
  float* memory_out;
} gnnd_device_optimizer;

#ifdef __cplusplus
}
#endif

#endif
