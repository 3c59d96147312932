/* Giving up the processor for a neighbour that has just been woken. */
#include "oribi/base/yield.h"

#include "oribi/base/clock.h"
#include "oribi/base/os/os.h"

enum { EVENTS_MIN = 2 };

bool oribi_yield_due(struct oribi_yield *yield, int64_t now_us)
{
    if (now_us < yield->paused_until_us)
        return false;
    if (!yield->skips)
        return true;
    yield->skips--;
    return false;
}

int64_t oribi_yield(void)
{
    int64_t before_us = oribi_clock_us();
    oribi_os_yield();
    return oribi_clock_us() - before_us;
}

void oribi_yield_note(struct oribi_yield *yield, int64_t took_us, int64_t now_us, int events)
{
    if (took_us > ORIBI_YIELD_SLOW_US)
        yield->paused_until_us = now_us + ORIBI_YIELD_PAUSE_US;
    if (events >= EVENTS_MIN)
        yield->step = 0;
    else if (yield->step < ORIBI_YIELD_SKIPS_MAX)
        yield->step = (uint16_t)(yield->step * 2 + 1);
    yield->skips = yield->step;
}
