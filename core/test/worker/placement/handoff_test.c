/* The queue of connections between workers: two workers in one process pass requests to and fro. ORIBI_SOAK=1 makes a
 * million hand-offs of the hundred thousand. Its messages: handoff_messages_test.c; processes that die:
 * handoff_death_test.c. */
#include "worker/placement/handoff.c"

#include "worker/two.h"

/* One check of very many. */
static void ok_quiet(bool good, long *wrong)
{
    *wrong += !good;
}

static void test_surplus_goes_to_an_idle_sibling(void)
{
    struct two two;
    struct client *c[3];
    two_open(&two);
    accept_all(&two, c, 3, GET("/hello"));
    set_idle(&two, 1);
    struct oribi_req *mine = oribi_worker_take(two.workers[0]);
    ok(mine);
    ok_eq(two.workers[0]->reactor.queue_len, 1);
    ok_eq(two.workers[0]->reactor.conn_count, 2);
    ok_eq(atomic_load(&two.site.board.slots[0].passed_count), 1);
    struct oribi_req *theirs = oribi_worker_take(two.workers[1]);
    ok(theirs);
    if (theirs) {
        ok(theirs->queue_us >= 0);
        if (!over_unix)
            is_slice(theirs->remote_addr, "127.0.0.1");
        ok_eq(oribi__exchange_of(theirs)->base.conn->request_count, 1);
        reply_text(theirs, 200, "second");
    }
    reply_text(mine, 200, "first");
    ok_answer(&two.site, c[0], 200, "first");
    ok_answer(&two.site, c[1], 200, "second");
    ok_answer(&two.site, c[2], 200, "hello\n");
    two.site.worker = two.workers[1]; /* the moved connection stays alive where it is */
    ok(client_send(&two.site, c[1], GET("/hello")));
    ok_answer(&two.site, c[1], 200, "hello\n");
    two_close(&two);
}

/* A request from the queue has waited elsewhere, and may be older than those that are here. */
static void test_the_oldest_is_called_first_wherever_it_waited(void)
{
    struct two two;
    struct client *c[2];
    two_open(&two);
    accept_all(&two, c, 2, GET("/hello"));
    struct oribi_reactor *from = &two.workers[0]->reactor;
    struct oribi_reactor *to = &two.workers[1]->reactor;
    while (from->queue_len < 2)
        oribi__turn_connections(two.workers[0]);
    struct oribi_conn *older = from->run_first;
    struct oribi_conn *newer = older->run_next;
    int64_t older_us = newer->exchange->complete_us - 1000;
    older->exchange->complete_us = older_us;
    struct oribi_conn *const order[2] = {newer, older};
    for (int i = 0; i < 2; i++) {
        ok(oribi__pass_conn(two.workers[0], order[i]));
        oribi_conn_leave(from, order[i]);
    }
    struct oribi_slot *first = two.site.board.slots;
    ok_eq(atomic_load(&first->handed_off), 2); /* for those who show what waits */
    atomic_store(&first->state, ORIBI_SLOT_BUSY);
    for (int i = 0; i < 100 && to->queue_len < 2; i++)
        oribi__turn(two.workers[1]);
    ok_eq(to->queue_len, 2);
    ok_eq(to->run_first->exchange->complete_us, older_us);
    ok(to->run_last == to->run_first->run_next);
    ok(!to->run_last->run_next && to->run_last->exchange->complete_us > older_us);
    ok_eq(atomic_load(&first->handed_off), 0);
    two.site.worker = two.workers[1];
    ok_answer(&two.site, c[0], 200, "hello\n");
    ok_answer(&two.site, c[1], 200, "hello\n");
    two_close(&two);
}

/* Worker 0 with one request of its own, and one in the hand-off queue that came so much later, on the other one's
 * connection. */
static void one_here_one_there(struct two *two, struct client **c, int64_t later_us)
{
    two_open(two);
    struct oribi_reactor *r = &two->workers[0]->reactor;
    accept_all(two, c, 2, GET("/hello"));
    while (r->queue_len < 2)
        oribi__turn_connections(two->workers[0]);
    struct oribi_conn *there = r->run_last;
    there->exchange->complete_us = r->run_first->exchange->complete_us + later_us;
    ok(oribi__pass_conn(two->workers[0], there));
    oribi_conn_leave(r, there);
}

/* Taken and passed on again, the message would go from the head of the queue to its end, once for each worker that has
 * an older request. */
