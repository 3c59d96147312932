/* Counters that outlive the supervisor. */
#include "observe/totals.c"

#include "observe_world.h"
#include "tap.h"

#include "oribi/base/clock.h"
#include "observe/status.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static struct oribi__totals totals;
static struct oribi__totals got;
static struct oribi__inherited_totals old;
static struct oribi__inherited_totals young;

static void begin(void)
{
    memset(&totals, 0, sizeof(totals));
    memset(&got, 0, sizeof(got));
    old = young = (struct oribi__inherited_totals){.to_fd = -1};
    ok_eq(oribi__inherited_totals_make(&old), 0);
}

static void hand_over(void)
{
    char text[16];
    (void)snprintf(text, sizeof(text), "%d", dup(old.to_fd));
    ok_eq(setenv("ORIBI_TOTALS", text, 1), 0);
    oribi__inherited_totals_take(&young);
    oribi__inherited_totals_given(&old);
    ok(!getenv("ORIBI_TOTALS"));
}

static void end(void)
{
    oribi__inherited_totals_close(&old);
    oribi__inherited_totals_close(&young);
}

/* Every counter goes over, and none to another place: each is given a number of its own. */
static void test_every_counter_has_a_name(void)
{
    begin();
    for (uint32_t i = 0; i < OURS; i++)
        counters_of(&totals)[i] = i + 1;
    oribi__inherited_totals_write(&old, &totals);
    hand_over();
    oribi__inherited_totals_add(&young, &got);
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < OURS; i++)
        wrong += counters_of(&got)[i] != i + 1;
    ok_eq(wrong, 0);
    end();
}

static void test_what_the_predecessor_still_counts_is_seen(void)
{
    begin();
    hand_over();
    oribi__inherited_totals_add(&young, &got); /* nothing was written yet */
    ok_eq(got.exits[0], 0);
    for (uint64_t i = 1; i <= 3; i++) {
        totals.exits[0] = i;
        oribi__inherited_totals_write(&old, &totals);
        got.exits[0] = 10;
        oribi__inherited_totals_add(&young, &got);
        ok_eq(got.exits[0], 10 + i);
    }
    oribi__inherited_totals_close(&old);
    got.exits[0] = 0;
    oribi__inherited_totals_add(&young, &got);
    ok_eq(got.exits[0], 3);
    end();
}

/* The predecessor is of another version: it lacks a counter, has a longer array and a shorter one, a histogram of
 * another kind, one that is not known here, and has them in another order. */
static void test_counters_go_by_their_names(void)
{
    begin();
    struct oribi__totals_page *page = old.to;
    memset(page->runs, 0, sizeof(page->runs));
    static const struct {
        const char *name;
        uint32_t at;
        uint32_t count;
    } theirs[] = {{"reloads_done", 1, 1},
                  {"exits", 2, ORIBI__EXIT_REASONS + 1},
                  {"unheard_of", 40, 1},
                  {"bytes_in", 50, 1},
                  {"refusals", 60, 3},
                  {"method_count", 80, 3},
                  {"call_time", 90, sizeof(struct oribi_histogram) / sizeof(uint64_t) - 1}};
    page->run_count = sizeof(theirs) / sizeof(theirs[0]);
    for (uint32_t i = 0; i < page->run_count; i++) {
        (void)snprintf(page->runs[i].name, NAME_CAP, "%s", theirs[i].name);
        page->runs[i].at = theirs[i].at;
        page->runs[i].count = theirs[i].count;
    }
    for (uint32_t i = 0; i < 100; i++)
        page->counters[i] = 1000 + i;
    page->magic = MAGIC;
    hand_over();
    oribi__inherited_totals_add(&young, &got);
    struct oribi_slot slot;
    oribi_slot_unfold(got.ended, &slot);
    ok_eq(got.reloads_done, 1001);
    ok_eq(slot.bytes_in, 1050);
    ok_eq(got.exits[0], 1002);
    ok_eq(got.exits[ORIBI__EXIT_REASONS - 2], 1000 + ORIBI__EXIT_REASONS);
    ok_eq(got.exits[ORIBI__EXIT_REASONS - 1], 2003 + 2 * ORIBI__EXIT_REASONS); /* the last of theirs, and one unknown */
    ok_eq(slot.method_count[1], 1081);
    ok_eq(slot.method_count[2], 0);
    ok_eq(slot.method_count[ORIBI_SLOT_METHOD_OTHER], 1082);
    ok_eq(got.reloads_failed, 0);
    ok_eq(slot.refusals[2], 1062);
    ok_eq(slot.refusals[3], 0);
    ok_eq(*(uint64_t *)&slot.call_time, 0);
    ok_eq(slot.request_count, 0);
    end();
}

