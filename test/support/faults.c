// Faults of the host for one process, by LD_PRELOAD: a wall clock that steps, a disk that fails.
//
// GNND_FAULT_CLOCK=FILE: eight bytes, mapped; so many nanoseconds are added to the wall clock.
// GNND_FAULT_IO=PREFIX: writes, syncs and truncations of files below it are counted; the one with
// the number GNND_FAULT_AT, from 1, fails with GNND_FAULT_ERRNO, and with GNND_FAULT_STAYS=1 all
// that follow do. With GNND_FAULT_KILL=1 names are counted, too (files made, renamed and removed, folders),
// and instead of failing the process is killed; of a write half is done.
// GNND_FAULT_RECORD=FILE: all of these operations are appended to it once they are done, with what
// they wrote, and what is written to the standard output: test/support/crash-images.ts reads it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
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
static int kills;
static long count;
static int record = -1;
static pthread_mutex_t order = PTHREAD_MUTEX_INITIALIZER;

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
  kills = getenv("GNND_FAULT_KILL") != NULL;
  const char *to = getenv("GNND_FAULT_RECORD");
  if (to != NULL) record = NEXT(open)(to, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
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

enum Operation { kWrite = 1, kTruncate, kSync, kRename, kUnlink, kMkdir, kRmdir, kCreate, kSay };

static int IsBelow(const char *path) {
  return prefix != NULL && strncmp(path, prefix, strlen(prefix)) == 0;
}

// The path of a descriptor that is looked at; 0: of none.
static int PathOf(int fd, char *path) {
  if (prefix == NULL) return 0;
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const int saved = errno;
  const ssize_t length = readlink(link, path, PATH_MAX - 1);
  errno = saved;
  if (length <= 0) return 0;
  path[length] = '\0';
  return IsBelow(path);
}

// Whether this operation is the one; errno is set then.
static int IsMeant(void) {
  const long number = __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
  if (number < fails_at || (number > fails_at && !stays)) return 0;
  errno = fails_with;
  return fails_at > 0;
}

static void Die(void) {
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

static int Fails(int fd) {
  char path[PATH_MAX];
  if (!PathOf(fd, path) || !IsMeant()) return 0;
  if (kills) Die();
  return 1;
}

static void Record(uint32_t kind, const char *path, const char *other, int64_t at,
                   const void *bytes, size_t size) {
  if (record < 0) return;
  const uint32_t lengths[4] = {kind, strlen(path), strlen(other), 0};
  const uint64_t numbers[2] = {(uint64_t)at, size};
  const struct iovec parts[] = {{(void *)lengths, sizeof lengths},
                                {(void *)numbers, sizeof numbers},
                                {(void *)path, lengths[1]},
                                {(void *)other, lengths[2]},
                                {(void *)bytes, bytes == NULL ? 0 : size}};
  if (NEXT(writev)(record, parts, 5) < 0) abort();
}

// A write at `at`, or where the file stands (−1).
static ssize_t Write(int fd, const void *bytes, size_t size, int64_t at) {
  char path[PATH_MAX];
  const int is_below = PathOf(fd, path);
  if (is_below && IsMeant()) {
    if (!kills) return -1;
    if (at < 0) (void)!NEXT(write)(fd, bytes, size / 2);
    else (void)!NEXT(pwrite64)(fd, bytes, size / 2, at);
    Die();
  }
  const int said = fd == STDOUT_FILENO && record >= 0;
  if (record < 0 || (!is_below && !said)) {
    return at < 0 ? NEXT(write)(fd, bytes, size) : NEXT(pwrite64)(fd, bytes, size, at);
  }
  pthread_mutex_lock(&order);
  // What is said counts from before it is heard.
  if (said) Record(kSay, "", "", 0, bytes, size);
  ssize_t done;
  if (at < 0) {
    const int appends = (fcntl(fd, F_GETFL) & O_APPEND) != 0;
    at = said ? 0 : lseek(fd, 0, appends ? SEEK_END : SEEK_CUR);
    done = NEXT(write)(fd, bytes, size);
  } else {
    done = NEXT(pwrite64)(fd, bytes, size, at);
  }
  if (!said && done > 0) Record(kWrite, path, "", at, bytes, (size_t)done);
  pthread_mutex_unlock(&order);
  return done;
}

ssize_t write(int fd, const void *bytes, size_t size) { return Write(fd, bytes, size, -1); }
ssize_t pwrite(int fd, const void *bytes, size_t size, off_t at) {
  return Write(fd, bytes, size, at);
}
ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t at) {
  return Write(fd, bytes, size, at);
}
static ssize_t WriteAll(int fd, const struct iovec *parts, int number, int64_t at) {
  ssize_t sum = 0;
  for (int i = 0; i < number; ++i) {
    const ssize_t done = Write(fd, parts[i].iov_base, parts[i].iov_len, at < 0 ? -1 : at + sum);
    if (done < 0) return sum > 0 ? sum : -1;
    sum += done;
    if ((size_t)done < parts[i].iov_len) break;
  }
  return sum;
}
ssize_t writev(int fd, const struct iovec *parts, int number) {
  char path[PATH_MAX];
  return PathOf(fd, path) ? WriteAll(fd, parts, number, -1) : NEXT(writev)(fd, parts, number);
}
ssize_t pwritev(int fd, const struct iovec *parts, int number, off_t at) {
  char path[PATH_MAX];
  return PathOf(fd, path) ? WriteAll(fd, parts, number, at) : NEXT(pwritev)(fd, parts, number, at);
}
ssize_t pwritev64(int fd, const struct iovec *parts, int number, off64_t at) {
  return pwritev(fd, parts, number, at);
}

// What has no bytes, of a descriptor; recorded if it is done.
#define OF_FILE(name, arguments, pass, kind, size)               \
  int name arguments {                                           \
    if (Fails(fd)) return -1;                                    \
    char path[PATH_MAX];                                         \
    if (record < 0 || !PathOf(fd, path)) return NEXT(name) pass; \
    pthread_mutex_lock(&order);                                  \
    const int result = NEXT(name) pass;                          \
    if (result == 0) Record(kind, path, "", size, NULL, 0);      \
    pthread_mutex_unlock(&order);                                \
    return result;                                               \
  }
OF_FILE(fsync, (int fd), (fd), kSync, 0)
OF_FILE(fdatasync, (int fd), (fd), kSync, 0)
OF_FILE(ftruncate, (int fd, off_t size), (fd, size), kTruncate, size)
OF_FILE(ftruncate64, (int fd, off64_t size), (fd, size), kTruncate, size)

// Likewise of a name.
#define OF_NAME(name, arguments, pass, kind, other)              \
  int name arguments {                                           \
    if (!IsBelow(path) || (!kills && record < 0)) return NEXT(name) pass; \
    if (kills && IsMeant()) Die();                               \
    pthread_mutex_lock(&order);                                  \
    const int result = NEXT(name) pass;                          \
    if (result == 0) Record(kind, path, other, 0, NULL, 0);      \
    pthread_mutex_unlock(&order);                                \
    return result;                                               \
  }
OF_NAME(rename, (const char *path, const char *to), (path, to), kRename, to)
OF_NAME(unlink, (const char *path), (path), kUnlink, "")
OF_NAME(rmdir, (const char *path), (path), kRmdir, "")
OF_NAME(mkdir, (const char *path, mode_t mode), (path, mode), kMkdir, "")

static int Open(int (*next)(const char *, int, ...), const char *path, int flags, mode_t mode) {
  if ((flags & (O_CREAT | O_TRUNC)) == 0 || !IsBelow(path) || (!kills && record < 0)) {
    return next(path, flags, mode);
  }
  const int makes = access(path, F_OK) != 0;
  if (kills && IsMeant()) Die();
  pthread_mutex_lock(&order);
  const int fd = next(path, flags, mode);
  if (fd >= 0 && makes) Record(kCreate, path, "", 0, NULL, 0);
  if (fd >= 0 && !makes && (flags & O_TRUNC) != 0) Record(kTruncate, path, "", 0, NULL, 0);
  pthread_mutex_unlock(&order);
  return fd;
}
#define OPEN(name)                                \
  int name(const char *path, int flags, ...) {    \
    va_list more;                                 \
    va_start(more, flags);                        \
    const mode_t mode = va_arg(more, mode_t);     \
    va_end(more);                                 \
    return Open(NEXT(name), path, flags, mode);   \
  }
OPEN(open)
OPEN(open64)