static void test_a_newer_message_stays_where_it_is(void)
{
    struct two two;
    struct client *c[2];
    one_here_one_there(&two, c, 1000);
    atomic_store(&two.site.board.slots[1].state, ORIBI_SLOT_BUSY);
    for (int i = 0; i < 3; i++)
        oribi__turn(two.workers[0]);
    ok_eq(two.workers[0]->reactor.queue_len, 1);
    ok_eq(atomic_load(&two.site.board.slots[0].handed_off), 1);
    ok_answer(&two.site, c[0], 200, "hello\n");
    ok_answer(&two.site, c[1], 200, "hello\n"); /* its turn has come */
    two_close(&two);
}

static void test_an_older_message_is_taken(void)
{
    struct two two;
    struct client *c[2];
    one_here_one_there(&two, c, -1000);
    atomic_store(&two.site.board.slots[1].state, ORIBI_SLOT_BUSY);
    for (int i = 0; i < 3; i++)
        oribi__turn(two.workers[0]);
    ok_eq(two.workers[0]->reactor.queue_len, 2);
    ok(two.workers[0]->reactor.run_first->exchange->complete_us <
       two.workers[0]->reactor.run_last->exchange->complete_us);
    for (int i = 0; i < 2; i++)
        ok_answer(&two.site, c[i], 200, "hello\n");
    two_close(&two);
}

/* Where requests wait for the worker that has them: one goes for each call, and a limit on waiting still holds. */
static void test_a_longer_queue_evens_out(void)
{
    struct two two;
    struct client *c[6];
    two_open(&two);
    accept_all(&two, c, 6, GET("/hello"));
    struct oribi_reactor *r = &two.workers[0]->reactor;
    atomic_store(&two.site.board.slots[1].state, ORIBI_SLOT_BUSY);
    while (r->queue_len < 6)
        oribi__turn_connections(two.workers[0]);
    ok_eq(oribi__pass_on(two.workers[0], 0), 0); /* the helper: nobody is idle, and calls are not long */
    r->now_us += ORIBI_LONG_US;
    ok_eq(oribi__pass_on(two.workers[0], 1), 1);
    ok_eq(oribi__pass_on(two.workers[0], 1), 0); /* not again within a millisecond */
    two.site.options.queue_time_max_ms = 1000;
    oribi__take_late(two.workers[0]);
    ok_eq(r->queue_len, 5);
    r->now_us = r->run_first->exchange->complete_us + 2000 * 1000;
    oribi__take_late(two.workers[0]);
    ok_eq(r->queue_len, 6);
    two.site.options.queue_time_max_ms = 0;
    for (int i = 0; i < 6; i++)
        ok_answer(&two.site, c[i], 200, "hello\n");
    two_close(&two);
}

/* Calls of some milliseconds: no hand-off for each request, but a newcomer's first finds the worker that is free first,
 * in the place of a line behind others. */
static void test_newcomers_behind_others_wait_for_any_worker(void)
{
    struct two two;
    struct client *c[3];
    two_open(&two);
    accept_all(&two, c, 1, GET("/hello"));
    atomic_store(&two.site.board.slots[1].state, ORIBI_SLOT_BUSY);
    struct oribi_reactor *r = &two.workers[0]->reactor;
    while (r->queue_len < 1)
        oribi__turn_connections(two.workers[0]);
    for (int i = 1; i < 3; i++) {
        c[i] = client_open(&two.site);
        ok(client_send(&two.site, c[i], GET("/hello")));
    }
    oribi__handoff_watch(two.workers[0], false);
    for (int i = 0; i < 100 && atomic_load(&two.site.board.slots[0].passed_count) < 2; i++)
        oribi__turn(two.workers[0]);
    ok_eq(atomic_load(&two.site.board.slots[0].passed_count), 2);
    ok_eq(r->queue_len, 1);
    oribi__handoff_watch(two.workers[0], true);
    for (int i = 0; i < 3; i++)
        ok_answer(&two.site, c[i], 200, "hello\n");
    two_close(&two);
}

static void test_nothing_is_passed_to_busy_siblings_or_for_fast_calls(void)
{
    struct two two;
    struct client *c[3];
    two_open(&two);
    accept_all(&two, c, 3, GET("/hello"));
    atomic_store(&two.site.board.slots[1].state, ORIBI_SLOT_BUSY);
    struct oribi_req *req = oribi_worker_take(two.workers[0]);
    ok_eq(two.workers[0]->reactor.queue_len, 2);
    reply_text(req, 200, "x");
    set_idle(&two, 1);
    atomic_store(&two.site.board.slots[1].connections_open, 2);
    two.workers[0]->call_lengths.average_us = ORIBI_PASS_US;
    req = oribi_worker_take(two.workers[0]);
    ok_eq(two.workers[0]->reactor.queue_len, 1);
    reply_text(req, 200, "x");
    ok_eq(atomic_load(&two.site.board.slots[0].passed_count), 0);
    for (int i = 0; i < 3; i++)
        ok_answer(&two.site, c[i], 200, NULL);
    two_close(&two);
}

