/* gnnd: the interface of devices in shared objects (docs/gpu.md says which there are). C11 and C++.
 *
 * A device plug-in is all that gnnd knows of a kind of device: which devices there are, their
 * memory, streams and copies, and the kernels that sample, gather and train there. gnnd_cuda is
 * one, over the CUDA runtime; gnnd_sim is another, over this host's memory, with faults on demand.
 * What a batch holds and when it is made stay gnnd's.
 *
 * The shared object exports one function:
 *
 *   GNND_DEVICE_EXPORT const gnnd_device_plugin* gnnd_device_plugin_get(void);
 *
 * Duties. It must load, and every function must answer, on a host without any driver. No function
 * aborts, throws, prints or reads the clock to decide anything. A kernel's result is a function of
 * its arguments alone: not of the grid, the number of multiprocessors or the run; integers and
 * every sum whose order core/kernels states are bit for bit what the CPU computes.
 *
 * Who calls. Executors, and a short-lived child that asks what there is; the daemon never loads
 * one. Any thread may call, since autograd has threads of its own: a plug-in makes its device
 * current in every function. Two calls that name the same stream, event or sampler do not overlap.
 *
 * Order. What takes a stream is enqueued there and may run later; streams run beside each other
 * unless an event orders them. What takes none has happened when it returns. There is no default
 * stream. Memory that an enqueued operation names stays allocated, registered and, if it is read,
 * unchanged until the operation has run.
 *
 * Errors. 0 (GNND_DEVICE_OK) is success; else the answer is a code of enum gnnd_device_code, and
 * `error`, if not NULL, says more. Work on a device is asynchronous, so a failure may show in a
 * later call than the one that caused it. After a *sticky* error the device is of no more use to
 * this process: all calls but close and release answer it again, and the process is to end.
 */
#ifndef GNND_DEVICE_PLUGIN_H
#define GNND_DEVICE_PLUGIN_H

#include <stdint.h>

#include "device_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Changes when a struct or a rule of this file changes; equality is asked for. */
#define GNND_DEVICE_ABI_VERSION 1u

#define GNND_DEVICE_EXPORT __attribute__((visibility("default")))

/* Why something failed. Numbers are part of the interface. */
enum gnnd_device_code {
  GNND_DEVICE_OK = 0,
  /* What a host lacks. */
  GNND_DEVICE_NO_DRIVER = 1,
  GNND_DEVICE_DRIVER_TOO_OLD = 2,
  GNND_DEVICE_DRIVER_MISMATCH = 3, /* the driver's library is not that of its kernel module */
  GNND_DEVICE_NOT_READY = 4,       /* the system starts, or lacks its fabric manager */
  GNND_DEVICE_NO_DEVICE = 5,
  GNND_DEVICE_UNAVAILABLE = 6,     /* exclusive compute mode, and somebody has it */
  GNND_DEVICE_NO_KERNEL_IMAGE = 7, /* the plug-in was not compiled for this architecture */
  /* What a call asked for. */
  GNND_DEVICE_BAD_ARGUMENT = 20,
  GNND_DEVICE_OVER_BUDGET = 21,   /* the arena would exceed the budget that open was given */
  GNND_DEVICE_OUT_OF_MEMORY = 22, /* the budget allows it, the device has no more */
  GNND_DEVICE_NOT_SUPPORTED = 23,
  GNND_DEVICE_NOT_REGISTERED = 24,   /* host memory that an asynchronous copy cannot use */
  GNND_DEVICE_REGISTER_REFUSED = 25, /* the driver or kernel will not pin this memory */
  GNND_DEVICE_UNFINISHED = 26,       /* the event has not happened: no failure */
  /* What ends a process. Always sticky. */
  GNND_DEVICE_LOST = 40,          /* the device fell off the bus, or was reset */
  GNND_DEVICE_MEMORY_FAULT = 41,  /* a kernel touched what is not its own; ECC errors */
  GNND_DEVICE_LAUNCH_FAILED = 42, /* a kernel died otherwise, or ran beyond a time limit */
  GNND_DEVICE_INTERNAL = 60,      /* anything else; sticky or not as the flag says */
};

typedef struct gnnd_device_error {
  uint32_t code;       /* enum gnnd_device_code */
  uint32_t sticky;     /* 1: the process is to end */
  int32_t native_code; /* the runtime's own, cudaError_t for CUDA; 0 = none */
  uint32_t reserved;
  char message[480]; /* what was tried, with which size, and what the runtime said */
  char remedy[480];  /* what an operator can do about it; "" if nothing */
} gnnd_device_error;

