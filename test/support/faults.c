// Faults of the host for one process, by LD_PRELOAD: a wall clock that steps, a disk that fails.
//
// GNND_FAULT_CLOCK=FILE: eight bytes, mapped; so many nanoseconds are added to the wall clock.
// GNND_FAULT_IO=PREFIX: writes, syncs and truncations of files below it are counted; the one with
// the number GNND_FAULT_AT, from 1, fails with GNND_FAULT_ERRNO, and with GNND_FAULT_STAYS=1 all
// that follow do.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static const int64_t kNsPerSecond = 1000000000;

static volatile int64_t *clock_offset;
static const char *prefix;
static long fails_at;
static int fails_with;
static int stays;
static long count;

__attribute__((constructor)) static void Begin(void) {
  const char *path = getenv("GNND_FAULT_CLOCK");
  if (path != NULL) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    void *at = fd < 0 ? MAP_FAILED : mmap(NULL, 8, PROT_READ, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) abort();
    close(fd);
    clock_offset = at;
  }
  const char *at = getenv("GNND_FAULT_AT");
  const char *with = getenv("GNND_FAULT_ERRNO");
  fails_at = at == NULL ? 0 : atol(at);
  fails_with = with == NULL ? EIO : atoi(with);
  stays = getenv("GNND_FAULT_STAYS") != NULL;
  prefix = getenv("GNND_FAULT_IO");
}

static int64_t Offset(void) { return clock_offset == NULL ? 0 : *clock_offset; }

int clock_gettime(clockid_t id, struct timespec *out) {
  const int result = NEXT(clock_gettime)(id, out);
  if (result != 0 || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE)) return result;
  const int64_t ns = out->tv_sec * kNsPerSecond + out->tv_nsec + Offset();
  out->tv_sec = ns / kNsPerSecond;
  out->tv_nsec = ns % kNsPerSecond;
  return 0;
}

int gettimeofday(struct timeval *out, void *zone) {
  (void)zone;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  out->tv_sec = now.tv_sec;
  out->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != NULL) *out = now.tv_sec;
  return now.tv_sec;
}

// Whether this operation is to fail; errno is set then.
static int Fails(int fd) {
  if (prefix == NULL) return 0;
  char link[64];
  char path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const int saved = errno;
  const ssize_t length = readlink(link, path, sizeof path - 1);
  errno = saved;
  if (length <= 0 || strncmp(path, prefix, strlen(prefix)) != 0) return 0;
  const long number = __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
  if (number < fails_at || (number > fails_at && !stays)) return 0;
  errno = fails_with;
  return 1;
}

ssize_t write(int fd, const void *bytes, size_t size) {
  return Fails(fd) ? -1 : NEXT(write)(fd, bytes, size);
}
ssize_t pwrite(int fd, const void *bytes, size_t size, off_t at) {
  return Fails(fd) ? -1 : NEXT(pwrite)(fd, bytes, size, at);
}
ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t at) {
  return Fails(fd) ? -1 : NEXT(pwrite64)(fd, bytes, size, at);
}
int fsync(int fd) { return Fails(fd) ? -1 : NEXT(fsync)(fd); }
int fdatasync(int fd) { return Fails(fd) ? -1 : NEXT(fdatasync)(fd); }
int ftruncate(int fd, off_t size) { return Fails(fd) ? -1 : NEXT(ftruncate)(fd, size); }
int ftruncate64(int fd, off64_t size) { return Fails(fd) ? -1 : NEXT(ftruncate64)(fd, size); }