/* Short calls: not for the call's sake, but who holds more connections than the others lets one go at a time, and
 * not with every request. */
/* In a queue of its own a request would wait for this worker, though another is free before. */
static void test_surplus_of_long_calls_waits_for_any_worker(void)
{
    struct two two;
    struct client *c[4];
    two_open(&two);
    accept_all(&two, c, 4, GET("/hello"));
    atomic_store(&two.site.board.slots[1].state, ORIBI_SLOT_BUSY);
    atomic_store(&two.workers[0]->placement.expects_long, true);
    struct oribi_req *req = oribi_worker_take(two.workers[0]);
    ok_eq(two.workers[0]->reactor.queue_len, 0);
    ok_eq(atomic_load(&two.site.board.slots[0].passed_count), 3);
    two.site.options.queue_max = 10; /* a limit counts what a worker has itself */
    for (int i = 0; i < 3; i++)
        oribi__turn(two.workers[0]);
    ok_eq(two.workers[0]->reactor.queue_len, 3);
    ok_eq(oribi__pass_on(two.workers[0], 0), 0);
    two.site.options.queue_max = 0;
    reply_text(req, 200, "x");
    for (int i = 0; i < 4; i++)
        ok_answer(&two.site, c[i], 200, NULL);
    two_close(&two);
}

static void test_connections_of_short_calls_even_out(void)
{
    struct two two;
    struct client *c[4];
    two_open(&two);
    accept_all(&two, c, 4, GET("/hello"));
    settle(&two.site);
    for (int i = 0; i < 4; i++)
        ok_answer(&two.site, c[i], 200, "hello\n");
    for (int i = 0; i < 4; i++)
        ok(client_send(&two.site, c[i], GET("/hello")));
    set_idle(&two, 1);
    two.workers[0]->call_lengths.average_us = 10;
    atomic_store(&two.workers[0]->placement.expects_long, false); /* as the next call will find */
    two.workers[0]->placement.balanced_us = 0;
    struct oribi_req *req = oribi_worker_take(two.workers[0]);
    ok_eq(atomic_load(&two.site.board.slots[0].passed_count), 1);
    reply_text(req, 200, "x");
    req = oribi_worker_take(two.workers[0]);
    reply_text(req, 200, "x");
    ok_eq(atomic_load(&two.site.board.slots[0].passed_count), 1);
    ok_eq(two.workers[0]->reactor.conn_count, 3);
    req = oribi_worker_take(two.workers[1]);
    ok(req);
    if (req)
        reply_text(req, 200, "x");
    for (int i = 0; i < 4; i++)
        ok_answer(&two.site, c[i], 200, NULL);
    two_close(&two);
}

static bool interim_wanted;

/* Every shape of request. The pipelined one behind it must be answered second. */
static void check_moved(const char *first, size_t first_len, const char *want)
{
    struct two two;
    struct client *c[2];
    struct answer answer;
    two_open(&two);
    accept_all(&two, c, 2, "");
    ok(client_send(&two.site, c[0], GET("/hello")));
    ok(pump_until(&two.site, two.site.calls == 1));
    ok_answer(&two.site, c[0], 200, "hello\n");
    ok(client_send(&two.site, c[0], GET("/hello"))); /* the one that is kept */
    settle(&two.site);
    ok(client_send_bytes(&two.site, c[1], first, first_len));
    ok(client_send(&two.site, c[1], GET("/next")));
    /* Without an application's turn until the request is complete: then pass everything on. */
    int64_t end = oribi_clock_ms() + PUMP_MS_MAX;
    while (two.workers[0]->reactor.queue_len < 1 && oribi_clock_ms() < end)
        oribi__turn_connections(two.workers[0]);
    set_idle(&two, 1);
    ok_eq(oribi__pass_on(two.workers[0], 0), 1);
    two.site.worker = two.workers[1];
    if (interim_wanted) /* none for a body that came whole with its head */
        ok(next_answer(&two.site, c[1], &answer) && answer.status == 100);
    ok(next_answer(&two.site, c[1], &answer));
    is_bytes(answer.body, answer.body_len, want, strlen(want));
    ok_answer(&two.site, c[1], 200, "/next");
    two_close(&two);
}