static void test_a_directory_that_lies_reads_nothing_beyond_the_page(void)
{
    begin();
    oribi__inherited_totals_write(&old, &totals);
    old.to->run_count = UINT32_MAX;
    for (uint32_t i = 0; i < RUNS_MAX; i++) {
        memset(old.to->runs[i].name, 'x', NAME_CAP); /* no NUL */
        old.to->runs[i].at = UINT32_MAX - i;
    }
    memcpy(old.to->runs[0].name, "bytes_in", sizeof("bytes_in"));
    old.to->runs[0].count = 1;
    hand_over();
    oribi__inherited_totals_add(&young, &got);
    ok_eq(got.ended[0], 0);
    end();
}

static void take_text(const char *text)
{
    ok_eq(setenv("ORIBI_TOTALS", text, 1), 0);
    oribi__inherited_totals_take(&young);
    oribi__inherited_totals_add(&young, &got);
    ok_eq(got.ended[0], 0);
    ok(!getenv("ORIBI_TOTALS"));
}

static void test_what_is_no_such_mapping_is_left_alone(void)
{
    char text[16];
    begin();
    take_text("");
    take_text("x");
    take_text("-1");
    take_text("999999");
    take_text("99999999999999999999");
    (void)snprintf(text, sizeof(text), "%d", open("/dev/null", O_RDWR | O_CLOEXEC));
    take_text(text);
    int fd;
    ok_eq(oribi_process_shared_memory(4096, &fd), 0); /* too short */
    (void)snprintf(text, sizeof(text), "%d", fd);
    take_text(text);
    ok(!young.from);
    oribi_os_close(fd);
    end();
}

static void test_another_successor_gets_another_mapping(void)
{
    begin();
    totals.exits[0] = 1;
    oribi__inherited_totals_write(&old, &totals);
    oribi__inherited_totals_given(&old);
    ok_eq(oribi__inherited_totals_make(&old), 0);
    totals.exits[0] = 2;
    oribi__inherited_totals_write(&old, &totals);
    hand_over();
    oribi__inherited_totals_add(&young, &got);
    ok_eq(got.exits[0], 2);
    end();
}

/* Until the successor has failed. */
static void test_the_totals_are_written_again_and_again(void)
{
    (void)world_begin(1, 2);
    struct oribi__observe *observe = &world->observe;
    uint32_t at = FRONTEND_AT(handshakes);
    oribi__export_totals(observe); /* there is no successor */
    ok_eq(oribi_timer_at(&observe->state->export_totals), INT64_MAX);
    ok_eq(oribi__inherited_totals_make(&observe->inherited), 0);
    oribi__export_totals(observe);
    ok_eq(atomic_load(&observe->inherited.to->counters[at]), 0);
    counters_of(&observe->totals)[at] = 7;
    world_expire(world, &observe->state->export_totals);
    ok_eq(atomic_load(&observe->inherited.to->counters[at]), 7);
    ok(oribi_timer_at(&observe->state->export_totals) <= oribi_clock_ms() + ORIBI__TOTALS_MS);
    oribi__inherited_totals_drop(&observe->inherited);
    world_expire(world, &observe->state->export_totals);
    ok_eq(oribi_timer_at(&observe->state->export_totals), INT64_MAX);
    world_end(world);
}

int main(void)
{
    oribi_log_init(open("/dev/null", O_WRONLY | O_CLOEXEC), ORIBI_LOG_WARN);
    test_every_counter_has_a_name();
    test_what_the_predecessor_still_counts_is_seen();
    test_counters_go_by_their_names();
    test_a_directory_that_lies_reads_nothing_beyond_the_page();
    test_what_is_no_such_mapping_is_left_alone();
    test_another_successor_gets_another_mapping();
    test_the_totals_are_written_again_and_again();
    return done_testing();
}
