/* Preloaded into a process, it lets the n-th file operation of a kind below one directory fail.

   With a period each `period`-th one after it fails, too. `failing_disk_arm` says which, for the
   process that calls it; its children are left alone. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { OPEN, WRITE, SYNC, RENAME, KINDS };

static struct {
    char root[PATH_MAX];
    size_t root_length;
    int kind;
    long nth;
    long period;
    int error;
    atomic_long failed;
    pid_t owner;
    atomic_long seen[KINDS];
    char hit[PATH_MAX];
} disk;

#define REAL(name) __typeof__(&name) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

void failing_disk_arm(const char *root, int kind, long nth, long period, int error)
{
    snprintf(disk.root, sizeof disk.root, "%s", root);
    disk.kind = kind;
    disk.nth = nth;
    disk.period = period;
    disk.error = error;
    atomic_store(&disk.failed, 0);
    disk.owner = getpid();
    disk.hit[0] = 0;
    for (int one = 0; one < KINDS; one++)
        atomic_store(&disk.seen[one], 0);
    disk.root_length = strlen(root);
}

long failing_disk_seen(int kind) { return atomic_load(&disk.seen[kind]); }

long failing_disk_failed(void) { return atomic_load(&disk.failed); }

const char *failing_disk_hit(void) { return disk.hit; }

static int fails(int kind, const char *path)
{
    if (!disk.root_length || getpid() != disk.owner
        || strncmp(path, disk.root, disk.root_length) != 0)
        return 0;
    long n = atomic_fetch_add(&disk.seen[kind], 1) + 1;
    if (!disk.nth || kind != disk.kind || n < disk.nth)
        return 0;
    if (n > disk.nth && (!disk.period || (n - disk.nth) % disk.period))
        return 0;
    atomic_fetch_add(&disk.failed, 1);
    snprintf(disk.hit, sizeof disk.hit, "%s", path);
    errno = disk.error;
    return 1;
}

static int fails_at(int kind, int directory, const char *name)
{
    char path[2 * PATH_MAX];
    int saved = errno;
    ssize_t length = 0;
    if (name[0] == '/') {
        path[0] = 0;
    } else if (directory == AT_FDCWD) {
        if (!getcwd(path, PATH_MAX))
            return 0;
        length = (ssize_t)strlen(path);
    } else {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
        length = readlink(link, path, PATH_MAX - 1);
        if (length < 0)
            return 0;
    }
    snprintf(path + length, sizeof path - (size_t)length, "%s%s", length ? "/" : "", name);
    errno = saved;
    return fails(kind, path);
}

static int fails_on(int kind, int descriptor)
{
    char link[64], path[PATH_MAX];
    int saved = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    errno = saved;
    if (length <= 0)
        return 0;
    path[length] = 0;
    return fails(kind, path);
}

#define MODE(flags)                                                                                \
    mode_t mode = 0;                                                                               \
    if ((flags) & (O_CREAT | O_TMPFILE)) {                                                         \
        va_list rest;                                                                              \
        va_start(rest, flags);                                                                     \
        mode = va_arg(rest, mode_t);                                                               \
        va_end(rest);                                                                              \
    }

int open(const char *path, int flags, ...)
{
    MODE(flags)
    REAL(open);
    return fails_at(OPEN, AT_FDCWD, path) ? -1 : real(path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    MODE(flags)
    REAL(open64);
    return fails_at(OPEN, AT_FDCWD, path) ? -1 : real(path, flags, mode);
}

int openat(int directory, const char *path, int flags, ...)
{
    MODE(flags)
    REAL(openat);
    return fails_at(OPEN, directory, path) ? -1 : real(directory, path, flags, mode);
}

int openat64(int directory, const char *path, int flags, ...)
{
    MODE(flags)
    REAL(openat64);
    return fails_at(OPEN, directory, path) ? -1 : real(directory, path, flags, mode);
}

ssize_t write(int descriptor, const void *bytes, size_t count)
{
    REAL(write);
    return fails_on(WRITE, descriptor) ? -1 : real(descriptor, bytes, count);
}

ssize_t writev(int descriptor, const struct iovec *parts, int count)
{
    REAL(writev);
    return fails_on(WRITE, descriptor) ? -1 : real(descriptor, parts, count);
}

ssize_t pwrite(int descriptor, const void *bytes, size_t count, off_t offset)
{
    REAL(pwrite);
    return fails_on(WRITE, descriptor) ? -1 : real(descriptor, bytes, count, offset);
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t count, off64_t offset)
{
    REAL(pwrite64);
    return fails_on(WRITE, descriptor) ? -1 : real(descriptor, bytes, count, offset);
}

int fsync(int descriptor)
{
    REAL(fsync);
    return fails_on(SYNC, descriptor) ? -1 : real(descriptor);
}

int fdatasync(int descriptor)
{
    REAL(fdatasync);
    return fails_on(SYNC, descriptor) ? -1 : real(descriptor);
}

int rename(const char *from, const char *to)
{
    REAL(rename);
    return fails_at(RENAME, AT_FDCWD, to) ? -1 : real(from, to);
}

int renameat(int from_directory, const char *from, int to_directory, const char *to)
{
    REAL(renameat);
    return fails_at(RENAME, to_directory, to) ? -1 : real(from_directory, from, to_directory, to);
}
