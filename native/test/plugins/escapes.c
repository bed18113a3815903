#define _GNU_SOURCE

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gnnd/sampler_plugin.h"

/* Asks the kernel for what an executor may not have, when it is created, and writes the answers into
 * the file that its options name: a line each, the call and the name of its error or "done". Then it
 * samples the first neighbour, as if nothing had happened. */

static void tell(FILE* out, const char* call, long result) {
  fprintf(out, "%s %s\n", call, result >= 0 ? "done" : strerrorname_np(errno));
}

/* A child that outlives this process, if there is one. */
static long fork_away(void) {
  const long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
  if (child == 0) {
    sleep(600);
    _exit(0);
  }
  return child;
}

static int create(const gnnd_sampler_config* config, void** state, char* error,
                  size_t error_bytes) {
  char* const no_words[] = {NULL};
  FILE* out = fopen(config->options, "w");
  if (out == NULL) {
    snprintf(error, error_bytes, "%s cannot be written", config->options);
    return 1;
  }
  tell(out, "socket", socket(AF_INET, SOCK_STREAM, 0));
  tell(out, "unix", socket(AF_UNIX, SOCK_STREAM, 0));
  tell(out, "exec", execve("/bin/true", no_words, no_words));
  tell(out, "fork", fork_away());
  tell(out, "kill", kill(getppid(), 0));
  tell(out, "ptrace", ptrace(PTRACE_ATTACH, getppid(), NULL, NULL));
  tell(out, "outlive", prctl(PR_SET_PDEATHSIG, 0));
  tell(out, "uring", syscall(SYS_io_uring_setup, 1, NULL));
  tell(out, "unshare", syscall(SYS_unshare, 0x10000000));
  tell(out, "self", kill(getpid(), 0));
  fclose(out);
  *state = NULL;
  return 0;
}

static int64_t pick(const void* state, const gnnd_sampler_row* row, uint64_t* positions,
                    float* weights) {
  (void)state;
  (void)row;
  positions[0] = 0;
  if (weights != NULL) weights[0] = 1.0f;
  return 1;
}

static const gnnd_sampler_plugin plugin = {GNND_SAMPLER_ABI_VERSION, 0, create, pick, NULL};

GNND_PLUGIN_EXPORT const gnnd_sampler_plugin* gnnd_sampler_plugin_get(void);
const gnnd_sampler_plugin* gnnd_sampler_plugin_get(void) { return &plugin; }
