/* A disk that is slow, full or stands still, for the server's unlinked files alone: loaded before the C library
 * (ld.so(8), LD_PRELOAD), it holds, delays or fails each write to a file without a name in TMPDIR, and counts them by
 * thread.
 *
 * The test and the processes share the plan, a file that SLOW_DISK names: it is mapped, so that the test sets and reads
 * it while they run. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { THREADS_MAX = 250 };

/* Words of 8 bytes; e2e/slow_disk_test.rb packs and unpacks them. */
struct plan {
    _Atomic uint64_t held;     /* writes wait until it is 0 */
    _Atomic uint64_t error;    /* an errno; 0: none */
    _Atomic uint64_t delay_ms; /* of each write */
    _Atomic uint64_t begun;
    _Atomic uint64_t ended;
    _Atomic uint64_t threads[THREADS_MAX]; /* that have written */
};

static struct plan *plan;
static dev_t device;

__attribute__((constructor)) static void map_plan(void)
{
    const char *path = getenv("SLOW_DISK");
    const char *dir = getenv("TMPDIR");
    struct stat info;
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0 || !dir || stat(dir, &info) < 0)
        return;
    void *p = mmap(NULL, sizeof(struct plan), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    device = info.st_dev;
    plan = p == MAP_FAILED ? NULL : p;
}

static void pause_ms(uint64_t ms)
{
    struct timespec time = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
    while (nanosleep(&time, &time) < 0 && errno == EINTR)
        continue;
}

static void note_thread(uint64_t thread)
{
    for (int i = 0; i < THREADS_MAX; i++) {
        uint64_t seen = 0;
        if (atomic_compare_exchange_strong(&plan->threads[i], &seen, thread) || seen == thread)
            return;
    }
}

/* True when the write is to be made. */
static int begin_write(int fd)
{
    struct stat info;
    if (!plan || fstat(fd, &info) < 0 || !S_ISREG(info.st_mode) || info.st_nlink > 0 || info.st_dev != device)
        return 1;
    note_thread((uint64_t)syscall(SYS_gettid));
    atomic_fetch_add(&plan->begun, 1);
    while (atomic_load(&plan->held))
        pause_ms(1);
    pause_ms(atomic_load(&plan->delay_ms));
    atomic_fetch_add(&plan->ended, 1);
    errno = (int)atomic_load(&plan->error);
    return errno == 0;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int fd, const void *p, size_t n)
{
    return begin_write(fd) ? (ssize_t)syscall(SYS_write, fd, p, n) : -1;
}

ssize_t writev(int fd, const struct iovec *vec, int count)
{
    return begin_write(fd) ? (ssize_t)syscall(SYS_writev, fd, vec, count) : -1;
}

ssize_t pwrite64(int fd, const void *p, size_t n, off64_t offset)
{
    return begin_write(fd) ? NEXT(pwrite64)(fd, p, n, offset) : -1;
}

ssize_t pwrite(int fd, const void *p, size_t n, off_t offset)
{
    return begin_write(fd) ? NEXT(pwrite)(fd, p, n, offset) : -1;
}

ssize_t copy_file_range(int from, off64_t *from_offset, int to, off64_t *to_offset, size_t n, unsigned flags)
{
    return begin_write(to) ? NEXT(copy_file_range)(from, from_offset, to, to_offset, n, flags) : -1;
}
