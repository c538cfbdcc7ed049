/* Between a program and its C library, for tests: writes that do less than asked, a wall clock that jumps.
 *
 * SHIM_SHORT=anything  writes at most seven bytes at a time; every fifth is interrupted.
 * SHIM_JUMP=FILE       while FILE is there, the wall clock is that many days away. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static const char *find(const char *name) {
    extern char **environ;
    size_t length = strlen(name);
    for (char **entry = environ; entry && *entry; entry++)
        if (!strncmp(*entry, name, length) && (*entry)[length] == '=') return *entry + length + 1;
    return NULL;
}

static char jump[4096];
static int is_short;

__attribute__((constructor)) static void prepare(void) {
    const char *file = find("SHIM_JUMP");
    if (file) strncpy(jump, file, sizeof jump - 1);
    is_short = find("SHIM_SHORT") != NULL;
}

/* Only files on a disk and pipes may take less than all; the kernel's own files, counters and messages never do. */
static int concerns(int fd) {
    struct stat kind;
    if (!is_short || fstat(fd, &kind)) return 0;
    return S_ISFIFO(kind.st_mode) || (S_ISREG(kind.st_mode) && major(kind.st_dev));
}

static int interrupted(int fd) {
    static unsigned count;
    if (!concerns(fd) || ++count % 5) return 0;
    errno = EINTR;
    return 1;
}

static size_t some(int fd, size_t count) { return count > 7 && concerns(fd) ? 7 : count; }

ssize_t write(int fd, const void *bytes, size_t count) {
    return interrupted(fd) ? -1 : syscall(SYS_write, fd, bytes, some(fd, count));
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    if (!concerns(fd)) return syscall(SYS_writev, fd, parts, count);
    for (int at = 0; at < count; at++)
        if (parts[at].iov_len) return write(fd, parts[at].iov_base, parts[at].iov_len);
    return 0;
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t offset) {
    return interrupted(fd) ? -1 : syscall(SYS_pwrite64, fd, bytes, some(fd, count), offset);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int answer = (int)syscall(SYS_clock_gettime, clock, now);
    if (answer || clock != CLOCK_REALTIME || !jump[0]) return answer;
    int fd = (int)syscall(SYS_open, jump, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return answer;
    char text[16] = { 0 };
    if (syscall(SYS_read, fd, text, sizeof text - 1) > 0) now->tv_sec += (time_t)atoi(text) * 86400;
    syscall(SYS_close, fd);
    return answer;
}
