/* gnnd: the arguments of a device's kernels, as structs. Part of device_plugin.h, which states the
 * rules about callers, order and pointers; its version is that of both files.
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

/* The places of a hop's block in a record, in bytes from its start (docs/formats/record.md). */
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

/* Pointers marked D are in the arena or in registered host memory and stay valid until destroy;
 * others are read during create. */
typedef struct gnnd_device_sampler_config {
  uint64_t random_seed;
  uint64_t num_nodes;
  uint64_t num_edges;
  uint64_t max_degree;
  const uint64_t* indptr;      /* D [num_nodes + 1] */
  const uint32_t* indices;     /* D [num_edges] */
  const void* alias;           /* D [num_edges] of core/draw/alias.h, WEIGHTED only, else NULL */
  const uint32_t* ranks;       /* D [num_nodes] hot rank of each node, or NULL: no mark stage */
  const uint32_t* train_nodes; /* [num_train]; batches are its keyed permutation */
  uint64_t num_train;
  uint32_t batch_size;
  uint32_t algorithm; /* enum gnnd_device_algorithm */
  uint32_t weights;   /* enum gnnd_device_weights */
  uint32_t replace;
  uint32_t expansion; /* a hop expands 1: every node so far, 2: only new ones */
  uint32_t walks;
  uint32_t walk_length;
  uint32_t labor_window;
  double restart_prob;
  uint32_t num_hops;
  uint32_t max_nodes;                         /* largest number of a record's input nodes */
  gnnd_device_hop hops[GNND_DEVICE_MAX_HOPS]; /* hop 0 is at the seeds */
  uint64_t nodes_at;                          /* place of the record's input nodes */
  uint64_t ranks_at;                          /* 0 = the record has no ranks */
  uint64_t slot_bytes;
  uint32_t depth;      /* most samples under way: 1 or 2, each with a workspace */
  uint32_t force_hash; /* 1: relabel by hashing even if a word per node would fit (tests) */
} gnnd_device_sampler_config;

typedef struct gnnd_device_sample_hop {
  uint32_t num_dst;
  uint32_t num_src;
  uint32_t num_edges;
  uint32_t reserved;
} gnnd_device_sample_hop;

/* The sizes of a record, from which the caller writes the header; finish does not write it. */
typedef struct gnnd_device_sample_report {
  uint32_t num_seeds;
  uint32_t num_nodes;
  gnnd_device_sample_hop hops[GNND_DEVICE_MAX_HOPS];
  uint64_t sample_ns; /* by events on the device */
  uint64_t mark_ns;
  uint64_t copy_ns;
  uint64_t direct_bytes; /* written by the device straight into registered memory */
  uint64_t staged_bytes; /* copied through the pinned ring */
} gnnd_device_sample_report;

/* ---- Features. ---- */

/* Ranks from `from` on and below `to`, dealt in rotation to `hands` places, the first of which is
 * `place`: rank r is row (r - from) / hands of place (r - from) % hands. */
typedef struct gnnd_device_row_line {
  uint32_t from;
  uint32_t to;
  uint32_t hands; /* at least 1 */
  uint32_t place;
} gnnd_device_row_line;

#define GNND_DEVICE_ROW_LINES 8
#define GNND_DEVICE_ROW_PLACES 48

/* The places of rows that kernels can read: in the device's own memory, another device's that was
 * opened, or the host's that is registered. Lines may overlap: a row is found in the first line
 * with its rank whose place is not NULL, else in by_node, if that is not NULL. */
typedef struct gnnd_device_row_tiers {
  uint32_t lines;
  uint32_t places;
  gnnd_device_row_line line[GNND_DEVICE_ROW_LINES];
  const void* place[GNND_DEVICE_ROW_PLACES]; /* row 0 of each; NULL: cannot be read now */
  const void* by_node;                       /* one row per node; or NULL */
} gnnd_device_row_tiers;

