/* Rules of the hand-off queue: a worker that ends with the call that it is in (oribi_worker_retire) begins nothing more
 * and leaves its connections to another; a full queue has room for those who have waited longest, of all workers. */
#include "worker/placement/placement.c"

#include "worker/two.h"

#include <sys/socket.h>

/* --- a worker that retires --- */

static uint32_t retired_calls;
static char buf[ORIBI_HANDOFF_BUF_BYTES];

static void never(struct oribi_req *req)
{
    retired_calls++;
    route(req);
}

/* Turns of worker 0, which must call nothing. */
static void turn_retired(struct two *two)
{
    two->site.worker = two->workers[0];
    two->site.app = never;
    settle(&two->site);
    two->site.app = route;
}

/* All that a worker can hold: the call, what is pipelined behind it, queued requests, kept and new connections, half
 * a head. The sibling is there already, or comes when the worker has gone. */
static void check_retire(uint32_t sibling_state)
{
    enum { CALLED, QUEUED, CHUNKED, LARGE, KEPT, HALF, COUNT };
    struct two two;
    struct client *c[COUNT];
    char *large = big_text(100000);
    char *text = malloc(100200);
    two_open(&two);
    accept_all(&two, c, COUNT, "");
    ok(client_send(&two.site, c[KEPT], GET("/hello")));
    ok_answer(&two.site, c[KEPT], 200, "hello\n");
    ok(client_send(&two.site, c[CALLED], GET("/called") GET("/pipelined")));
    while (two.workers[0]->reactor.queue_len < 1)
        oribi__turn_connections(two.workers[0]);
    struct oribi_req *req = oribi_worker_take(two.workers[0]);
    ok(client_send(&two.site, c[QUEUED], GET("/queued")));
    ok(client_send(&two.site, c[CHUNKED],
                   "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"));
    int n = snprintf(text, 200, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n");
    memcpy(text + n, large, 100001);
    ok(client_send(&two.site, c[HALF], "GET /half HTTP/1.1\r\n"));
    two.site.worker = two.workers[1]; /* the large one takes turns to be sent */
    size_t sent = 0;
    while (two.workers[0]->reactor.queue_len < 3) {
        ssize_t put = send(c[LARGE]->fd, text + sent, (size_t)n + 100000 - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        sent += put > 0 ? (size_t)put : 0;
        oribi__turn_connections(two.workers[0]);
    }
    atomic_store(&two.site.board.slots[1].state, sibling_state);
    retired_calls = 0;
    oribi_worker_retire(two.workers[0]);
    ok(oribi_worker_stopping(two.workers[0]));
    ok(!oribi_worker_done(two.workers[0]));
    reply_text(req, 200, "called");
    turn_retired(&two);
    ok(oribi_worker_done(two.workers[0]));
    ok_eq(retired_calls, 0);
    ok_eq(atomic_load(&two.site.board.slots[0].passed_count), COUNT);
    two.site.worker = two.workers[1];
    struct answer answer = ok_answer(&two.site, c[CALLED], 200, "called");
    ok(!answer.closes);
    ok_answer(&two.site, c[CALLED], 200, "/pipelined");
    ok_answer(&two.site, c[QUEUED], 200, "/queued");
    ok_answer(&two.site, c[CHUNKED], 200, "abc");
    ok_answer(&two.site, c[LARGE], 200, large);
    ok(client_send(&two.site, c[KEPT], GET("/kept")));
    ok_answer(&two.site, c[KEPT], 200, "/kept");
    ok(client_send(&two.site, c[HALF], "Host: a\r\n\r\n"));
    ok_answer(&two.site, c[HALF], 200, "/half");
    two_close(&two);
    free(large);
    free(text);
}

static void test_a_worker_that_retires_leaves_everything_to_others(void)
{
    check_retire(ORIBI_SLOT_IDLE);
    check_retire(ORIBI_SLOT_BUSY);
    check_retire(ORIBI_SLOT_EMPTY);
}

/* A request or an answer that is under way keeps the worker, but the request gets no call there. */
static void test_a_worker_that_retires_finishes_what_is_under_way(void)
{
    struct two two;
    struct client *c[2];
    two_open(&two);
    accept_all(&two, c, 2, "");
    c[0]->paused = true;
    ok(client_send(&two.site, c[0], GET("/big/8000000")));
    ok(pump_until(&two.site, two.site.calls == 1));
    ok(client_send(&two.site, c[1], "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc"));
    settle(&two.site);
    retired_calls = 0;
    oribi_worker_retire(two.workers[0]);
    turn_retired(&two);
    ok(!oribi_worker_done(two.workers[0]));
    ok_eq(two.workers[0]->reactor.conn_count, 2);
    ok(client_send(&two.site, c[1], "def"));
    turn_retired(&two);
    ok_eq(two.workers[0]->reactor.conn_count, 1);
    c[0]->paused = false;
    two.site.app = never;
    struct answer answer;
    ok(next_answer(&two.site, c[0], &answer));
    ok_eq(answer.body_len, 8000000);
    ok(pump_until(&two.site, oribi_worker_done(two.workers[0])));
    ok_eq(retired_calls, 0);
    two.site.worker = two.workers[1];
    two.site.app = route;
    ok_answer(&two.site, c[1], 200, "abcdef");
    ok(client_send(&two.site, c[0], GET("/hello")));
    ok_answer(&two.site, c[0], 200, "hello\n");
    two_close(&two);
}

/* The kernel has told worker 0 alone of a newcomer (EPOLLEXCLUSIVE), just before that left the listeners to the worker
 * which replaces it. */
static void test_a_worker_that_retires_takes_whom_it_was_woken_for(void)
{
    struct two two;
    struct client *c;
    two_open(&two);
    accept_all(&two, &c, 1, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc");
    settle(&two.site);
    atomic_store(&two.site.board.slots[1].state, ORIBI_SLOT_EMPTY);
    oribi_worker_retire(two.workers[0]);
    turn_retired(&two);
    struct client *newcomer = client_open(&two.site);
    ok(client_send(&two.site, newcomer, GET("/hello")));
    turn_retired(&two);
    ok_eq(two.workers[0]->reactor.conn_count, 1); /* nobody else is there: the newcomer waits for that worker */
    set_idle(&two, 1);
    turn_retired(&two);
    ok_eq(atomic_load(&two.site.board.slots[0].passed_count), 1);
    ok_eq(oribi_os_accept(two.site.listeners.items[0].fd, &(int){-1}, NULL, NULL), ORIBI_AGAIN);
    two.site.worker = two.workers[1];
    ok_answer(&two.site, newcomer, 200, "hello\n");
    two.site.worker = two.workers[0];
    ok(client_send(&two.site, c, "def"));
    turn_retired(&two);
    ok(oribi_worker_done(two.workers[0]));
    two.site.worker = two.workers[1];
    ok_answer(&two.site, c, 200, "abcdef");
    two_close(&two);
}

static void fill(const struct oribi_handoff *queue)
{
    struct oribi_handoff_item item = {.body_fd = -1}; /* descriptor 0, many times */
    struct iovec vec = {buf, 500};
    while (oribi_handoff_give(queue, &item, &vec, 1) == 0)
        continue;
}

/* A full queue is emptied by the next worker; until then everything stays, and the worker sleeps. */
static void test_a_worker_that_retires_waits_for_room(void)
{
    struct two two;
    struct client *c[2];
    struct oribi_handoff_item got;
    two_open(&two);
    accept_all(&two, c, 2, "");
    fill(&two.handoff);
    retired_calls = 0;
    oribi_worker_retire(two.workers[0]);
    ok(client_send(&two.site, c[0], GET("/first")));
    turn_retired(&two);
    ok_eq(two.workers[0]->reactor.conn_count, 2);
    ok(two.workers[0]->placement.queue_full);
    oribi_worker_wait_for(two.workers[0], -1); /* returns */
    ok(!oribi_worker_done(two.workers[0]));
    while (oribi_handoff_take(&two.handoff, buf, sizeof(buf), &got) == 0)
        close(got.fd);
    turn_retired(&two);
    ok(oribi_worker_done(two.workers[0]));
    ok_eq(retired_calls, 0);
    two.site.worker = two.workers[1];
    ok_answer(&two.site, c[0], 200, "/first");
    ok(client_send(&two.site, c[1], GET("/second")));
    ok_answer(&two.site, c[1], 200, "/second");
    two_close(&two);
}

enum { LONG_HEAD = ORIBI_HANDOFF_BYTES_MAX };

/* Worker 0 has a complete request whose head fits no message, with a body of so many bytes. */
static void queue_long(struct two *two, struct client *c[1], size_t body_bytes)
{
    char *text = malloc(LONG_HEAD + body_bytes + 200);
    two_open(two);
    for (int i = 0; i < 2; i++)
        two->workers[i]->reactor.config.limits.head_bytes_max = 2 * LONG_HEAD;
    accept_all(two, c, 1, "");
    int n = snprintf(text, 200, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\nX: ", body_bytes);
    memset(text + n, 'x', LONG_HEAD + 4 + body_bytes);
    memcpy(text + n + LONG_HEAD, "\r\n\r\n", 4);
    text[(size_t)n + LONG_HEAD + 4 + body_bytes] = '\0';
    two->site.worker = two->workers[0];
    size_t sent = 0;
    while (two->workers[0]->reactor.queue_len < 1) {
        ssize_t put = send(c[0]->fd, text + sent, strlen(text + sent), MSG_NOSIGNAL | MSG_DONTWAIT);
        sent += put > 0 ? (size_t)put : 0;
        oribi__turn_connections(two->workers[0]);
    }
    free(text);
    retired_calls = 0;
}

static void test_a_long_head_travels_from_a_worker_that_retires(void)
{
    for (size_t body_bytes = 0; body_bytes <= 200 * 1000; body_bytes += 100 * 1000) {
        struct two two;
        struct client *c[1];
        queue_long(&two, c, body_bytes);
        oribi_worker_retire(two.workers[0]);
        turn_retired(&two);
        ok(oribi_worker_done(two.workers[0]));
        ok_eq(retired_calls, 0);
        two.site.worker = two.workers[1];
        struct answer answer = ok_answer(&two.site, c[0], 200, NULL);
        ok_eq(answer.body_len, body_bytes);
        two_close(&two);
    }
}

/* The body is in memory, and no file may be made for it: refused, not lost. */
static void test_what_cannot_travel_is_refused_by_a_worker_that_retires(void)
{
    struct two two;
    struct client *c[1];
    queue_long(&two, c, 100 * 1000);
    two.workers[0]->reactor.budget.file_max = 1;
    oribi_worker_retire(two.workers[0]);
    two.site.app = never;
    struct answer answer = ok_answer(&two.site, c[0], 503, NULL);
    ok(answer.closes && has_line(&answer, "Retry-After: 1"));
    ok_eq(retired_calls, 0);
    ok_eq(two.site.board.slots[0].refusals[ORIBI_REFUSAL_WORKER_END], 1);
    two_close(&two);
}

/* Nobody replaces it then. */
static void test_a_stop_of_the_server_makes_a_retiring_worker_serve_the_rest(void)
{
    struct two two;
    struct client *c[2];
    two_open(&two);
    accept_all(&two, c, 2, GET("/hello"));
    struct oribi_req *req = oribi_worker_take(two.workers[0]);
    oribi_worker_retire(two.workers[0]);
    oribi_worker_stop(two.workers[0]);
    reply_text(req, 200, "x");
    struct answer answer = ok_answer(&two.site, c[0], 200, "x");
    ok(answer.closes);
    ok_answer(&two.site, c[1], 200, "hello\n");
    two_close(&two);
}

/* The request that is complete behind the last one of requests_max is another worker's. */
static void test_requests_max_is_no_request_more(void)
{
    struct two two;
    struct client *c[3];
    two_open(&two);
    two.workers[0]->request_limit = 2;
    accept_all(&two, c, 3, GET("/hello"));
    struct oribi_req *req;
    uint32_t begun = 0;
    while ((req = oribi_worker_take(two.workers[0]))) {
        begun++;
        reply_text(req, 200, "hello\n");
    }
    ok_eq(begun, 2);
    turn_retired(&two);
    two.site.worker = two.workers[1];
    uint32_t closed = 0;
    for (int i = 0; i < 3; i++) {
        bool closes = ok_answer(&two.site, c[i], 200, "hello\n").closes;
        closed += closes;
        if (closes)
            client_close(&two.site, c[i]);
    }
    ok_eq(closed, 1); /* the last one says so */
    two.site.worker = two.workers[0];
    two.site.app = never;
    ok(pump_until(&two.site, oribi_worker_done(two.workers[0])));
    ok_eq(oribi_worker_request_count(two.workers[0]), 2);
    two_close(&two);
}

static void test_without_a_pool_to_retire_is_to_stop(void)
{
    struct site site;
    site_init(&site);
    site_open(&site, route);
    struct client *c = client_open(&site);
    ok(client_send(&site, c, GET("/hello")));
    ok_answer(&site, c, 200, "hello\n");
    oribi_worker_retire(site.worker);
    ok(client_send(&site, c, GET("/hello")));
    struct answer answer = ok_answer(&site, c, 200, "hello\n");
    ok(answer.closes);
    ok(pump_until(&site, oribi_worker_done(site.worker)));
    site_close(&site);
}

/* --- a full queue --- */

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
    alarm(1000); /* a process that waits for ever ends with a failure */
    run_everywhere(test_a_worker_that_retires_leaves_everything_to_others);
    run_everywhere(test_a_worker_that_retires_finishes_what_is_under_way);
    run_everywhere(test_a_worker_that_retires_takes_whom_it_was_woken_for);
    run_everywhere(test_a_worker_that_retires_waits_for_room);
    run_everywhere(test_a_long_head_travels_from_a_worker_that_retires);
    run_everywhere(test_what_cannot_travel_is_refused_by_a_worker_that_retires);
    run_everywhere(test_a_stop_of_the_server_makes_a_retiring_worker_serve_the_rest);
    run_everywhere(test_requests_max_is_no_request_more);
    run_everywhere(test_without_a_pool_to_retire_is_to_stop);
    run_everywhere(test_a_full_queue_is_tried_once);
    run_everywhere(test_room_is_for_the_oldest);
    run_everywhere(test_room_is_for_all_when_it_was_not_needed_for_a_while);
    run_everywhere(test_room_is_for_all_while_a_sibling_is_idle);
    return done_testing();
}
