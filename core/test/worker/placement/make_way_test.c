/* Several workers on one processor: whose calls compute makes way for a sibling that gets on with the same. */
#include "worker/two.h"
#include "system.h"

enum { CLIENTS = 3, LOOK_US = 50 * 1000, MANY_CALLS = 1000 };

/* As if LOOK_US had passed in which this worker has made so many calls. */
static void look(struct two *two, int i, uint64_t calls)
{
    struct oribi_worker *w = two->workers[i];
    w->reactor.now_us = oribi_clock_us();
    w->placement.way.looked_us = w->reactor.now_us - LOOK_US;
    w->placement.way.calls = w->request_count - calls;
    w->placement.way.waits = oribi_os_thread_waits();
    w->call_lengths.average_us = 100;
    oribi__make_way(w);
}

/* Worker 0 has taken its place before us: it computes, and has made calls since we looked. */
static void sibling_works(struct two *two)
{
    struct oribi_slot *slot = two->site.board.slots;
    atomic_store(&slot->state, ORIBI_SLOT_BUSY);
    atomic_store(&slot->computes, 1);
    atomic_store(&slot->request_count, atomic_load(&slot->request_count) + MANY_CALLS);
}

/* Worker 1 holds the connections; worker 0 works. */
static void begin(struct two *two, struct client **c)
{
    two_open(two);
    accept_all(two, c, CLIENTS, "");
    struct oribi_reactor *from = &two->workers[0]->reactor;
    while (from->conns) {
        ok(oribi__pass_conn(two->workers[0], from->conns));
        oribi_conn_leave(from, from->conns);
    }
    two->site.worker = two->workers[1];
    ok(pump_until(&two->site, two->workers[1]->reactor.conn_count == CLIENTS));
    sibling_works(two);
}

static void finish(struct two *two, struct client **c)
{
    for (int i = 0; i < CLIENTS; i++) {
        ok(client_send(&two->site, c[i], GET("/hello")));
        ok_answer(&two->site, c[i], 200, "hello\n");
    }
    two_close(two);
}

static void test_a_worker_that_computes_makes_way(void)
{
    if (!only_on_linux("how often a thread has waited is not known"))
        return;
    struct two two;
    struct client *c[CLIENTS];
    begin(&two, c);
    struct oribi_worker *w = two.workers[1];
    look(&two, 1, MANY_CALLS);
    ok(atomic_load(&two.site.board.slots[1].computes));
    ok_eq(w->reactor.conn_count, CLIENTS); /* whether the sibling gets on is known at the second look */
    sibling_works(&two);
    look(&two, 1, MANY_CALLS);
    ok_eq(w->reactor.conn_count, 0);
    ok_eq(atomic_load(&two.site.board.slots[1].passed_count), CLIENTS);
    ok(!w->placement.watched); /* so that it does not take them back */
    two.site.worker = two.workers[0];
    ok(pump_until(&two.site, two.workers[0]->reactor.conn_count == CLIENTS));
    w->placement.way.away_until_us = 1;
    oribi__make_way(w);
    ok(w->placement.watched && !w->placement.way.away_until_us);
    finish(&two, c);
}

/* None of these may keep a connection from a worker that could serve it. */
static void test_nobody_makes_way_where_that_could_cost_a_wait(void)
{
    struct two two;
    struct client *c[CLIENTS];
    begin(&two, c);
    struct oribi_worker *w = two.workers[1];
    struct oribi_slot *before = two.site.board.slots;
    look(&two, 1, MANY_CALLS);
    look(&two, 1, MANY_CALLS); /* the sibling has made no more calls */
    ok_eq(w->reactor.conn_count, CLIENTS);
    sibling_works(&two);
    atomic_store(&before->call_started_us, oribi_clock_us() - ORIBI_EXPECT_US); /* it is in a call for long */
    look(&two, 1, MANY_CALLS);
    ok_eq(w->reactor.conn_count, CLIENTS);
    atomic_store(&before->call_started_us, 0);
    sibling_works(&two);
    look(&two, 1, 0); /* no more calls here than waits */
    ok(!atomic_load(&two.site.board.slots[1].computes));
    ok_eq(w->reactor.conn_count, CLIENTS);
    look(&two, 1, MANY_CALLS);
    sibling_works(&two);
    atomic_store(&before->computes, 0); /* it waits for something */
    look(&two, 1, MANY_CALLS);
    ok_eq(w->reactor.conn_count, CLIENTS);
    sibling_works(&two);
    atomic_store(&before->state, ORIBI_SLOT_IDLE);
    look(&two, 1, MANY_CALLS);
    ok_eq(w->reactor.conn_count, CLIENTS);
    ok_eq(atomic_load(&two.site.board.slots[1].passed_count), 0);
    finish(&two, c);
}

/* The first of them stays, whoever else computes. */
static void test_the_first_worker_keeps_what_it_has(void)
{
    if (!only_on_linux("how often a thread has waited is not known"))
        return;
    struct two two;
    struct client *c[CLIENTS];
    two_open(&two);
    accept_all(&two, c, CLIENTS, "");
    atomic_store(&two.site.board.slots[1].state, ORIBI_SLOT_BUSY);
    atomic_store(&two.site.board.slots[1].computes, 1);
    for (int i = 0; i < 3; i++) {
        atomic_store(&two.site.board.slots[1].request_count, (uint64_t)i * MANY_CALLS);
        look(&two, 0, MANY_CALLS);
    }
    ok(two.workers[0]->placement.way.computes);
    ok_eq(two.workers[0]->reactor.conn_count, CLIENTS);
    set_idle(&two, 1);
    ok(!oribi__should_pass(two.workers[0])); /* and it is no help that the other is idle */
    finish(&two, c);
}

int main(void)
{
    quiet_log();
    alarm(1000);
    run_everywhere(test_a_worker_that_computes_makes_way);
    run_everywhere(test_nobody_makes_way_where_that_could_cost_a_wait);
    run_everywhere(test_the_first_worker_keeps_what_it_has);
    return done_testing();
}