/* Sets out[i] = the row of ranks[i] or nodes[i], of `row_bytes` (a multiple of 2), for i < count or
 * for the i in `positions`. Rows that no tier has stay untouched, for `scatter` to write later. */
typedef struct gnnd_device_gather {
  const uint32_t* nodes;     /* read only for by_node */
  const uint32_t* ranks;     /* or NULL: no node has a rank */
  const uint32_t* positions; /* [count], the rows to copy; NULL: the first `count` */
  uint64_t count;
  uint32_t row_bytes;
  uint32_t blocks; /* largest grid, to leave multiprocessors to others; 0 = no limit */
  gnnd_device_row_tiers tiers;
  void* out;
  uint64_t out_stride; /* bytes */
} gnnd_device_gather;

/* Sets out[positions[k]] = rows[k], k < count. */
typedef struct gnnd_device_scatter {
  const uint32_t* positions;
  uint64_t count;
  const void* rows; /* packed */
  uint32_t row_bytes;
  uint32_t reserved;
  void* out;
  uint64_t out_stride; /* bytes */
} gnnd_device_scatter;

/* Sets out[i] = from[i] in another type: float32 or float16 to float32 or bfloat16, or bfloat16 to
 * float32. */
typedef struct gnnd_device_convert {
  uint32_t element; /* enum gnnd_element */
  uint32_t out_element;
  uint64_t count;
  const void* from;
  void* out;
} gnnd_device_convert;

/* ---- Training. The comments of the structs in core/kernels hold for fields of the same name. ----
 */

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
  uint64_t num_edges;          /* below 2^32 */
  uint32_t* transposed_indptr; /* [num_src + 1] */
  uint32_t* transposed_dst;    /* [num_edges] */
  uint32_t* transposed_edge;   /* [num_edges] */
  void* workspace;             /* [transpose_workspace_bytes(...)] */
} gnnd_device_transpose;

/* Sets out[k] = from[index[k]], float32: weights of a transpose's edges. */
typedef struct gnnd_device_take {
  const float* from;
  const uint32_t* index;
  uint64_t count;
  float* out;
} gnnd_device_take;

/* For means over edges: sets scale[d] = 1 / the sum of d's weights in their order, or 0 if that is
 * not above 0; and scaled[e] = scale[d] * weight[e] unless `scaled` is NULL. */
typedef struct gnnd_device_mean_scales {
  const uint32_t* indptr; /* [num_dst + 1] */
  const float* weight;    /* [num_edges], NULL = 1 */
  uint32_t num_dst;
  uint32_t reserved;
  float* scale;  /* [num_dst] */
  float* scaled; /* [num_edges] or NULL */
} gnnd_device_mean_scales;

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

/* Sets grad_in[i] = out[i] is not 0 ? scale * grad[i] : 0; float32, float64 or bfloat16. */
typedef struct gnnd_device_dropout_gradient {
  uint32_t element;
  uint32_t reserved;
  uint64_t count;
  const void* out;
  const void* grad;
  double scale;
  void* grad_in;
} gnnd_device_dropout_gradient;

/* Sets out[c] = the sum over groups of 64 rows each, then over the groups in their order. */
typedef struct gnnd_device_sum_rows {
  uint32_t element; /* float32 or bfloat16 */
  uint32_t count;
  uint64_t columns;
  const void* rows; /* packed */
  float* out;       /* [columns] */
  void* workspace;  /* [sum_workspace_bytes(count, columns)] */
} gnnd_device_sum_rows;

/* CrossEntropy of float32 logits. The processor computes a row's loss, log(exp_sums[r]) -
 * margins[r], because logarithms of float64 have other bits elsewhere. */
typedef struct gnnd_device_loss {
  uint32_t rows;
  uint32_t columns;
  const float* logits;
  uint64_t stride;        /* elements, of grad as well */
  const uint32_t* labels; /* below columns */
  float* grad;            /* or NULL */
  double* exp_sums;       /* [rows] */
  float* margins;         /* [rows] */
  uint32_t* best;         /* [rows], column of the first largest logit; or NULL */
} gnnd_device_loss;

