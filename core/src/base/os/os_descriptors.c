/* How many descriptors this process may have: its soft limit, raised late. */
#include "oribi/base/os/os.h"

#include <errno.h>
#include <limits.h>
#include <sys/resource.h>

/* One of each for the process, as the limit is. */
atomic_int oribi__os_raising_fd = INT_MAX;
static _Atomic uint64_t descriptors_wanted;
static _Atomic uint64_t descriptors_before; /* the soft limit that was raised; 0: it was not */

uint64_t oribi_os_want_descriptors(uint64_t count)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0) /* fails only for a bad address */
        return 0;
    if (limit.rlim_cur < count && limit.rlim_cur < limit.rlim_max) {
        rlim_t before = limit.rlim_cur;
        limit.rlim_cur = count < limit.rlim_max ? (rlim_t)count : limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
            return before;
    }
    return limit.rlim_cur;
}

void oribi_os_allow_descriptors(uint64_t count)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= count || limit.rlim_cur >= limit.rlim_max)
        return;
    atomic_store(&descriptors_wanted, count);
    atomic_store(&oribi__os_raising_fd, limit.rlim_cur < INT_MAX ? (int)(limit.rlim_cur / 2) : INT_MAX);
}

bool oribi_os_raise_descriptors(void)
{
    struct rlimit limit;
    if (atomic_exchange(&oribi__os_raising_fd, INT_MAX) == INT_MAX || getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return false; /* another thread does, or has */
    atomic_store(&descriptors_before, limit.rlim_cur);
    return oribi_os_want_descriptors(atomic_load(&descriptors_wanted)) > limit.rlim_cur;
}

void oribi_os_restore_descriptors(void)
{
    struct rlimit limit;
    uint64_t before = atomic_exchange(&descriptors_before, 0);
    atomic_store(&oribi__os_raising_fd, INT_MAX);
    if (before == 0 || getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    limit.rlim_cur = (rlim_t)before;
    (void)setrlimit(RLIMIT_NOFILE, &limit); /* it may always be lowered */
}

int oribi__os_lift_high(int fd)
{
    int saved = errno;
    (void)oribi_os_raise_descriptors();
    errno = saved;
    return fd;
}
