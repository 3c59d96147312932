/* Time from the vDSO: clock_gettime() cannot fail for these clocks with a valid pointer (clock_gettime(2)). */
#include "oribi/base/clock.h"

#include <time.h>

static int64_t read_clock(clockid_t id, int64_t per_second)
{
    struct timespec now = {0};
    (void)clock_gettime(id, &now); /* EINVAL and EFAULT only: neither is possible here */
    return (int64_t)now.tv_sec * per_second + now.tv_nsec / (1000000000 / per_second);
}

int64_t oribi_clock_us(void)
{
    return read_clock(CLOCK_MONOTONIC, 1000000);
}

int64_t oribi_clock_ms(void)
{
    return read_clock(CLOCK_MONOTONIC, 1000);
}

int64_t oribi_clock_wall_s(void)
{
    /* whole seconds as of the last tick: reads memory, no counter of the processor (vdso(7)) */
    return (int64_t)time(NULL);
}

int64_t oribi_clock_wall_ms(void)
{
    return read_clock(CLOCK_REALTIME, 1000);
}