/* AttentionRows<float>, all rows of a pass. Unlike there, backward of GATv2 overwrites
 * grad_attention, with sums over 64 destinations each, then over these sums in order. */
typedef struct gnnd_device_attention {
  uint32_t pass; /* AttentionPass: 0 forward, 1 backward, 2 backward of the sources */
  uint32_t num_dst;
  uint32_t heads;
  uint32_t columns;
  uint64_t num_edges;
  uint64_t num_src;
  const uint32_t* indptr;
  const uint32_t* index;
  const uint32_t* self_index;
  const float* source;
  const float* source_score;
  const float* destination_score;
  const float* destination;
  const float* attention;
  float* alpha;
  const float* weight;
  double weight_scale;
  const float* grad_out;
  float* grad_score;
  float* grad_destination;
  float* grad_attention;
  const uint32_t* transposed_indptr;
  const uint32_t* transposed_dst;
  const uint32_t* transposed_edge;
  float* grad_source;
  void* workspace; /* GATv2's backward: [sum_workspace_bytes(num_dst, heads * columns)] */
} gnnd_device_attention;

typedef struct gnnd_device_drop_attention { /* DropAttention for all destinations */
  gnnd_device_attention attention;          /* alpha is read */
  uint64_t random_seed;
  uint32_t epoch;
  uint32_t batch;
  uint32_t layer;
  uint32_t reserved;
  const uint32_t* nodes;
  uint64_t threshold;
  float* weight;
} gnnd_device_drop_attention;

/* Sets out[h][r], r < rows, to the sum of grad_score (laid out like alpha) over the row's edges in
 * their order: edge[k] for k in indptr[r] .. indptr[r + 1], or k itself if `edge` is NULL. For rows
 * below num_dst the sum begins with the row's own slot. */
typedef struct gnnd_device_score_sums {
  uint32_t rows;
  uint32_t num_dst;
  uint64_t num_edges;
  uint32_t heads;
  uint32_t reserved;
  const float* grad_score;
  const uint32_t* indptr; /* [rows + 1] */
  const uint32_t* edge;   /* [num_edges] or NULL */
  float* out;             /* [heads][rows] */
} gnnd_device_score_sums;

enum gnnd_device_heads_operation {
  GNND_HEADS_SCORES = 0,  /* scores[h][r] = vectors[h] . rows[r][h], columns in eight parts */
  GNND_HEADS_OUTER = 1,   /* rows[r][h] += scores[h][r] * vectors[h] */
  GNND_HEADS_VECTORS = 2, /* vectors[h] = the sum over r of scores[h][r] * rows[r][h] */
};

/* One number per row and head, and one vector per head. An operation writes its left side; sums
 * over rows are computed as by sum_rows. */
typedef struct gnnd_device_heads {
  uint32_t operation;
  uint32_t num_rows;
  uint32_t heads;
  uint32_t columns; /* of one head */
  float* rows;      /* [num_rows, heads * columns] */
  float* vectors;   /* [heads, columns] */
  float* scores;    /* [heads][num_rows] */
  void* workspace;  /* VECTORS: [sum_workspace_bytes(num_rows, heads * columns)] */
} gnnd_device_heads;

enum gnnd_device_activation { /* as Activation of core/model/model_spec.h */
                              GNND_ACTIVATION_RELU = 1,
                              GNND_ACTIVATION_ELU = 2,
                              GNND_ACTIVATION_LEAKY_RELU = 3,
};

/* Sets values = activation(values); or, with `out`, multiplies values by the activation's
 * derivative where its result was out * inverse_scale (train/ops/after_layer.h). */
typedef struct gnnd_device_activation_rows {
  uint32_t activation;
  float inverse_scale;
  uint64_t count;
  const float* out; /* [count] or NULL */
  float* values;    /* [count] */
} gnnd_device_activation_rows;

