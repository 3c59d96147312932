/* Clocks agree with the system's and with each other. */
#include "base/clock.c"

#include "tap.h"

static void test_monotonic_time_never_steps_back(void)
{
    int64_t last = oribi_clock_us();
    bool forward = last > 0;
    for (int i = 0; i < 100000; i++) {
        int64_t now = oribi_clock_us();
        forward = forward && now >= last;
        last = now;
    }
    ok(forward);
}

static void test_units_of_one_clock_agree(void)
{
    int64_t before = oribi_clock_us();
    int64_t ms = oribi_clock_ms();
    int64_t after = oribi_clock_us();
    ok(before / 1000 <= ms && ms <= after / 1000);

    int64_t wall_before = oribi_clock_wall_ms();
    int64_t seconds = oribi_clock_wall_s();
    int64_t wall_after = oribi_clock_wall_ms();
    ok((wall_before - 10) / 1000 <= seconds && seconds <= wall_after / 1000); /* a tick late */
}

static void test_wall_time_is_the_system_time(void)
{
    time_t before = time(NULL); /* may read a coarser clock, which lags by a tick */
    int64_t now = oribi_clock_wall_s();
    ok(now >= before && now <= before + 2);
}

int main(void)
{
    test_monotonic_time_never_steps_back();
    test_units_of_one_clock_agree();
    test_wall_time_is_the_system_time();
    return done_testing();
}
