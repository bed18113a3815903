#ifndef GNND_READER_H_
#define GNND_READER_H_

#include <stddef.h>
#include <stdint.h>

/*
 * A reader of a job that lends batches (JOB_KIND_LOAD), for a process that trains by itself:
 * gnnd_reader.so, which needs neither Python nor PyTorch. docs/loader.md shows it from Python.
 *
 *   GnndReader* reader = gnnd_reader_open("gnnd-JOB-UID", 0, 1, threads, error, sizeof error);
 *   while (gnnd_reader_next(reader, 1000, &batch) == GNND_READER_BATCH) {
 *     ... memory for batch.num_nodes rows ...
 *     gnnd_reader_copy(reader, &arrays);
 *     gnnd_reader_return(reader);
 *   }
 *   gnnd_reader_close(reader);
 *
 * One thread at a time may use a reader. Records are checked before they are read.
 */

#ifdef __cplusplus
extern "C" {
#endif

#define GNND_READER_API __attribute__((visibility("default")))

enum { GNND_READER_MAX_HOPS = 8 };

/* The answers of gnnd_reader_next. */
enum {
  GNND_READER_GONE = -1, /* the lender has gone; gnnd_reader_error says more */
  GNND_READER_NONE = 0,  /* no batch came in time */
  GNND_READER_BATCH = 1
};

typedef struct GnndReader GnndReader;

/* The facts of a job. */
typedef struct GnndReaderFacts {
  uint64_t batches_per_epoch;
  uint64_t epochs;
  uint64_t num_nodes; /* this and the next two: 0 for a graph of several types */
  uint64_t num_features;
  uint64_t feature_bytes; /* of one value: 4 float32, 2 float16 */
} GnndReaderFacts;

typedef struct GnndHop {
  uint64_t num_dst;
  uint64_t num_src;
  uint64_t num_edges;
} GnndHop;

/*
 * A batch that is lent. Hops count from the seeds. One over several types has counts over all of
 * them, and `hops` of 0: gnnd_reader_parts says what it has of each.
 */
typedef struct GnndBatch {
  uint64_t epoch;
  uint64_t index; /* within the epoch */
  uint64_t num_seeds;
  uint64_t num_nodes;
  uint64_t num_edges; /* of gnnd_reader_copy's edges */
  uint64_t num_hops;
  uint64_t weighted;      /* 1: its edges have weights */
  uint64_t shared;        /* 1: each hop's rows are the first ones of the last hop's */
  uint64_t num_pairs;     /* links of the batch; 0: its items are nodes */
  uint64_t num_negatives; /* nodes drawn for each of them */
  uint64_t num_types;
  uint64_t num_blocks;
  GnndHop hops[GNND_READER_MAX_HOPS];
} GnndBatch;

/*
 * A graph whose edges have numbers, of which a batch names its own. It stays the caller's, and
 * unchanged while it is used. Records name nodes, not edges: of edges between the same two nodes, a
 * row that drew some names different ones, each as likely as the others, but not those that were
 * drawn.
 */
typedef struct GnndEdges {
  const int64_t* indptr;   /* [num_nodes + 1] */
  const uint32_t* sources; /* row after row, ascending in each */
  const uint32_t* numbers; /* the number of each */
  uint64_t num_nodes;
} GnndEdges;

/* What the caller has of nodes: features, labels, masks. Rows are copied as they are. */
typedef struct GnndTable {
  const void* rows; /* [num_rows], `row_bytes` each */
  uint64_t num_rows;
  uint64_t row_bytes; /* from 1 on */
  void* out;          /* [num_nodes of the batch], `row_bytes` each */
} GnndTable;

/* Where a batch is copied to; a null pointer leaves that part out. */
typedef struct GnndArrays {
  const GnndTable* tables;
  uint64_t num_tables;
  void* features; /* [num_nodes, num_features] of the job's, as they are stored */
  int64_t* nodes; /* [num_nodes], global ids, seeds first */
  int64_t* edges; /* [2, num_edges], positions in `nodes`: sources, then destinations */
  float* weights; /* [num_edges] */
  const GnndEdges* graph;
  int64_t* edge_numbers; /* [num_edges], of `graph` */
} GnndArrays;

/* The links of a batch whose items are such. */
typedef struct GnndPairArrays {
  int64_t* items;     /* [num_pairs], which link of the job's list each is */
  int64_t* ends;      /* [2, num_pairs], positions in `nodes`: sources, then destinations */
  int64_t* negatives; /* [num_pairs, num_negatives], positions in `nodes` */
} GnndPairArrays;

/* Nodes of one type of a batch; the seeds, of type 0, are the first. */
typedef struct GnndType {
  uint64_t num_nodes;
  uint64_t num_seeds;
} GnndType;

/* One hop along one relation. Types and relations have the job's numbers. */
typedef struct GnndBlock {
  uint64_t hop;
  uint64_t relation;
  uint64_t src_type;
  uint64_t dst_type;
  uint64_t num_dst;
  uint64_t num_src; /* nodes of its source type that there are after it */
  uint64_t num_edges;
} GnndBlock;

/* Where nodes of one type are copied to, as GnndArrays has them. */
typedef struct GnndTypeArrays {
  const GnndTable* tables;
  uint64_t num_tables;
  int64_t* nodes; /* [num_nodes of the type] */
} GnndTypeArrays;

/*
 * Where edges of one relation are copied to, hop after hop: those of its last block where the batch
 * is shared, else of all of its blocks.
 */
typedef struct GnndRelationArrays {
  int64_t* edges; /* [2, num_edges], positions in `nodes` of their types: sources, destinations */
  const GnndEdges* graph; /* of the relation: rows are of its destination type */
  int64_t* edge_numbers;  /* [num_edges], of `graph` */
} GnndRelationArrays;

/* One hop alone, as compressed rows of its destinations. */
typedef struct GnndHopArrays {
  int64_t* indptr; /* [num_dst + 1] */
  int64_t* src;    /* [num_edges] */
  float* weights;  /* [num_edges] */
  const GnndEdges* graph;
  int64_t* edge_numbers; /* [num_edges], of `graph` */
} GnndHopArrays;

/*
 * Joins a job as reader `rank` of `world`. `threads` copy a batch. Null: `error` says why, in at
 * most `error_bytes` with the zero at the end.
 */
GNND_READER_API GnndReader* gnnd_reader_open(const char* socket, uint32_t rank, uint32_t world,
                                             uint32_t threads, char* error, size_t error_bytes);
GNND_READER_API void gnnd_reader_facts(const GnndReader* reader, GnndReaderFacts* facts);
/* Waits for the next batch, for at most so many milliseconds. The one before was returned. */
GNND_READER_API int gnnd_reader_next(GnndReader* reader, int timeout_ms, GnndBatch* batch);
/* 0, or -1 where the record names a node that a table lacks, or an edge that `graph` lacks. */
GNND_READER_API int gnnd_reader_copy(GnndReader* reader, const GnndArrays* arrays);
/* [num_types] and [num_blocks] of the batch; blocks are in the order of hops. */
GNND_READER_API int gnnd_reader_parts(GnndReader* reader, GnndType* types, GnndBlock* blocks);
/* A batch of several types; `types` has num_types of it, and `relations` one of each number. */
GNND_READER_API int gnnd_reader_copy_typed(GnndReader* reader, const GnndTypeArrays* types,
                                           const GnndRelationArrays* relations,
                                           uint64_t num_relations);
GNND_READER_API int gnnd_reader_copy_hop(GnndReader* reader, uint32_t hop,
                                         const GnndHopArrays* arrays);
GNND_READER_API int gnnd_reader_copy_pairs(GnndReader* reader, const GnndPairArrays* arrays);
/* Gives the batch back, whether it was copied or not: it is not lent again. */
GNND_READER_API int gnnd_reader_return(GnndReader* reader);
/* The last failure, valid until the next call. */
GNND_READER_API const char* gnnd_reader_error(const GnndReader* reader);
GNND_READER_API void gnnd_reader_close(GnndReader* reader);

#ifdef __cplusplus
}
#endif

#endif /* GNND_READER_H_ */
