/* Idle siblings, found without reading the slots of those that are not idle. */
#include "worker/two.h"

enum { MANY = 512, LONG_US = 10000, FOUND = 3 };

static bool skipped(const struct two *two, int i)
{
    return atomic_load(&two->site.board.skips[i]);
}

/* A slot that is skipped is not read: so a look at 512 workers in long calls reads none of their slots. */
static void test_only_slots_that_are_not_skipped_are_read(void)
{
    struct two two;
    struct oribi_scoreboard board;
    two_open(&two);
    struct oribi_worker *w = two.workers[0];
    ok_eq(oribi_scoreboard_create(&board, MANY), 0);
    w->setup.board = &board;
    for (uint32_t i = 0; i < MANY; i++) {
        atomic_store(&board.slots[i].state, ORIBI_SLOT_IDLE);
        oribi_scoreboard_skip(&board, &board.slots[i], true);
    }
    ok_eq(oribi__idle_siblings(w, MANY), 0);
    oribi_scoreboard_skip(&board, &board.slots[MANY - 1], false);
    ok_eq(oribi__idle_siblings(w, MANY), 1);
    oribi_scoreboard_skip(&board, &board.slots[0], false);
    oribi_scoreboard_skip(&board, &board.slots[7], false);
    ok_eq(oribi__idle_siblings(w, MANY), FOUND);
    ok_eq(oribi__idle_siblings(w, FOUND - 1), FOUND - 1); /* no further than is wanted */
    atomic_store(&board.slots[7].state, ORIBI_SLOT_BUSY); /* not skipped says nothing: the slot does */
    ok_eq(oribi__idle_siblings(w, MANY), FOUND - 1);
    for (uint32_t i = 0; i < MANY; i++)
        oribi_scoreboard_skip(&board, &board.slots[i], false);
    ok_eq(oribi__idle_siblings(w, UINT32_MAX), MANY - 1); /* each once, wherever the look begins */
    w->setup.board = &two.site.board;
    two_close(&two);
    oribi_scoreboard_destroy(&board);
}

/* Waits without an event. */
static void rest(struct oribi_worker *w)
{
    ok(!oribi_worker_take(w));
    oribi_worker_wait_for(w, 0);
}

static void test_a_worker_is_skipped_in_long_calls(void)
{
    struct two two;
    struct client *c[1];
    two_open(&two);
    struct oribi_worker *w = two.workers[0];
    accept_all(&two, c, 1, "");
    rest(w);
    ok(!skipped(&two, 0));
    ok(client_send(&two.site, c[0], GET("/hello")));
    struct oribi_req *req;
    w->call_lengths.average_us = LONG_US;
    while (!(req = oribi_worker_take(w)))
        continue;
    ok(skipped(&two, 0));
    ok_eq(oribi__idle_siblings(two.workers[1], 1), 0);
    reply_text(req, 200, "x");
    rest(w);
    ok(!skipped(&two, 0));
    ok_eq(oribi__idle_siblings(two.workers[1], 1), 1);
    ok_answer(&two.site, c[0], 200, "x");
    two_close(&two);
}

static void test_who_queues_more_than_its_siblings(void)
{
    struct two two;
    two_open(&two);
    struct oribi_reactor *r = &two.workers[0]->reactor;
    struct oribi_slot *sibling = &two.site.board.slots[1];
    set_idle(&two, 1);
    r->queue_len = 2;
    ok(!oribi__queue_surplus(two.workers[0], r->queue_len)); /* few are never too many */
    r->queue_len = 3;
    ok(oribi__queue_surplus(two.workers[0], r->queue_len));
    atomic_store(&sibling->queue_len, 1);
    ok(!oribi__queue_surplus(two.workers[0], r->queue_len));
    ok(!oribi__holds_newcomers_back(two.workers[0])); /* as long as nothing limits what waits, others may take it */
    r->queue_len = 4;
    ok(!oribi__holds_newcomers_back(two.workers[0]));
    two.site.options.queue_max = 100;
    ok(oribi__holds_newcomers_back(two.workers[0]));
    atomic_store(&sibling->state, ORIBI_SLOT_DRAINING);
    ok(!oribi__queue_surplus(two.workers[0], r->queue_len)); /* nobody else takes any */
    two.site.options.queue_max = 0;
    r->queue_len = 0;
    atomic_store(&sibling->queue_len, 0);
    two_close(&two);
}

/* A store for each would take the line from all others that have their byte there. */
static void test_short_calls_write_nothing_there(void)
{
    enum { MARK = 2, CALLS = 20 };
    struct two two;
    struct client *c[1];
    two_open(&two);
    struct oribi_worker *w = two.workers[0];
    accept_all(&two, c, 1, "");
    rest(w);
    atomic_store(&two.site.board.skips[0], MARK); /* whoever writes makes another number of it */
    w->call_lengths.average_us = 0;
    for (int i = 0; i < CALLS; i++) {
        ok(client_send(&two.site, c[0], GET("/hello")));
        ok_answer(&two.site, c[0], 200, "hello\n");
        w->call_lengths.average_us = 0; /* also where the machine is slow */
        rest(w);
    }
    ok_eq(atomic_load(&two.site.board.skips[0]), MARK);
    two_close(&two);
}

/* Killed in a call or while it slept: the next worker in the slot begins anew, and until then the slot says that nobody
 * is there. */
static void test_what_a_killed_worker_said_does_no_harm(void)
{
    struct two two;
    two_open(&two);
    struct oribi_slot *slot = &two.site.board.slots[1];
    oribi_scoreboard_skip(&two.site.board, slot, false);
    atomic_store(&slot->state, ORIBI_SLOT_EMPTY);
    ok_eq(oribi__idle_siblings(two.workers[0], 1), 0);
    oribi_scoreboard_skip(&two.site.board, slot, true);
    rest(two.workers[1]); /* as a worker that was just started */
    ok(!skipped(&two, 1));
    ok_eq(oribi__idle_siblings(two.workers[0], 1), 1);
    two_close(&two);
}

int main(void)
{
    quiet_log();
    alarm(1000);
    run_everywhere(test_only_slots_that_are_not_skipped_are_read);
    run_everywhere(test_a_worker_is_skipped_in_long_calls);
    test_who_queues_more_than_its_siblings();
    run_everywhere(test_short_calls_write_nothing_there);
    run_everywhere(test_what_a_killed_worker_said_does_no_harm);
    return done_testing();
}
