/* Deadlines against a clock that the test holds in its hand. */
#include "event/timeouts.c"

#include "tap.h"

static struct oribi_timeouts fresh(int64_t head_ms, int64_t idle_ms)
{
    struct oribi_timeouts timeouts;
    oribi_timeouts_init(&timeouts);
    oribi_timeouts_set(&timeouts, ORIBI_TIMEOUT_HEAD, head_ms);
    oribi_timeouts_set(&timeouts, ORIBI_TIMEOUT_IDLE, idle_ms);
    return timeouts;
}

static struct oribi_timeout *expired(struct oribi_timeouts *timeouts, int64_t now_ms)
{
    enum oribi_timeout_class timeout_class;
    return oribi_timeouts_expired(timeouts, now_ms, &timeout_class);
}

static void test_expires_exactly_at_its_length(void)
{
    struct oribi_timeouts t = fresh(100, 0);
    struct oribi_timeout timer = {0};
    enum oribi_timeout_class timeout_class = ORIBI_TIMEOUT_NONE;
    oribi_timeouts_arm(&t, &timer, ORIBI_TIMEOUT_HEAD, 1000);
    ok(!oribi_timeouts_expired(&t, 1099, &timeout_class));
    ok(oribi_timeouts_expired(&t, 1100, &timeout_class) == &timer);
    ok_eq(timeout_class, ORIBI_TIMEOUT_HEAD);
    ok_eq(timer.timeout_class, ORIBI_TIMEOUT_NONE);
    ok(!expired(&t, 9999)); /* once */
}

static void test_first_armed_expires_first(void)
{
    struct oribi_timeouts t = fresh(100, 0);
    struct oribi_timeout timers[3] = {{0}};
    for (int i = 0; i < 3; i++)
        oribi_timeouts_arm(&t, &timers[i], ORIBI_TIMEOUT_HEAD, i);
    ok(expired(&t, 101) == &timers[0]);
    ok(expired(&t, 101) == &timers[1]);
    ok(!expired(&t, 101));
    ok(expired(&t, 102) == &timers[2]);
}

static void test_arming_again_moves_to_the_end(void)
{
    struct oribi_timeouts t = fresh(100, 0);
    struct oribi_timeout timers[3] = {{0}};
    for (int i = 0; i < 3; i++)
        oribi_timeouts_arm(&t, &timers[i], ORIBI_TIMEOUT_HEAD, 0);
    oribi_timeouts_arm(&t, &timers[0], ORIBI_TIMEOUT_HEAD, 50);
    ok(oribi_timeouts_oldest(&t, ORIBI_TIMEOUT_HEAD) == &timers[1]);
    ok(expired(&t, 100) == &timers[1]);
    ok(expired(&t, 100) == &timers[2]);
    ok(!expired(&t, 149));
    ok(expired(&t, 150) == &timers[0]);
}

static void test_changing_class_and_disarming_unlinks(void)
{
    struct oribi_timeouts t = fresh(100, 200);
    struct oribi_timeout timers[3] = {{0}};
    for (int i = 0; i < 3; i++)
        oribi_timeouts_arm(&t, &timers[i], ORIBI_TIMEOUT_HEAD, 0);
    oribi_timeouts_arm(&t, &timers[1], ORIBI_TIMEOUT_IDLE, 0); /* from the middle */
    oribi_timeouts_arm(&t, &timers[2], ORIBI_TIMEOUT_NONE, 0); /* from the end */
    oribi_timeouts_arm(&t, &timers[2], ORIBI_TIMEOUT_NONE, 0); /* again: nothing to do */
    ok(expired(&t, 150) == &timers[0]);
    ok(!expired(&t, 150));
    ok(!oribi_timeouts_oldest(&t, ORIBI_TIMEOUT_HEAD));
    ok(oribi_timeouts_oldest(&t, ORIBI_TIMEOUT_IDLE) == &timers[1]);
    ok(expired(&t, 200) == &timers[1]);
    ok_eq(oribi_timeouts_next_ms(&t, 200), -1);
}

