/* ppoll(2), in a source of its own that is compiled without the C library's checks: on 32-bit processors those of glibc
 * up to 2.36 take the function with 32-bit times for times of 64 bits (bits/poll2.h), and every wait ends at once. */
#undef _FORTIFY_SOURCE

#include "oribi/base/os/os.h"

#include <poll.h>
#include <time.h>

int oribi_os_poll_masked(struct pollfd *fds, size_t count, int64_t timeout_us, const sigset_t *mask)
{
    const struct timespec timeout = {.tv_sec = timeout_us / 1000000, .tv_nsec = timeout_us % 1000000 * 1000L};
    return ppoll(fds, count, &timeout, mask);
}
