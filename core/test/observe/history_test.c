/* The history: differences of readings, the ring, what clocks do to it, and its text. */
#include "observe/history.c"

#include "tap.h"

#include "oribi/base/mem.h"

static struct oribi__history history;
static struct oribi_slot all; /* the server's counters */
static struct oribi_buf text;

static void begin(void)
{
    memset(&history, 0, sizeof(history));
    memset(&all, 0, sizeof(all));
}

/* Takes a reading of `all`; gauges and the rest come in `reading`. */
static void take(int64_t now_ms, struct oribi__history_reading reading)
{
    uint64_t sums[ORIBI_SLOT_COUNTERS] = {0};
    oribi_slot_fold(sums, &all);
    reading.now_ms = now_ms;
    reading.sums = sums;
    oribi__history_add(&history, &reading);
}

static uint32_t last(enum oribi__history_field field)
{
    return history.samples[(history.count - 1) % ORIBI__HISTORY_SAMPLES].values[field];
}

static const char *json(uint64_t since)
{
    text.len = 0;
    oribi__history_put(&history, since, 1000, &text);
    *oribi_buf_reserve(&text, 1) = '\0';
    return text.p;
}

#define NOTHING ((struct oribi__history_reading){0})

static void test_a_sample_is_the_difference_of_two_readings(void)
{
    begin();
    all.status_class[2] = 1000;
    oribi_histogram_count(&all.call_time, 5000000);
    take(1000, NOTHING);
    ok_eq(history.count, 0);
    all.status_class[0] = 1;
    all.status_class[2] += 7;
    all.status_class[5] = 2;
    all.refusals[0] = 1;
    all.refusals[ORIBI_REFUSALS - 1] = 2;
    for (int i = 1; i <= 100; i++)
        oribi_histogram_count(&all.call_time, i <= 95 ? 10 : 20);
    oribi_histogram_count(&all.queue_wait, 3);
    take(3000, (struct oribi__history_reading){.crashes = 3, .cpu_ms = 500, .values = {[ORIBI__HISTORY_MEMORY] = 42}});
    ok_eq(history.count, 1);
    ok_eq(last(ORIBI__HISTORY_SPAN), 2000);
    ok_eq(last(ORIBI__HISTORY_CUT), 1);
    ok_eq(last(ORIBI__HISTORY_2XX), 7);
    ok_eq(last(ORIBI__HISTORY_5XX), 2);
    ok_eq(last(ORIBI__HISTORY_REFUSED), 3);
    ok_eq(last(ORIBI__HISTORY_CRASHES), 3);
    ok_eq(last(ORIBI__HISTORY_CALLS), 100);
    ok_eq(last(ORIBI__HISTORY_CALL_P50), 10); /* the one of 5 s is of another time */
    ok_eq(last(ORIBI__HISTORY_CALL_P95), 10);
    ok_eq(last(ORIBI__HISTORY_CALL_P99), 20);
    ok_eq(last(ORIBI__HISTORY_QUEUE_P99), 3);
    ok_eq(last(ORIBI__HISTORY_TOTAL_P50), ORIBI__HISTORY_NONE);
    ok_eq(last(ORIBI__HISTORY_CPU), 250);
    ok_eq(last(ORIBI__HISTORY_MEMORY), 42);
    take(5000, (struct oribi__history_reading){.crashes = 3});
    ok_eq(last(ORIBI__HISTORY_2XX), 0);
    ok_eq(last(ORIBI__HISTORY_CRASHES), 0);
    ok_eq(last(ORIBI__HISTORY_CALL_P50), ORIBI__HISTORY_NONE);
}

/* The counters of a worker that ended are among the sums; should they ever be missing, no sample has 2^32 requests. */
static void test_counters_that_go_back_count_nothing(void)
{
    begin();
    all.status_class[2] = 1000;
    take(0, (struct oribi__history_reading){.crashes = 9});
    all.status_class[2] = 10;
    take(2000, NOTHING);
    ok_eq(last(ORIBI__HISTORY_2XX), 0);
    ok_eq(last(ORIBI__HISTORY_CRASHES), 0);
    all.status_class[2] = 15;
    take(4000, NOTHING);
    ok_eq(last(ORIBI__HISTORY_2XX), 5);
}

static struct oribi__history_reading busy(uint32_t calls, uint32_t threads, uint64_t oldest_ms, uint64_t calls_ms)
{
    return (struct oribi__history_reading){.calls_us = calls_ms * 1000,
                                           .values = {[ORIBI__HISTORY_BUSY] = calls,
                                                      [ORIBI__HISTORY_THREADS] = threads,
                                                      [ORIBI__HISTORY_OLDEST_CALL] = (uint32_t)oldest_ms}};
}

static void test_utilisation_counts_calls_under_way(void)
{
    begin();
    take(0, busy(0, 2, 0, 0));
    oribi_histogram_count(&all.call_time, 1000000); /* one second of the four that two workers have */
    take(2000, busy(0, 2, 0, 0));
    ok_eq(last(ORIBI__HISTORY_UTILISATION), 250);
    take(4000, busy(1, 2, 1000, 1000));
    ok_eq(last(ORIBI__HISTORY_UTILISATION), 250);
    take(6000, busy(1, 2, 3000, 3000));
    ok_eq(last(ORIBI__HISTORY_UTILISATION), 500);
    oribi_histogram_count(&all.call_time, 3000000); /* ends right behind the reading: its time was counted */
    take(8000, busy(0, 2, 0, 0));
    ok_eq(last(ORIBI__HISTORY_UTILISATION), 0);
    take(10000, busy(2, 2, 2000, 4000));
    ok_eq(last(ORIBI__HISTORY_UTILISATION), 1000);
    take(12000, busy(0, 2, 0, 0)); /* both were killed */
    ok_eq(last(ORIBI__HISTORY_UTILISATION), 0);
    take(14000, busy(0, 0, 0, 0));
    ok_eq(last(ORIBI__HISTORY_UTILISATION), 0);
}