enum gnnd_device_norm { GNND_NORM_LAYER = 1, GNND_NORM_L2 = 2 };

/* Normalises packed rows into `out`; or, with `grad`, computes gradients of the rows and, for layer
 * normalisation, of scale and shift, [2, columns], summed as by sum_rows. */
typedef struct gnnd_device_norm_rows {
  uint32_t norm;
  uint32_t rows;
  uint32_t columns;
  uint32_t reserved;
  const float* x;
  const float* scale; /* layer normalisation: [columns] */
  const float* shift;
  const float* grad; /* NULL: forward */
  float* out;        /* like x; with `grad` the gradient of x */
  float* grad_scale; /* layer normalisation's backward: [2, columns] */
  void* workspace;   /* likewise: [norm_workspace_bytes(rows, columns)] */
} gnnd_device_norm_rows;

/* ---- Models over rows of propagated features; float32, all packed. ---- */

enum gnnd_device_batch_norm_pass {
  GNND_BATCH_NORM_OWN = 0,   /* by the rows' own moments, which it writes */
  GNND_BATCH_NORM_GIVEN = 1, /* by given moments */
  GNND_BATCH_NORM_GRADIENT = 2,
};

/* Sets out = (x - mean) / root(variance + 1e-5) * scale + shift, or computes gradients: of x, and
 * of scale and shift, summed as by sum_rows. */
typedef struct gnnd_device_batch_norm_rows {
  uint32_t pass;
  uint32_t rows;
  uint64_t columns;
  const float* x;
  const float* scale; /* [columns] */
  const float* shift; /* [columns]; not read by GRADIENT */
  float* moments;     /* [2, columns]: mean and variance, over `rows` */
  float* inverse;     /* [columns]: 1 / the standard deviation; read by GRADIENT */
  const float* grad;  /* GRADIENT: like x */
  float* out;         /* like x */
  float* grad_scale;  /* GRADIENT: [2, columns] */
  void* workspace;    /* except GIVEN: [batch_norm_workspace_bytes(rows, columns)] */
} gnnd_device_batch_norm_rows;

/* Sets out = x if above 0, else slope * x; or, with `grad`, computes gradients of x and of the
 * slope, which adds the elements of 64 rows in their order, then these sums. */
typedef struct gnnd_device_prelu_rows {
  uint32_t rows;
  uint32_t reserved;
  uint64_t columns;
  const float* x;
  const float* slope; /* [1] */
  const float* grad;  /* NULL: forward */
  float* out;
  float* grad_slope; /* [1], with `grad` */
  void* workspace;   /* with `grad`: [sum_workspace_bytes(rows, 1)] */
} gnnd_device_prelu_rows;

/* Computes softmax(Q K^T / root(head_width)) V of each row by heads, with dropout of probabilities
 * keyed by the row's node if there is a mask; or, with `grad`, gradients of Q, K and V. */
typedef struct gnnd_device_tokens {
  uint32_t rows;
  uint32_t queries;
  uint32_t tokens;
  uint32_t heads;
  uint32_t head_width;
  uint32_t reserved;
  const float* query;   /* [rows, queries, heads * head_width] */
  const float* key;     /* [rows, tokens, heads * head_width] */
  const float* value;   /* like key */
  float* probability;   /* [rows, heads, queries, tokens], before dropout */
  float* mask;          /* like probability, or NULL; forward writes it */
  float* out;           /* like query */
  uint64_t random_seed; /* DropoutKey of the mask */
  uint32_t epoch;
  uint32_t batch;
  uint32_t layer;
  float scale; /* factor of what survives */
  const uint32_t* nodes;
  uint64_t threshold;
  const float* grad; /* NULL: forward; like out */
  float* grad_query;
  float* grad_key;
  float* grad_value;
  float* workspace; /* with `grad`: like probability */
} gnnd_device_tokens;

#ifdef __cplusplus
}
#endif

#endif