static void test_a_class_of_length_zero_never_expires(void)
{
    struct oribi_timeouts t = fresh(0, 10);
    struct oribi_timeout head = {0};
    struct oribi_timeout idle = {0};
    oribi_timeouts_arm(&t, &head, ORIBI_TIMEOUT_HEAD, 0);
    ok_eq(oribi_timeouts_next_ms(&t, 0), -1);
    ok(!expired(&t, INT64_MAX / 2));
    oribi_timeouts_arm(&t, &idle, ORIBI_TIMEOUT_IDLE, 0);
    ok_eq(oribi_timeouts_next_ms(&t, 0), 10);
    ok(expired(&t, 10) == &idle);
    ok(oribi_timeouts_oldest(&t, ORIBI_TIMEOUT_HEAD) == &head); /* still found by those who close the idle */
}

static void test_next_is_the_nearest_of_all_classes(void)
{
    struct oribi_timeouts t = fresh(100, 30);
    struct oribi_timeout head = {0};
    struct oribi_timeout idle = {0};
    ok_eq(oribi_timeouts_next_ms(&t, 0), -1);
    oribi_timeouts_arm(&t, &head, ORIBI_TIMEOUT_HEAD, 0);
    ok_eq(oribi_timeouts_next_ms(&t, 40), 60);
    oribi_timeouts_arm(&t, &idle, ORIBI_TIMEOUT_IDLE, 50);
    ok_eq(oribi_timeouts_next_ms(&t, 50), 30);
    ok_eq(oribi_timeouts_next_ms(&t, 80), 0);
    ok_eq(oribi_timeouts_next_ms(&t, 500), 0); /* overdue is due */
}

static bool counts_are(const _Atomic uint32_t *counts, uint32_t head, uint32_t idle)
{
    uint32_t sum = 0;
    for (int c = 0; c < ORIBI_TIMEOUT_CLASSES; c++)
        sum += counts[c];
    return counts[ORIBI_TIMEOUT_HEAD] == head && counts[ORIBI_TIMEOUT_IDLE] == idle && sum == head + idle;
}

/* Over each way into a class and out of it; what stood there before is forgotten. */
static void test_armed_timers_are_counted(void)
{
    enum { TIMERS = 10000 };
    static struct oribi_timeout timers[TIMERS];
    _Atomic uint32_t counts[ORIBI_TIMEOUT_CLASSES] = {7, 7, 7, 7, 7, 7, 7};
    struct oribi_timeouts t = fresh(100, 30);
    oribi_timeouts_count_in(&t, counts);
    ok(counts_are(counts, 0, 0));
    for (int i = 0; i < TIMERS; i++)
        oribi_timeouts_arm(&t, &timers[i], ORIBI_TIMEOUT_IDLE, 0);
    ok(counts_are(counts, 0, TIMERS));
    oribi_timeouts_arm(&t, &timers[5], ORIBI_TIMEOUT_HEAD, 0);
    ok(counts_are(counts, 1, TIMERS - 1));
    oribi_timeouts_arm(&t, &timers[5], ORIBI_TIMEOUT_HEAD, 1); /* again */
    ok(counts_are(counts, 1, TIMERS - 1));
    oribi_timeouts_arm(&t, &timers[6], ORIBI_TIMEOUT_NONE, 1);
    oribi_timeouts_arm(&t, &timers[6], ORIBI_TIMEOUT_NONE, 1);
    ok(counts_are(counts, 1, TIMERS - 2));
    while (expired(&t, 30)) {
    }
    ok(counts_are(counts, 1, 0));
    ok(expired(&t, 101) == &timers[5]);
    ok(counts_are(counts, 0, 0));
}

int main(void)
{
    test_expires_exactly_at_its_length();
    test_first_armed_expires_first();
    test_arming_again_moves_to_the_end();
    test_changing_class_and_disarming_unlinks();
    test_a_class_of_length_zero_never_expires();
    test_armed_timers_are_counted();
    test_next_is_the_nearest_of_all_classes();
    return done_testing();
}
