/* Counters that outlive workers. */
#include "observe/totals.c"

#include "tap.h"

static struct oribi_slot slot;
static struct oribi_slot all;
static struct oribi__totals totals;

static void clear(void)
{
    memset(&slot, 0, sizeof(slot));
    memset(&totals, 0, sizeof(totals));
}

static void test_counters_of_ended_workers_add_up(void)
{
    clear();
    slot.request_count = 7;
    slot.method_count[ORIBI_SLOT_METHODS - 1] = 3;
    slot.unlogged_count = 2;
    slot.connections_open = 5; /* no counter: those are closed now */
    slot.long_call_us = 9;
    oribi_histogram_count(&slot.queue_wait, 10);
    oribi_histogram_count(&slot.total_time, INT64_MAX);
    oribi__totals_exit(&totals, &slot, "asked to stop");
    oribi__totals_exit(&totals, &slot, "asked to stop");
    oribi_slot_unfold(totals.ended, &all);
    ok_eq(all.request_count, 14);
    ok_eq(all.method_count[ORIBI_SLOT_METHODS - 1], 6);
    ok_eq(all.unlogged_count, 4);
    ok_eq(all.connections_open, 0);
    ok_eq(all.long_call_us, 0);
    ok_eq(all.queue_wait.sum_us, 20);
    ok_eq(all.queue_wait.counts[10], 2);
    ok_eq(all.total_time.counts[ORIBI_HISTOGRAM_BUCKETS - 1], 2);
    ok_eq(all.call_time.sum_us, 0);
}

static void test_the_reason_of_an_end_is_counted(void)
{
    static const struct {
        const char *line;
        const char *name;
    } cases[] = {
        {"asked to stop", "asked"},
        {"exit code 0", "recycled"},
        {"call deadline", "call_deadline"},
        {"boot_timeout", "boot_timeout"},
        {"signal 9", "signal"},
        {"shutdown_timeout", "shutdown_timeout"},
        {"exit code 70", "exit_code"},
        {"its mold ended", "other"},
        {"", "other"},
        {oribi__cause_age_max, "recycled"},
        {oribi__cause_memory_max, "recycled"},
        {oribi__cause_refork, "recycled"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        clear();
        oribi__totals_exit(&totals, &slot, cases[i].line);
        ok_eq(oribi__totals_exits(&totals), 1);
        for (uint32_t k = 0; k < ORIBI__EXIT_REASONS; k++)
            if (totals.exits[k])
                ok_named(strcmp(oribi__exit_reason_name(k), cases[i].name) == 0, "\"%s\" counts as %s", cases[i].line,
                         oribi__exit_reason_name(k));
    }
}

static void test_reloads_are_counted_and_timed(void)
{
    clear();
    oribi__totals_reloading(&totals, 1000);
    oribi__totals_reloaded(&totals, false, 1700);
    ok_eq(totals.reloads_done, 1);
    ok_eq(totals.reload_ms, 700);
    oribi__totals_reloaded(&totals, true, 9000); /* it failed before it had begun */
    ok_eq(totals.reloads_failed, 1);
    ok_eq(totals.reload_ms, 0);
}

int main(void)
{
    test_counters_of_ended_workers_add_up();
    test_the_reason_of_an_end_is_counted();
    test_reloads_are_counted_and_timed();
    return done_testing();
}