/* Whether the CPU may follow a pointer into the arena. */
enum gnnd_memory_kind {
  GNND_MEMORY_DEVICE = 1, /* it may not: tensors over it belong to torch's device type CUDA */
  GNND_MEMORY_HOST = 2,   /* it is host memory: tensors over it are CPU tensors (gnnd_sim) */
};

/* What arena memory is for; accounts and metrics add up by it. */
enum gnnd_device_purpose {
  GNND_PURPOSE_TOPOLOGY = 0,
  GNND_PURPOSE_CACHE = 1,
  GNND_PURPOSE_WORKSPACE = 2,
  GNND_PURPOSE_MODEL = 3,
  GNND_PURPOSES = 4,
};

typedef struct gnnd_device gnnd_device;
typedef struct gnnd_device_stream gnnd_device_stream;
typedef struct gnnd_device_event gnnd_device_event;
typedef struct gnnd_device_sampler gnnd_device_sampler;

/* ---- What there is. Makes no context and takes no device memory. ---- */

#define GNND_UNKNOWN 0xFFFFFFFFu /* in a uint32_t below: nobody can tell */

typedef struct gnnd_device_system {
  uint32_t driver_version;  /* 1000 * major + 10 * minor of the CUDA that the driver serves; 0 */
  uint32_t runtime_version; /* likewise, what the plug-in was built with */
  uint32_t devices;         /* that can be opened, index 0 and up */
  uint32_t has_monitor;     /* 1: processes and MIG are known (NVML could be loaded) */
  char monitor[240];        /* why they are not; "" where they are */
} gnnd_device_system;

typedef struct gnnd_device_info {
  char name[128];        /* the product */
  char uuid[64];         /* stable: GPU-..., MIG-..., SIM-... */
  char pci[32];          /* domain:bus:device.function, "" = none */
  uint32_t architecture; /* 90 = sm_90; 0 = none */
  uint32_t multiprocessors;
  uint64_t total_bytes;
  uint64_t free_bytes;  /* by all processes' use; GNND_UNKNOWN_BYTES where asking needs a context */
  uint32_t memory_kind; /* enum gnnd_memory_kind */
  uint32_t compute_mode; /* 0 shared, 2 prohibited, 3 exclusive to one process (as CUDA) */
  uint32_t mig;          /* 0 not, 1 is an instance, 2 has instances, of which one is seen */
  uint32_t mps;          /* 1: through a multi-process server */
  uint32_t can_register; /* 1: register_host works on read-write memory */
  uint32_t can_register_read_only;
  uint32_t pageable_access; /* 1: kernels may follow any host pointer */
  uint32_t time_limit;      /* 1: the driver ends kernels that run long (a display is attached) */
  uint32_t copy_engines;
  int32_t numa_node; /* of the host's memory that is nearest; -1 = unknown */
} gnnd_device_info;

#define GNND_UNKNOWN_BYTES 0xFFFFFFFFFFFFFFFFull

/* What lies between two devices. */
enum gnnd_link_kind {
  GNND_LINK_NVLINK = 1,   /* links of their own, with switches or without */
  GNND_LINK_PCIE = 2,     /* PCIe, within one node of the host's memory */
  GNND_LINK_HOST_BUS = 3, /* likewise, over the bridge between two of its nodes */
};

/* From device `from` to memory of device `to`. */
typedef struct gnnd_device_link {
  uint32_t access;  /* 1: kernels of `from` can read and write it */
  uint32_t rank;    /* relative performance, lower is better; GNND_UNKNOWN */
  uint32_t atomics; /* 1: native atomics over the link */
  uint32_t kind;    /* enum gnnd_link_kind; GNND_UNKNOWN without a monitor */
} gnnd_device_link;

/* In the place of a device: the host's memory, registered. */
#define GNND_HOST_MEMORY 0xFFFFFFFFu

/* Device memory as another process on this host opens it. Bytes that mean something to the plug-in
 * alone; any copy of them is as good. */
typedef struct gnnd_device_handle {
  uint8_t bytes[64];
} gnnd_device_handle;

/* A process with memory on a device. */
typedef struct gnnd_device_process {
  uint32_t pid;
  uint32_t reserved;
  uint64_t bytes; /* GNND_UNKNOWN_BYTES where the driver does not say */
} gnnd_device_process;

/* A MIG instance of a GPU. CUDA shows a process one of them at most, and without a word of the
 * others: the first one, or the one that its environment names. */
