/* The heap of timers, against a plain list and a clock that the test holds in its hand. */
#include "oribi/base/mem.h"

#include "tap.h"

#include <stdlib.h>

static bool no_memory;

static void *try_resize(void *p, size_t count, size_t size)
{
    return no_memory ? NULL : oribi_mem_try_resize(p, count, size);
}

#define oribi_mem_try_resize try_resize
#include "event/timers.c"
#undef oribi_mem_try_resize

static void test_expires_at_its_deadline_and_once(void)
{
    struct oribi_timers timers;
    struct oribi_timer timer = {0};
    oribi_timers_init(&timers);
    ok(oribi_timers_next_at(&timers) == INT64_MAX);
    oribi_timers_arm(&timers, &timer, 100);
    ok_eq(oribi_timers_next_at(&timers), 100);
    ok(!oribi_timers_expired(&timers, 99));
    ok(oribi_timers_expired(&timers, 100) == &timer);
    ok(oribi_timer_at(&timer) == INT64_MAX);
    ok(!oribi_timers_expired(&timers, 1000));
    oribi_timers_deinit(&timers);
}

static void test_moves_and_stops(void)
{
    struct oribi_timers timers;
    struct oribi_timer t[3] = {{0}};
    oribi_timers_init(&timers);
    for (int i = 0; i < 3; i++)
        oribi_timers_arm(&timers, &t[i], 10 * (i + 1));
    oribi_timers_arm(&timers, &t[0], 40);
    oribi_timers_stop(&timers, &t[1]);
    oribi_timers_stop(&timers, &t[1]);
    ok(oribi_timers_expired(&timers, 50) == &t[2]);
    ok(oribi_timers_expired(&timers, 50) == &t[0]);
    ok(!oribi_timers_expired(&timers, 50));
    oribi_timers_arm(&timers, &t[1], INT64_MAX);
    ok_eq(timers.len, 0);
    oribi_timers_deinit(&timers);
}

static void test_reserve_says_when_memory_is_out(void)
{
    struct oribi_timers timers;
    oribi_timers_init(&timers);
    no_memory = true;
    ok_eq(oribi_timers_try_reserve(&timers, 1), ORIBI_ENOMEM);
    ok_eq(timers.cap, 0);
    no_memory = false;
    ok_eq(oribi_timers_try_reserve(&timers, 65), 0);
    ok_eq(timers.cap, 128);
    oribi_timers_deinit(&timers);
}

enum { TIMERS = 200, STEPS = 20000 };

static struct oribi_timer *earliest(struct oribi_timer *all, int64_t now_ms, int64_t *at_ms)
{
    struct oribi_timer *first = NULL;
    for (int i = 0; i < TIMERS; i++)
        if (all[i].place && (!first || all[i].at_ms < first->at_ms))
            first = &all[i];
    *at_ms = first ? first->at_ms : INT64_MAX;
    return first && first->at_ms <= now_ms ? first : NULL;
}

static void test_random_histories_agree_with_a_list(void)
{
    static struct oribi_timer all[TIMERS];
    struct oribi_timers timers;
    oribi_timers_init(&timers);
    srand(1);
    int wrong = 0;
    int64_t now_ms = 0;
    for (int step = 0; step < STEPS; step++) {
        struct oribi_timer *timer = &all[rand() % TIMERS];
        int what = rand() % 8;
        if (what < 5)
            oribi_timers_arm(&timers, timer, now_ms + rand() % 100);
        else if (what < 6)
            oribi_timers_stop(&timers, timer);
        else
            now_ms += rand() % 5;
        int64_t at_ms;
        struct oribi_timer *want = earliest(all, now_ms, &at_ms);
        wrong += oribi_timers_next_at(&timers) != at_ms;
        struct oribi_timer *got = oribi_timers_expired(&timers, now_ms);
        wrong += !want != !got || (got && got->at_ms != at_ms);
    }
    ok_eq(wrong, 0);
    oribi_timers_deinit(&timers);
}

int main(void)
{
    test_expires_at_its_deadline_and_once();
    test_moves_and_stops();
    test_reserve_says_when_memory_is_out();
    test_random_histories_agree_with_a_list();
    return done_testing();
}
