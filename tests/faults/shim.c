/* Counts the system calls that change files, and makes one of them fail or the last of the process.
 * Preloaded into a Python that arms it through ctypes: fault_arm(at, kind), fault_disarm(). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { NONE, NO_SPACE, IO_ERROR, SHORT, KILL_BEFORE, KILL_AFTER, INTERRUPTED };

static volatile int armed;
static volatile long count, chosen;
static int kind;
static char name_of_call[32];

void fault_arm(long at, int what) { count = 0; chosen = at; kind = what; name_of_call[0] = 0; armed = 1; }
long fault_disarm(void) { armed = 0; return count; }
const char *fault_call(void) { return name_of_call; }

static void die(void) { kill(getpid(), SIGKILL); for (;;) pause(); }

static int fault(const char *name)
{
    if (!armed || __sync_add_and_fetch(&count, 1) != chosen)
        return NONE;
    strncpy(name_of_call, name, sizeof name_of_call - 1);
    if (kind == KILL_BEFORE)
        die();
    return kind;
}

static int fails(int what)
{
    if (what != NO_SPACE && what != IO_ERROR && what != INTERRUPTED)
        return 0;
    errno = what == NO_SPACE ? ENOSPC : what == IO_ERROR ? EIO : EINTR;
    return 1;
}

static int is_output(int fd)
{
    struct stat status;
    int saved = errno, mode = fcntl(fd, F_GETFL);
    int yes = mode != -1 && (mode & O_ACCMODE) != O_RDONLY && !fstat(fd, &status) && S_ISREG(status.st_mode);
    errno = saved;
    return yes;
}

#define REAL(type, name, params) \
    static type(*real) params; \
    if (!real) real = (type(*) params)dlsym(RTLD_NEXT, #name)

/* A call that returns -1 and errno. */
#define CALL(type, name, params, args) \
    type name params { \
        REAL(type, name, params); \
        int what = fault(#name); \
        if (fails(what)) return -1; \
        type result = real args; \
        if (what == KILL_AFTER) die(); \
        return result; \
    }

/* The same for writes to regular files, which may also be short. */
#define WRITE(name, params, args, shorten) \
    ssize_t name params { \
        REAL(ssize_t, name, params); \
        int what = armed && is_output(fd) ? fault(#name) : NONE; \
        if (fails(what)) return -1; \
        if (what == SHORT) { shorten; } \
        ssize_t result = real args; \
        if (what == KILL_AFTER) die(); \
        return result; \
    }

WRITE(write, (int fd, const void *data, size_t size), (fd, data, size), size = (size + 1) / 2)
WRITE(pwrite, (int fd, const void *data, size_t size, off_t at), (fd, data, size, at), size = (size + 1) / 2)
WRITE(pwrite64, (int fd, const void *data, size_t size, off64_t at), (fd, data, size, at), size = (size + 1) / 2)
WRITE(writev, (int fd, const struct iovec *parts, int n), (fd, parts, n), n = (n + 1) / 2)
WRITE(pwritev, (int fd, const struct iovec *parts, int n, off_t at), (fd, parts, n, at), n = (n + 1) / 2)
WRITE(pwritev64, (int fd, const struct iovec *parts, int n, off64_t at), (fd, parts, n, at), n = (n + 1) / 2)
CALL(ssize_t, copy_file_range, (int a, off64_t *x, int b, off64_t *y, size_t n, unsigned f), (a, x, b, y, n, f))
CALL(ssize_t, sendfile, (int a, int b, off_t *x, size_t n), (a, b, x, n))
CALL(ssize_t, sendfile64, (int a, int b, off64_t *x, size_t n), (a, b, x, n))
CALL(int, ftruncate, (int fd, off_t size), (fd, size))
CALL(int, ftruncate64, (int fd, off64_t size), (fd, size))
CALL(int, fallocate, (int fd, int mode, off_t a, off_t n), (fd, mode, a, n))
CALL(int, fallocate64, (int fd, int mode, off64_t a, off64_t n), (fd, mode, a, n))
CALL(int, fsync, (int fd), (fd))
CALL(int, fdatasync, (int fd), (fd))
CALL(int, syncfs, (int fd), (fd))
CALL(int, rename, (const char *a, const char *b), (a, b))
CALL(int, renameat, (int f, const char *a, int g, const char *b), (f, a, g, b))
CALL(int, renameat2, (int f, const char *a, int g, const char *b, unsigned flags), (f, a, g, b, flags))
CALL(int, link, (const char *a, const char *b), (a, b))
CALL(int, linkat, (int f, const char *a, int g, const char *b, int flags), (f, a, g, b, flags))
CALL(int, symlink, (const char *a, const char *b), (a, b))
CALL(int, unlink, (const char *a), (a))
CALL(int, unlinkat, (int f, const char *a, int flags), (f, a, flags))
CALL(int, rmdir, (const char *a), (a))
CALL(int, mkdir, (const char *a, mode_t mode), (a, mode))
CALL(int, mkdirat, (int f, const char *a, mode_t mode), (f, a, mode))
CALL(int, chmod, (const char *a, mode_t mode), (a, mode))
CALL(int, fchmod, (int fd, mode_t mode), (fd, mode))
CALL(int, fchmodat, (int f, const char *a, mode_t mode, int flags), (f, a, mode, flags))

static int allocate(int (*real)(int, off_t, off_t), int fd, off_t at, off_t size)
{
    int what = fault("posix_fallocate");
    if (fails(what)) return errno;
    int result = real(fd, at, size);
    if (what == KILL_AFTER) die();
    return result;
}
int posix_fallocate(int fd, off_t at, off_t size) { REAL(int, posix_fallocate, (int, off_t, off_t)); return allocate(real, fd, at, size); }
int posix_fallocate64(int fd, off64_t at, off64_t size) { REAL(int, posix_fallocate64, (int, off_t, off_t)); return allocate(real, fd, at, size); }

int close(int fd)
{
    REAL(int, close, (int));
    int what = armed && is_output(fd) ? fault("close") : NONE;
    int result = real(fd);  /* Linux closes it, whatever it says */
    if (what == KILL_AFTER) die();
    return fails(what) ? -1 : result;
}

static int creates(int flags) { return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE; }

#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        REAL(int, name, (const char *, int, ...)); \
        va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, mode_t); va_end(rest); \
        int what = creates(flags) ? fault(#name) : NONE; \
        if (fails(what)) return -1; \
        int result = real(path, flags, mode); \
        if (what == KILL_AFTER) die(); \
        return result; \
    }
#define OPENAT(name) \
    int name(int folder, const char *path, int flags, ...) { \
        REAL(int, name, (int, const char *, int, ...)); \
        va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, mode_t); va_end(rest); \
        int what = creates(flags) ? fault(#name) : NONE; \
        if (fails(what)) return -1; \
        int result = real(folder, path, flags, mode); \
        if (what == KILL_AFTER) die(); \
        return result; \
    }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