typedef struct gnnd_device_instance {
  char uuid[96]; /* MIG-..., by which CUDA_VISIBLE_DEVICES names it */
  char name[128];
  uint64_t total_bytes; /* GNND_UNKNOWN_BYTES where the driver does not say */
} gnnd_device_instance;

/* ---- Opening a device. ---- */

typedef struct gnnd_device_config {
  uint32_t abi_version;   /* of the caller */
  uint32_t index;         /* below gnnd_device_system.devices */
  uint64_t budget_bytes;  /* most that the arena may hold, with its rounding; 0 = what is free */
  uint64_t staging_bytes; /* pinned host memory for copy_staged; 0 = 8 pieces of 16 MiB */
} gnnd_device_config;

typedef struct gnnd_device_memory {
  uint64_t total_bytes;
  uint64_t free_bytes;    /* now, by all processes' use */
  uint64_t context_bytes; /* what opening took, beside the arena */
  /* What is taken beside the arena since before opening: the context, torch's tensors, libraries'
   * workspaces, loaded kernels, and whatever other processes took meanwhile. */
  uint64_t beside_bytes;
  uint64_t budget_bytes;
  uint64_t used_bytes[GNND_PURPOSES];
  uint64_t peak_bytes;       /* most that was allocated at a time, all purposes */
  uint64_t registered_bytes; /* of host memory */
  uint64_t staging_bytes;    /* likewise, our own */
  uint64_t copied_in_bytes;  /* host to device since open */
  uint64_t copied_out_bytes; /* device to host */
} gnnd_device_memory;

enum gnnd_copy_direction {
  GNND_COPY_TO_DEVICE = 1,
  GNND_COPY_TO_HOST = 2,
  GNND_COPY_ON_DEVICE = 3,
};

enum gnnd_stream_priority {
  GNND_PRIORITY_NORMAL = 0,
  GNND_PRIORITY_HIGH = 1, /* copies and misses that others wait for */
};

/* What gnnd_device_plugin_get answers; lives as long as the process. Kernels that a plug-in does
 * not have are NULL: who needs one asks first (gnnd: Device::Needs). */
