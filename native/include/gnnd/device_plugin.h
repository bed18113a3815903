/* gnnd: the interface of devices in shared objects (docs/gpu.md says which there are). C11 and C++.
 *
 * A device plug-in contains all that gnnd knows about a kind of device: which devices there are,
 * their memory, streams and copies, and the kernels that sample, gather and train there. gnnd_cuda
 * is one, over the CUDA runtime; gnnd_sim is another, over this host's memory, with faults on
 * demand. gnnd itself decides what a batch holds and when it is made.
 *
 * The shared object exports one function:
 *
 *   GNND_DEVICE_EXPORT const gnnd_device_plugin* gnnd_device_plugin_get(void);
 *
 * Duties. It must load, and every function must answer, on a host without any driver. No function
 * aborts, throws, prints or reads the clock to decide anything. A kernel's result depends on its
 * arguments alone, not on the grid, the number of multiprocessors or the run; integers and every
 * sum whose order core/kernels states have the same bits as on the CPU.
 *
 * Callers. Executors, and a short-lived child that lists devices; the daemon never loads a plug-in.
 * Any thread may call, because autograd has threads of its own: a plug-in makes its device current
 * in every function. Two calls with the same stream, event or sampler do not overlap.
 *
 * Order. A function with a stream enqueues its work there, which may run later; streams run in
 * parallel unless an event orders them. A function without one has done its work when it returns.
 * There is no default stream. Memory that an enqueued operation uses stays allocated, registered
 * and, if it is read, unchanged until the operation has run.
 *
 * Errors. 0 (GNND_DEVICE_OK) is success; otherwise the result is a code of enum gnnd_device_code,
 * and `error`, if not NULL, says more. Work on a device is asynchronous, so a failure may show in a
 * later call than the one that caused it. After a *sticky* error this process cannot use the device
 * any more: all calls but close and release return the error again, and the process must end.
 */
#ifndef GNND_DEVICE_PLUGIN_H
#define GNND_DEVICE_PLUGIN_H

#include <stdint.h>

#include "device_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Changes when a struct or a rule of this file changes; plug-in and gnnd must have the same. */
#define GNND_DEVICE_ABI_VERSION 1u

#define GNND_DEVICE_EXPORT __attribute__((visibility("default")))

/* Causes of failures. The numbers are part of the interface. */
enum gnnd_device_code {
  GNND_DEVICE_OK = 0,
  /* The host lacks something. */
  GNND_DEVICE_NO_DRIVER = 1,
  GNND_DEVICE_DRIVER_TOO_OLD = 2,
  GNND_DEVICE_DRIVER_MISMATCH = 3, /* the driver's library is not that of its kernel module */
  GNND_DEVICE_NOT_READY = 4,       /* the system starts, or lacks its fabric manager */
  GNND_DEVICE_NO_DEVICE = 5,
  GNND_DEVICE_UNAVAILABLE = 6,     /* exclusive compute mode, and another process has it */
  GNND_DEVICE_NO_KERNEL_IMAGE = 7, /* the plug-in was not compiled for this architecture */
  /* The call asked for something that cannot be. */
  GNND_DEVICE_BAD_ARGUMENT = 20,
  GNND_DEVICE_OVER_BUDGET = 21,   /* the arena would exceed the budget that open was given */
  GNND_DEVICE_OUT_OF_MEMORY = 22, /* the budget allows it, the device has no more */
  GNND_DEVICE_NOT_SUPPORTED = 23,
  GNND_DEVICE_NOT_REGISTERED = 24,   /* host memory that an asynchronous copy cannot use */
  GNND_DEVICE_REGISTER_REFUSED = 25, /* the driver or kernel will not pin this memory */
  GNND_DEVICE_UNFINISHED = 26,       /* the event has not happened: no failure */
  /* The process must end. Always sticky. */
  GNND_DEVICE_LOST = 40,          /* the device fell off the bus, or was reset */
  GNND_DEVICE_MEMORY_FAULT = 41,  /* a kernel touched foreign memory; ECC errors */
  GNND_DEVICE_LAUNCH_FAILED = 42, /* a kernel died otherwise, or ran beyond a time limit */
  GNND_DEVICE_INTERNAL = 60,      /* anything else; the flag says whether it is sticky */
};

