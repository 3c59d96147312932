/* A clock that a test can put forward, or hold: definitions that stand in for those of base/clock.c in the test that
 * includes this. Deadlines then take no time, and a slow machine runs into none by itself. */
#ifndef ORIBI_TEST_BASE_CLOCK_AHEAD_H
#define ORIBI_TEST_BASE_CLOCK_AHEAD_H

#include "oribi/base/clock.h"

#include <stdbool.h>
#include <time.h>

/* Weak: a test and its laboratory have one clock. */
__attribute__((weak)) _Atomic int64_t clock_ahead_us;
__attribute__((weak)) _Atomic int64_t clock_held_us; /* 0: the clock runs */
__attribute__((weak)) _Thread_local uint64_t clock_reads;

/* The time of the system's own clock, for the deadlines of tests themselves. */
static int64_t real_us(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

__attribute__((unused)) static int64_t real_ms(void)
{
    return real_us() / 1000;
}

__attribute__((unused)) static void pass_ms(int64_t ms)
{
    clock_ahead_us += ms * 1000;
}

int64_t oribi_clock_us(void)
{
    clock_reads++;
    return clock_held_us ? clock_held_us : real_us() + clock_ahead_us;
}

/* Nothing takes any time until it runs again, however busy the machine is. */
__attribute__((unused)) static void hold_clock(bool on)
{
    clock_held_us = on ? oribi_clock_us() : 0;
}

int64_t oribi_clock_ms(void)
{
    return oribi_clock_us() / 1000;
}

int64_t oribi_clock_wall_s(void)
{
    return (int64_t)time(NULL);
}

int64_t oribi_clock_wall_ms(void)
{
    return oribi_clock_wall_s() * 1000;
}

#endif
