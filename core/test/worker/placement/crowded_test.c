/* A hand-off queue that is full: the room is for those who have waited longest, of all workers. */
#include "worker/placement/placement.c"

#include "worker/two.h"

#include <sys/socket.h>

enum { CLIENTS = 12, SMALL_BYTES = 2304 }; /* as net.core.wmem_max: a handful of messages */

/* Worker 0 has requests that are some milliseconds old; worker 1 is busy, and has one that has waited since then. */
static void crowd(struct two *two, struct client **c, int64_t elsewhere_us)
{
    int bytes = SMALL_BYTES;
    two_open(two);
    ok_eq(setsockopt(two->handoff.give_fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)), 0);
    accept_all(two, c, CLIENTS, GET("/hello"));
    struct oribi_worker *w = two->workers[0];
    struct oribi_slot *there = &two->site.board.slots[1];
    atomic_store(&there->state, ORIBI_SLOT_BUSY);
    while (w->reactor.queue_len < CLIENTS)
        oribi__turn_connections(w);
    int64_t first_us = w->reactor.run_first->exchange->complete_us;
    for (struct oribi_conn *at = w->reactor.run_first; at; at = at->run_next)
        at->exchange->complete_us = first_us;
    w->reactor.now_us = first_us + 8000;
    atomic_store(&w->placement.expects_long, true);
    atomic_store(&there->queue_oldest_us, elsewhere_us ? first_us + elsewhere_us : 0);
}

static void end(struct two *two, struct client **c)
{
    atomic_store(&two->site.board.slots[1].queue_oldest_us, 0);
    for (int i = 0; i < CLIENTS; i++)
        ok_answer(&two->site, c[i], 200, "hello\n");
    two_close(two);
}

/* Takes what is in the queue back, so that there is room; worker 0 has it all. */
static void take_back(struct two *two)
{
    struct oribi_worker *w = two->workers[0];
    int64_t now_us = w->reactor.now_us;
    while (w->reactor.queue_len < CLIENTS)
        (void)take_one(w);
    w->reactor.now_us = now_us;
    oribi__publish_queue(w);
}

static void test_a_full_queue_is_tried_once(void)
{
    struct two two;
    struct client *c[CLIENTS];
    crowd(&two, c, 0);
    struct oribi_worker *w = two.workers[0];
    uint32_t passed = oribi__pass_on(w, 0);
    ok(passed > 0 && passed < CLIENTS);
    ok(w->placement.wants_room);
    ok_eq(w->reactor.queue_len, CLIENTS - passed);
    ok_eq(oribi__pass_on(w, 0), 0);
    end(&two, c);
}

static void test_room_is_for_the_oldest(void)
{
    struct two two;
    struct client *c[CLIENTS];
    crowd(&two, c, -8000); /* it has waited twice as long */
    struct oribi_worker *w = two.workers[0];
    ok(oribi__pass_on(w, 0) > 0); /* there was room for all, as far as anybody knows */
    take_back(&two);
    ok_eq(oribi__pass_on(w, 0), 0);
    ok(!w->placement.wants_room);
    atomic_store(&two.site.board.slots[1].queue_oldest_us, w->reactor.run_first->exchange->complete_us - 1000);
    ok(oribi__pass_on(w, 0) > 0); /* nearly as long as the longest */
    end(&two, c);
}

static void test_room_is_for_all_when_it_was_not_needed_for_a_while(void)
{
    struct two two;
    struct client *c[CLIENTS];
    crowd(&two, c, -1000 * 1000);
    struct oribi_worker *w = two.workers[0];
    ok(oribi__pass_on(w, 0) > 0);
    take_back(&two);
    ok_eq(oribi__pass_on(w, 0), 0);
    w->reactor.now_us += CROWDED_US;
    ok(oribi__pass_on(w, 0) > 0);
    end(&two, c);
}

static void test_room_is_for_all_while_a_sibling_is_idle(void)
{
    struct two two;
    struct client *c[CLIENTS];
    crowd(&two, c, -8000);
    struct oribi_worker *w = two.workers[0];
    ok(oribi__pass_on(w, 0) > 0);
    take_back(&two);
    ok_eq(oribi__pass_on(w, 0), 0);
    set_idle(&two, 1);
    ok(oribi__pass_on(w, 0) > 0);
    end(&two, c);
}

int main(void)
{
    quiet_log();
    alarm(120); /* a process that waits for ever ends with a failure */
    run_everywhere(test_a_full_queue_is_tried_once);
    run_everywhere(test_room_is_for_the_oldest);
    run_everywhere(test_room_is_for_all_when_it_was_not_needed_for_a_while);
    run_everywhere(test_room_is_for_all_while_a_sibling_is_idle);
    return done_testing();
}
