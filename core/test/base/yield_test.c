/* When a yield is due. */
#include "base/yield.c"

#include "tap.h"

/* Waits until the next one is due. */
static int waits(struct oribi_yield *yield, int64_t now_us)
{
    for (int i = 0; i < 1000; i++)
        if (oribi_yield_due(yield, now_us))
            return i;
    return -1;
}

static void test_it_is_due_as_long_as_it_brings_several_events(void)
{
    struct oribi_yield yield = {0};
    for (int i = 0; i < 3; i++) {
        ok(oribi_yield_due(&yield, 1));
        oribi_yield_note(&yield, ORIBI_YIELD_SLOW_US, 1, EVENTS_MIN);
    }
    ok(oribi_yield_due(&yield, 1));
}

static void test_it_becomes_rare_while_it_brings_none(void)
{
    struct oribi_yield yield = {0};
    int expected[] = {1, 3, 7, 15, 31, 63, 127, 255, 255};
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        oribi_yield_note(&yield, 0, 1, EVENTS_MIN - 1);
        ok(waits(&yield, 1) == expected[i]);
    }
    oribi_yield_note(&yield, 0, 1, EVENTS_MIN);
    ok(waits(&yield, 1) == 0);
    oribi_yield_note(&yield, 0, 1, 0);
    ok(waits(&yield, 1) == 1);
}

static void test_a_neighbour_that_computes_gets_no_more_of_them(void)
{
    struct oribi_yield yield = {0};
    oribi_yield_note(&yield, ORIBI_YIELD_SLOW_US + 1, 1000, 64);
    ok(!oribi_yield_due(&yield, 1000));
    ok(!oribi_yield_due(&yield, 1000 + ORIBI_YIELD_PAUSE_US - 1));
    ok(oribi_yield_due(&yield, 1000 + ORIBI_YIELD_PAUSE_US));
}

static void test_it_takes_time(void)
{
    ok(oribi_yield() >= 0);
}

int main(void)
{
    test_it_is_due_as_long_as_it_brings_several_events();
    test_it_becomes_rare_while_it_brings_none();
    test_a_neighbour_that_computes_gets_no_more_of_them();
    test_it_takes_time();
    return done_testing();
}