/* One worker of 5 threads tells of its oldest call alone. */
static void test_utilisation_of_threads(void)
{
    begin();
    take(0, busy(0, 5, 0, 0));
    take(2000, busy(4, 5, 1500, 1500));
    ok_eq(last(ORIBI__HISTORY_UTILISATION), 150);
    take(4000, busy(4, 5, 3500, 3500));
    ok_eq(last(ORIBI__HISTORY_UTILISATION), 800);
    oribi_histogram_count(&all.call_time, 60000000); /* as long as it was unknown */
    take(6000, busy(0, 5, 0, 0));
    ok_eq(last(ORIBI__HISTORY_UTILISATION), 1000);
}

static void test_the_oldest_sample_goes(void)
{
    begin();
    for (int i = 0; i <= ORIBI__HISTORY_SAMPLES; i++) {
        all.status_class[2] += (uint64_t)i;
        take(1000 + i * 2000, NOTHING);
    }
    ok_eq(history.count, ORIBI__HISTORY_SAMPLES);
    ok(strstr(json(0), "\"first\":1,\"last\":300,") != NULL);
    ok(strstr(text.p, "\"samples\":[[2000,2000,0,0,1,0,") != NULL);
    all.status_class[2] += 301;
    take(1000 + 301 * 2000, NOTHING);
    ok_eq(history.count, ORIBI__HISTORY_SAMPLES + 1);
    ok(strstr(json(0), "\"first\":2,\"last\":301,") != NULL);
    ok(strstr(text.p, "\"samples\":[[4000,2000,0,0,2,0,") != NULL);
    ok(strstr(text.p, ",[602000,2000,0,0,301,0,") != NULL);
    ok(text.len < 40000);
}

static void test_only_what_is_new_is_sent(void)
{
    begin();
    ok(strstr(json(0), "\"first\":1,\"last\":0,") != NULL);
    ok(strstr(text.p, "\"samples\":[]") != NULL);
    for (int i = 0; i < 4; i++)
        take(1000 + i * 2000, NOTHING);
    ok(strstr(json(2), "\"first\":3,\"last\":3,") != NULL);
    ok(strstr(text.p, "\"samples\":[[6000,") != NULL && strstr(text.p, "],[") == NULL);
    ok(strstr(json(3), "\"first\":4,\"last\":3,") != NULL);
    ok(strstr(text.p, "\"samples\":[]") != NULL);
    ok(strstr(json(4), "\"first\":1,\"last\":3,") != NULL); /* of a server before this one */
    ok(strstr(json(UINT64_MAX), "\"first\":1,") != NULL);
}

static void test_a_late_reading_says_what_it_covers(void)
{
    begin();
    take(0, NOTHING);
    take(2000, NOTHING);
    all.status_class[2] = 60;
    take(62000, NOTHING);
    ok_eq(history.count, 2);
    ok_eq(last(ORIBI__HISTORY_SPAN), 60000);
    ok_eq(last(ORIBI__HISTORY_2XX), 60);
}

static void test_a_clock_that_goes_back_begins_a_new_difference(void)
{
    begin();
    take(5000, NOTHING);
    take(7000, NOTHING);
    all.status_class[2] = 1;
    take(7000, NOTHING);
    take(3000, NOTHING);
    ok_eq(history.count, 1);
    all.status_class[2] = 3;
    take(5000, NOTHING);
    ok_eq(history.count, 2);
    ok_eq(last(ORIBI__HISTORY_SPAN), 2000);
    ok_eq(last(ORIBI__HISTORY_2XX), 2);
}

static void test_numbers_that_have_no_room_are_cut(void)
{
    begin();
    take(0, NOTHING);
    all.status_class[4] = UINT64_MAX;
    all.bytes_in = 1;
    for (int i = 0; i < 3; i++)
        oribi_histogram_count(&all.total_time, INT64_MAX); /* 4.8 hours are more than 2^32 us */
    take(2000, (struct oribi__history_reading){.cpu_ms = UINT64_MAX / 2000});
    ok_eq(last(ORIBI__HISTORY_4XX), UINT32_MAX - 1);
    ok_eq(last(ORIBI__HISTORY_TOTAL_P99), UINT32_MAX - 1);
    ok_eq(last(ORIBI__HISTORY_CPU), UINT32_MAX - 1);
}

static void test_every_field_has_a_name_and_the_size_is_known(void)
{
    for (int i = 0; i < ORIBI__HISTORY_FIELDS; i++)
        ok(names[i] != NULL);
    ok(sizeof(history) < 52 * 1024);
}

int main(void)
{
    test_a_sample_is_the_difference_of_two_readings();
    test_counters_that_go_back_count_nothing();
    test_utilisation_counts_calls_under_way();
    test_utilisation_of_threads();
    test_the_oldest_sample_goes();
    test_only_what_is_new_is_sent();
    test_a_late_reading_says_what_it_covers();
    test_a_clock_that_goes_back_begins_a_new_difference();
    test_numbers_that_have_no_room_are_cut();
    test_every_field_has_a_name_and_the_size_is_known();
    oribi_buf_deinit(&text);
    return done_testing();
}
