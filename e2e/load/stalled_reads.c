/* A disk whose reads stand still, for files with the sticky bit alone: loaded before the C library (ld.so(8),
 * LD_PRELOAD), it holds each read of such a file, and counts them.
 *
 * The test and the processes share the plan, a file that STALLED_READS names: it is mapped, so that the test sets and
 * reads it while they run. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Words of 8 bytes; e2e/support/stalled_reads.rb packs and unpacks them. */
struct plan {
    _Atomic uint64_t held; /* reads wait until it is 0 */
    _Atomic uint64_t begun;
};

static struct plan *plan;

__attribute__((constructor)) static void map_plan(void)
{
    const char *path = getenv("STALLED_READS");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *p = mmap(NULL, sizeof(struct plan), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    plan = p == MAP_FAILED ? NULL : p;
}

static void wait_for_the_disk(int fd)
{
    const struct timespec pause = {0, 1000000};
    struct stat info;
    if (!plan || fstat(fd, &info) < 0 || !S_ISREG(info.st_mode) || !(info.st_mode & S_ISVTX))
        return;
    atomic_fetch_add(&plan->begun, 1);
    while (atomic_load(&plan->held))
        (void)nanosleep(&pause, NULL);
    errno = 0;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t pread64(int fd, void *p, size_t n, off64_t offset)
{
    wait_for_the_disk(fd);
    return NEXT(pread64)(fd, p, n, offset);
}

ssize_t pread(int fd, void *p, size_t n, off_t offset)
{
    wait_for_the_disk(fd);
    return NEXT(pread)(fd, p, n, offset);
}

ssize_t sendfile64(int to, int from, off64_t *offset, size_t n)
{
    wait_for_the_disk(from);
    return NEXT(sendfile64)(to, from, offset, n);
}

ssize_t sendfile(int to, int from, off_t *offset, size_t n)
{
    wait_for_the_disk(from);
    return NEXT(sendfile)(to, from, offset, n);
}