static void test_bodies_move_with_their_requests(void)
{
    char text[4096];
    int n = snprintf(text, sizeof(text), "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
    check_moved(text, (size_t)n, "hello");
    n = snprintf(text, sizeof(text),
                 "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nhe\r\n"
                 "3\r\nllo\r\n0\r\n\r\n");
    check_moved(text, (size_t)n, "hello");
    n = snprintf(text, sizeof(text), "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
    check_moved(text, (size_t)n, "");
}

/* `expects`: with Expect: 100-continue, which is answered once. */
static void check_large_body(size_t body_len, bool chunked, bool expects)
{
    char *body = big_text(body_len);
    char *text = malloc(body_len + 300);
    char framing[64];
    (void)snprintf(framing, sizeof(framing), chunked ? "Transfer-Encoding: chunked" : "Content-Length: %zu", body_len);
    int n = snprintf(text, 200, "POST /echo HTTP/1.1\r\nHost: a\r\n%s%s\r\n\r\n",
                     expects ? "Expect: 100-continue\r\n" : "", framing);
    if (chunked)
        n += snprintf(text + n, 20, "%zx\r\n", body_len);
    memcpy(text + n, body, body_len);
    n += (int)body_len;
    n += snprintf(text + n, 20, "%s", chunked ? "\r\n0\r\nT: v\r\n\r\n" : "");
    interim_wanted = expects;
    check_moved(text, (size_t)n, body);
    interim_wanted = false;
    free(text);
    free(body);
}

static void test_large_bodies_move_in_memory_or_as_a_file(void)
{
    for (int chunked = 0; chunked < 2; chunked++) {
        check_large_body(40000, chunked, true);   /* in memory, in the message */
        check_large_body(300000, chunked, false); /* too large for a message: in a file in memory */
    }
    check_large_body((16 << 20) + 1, false, true); /* in a file on the disk, whose descriptor goes along */
}

static char seen_trailer[32];

static void note_trailers(struct oribi_req *req)
{
    const struct oribi_field *field = req->trailer_count == 1 ? req->trailers : NULL;
    if (field)
        (void)snprintf(seen_trailer, sizeof(seen_trailer), "%.*s=%.*s", (int)field->name_len, field->name,
                       (int)field->value_len, field->value);
    route(req);
}

static void test_trailers_move_with_their_requests(void)
{
    struct two two;
    struct client *c[1];
    two_open(&two);
    accept_all(&two, c, 1, "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    while (two.workers[0]->reactor.conns->state != ORIBI_CONN_BODY)
        oribi__turn_connections(two.workers[0]);
    ok(client_send(&two.site, c[0], "4\r\nbody\r\n0\r\nChecksum: abc\r\n\r\n" GET("/next")));
    while (two.workers[0]->reactor.queue_len < 1)
        oribi__turn_connections(two.workers[0]);
    set_idle(&two, 1);
    memset(seen_trailer, 0, sizeof(seen_trailer));
    ok_eq(oribi__pass_on(two.workers[0], 0), 1);
    two.site.worker = two.workers[1];
    two.site.app = note_trailers;
    ok_answer(&two.site, c[0], 200, "body");
    is_bytes(seen_trailer, strlen(seen_trailer), "checksum=abc", 12);
    ok_answer(&two.site, c[0], 200, "/next");
    two_close(&two);
}

static void test_idle_connections_move_when_a_worker_stops(void)
{
    struct two two;
    struct client *c[3];
    two_open(&two);
    accept_all(&two, c, 3, "");
    set_idle(&two, 1);
    oribi_worker_stop(two.workers[0]);
    settle(&two.site);
    ok(oribi_worker_done(two.workers[0]));
    two.site.worker = two.workers[1];
    for (int i = 0; i < 3; i++) {
        ok(client_send(&two.site, c[i], GET("/hello")));
        ok_answer(&two.site, c[i], 200, "hello\n");
    }
    ok_eq(two.workers[1]->reactor.conn_count, 3);
    two_close(&two);
}

static void check_emptied(uint32_t sibling_state, uint32_t stop)
{
    struct two two;
    struct client *c[2];
    two_open(&two);
    accept_all(&two, c, 2, GET("/hello"));
    set_idle(&two, 1);
    struct oribi_req *req = oribi_worker_take(two.workers[0]); /* passes the other on */
    atomic_store(&two.site.board.slots[1].state, sibling_state);
    atomic_store(&two.site.board.slots[0].stop_soon, stop);
    oribi_worker_stop(two.workers[0]);
    reply_text(req, 200, "x");
    ok_answer(&two.site, c[0], 200, "x");
    ok(!oribi_worker_done(two.workers[0]));
    struct answer answer = ok_answer(&two.site, c[1], 200, "hello\n");
    ok(answer.closes);
    two_close(&two);
}

static void test_the_last_worker_empties_the_queue(void)
{
    check_emptied(ORIBI_SLOT_DRAINING, ORIBI_STOP_TOLD);
}

/* The last one may be in a call for as long as it may take. */
static void test_when_the_server_ends_each_worker_empties_the_queue(void)
{
    check_emptied(ORIBI_SLOT_BUSY, ORIBI_STOP_LAST);
}

/* Each client has a request under way that says its number; before it is answered it changes workers several times. */
static void test_many_hand_offs_keep_bytes_and_order(void)
{
    enum { CLIENTS = 20, HOPS = 5 };
    const long wanted = getenv("ORIBI_SOAK") ? 1000000 : 100000;
    struct two two;
    struct client *c[CLIENTS];
    char text[128];
    char body[64];
    long hops = 0;
    long wrong = 0;
    two_open(&two);
    int before = open_fds();
    accept_all(&two, c, CLIENTS, "");
    for (long round = 0; hops < wanted && wrong == 0; round++) {
        for (int i = 0; i < CLIENTS; i++) {
            int n = snprintf(body, sizeof(body), "%d/%ld", i, round);
            n = snprintf(text, sizeof(text),
                         "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%sGET /%d/%ld", n, body, i,
                         round);
            ok_quiet(client_send_bytes(&two.site, c[i], text, (size_t)n), &wrong);
        }
        int at = (int)(round * HOPS % 2);
        int64_t end = oribi_clock_ms() + PUMP_MS_MAX;
        while (two.workers[at]->reactor.queue_len < CLIENTS && oribi_clock_ms() < end)
            oribi__turn_connections(two.workers[at]);
        for (int hop = 0; hop < HOPS; hop++, at = !at) {
            set_idle(&two, !at);
            two.workers[!at]->woken = true; /* as after a sleep: else it would leave the messages to an idle sibling */
            while (two.workers[at]->reactor.queue_len > 0) {
                if (oribi__pass_on(two.workers[at], 0) == 0)
                    oribi__handoff_turn(two.workers[!at]); /* full */
                hops++;
            }
            while (two.workers[!at]->reactor.queue_len < CLIENTS && oribi_clock_ms() < end)
                oribi__handoff_turn(two.workers[!at]);
        }
        two.site.worker = two.workers[at];
        for (int i = 0; i < CLIENTS; i++) {
            struct answer answer;
            (void)snprintf(body, sizeof(body), "%d/%ld", i, round);
            bool good = next_answer(&two.site, c[i], &answer) && answer.body_len == strlen(body) &&
                        memcmp(answer.body, body, strlen(body)) == 0;
            ok_quiet(good, &wrong);
            ok_quiet(client_send(&two.site, c[i], " HTTP/1.1\r\nHost: a\r\n\r\n"), &wrong);
            (void)snprintf(body, sizeof(body), "/%d/%ld", i, round);
            good = next_answer(&two.site, c[i], &answer) && answer.body_len == strlen(body) &&
                   memcmp(answer.body, body, strlen(body)) == 0;
            ok_quiet(good, &wrong);
            if (c[i]->pos == c[i]->got_len)
                c[i]->pos = c[i]->got_len = 0;
        }
    }
    ok_eq(wrong, 0);
    ok_named(hops >= wanted, "%ld hand-offs", hops);
    ok_eq(open_fds(), before + 2 * CLIENTS);
    two_close(&two);
}

int main(void)
{
    quiet_log();
    alarm(2000); /* a process that waits for ever ends with a failure */
    run_everywhere(test_surplus_goes_to_an_idle_sibling);
    run_everywhere(test_the_oldest_is_called_first_wherever_it_waited);
    run_everywhere(test_a_newer_message_stays_where_it_is);
    run_everywhere(test_an_older_message_is_taken);
    run_everywhere(test_a_longer_queue_evens_out);
    run_everywhere(test_newcomers_behind_others_wait_for_any_worker);
    run_everywhere(test_nothing_is_passed_to_busy_siblings_or_for_fast_calls);
    run_everywhere(test_surplus_of_long_calls_waits_for_any_worker);
    run_everywhere(test_connections_of_short_calls_even_out);
    run_everywhere(test_bodies_move_with_their_requests);
    run_everywhere(test_large_bodies_move_in_memory_or_as_a_file);
    run_everywhere(test_idle_connections_move_when_a_worker_stops);
    run_everywhere(test_trailers_move_with_their_requests);
    run_everywhere(test_the_last_worker_empties_the_queue);
    run_everywhere(test_when_the_server_ends_each_worker_empties_the_queue);
    test_many_hand_offs_keep_bytes_and_order();
    return done_testing();
}