typedef struct gnnd_device_error {
  uint32_t code;       /* enum gnnd_device_code */
  uint32_t sticky;     /* 1: the process must end */
  int32_t native_code; /* the runtime's own, cudaError_t for CUDA; 0 = none */
  uint32_t reserved;
  char message[480]; /* the operation with its size, and the runtime's words */
  char remedy[480];  /* the remedy for an operator; "" if there is none */
} gnnd_device_error;

/* Whether the CPU may follow a pointer into the arena. */
enum gnnd_memory_kind {
  GNND_MEMORY_DEVICE = 1, /* it may not: tensors over it belong to torch's device type CUDA */
  GNND_MEMORY_HOST = 2,   /* it is host memory: tensors over it are CPU tensors (gnnd_sim) */
};

/* The purpose of arena memory, by which accounts and metrics sum it up. */
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

/* ---- Listing devices. Makes no context and takes no device memory. ---- */

#define GNND_UNKNOWN 0xFFFFFFFFu /* in a uint32_t below: the value is unknown */

typedef struct gnnd_device_system {
  uint32_t driver_version;  /* 1000 * major + 10 * minor of the CUDA that the driver serves; 0 */
  uint32_t runtime_version; /* likewise, of the CUDA that the plug-in was built with */
  uint32_t devices;         /* number that can be opened, index 0 and up */
  uint32_t has_monitor;     /* 1: processes and MIG are known (NVML could be loaded) */
  char monitor[240];        /* why they are not; "" if they are */
} gnnd_device_system;

typedef struct gnnd_device_info {
  char name[128];        /* the product */
  char uuid[64];         /* stable: GPU-..., MIG-..., SIM-... */
  char pci[32];          /* domain:bus:device.function, "" = none */
  uint32_t architecture; /* 90 = sm_90; 0 = none */
  uint32_t multiprocessors;
  uint64_t total_bytes;
  uint64_t free_bytes;   /* of all processes; GNND_UNKNOWN_BYTES if only a context could tell */
  uint32_t memory_kind;  /* enum gnnd_memory_kind */
  uint32_t compute_mode; /* 0 shared, 2 prohibited, 3 exclusive to one process (as CUDA) */
  uint32_t mig;          /* 0 no MIG, 1 an instance, 2 has instances, of which one is visible */
  uint32_t mps;          /* 1: through a multi-process server */
  uint32_t can_register; /* 1: register_host works on read-write memory */
  uint32_t can_register_read_only;
  uint32_t pageable_access; /* 1: kernels may follow any host pointer */
  uint32_t time_limit;      /* 1: the driver ends kernels that run long (a display is attached) */
  uint32_t copy_engines;
  int32_t numa_node; /* nearest node of the host's memory; -1 = unknown */
} gnnd_device_info;

#define GNND_UNKNOWN_BYTES 0xFFFFFFFFFFFFFFFFull