typedef struct gnnd_device_plugin {
  uint32_t abi_version; /* GNND_DEVICE_ABI_VERSION */
  uint32_t table_bytes; /* sizeof(gnnd_device_plugin) */
  const char* name;     /* "cuda", "sim": what stands before the colon of a device's name */
  const char* build;    /* what decides its bits: compiler, architectures, digest of its sources */

  /* What there is. `devices` is 0, and the code says why, where none can be used. */
  uint32_t (*system)(gnnd_device_system* system, gnnd_device_error* error);
  uint32_t (*info)(uint32_t index, gnnd_device_info* info, gnnd_device_error* error);
  uint32_t (*link)(uint32_t from, uint32_t to, gnnd_device_link* link, gnnd_device_error* error);
  /* Measures, with copies that take some milliseconds, what `from` reads a second of `to`'s memory,
   * or of GNND_HOST_MEMORY. Makes contexts; takes 64 MiB of each device while it runs. */
  uint32_t (*link_rate)(uint32_t from, uint32_t to, uint64_t* bytes_per_second,
                        gnnd_device_error* error);
  /* Writes up to `capacity` of them, sets how many there are; NOT_SUPPORTED without a monitor. */
  uint32_t (*processes)(uint32_t index, gnnd_device_process* processes, uint32_t capacity,
                        uint32_t* count, gnnd_device_error* error);
  /* Likewise, the MIG instances of the GPU that the device is, or is an instance of. */
  uint32_t (*instances)(uint32_t index, gnnd_device_instance* instances, uint32_t capacity,
                        uint32_t* count, gnnd_device_error* error);

  /* A device, with a context of this process on it. close waits for all streams, and frees what is
   * left of streams, events, samplers, registrations and memory. */
  uint32_t (*open)(const gnnd_device_config* config, gnnd_device** device,
                   gnnd_device_error* error);
  void (*close)(gnnd_device* device);
  uint32_t (*memory)(gnnd_device* device, gnnd_device_memory* memory, gnnd_device_error* error);

  /* The arena. Memory is aligned to 256 bytes, of any content, and counted rounded up to that. 0
   * bytes are NULL. release takes it back at once, so no stream may still use it; it is allowed
   * after a sticky error. */
  uint32_t (*allocate)(gnnd_device* device, uint64_t bytes, uint32_t purpose, void** memory,
                       gnnd_device_error* error);
  void (*release)(gnnd_device* device, void* memory);

  /* Memory as of allocate, which other processes of the same user may open by `handle`, until it is
   * released; counted rounded up to 2 MiB. It is there as long as somebody has it open, whether it
   * is released meanwhile or its process dies. Where host or device cannot share memory so, nobody
   * can open the handle. */
  uint32_t (*allocate_shared)(gnnd_device* device, uint64_t bytes, uint32_t purpose, void** memory,
                              gnnd_device_handle* handle, gnnd_device_error* error);
  /* What another process shares, for kernels of this device to read, from then on whatever becomes
   * of that process. NOT_SUPPORTED where it does not reach that memory, BAD_ARGUMENT where the
   * process that shared it is gone, or has released it. Not counted. */
  uint32_t (*open_shared)(gnnd_device* device, const gnnd_device_handle* handle, void** memory,
                          gnnd_device_error* error);
  /* No stream may still use it; allowed after a sticky error. */
  void (*close_shared)(gnnd_device* device, void* memory);

  /* Pins host memory that is mapped read-write, whole pages, for asynchronous copies and for
   * kernels; large ranges in pieces of at most 4 GiB. The mapping may be protected read-only
   * afterwards, never unmapped or punched before unregister_host. Pages that nobody touched become
   * real. Ranges do not overlap; unregister takes a range as it was given. `seen` gets the address
   * under which kernels see it. */
  uint32_t (*register_host)(gnnd_device* device, void* memory, uint64_t bytes, void** seen,
                            gnnd_device_error* error);
  uint32_t (*unregister_host)(gnnd_device* device, void* memory, gnnd_device_error* error);

  uint32_t (*stream_create)(gnnd_device* device, uint32_t priority, gnnd_device_stream** stream,
                            gnnd_device_error* error);
  /* Wraps a stream of somebody else's, such as torch's; destroying it leaves that alone. */
  uint32_t (*stream_adopt)(gnnd_device* device, void* native_stream, gnnd_device_stream** stream,
                           gnnd_device_error* error);
  void (*stream_destroy)(gnnd_device_stream* stream); /* waits for what it holds */
  void* (*stream_native)(gnnd_device_stream* stream); /* cudaStream_t; NULL in gnnd_sim */
  uint32_t (*stream_wait)(gnnd_device_stream* stream, gnnd_device_event* event,
                          gnnd_device_error* error);
  uint32_t (*stream_synchronize)(gnnd_device_stream* stream, gnnd_device_error* error);

  /* An event that was never recorded has happened. Elapsed time needs `timed` ones, both done. */
  uint32_t (*event_create)(gnnd_device* device, uint32_t timed, gnnd_device_event** event,
                           gnnd_device_error* error);
  void (*event_destroy)(gnnd_device_event* event);
  uint32_t (*event_record)(gnnd_device_event* event, gnnd_device_stream* stream,
                           gnnd_device_error* error);
  uint32_t (*event_query)(gnnd_device_event* event, gnnd_device_error* error); /* UNFINISHED */
  uint32_t (*event_synchronize)(gnnd_device_event* event, gnnd_device_error* error);
  uint32_t (*event_elapsed)(gnnd_device_event* begin, gnnd_device_event* end, uint64_t* ns,
                            gnnd_device_error* error);

  /* Asynchronous; host memory must be registered (NOT_REGISTERED names the range otherwise). */
  uint32_t (*copy)(gnnd_device_stream* stream, void* to, const void* from, uint64_t bytes,
                   uint32_t direction, gnnd_device_error* error);
  /* Any host memory, through the device's pinned ring, in order with the stream. When it returns,
   * host memory may be changed (to the device) or read (to the host). */
  uint32_t (*copy_staged)(gnnd_device_stream* stream, void* to, const void* from, uint64_t bytes,
                          uint32_t direction, gnnd_device_error* error);
  uint32_t (*fill)(gnnd_device_stream* stream, void* to, uint8_t byte, uint64_t bytes,
                   gnnd_device_error* error);

  /* Work of another library on the same device and stream, such as torch's products.
   * begin_foreign is called before it is enqueued, and answers what that library is to meet: a
   * simulated device's planned faults. Where the library itself works on the device, nothing. */
  uint32_t (*begin_foreign)(gnnd_device_stream* stream, gnnd_device_error* error);
  /* That library failed with this number of the runtime's (cudaError_t for CUDA), in these words:
   * answers what it means, never OK. A sticky one stays, as if a call of ours had met it. */
  uint32_t (*foreign_failed)(gnnd_device* device, int32_t native_code, const char* words,
                             gnnd_device_error* error);

  /* Sampling. start enqueues the batch's kernels and returns; finish takes the oldest started one,
   * waits for its sizes, copies its sections into `slot` (registered or not), waits for them and
   * reports. So a batch is computed while the one before is copied. Same key, same bytes, always.
   */
  uint32_t (*sampler_create)(gnnd_device* device, const gnnd_device_sampler_config* config,
                             gnnd_device_sampler** sampler, gnnd_device_error* error);
  void (*sampler_destroy)(gnnd_device_sampler* sampler);
  uint32_t (*sample_start)(gnnd_device_sampler* sampler, uint32_t epoch, uint32_t batch,
                           gnnd_device_error* error);
  uint32_t (*sample_finish)(gnnd_device_sampler* sampler, void* slot,
                            gnnd_device_sample_report* report, gnnd_device_error* error);

  /* Features. Pointers are device memory unless said otherwise, here and below: the arena's, or
   * that of another allocator on the same device, such as torch's. Fields that contradict each
   * other are a BAD_ARGUMENT whose message names one. */
  uint32_t (*gather)(gnnd_device_stream* stream, const gnnd_device_gather* args,
                     gnnd_device_error* error);
  uint32_t (*scatter)(gnnd_device_stream* stream, const gnnd_device_scatter* args,
                      gnnd_device_error* error);
  uint32_t (*convert)(gnnd_device_stream* stream, const gnnd_device_convert* args,
                      gnnd_device_error* error);

  /* Training. */
  uint32_t (*spmm)(gnnd_device_stream* stream, const gnnd_device_spmm* args,
                   gnnd_device_error* error);
  uint64_t (*transpose_workspace_bytes)(uint32_t num_dst, uint32_t num_src, uint64_t num_edges);
  uint32_t (*transpose)(gnnd_device_stream* stream, const gnnd_device_transpose* args,
                        gnnd_device_error* error);
  uint32_t (*take)(gnnd_device_stream* stream, const gnnd_device_take* args,
                   gnnd_device_error* error);
  uint32_t (*mean_scales)(gnnd_device_stream* stream, const gnnd_device_mean_scales* args,
                          gnnd_device_error* error);
  uint32_t (*dropout)(gnnd_device_stream* stream, const gnnd_device_dropout* args,
                      gnnd_device_error* error);
  uint32_t (*dropout_gradient)(gnnd_device_stream* stream, const gnnd_device_dropout_gradient* args,
                               gnnd_device_error* error);
  /* Of what adds up rows in groups. */
  uint64_t (*sum_workspace_bytes)(uint32_t rows, uint64_t columns);
  uint32_t (*sum_rows)(gnnd_device_stream* stream, const gnnd_device_sum_rows* args,
                       gnnd_device_error* error);
  uint32_t (*loss)(gnnd_device_stream* stream, const gnnd_device_loss* args,
                   gnnd_device_error* error);
  uint32_t (*attention)(gnnd_device_stream* stream, const gnnd_device_attention* args,
                        gnnd_device_error* error);
  uint32_t (*drop_attention)(gnnd_device_stream* stream, const gnnd_device_drop_attention* args,
                             gnnd_device_error* error);
  uint32_t (*score_sums)(gnnd_device_stream* stream, const gnnd_device_score_sums* args,
                         gnnd_device_error* error);
  uint32_t (*heads)(gnnd_device_stream* stream, const gnnd_device_heads* args,
                    gnnd_device_error* error);
  uint32_t (*activation)(gnnd_device_stream* stream, const gnnd_device_activation_rows* args,
                         gnnd_device_error* error);
  uint64_t (*norm_workspace_bytes)(uint32_t rows, uint32_t columns);
  uint32_t (*norm)(gnnd_device_stream* stream, const gnnd_device_norm_rows* args,
                   gnnd_device_error* error);

  /* Models over rows. */
  uint64_t (*batch_norm_workspace_bytes)(uint32_t rows, uint64_t columns);
  uint32_t (*batch_norm)(gnnd_device_stream* stream, const gnnd_device_batch_norm_rows* args,
                         gnnd_device_error* error);
  uint32_t (*prelu)(gnnd_device_stream* stream, const gnnd_device_prelu_rows* args,
                    gnnd_device_error* error);
  uint32_t (*token_attention)(gnnd_device_stream* stream, const gnnd_device_tokens* args,
                              gnnd_device_error* error);
} gnnd_device_plugin;

/* The one symbol that is looked up. */
#define GNND_DEVICE_PLUGIN_SYMBOL "gnnd_device_plugin_get"
typedef const gnnd_device_plugin* (*gnnd_device_plugin_get_fn)(void);

#ifdef __cplusplus
}
#endif

#endif