/* The connection of two devices. */
enum gnnd_link_kind {
  GNND_LINK_NVLINK = 1,   /* NVLink, with or without switches */
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

/* Names the host's registered memory in the place of a device. */
#define GNND_HOST_MEMORY 0xFFFFFFFFu

/* A name by which another process on this host can open device memory. Only the plug-in understands
 * its bytes; any copy of them is as good. */
typedef struct gnnd_device_handle {
  uint8_t bytes[64];
} gnnd_device_handle;

/* A process with memory on a device. */
typedef struct gnnd_device_process {
  uint32_t pid;
  uint32_t reserved;
  uint64_t bytes; /* GNND_UNKNOWN_BYTES if the driver does not say */
} gnnd_device_process;

/* A MIG instance of a GPU. CUDA shows a process at most one of them, the first or the one that its
 * environment names, and does not mention the others. */
typedef struct gnnd_device_instance {
  char uuid[96]; /* MIG-..., by which CUDA_VISIBLE_DEVICES names it */
  char name[128];
  uint64_t total_bytes; /* GNND_UNKNOWN_BYTES where the driver does not say */
} gnnd_device_instance;

/* ---- Opening a device. ---- */

typedef struct gnnd_device_config {
  uint32_t abi_version;   /* the caller's */
  uint32_t index;         /* below gnnd_device_system.devices */
  uint64_t budget_bytes;  /* limit of the arena, rounding included; 0 = all that is free */
  uint64_t staging_bytes; /* pinned host memory for copy_staged; 0 = 8 pieces of 16 MiB */
} gnnd_device_config;

typedef struct gnnd_device_memory {
  uint64_t total_bytes;
  uint64_t free_bytes;    /* now, considering all processes */
  uint64_t context_bytes; /* taken by opening, beside the arena */
  /* Device memory taken beside the arena since before opening: the context, torch's tensors,
   * libraries' workspaces, loaded kernels, and whatever other processes took meanwhile. */
  uint64_t beside_bytes;
  uint64_t budget_bytes;
  uint64_t used_bytes[GNND_PURPOSES];
  uint64_t peak_bytes;       /* largest total of all purposes at a time */
  uint64_t registered_bytes; /* of host memory */
  uint64_t staging_bytes;    /* likewise, for the plug-in's own use */
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

/* The result of gnnd_device_plugin_get; lives as long as the process. Kernels that a plug-in lacks
 * are NULL, so callers check first (gnnd: Device::Needs). */
typedef struct gnnd_device_plugin {
  uint32_t abi_version; /* GNND_DEVICE_ABI_VERSION */
  uint32_t table_bytes; /* sizeof(gnnd_device_plugin) */
  const char* name;     /* "cuda", "sim": the part of a device's name before the colon */
  const char* build;    /* decides its bits: compiler, architectures, digest of its sources */

  /* Listing. If no device can be used, `devices` is 0 and the code says why. */
  uint32_t (*system)(gnnd_device_system* system, gnnd_device_error* error);
  uint32_t (*info)(uint32_t index, gnnd_device_info* info, gnnd_device_error* error);
  uint32_t (*link)(uint32_t from, uint32_t to, gnnd_device_link* link, gnnd_device_error* error);
  /* Measures, with copies that take some milliseconds, the bytes a second that `from` reads of
   * `to`'s memory or of GNND_HOST_MEMORY. Makes contexts; takes 64 MiB of each device meanwhile. */
  uint32_t (*link_rate)(uint32_t from, uint32_t to, uint64_t* bytes_per_second,
                        gnnd_device_error* error);
  /* Writes up to `capacity` processes, sets their number; NOT_SUPPORTED without a monitor. */
  uint32_t (*processes)(uint32_t index, gnnd_device_process* processes, uint32_t capacity,
                        uint32_t* count, gnnd_device_error* error);
  /* Likewise the MIG instances of the GPU that the device is, or is an instance of. */
  uint32_t (*instances)(uint32_t index, gnnd_device_instance* instances, uint32_t capacity,
                        uint32_t* count, gnnd_device_error* error);

  /* Opens a device, with a context of this process on it. close waits for all streams, and frees
   * the remaining streams, events, samplers, registrations and memory. */
  uint32_t (*open)(const gnnd_device_config* config, gnnd_device** device,
                   gnnd_device_error* error);
  void (*close)(gnnd_device* device);
  uint32_t (*memory)(gnnd_device* device, gnnd_device_memory* memory, gnnd_device_error* error);

  /* The arena. Memory is aligned to 256 bytes, counted rounded up to that, and has any content. 0
   * bytes are NULL. release frees memory at once, so no stream may still use it; it is allowed
   * after a sticky error. */
  uint32_t (*allocate)(gnnd_device* device, uint64_t bytes, uint32_t purpose, void** memory,
                       gnnd_device_error* error);
  void (*release)(gnnd_device* device, void* memory);

  /* Like allocate, for memory that other processes of the same user may open by `handle` until it
   * is released; counted rounded up to 2 MiB. It lives as long as somebody has it open, even if it
   * is released meanwhile or its process dies. If host or device cannot share memory so, nobody can
   * open the handle. */
  uint32_t (*allocate_shared)(gnnd_device* device, uint64_t bytes, uint32_t purpose, void** memory,
                              gnnd_device_handle* handle, gnnd_device_error* error);
  /* Opens another process's shared memory for kernels of this device to read, and keeps it whatever
   * becomes of that process. NOT_SUPPORTED if the device cannot reach that memory, BAD_ARGUMENT if
   * the process that shared it is gone or has released it. Not counted. */
  uint32_t (*open_shared)(gnnd_device* device, const gnnd_device_handle* handle, void** memory,
                          gnnd_device_error* error);
  /* No stream may still use it; allowed after a sticky error. */
  void (*close_shared)(gnnd_device* device, void* memory);

  /* Pins host memory that is mapped read-write, whole pages, for asynchronous copies and for
   * kernels; large ranges in pieces of at most 4 GiB. The mapping may be protected read-only
   * afterwards, but not unmapped or punched before unregister_host. Untouched pages are allocated.
   * Ranges do not overlap; unregister_host takes a whole range. `seen` gets the address at which
   * kernels see it. */
  uint32_t (*register_host)(gnnd_device* device, void* memory, uint64_t bytes, void** seen,
                            gnnd_device_error* error);
  uint32_t (*unregister_host)(gnnd_device* device, void* memory, gnnd_device_error* error);

  uint32_t (*stream_create)(gnnd_device* device, uint32_t priority, gnnd_device_stream** stream,
                            gnnd_device_error* error);
  /* Wraps another library's stream, such as torch's; destroying the wrapper leaves that alone. */
  uint32_t (*stream_adopt)(gnnd_device* device, void* native_stream, gnnd_device_stream** stream,
                           gnnd_device_error* error);
  void (*stream_destroy)(gnnd_device_stream* stream); /* waits for the work in it */
  void* (*stream_native)(gnnd_device_stream* stream); /* cudaStream_t; NULL in gnnd_sim */
  uint32_t (*stream_wait)(gnnd_device_stream* stream, gnnd_device_event* event,
                          gnnd_device_error* error);
  uint32_t (*stream_synchronize)(gnnd_device_stream* stream, gnnd_device_error* error);

  /* An event that was never recorded counts as happened. event_elapsed needs two `timed` events
   * that have happened. */
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
  /* Copies from or to any host memory through the device's pinned ring, in order with the stream.
   * When it returns, host memory may be changed (to the device) or read (to the host). */
  uint32_t (*copy_staged)(gnnd_device_stream* stream, void* to, const void* from, uint64_t bytes,
                          uint32_t direction, gnnd_device_error* error);
  uint32_t (*fill)(gnnd_device_stream* stream, void* to, uint8_t byte, uint64_t bytes,
                   gnnd_device_error* error);

  /* Work of another library on the same device and stream, such as torch's products.
   * begin_foreign is called before it is enqueued, and returns the fault that a simulated device
   * has planned for that library; on real devices it does nothing. */
  uint32_t (*begin_foreign)(gnnd_device_stream* stream, gnnd_device_error* error);
  /* Reports that library's failure, by the runtime's number (cudaError_t for CUDA) and words, and
   * returns its code, never OK. A sticky error stays, as if a call of this table had met it. */
  uint32_t (*foreign_failed)(gnnd_device* device, int32_t native_code, const char* words,
                             gnnd_device_error* error);

  /* Sampling. start enqueues the batch's kernels and returns; finish takes the oldest started one,
   * waits for its sizes, copies its sections into `slot` (registered or not), waits for them and
   * reports. So a batch is computed while the previous one is copied. The same key always gives the
   * same bytes. */
  uint32_t (*sampler_create)(gnnd_device* device, const gnnd_device_sampler_config* config,
                             gnnd_device_sampler** sampler, gnnd_device_error* error);
  void (*sampler_destroy)(gnnd_device_sampler* sampler);
  uint32_t (*sample_start)(gnnd_device_sampler* sampler, uint32_t epoch, uint32_t batch,
                           gnnd_device_error* error);
  uint32_t (*sample_finish)(gnnd_device_sampler* sampler, void* slot,
                            gnnd_device_sample_report* report, gnnd_device_error* error);

  /* Features. Here and below, pointers are device memory unless stated otherwise: the arena's, or
   * that of another allocator on the same device, such as torch's. For fields that contradict each
   * other the code is BAD_ARGUMENT, and the message names one. */
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
  /* Workspace of operators that sum rows in groups. */
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

/* The only symbol that gnnd looks up. */
#define GNND_DEVICE_PLUGIN_SYMBOL "gnnd_device_plugin_get"
typedef const gnnd_device_plugin* (*gnnd_device_plugin_get_fn)(void);

#ifdef __cplusplus
}
#endif

#endif
