/* connections_max: which connection goes for a new one, which never does, and who waits. */
#include "worker/placement/accept.c"

#include "worker/two.h"

#define HALF_BODY "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc"
#define HALF_HEAD "GET /hello HTTP/1.1\r\nHost: "

enum { MAX = 5 };

static void full_init(struct site *site)
{
    site_init(site);
    site->options.connections_max = MAX;
    site_open(site, route);
}

/* A connection that the worker knows, after it has sent this; the clock goes on, so that each has rested for longer
 * than the next. */
static struct client *rest_after(struct site *site, const char *text)
{
    uint64_t before = atomic_load(&site->slot.connection_count);
    struct client *c = client_open(site);
    ok(client_send(site, c, text));
    ok(pump_until(site, atomic_load(&site->slot.connection_count) > before));
    settle(site);
    pass_ms(1000);
    return c;
}

static struct client *kept(struct site *site)
{
    struct client *c = rest_after(site, GET("/hello"));
    ok_answer(site, c, 200, "hello\n");
    return c;
}

static struct client *newcomer(struct site *site)
{
    struct client *c = client_open(site);
    ok(client_send(site, c, GET("/new")));
    return c;
}

static uint64_t evicted(const struct site *site)
{
    return atomic_load(&site->slot.evicted_count);
}

static bool is_open(struct site *site, struct client *c)
{
    settle(site);
    (void)client_read(c);
    return !c->eof && !c->error;
}

static void test_at_the_limit_nobody_goes(void)
{
    struct site site;
    struct client *c[MAX];
    full_init(&site);
    for (int i = 0; i < MAX; i++)
        c[i] = kept(&site);
    for (int i = 0; i < 10; i++)
        settle(&site);
    for (int i = 0; i < MAX; i++)
        ok(is_open(&site, c[i]));
    ok_eq(site.worker->reactor.conn_count, MAX);
    ok_eq(evicted(&site), 0);
    site_close(&site);
}

static void test_the_one_idle_longest_goes_for_one_more(void)
{
    struct site site;
    struct client *c[MAX];
    full_init(&site);
    for (int i = 0; i < MAX; i++)
        c[i] = i == 1 ? rest_after(&site, "\r\n") : kept(&site); /* one has never asked for anything */
    ok(client_send(&site, c[0], GET("/hello")));
    ok_answer(&site, c[0], 200, "hello\n"); /* so the second has rested longest, then the third */
    ok_answer(&site, newcomer(&site), 200, "/new");
    ok(closed_after(&site, c[1]));
    ok_eq(evicted(&site), 1);
    ok_answer(&site, newcomer(&site), 200, "/new");
    ok(closed_after(&site, c[2]));
    ok_eq(evicted(&site), 2);
    ok_eq(site.worker->reactor.conn_count, MAX);
    for (int i = 0; i < MAX; i++) {
        if (i == 1 || i == 2)
            continue;
        ok(client_send(&site, c[i], GET("/hello")));
        ok_answer(&site, c[i], 200, "hello\n");
    }
    site_close(&site);
}

static void test_half_read_heads_go_after_the_idle_the_oldest_first(void)
{
    struct site site;
    struct client *head[2];
    full_init(&site);
    struct client *begun = rest_after(&site, HALF_BODY);
    head[0] = rest_after(&site, HALF_HEAD);
    head[1] = rest_after(&site, HALF_HEAD);
    struct client *idle = kept(&site);
    (void)rest_after(&site, HALF_BODY);
    for (int i = 0; i < 3; i++) { /* these are under way, so that none of them is idle */
        struct client *c = rest_after(&site, HALF_BODY);
        ok(site.worker->reactor.conn_count == MAX && evicted(&site) == (uint64_t)i + 1);
        ok(is_open(&site, c));
        if (i == 0)
            ok(closed_after(&site, idle) && is_open(&site, head[0]));
        if (i > 0) {
            struct answer answer = ok_answer(&site, head[i - 1], 503, NULL);
            ok(answer.closes);
            ok(closed_after(&site, head[i - 1]));
        }
        if (i == 1)
            ok(is_open(&site, head[1]));
    }
    ok(client_send(&site, begun, "def"));
    ok_answer(&site, begun, 200, "abcdef");
    site_close(&site);
}

static void test_a_request_under_way_or_an_unsent_answer_never_goes(void)
{
    struct site site;
    struct client *c[MAX];
    full_init(&site);
    for (int i = 0; i < MAX - 1; i++)
        c[i] = rest_after(&site, HALF_BODY);
    c[MAX - 1] = client_open(&site);
    c[MAX - 1]->paused = true;
    ok(client_send(&site, c[MAX - 1], GET("/big/8000000")));
    ok(pump_until(&site, site.calls == 1));
    struct client *late = newcomer(&site);
    pass_ms(5000);
    for (int i = 0; i < 5; i++)
        settle(&site);
    ok_eq(site.worker->reactor.conn_count, MAX);
    ok_eq(evicted(&site), 0);
    struct oribi_event events[8];
    /* A newcomer that waits does not keep the worker awake, once the kernel has moved the answer as far as the client's
     * buffer. */
    ok(pump_until(&site, oribi_loop_poll(site.worker->reactor.loop, 0, events, 8) == 0));
    ok_eq(oribi__accept_wait_ms(site.worker), -1);
    for (int i = 0; i < MAX - 1; i++) {
        ok(client_send(&site, c[i], "def"));
        ok_answer(&site, c[i], 200, "abcdef");
    }
    ok(oribi__accept_wait_ms(site.worker) >= 0);
    ok_answer(&site, late, 200, "/new"); /* as soon as one of them has rested */
    ok_eq(evicted(&site), 1);
    c[MAX - 1]->paused = false;
    struct answer answer;
    ok(next_answer(&site, c[MAX - 1], &answer));
    ok_eq(answer.body_len, 8000000);
    site_close(&site);
}

static void test_who_leaves_makes_room(void)
{
    struct site site;
    struct client *c[MAX];
    full_init(&site);
    for (int i = 0; i < MAX; i++)
        c[i] = rest_after(&site, HALF_BODY);
    struct client *late = newcomer(&site);
    settle(&site);
    ok_eq(atomic_load(&site.slot.connection_count), MAX);
    client_close(&site, c[0]);
    ok_answer(&site, late, 200, "/new");
    ok_eq(evicted(&site), 0);
    site_close(&site);
}

/* Its next request has come, and the worker does not know yet: then another goes. */
static void test_a_request_that_waits_unread_is_not_reset(void)
{
    struct site site;
    struct client *c[MAX];
    full_init(&site);
    for (int i = 0; i < MAX; i++)
        c[i] = kept(&site);
    ok(client_send(&site, c[0], GET("/mine")));
    struct client *late = newcomer(&site);
    struct pollfd waits = {.fd = site.listeners.items[0].fd, .events = POLLIN};
    ok_eq(poll(&waits, 1, 20000), 1);
    site.worker->acceptor.watches[0].ready = true; /* as if the turn's events had come before both */
    site.worker->woken = true;
    oribi__accept_turn(site.worker);
    ok_eq(evicted(&site), 1);
    ok_answer(&site, c[0], 200, "/mine");
    ok_answer(&site, late, 200, "/new");
    ok(closed_after(&site, c[1]));
    site_close(&site);
}

static void test_two_hundred_silent_clients_keep_nobody_out(void)
{
    enum { SILENT = 200 };
    struct site site;
    site_init(&site);
    site.options.connections_max = SILENT;
    site_open(&site, route);
    for (int i = 0; i < SILENT; i++)
        (void)client_open(&site);
    ok(pump_until(&site, site.worker->reactor.conn_count == SILENT));
    pass_ms(ORIBI_ROOM_IDLE_MS_MIN);
    for (int i = 0; i < 10; i++)
        ok_answer(&site, newcomer(&site), 200, "/new");
    ok_eq(site.worker->reactor.conn_count, SILENT);
    ok_eq(evicted(&site), 10);
    site_close(&site);
}

/* Where a limit on waiting makes it take newcomers in: so that they are answered in time. */
static void test_the_helper_makes_room_too(void)
{
    struct site site;
    struct client *c[MAX];
    site_init(&site);
    site.options.connections_max = MAX;
    site.options.queue_max = 1;
    site_open(&site, route);
    for (int i = 0; i < MAX; i++)
        c[i] = kept(&site);
    (void)newcomer(&site);
    oribi__listener_watches_unwatch(site.worker); /* as the helper does on its first step in a call */
    int64_t end = real_ms() + PUMP_MS_MAX;
    while (site.worker->reactor.queue_len < 1 && real_ms() < end)
        oribi__turn_connections(site.worker);
    ok_eq(site.worker->reactor.queue_len, 1);
    ok_eq(site.worker->reactor.conn_count, MAX);
    ok_eq(evicted(&site), 1);
    ok(closed_after(&site, c[0]));
    site_close(&site);
}

/* Where descriptors are out before connections_max is reached, half-read heads would keep newcomers out as well. */
static void test_descriptors_are_given_back_by_who_rests(void)
{
    struct site site;
    site_init(&site);
    site_open(&site, route);
    struct client *idle = kept(&site);
    struct client *head = rest_after(&site, HALF_HEAD);
    struct client *begun = rest_after(&site, HALF_BODY);
    struct client *late = newcomer(&site);
    limit_descriptors(0);
    ok_answer(&site, late, 200, "/new");
    limit_descriptors(-1);
    ok(closed_after(&site, idle));
    ok_answer(&site, head, 503, NULL);
    ok(is_open(&site, begun));
    ok_eq(evicted(&site), 2);
    ok(site.worker->acceptor.open);
    site_close(&site);
}

/* ---- siblings ---- */

static void two_full(struct two *two, struct client *c[2])
{
    two_open(two);
    two->site.options.connections_max = 2;
    accept_all(two, c, 2, GET("/hello"));
    settle(&two->site);
    for (int i = 0; i < 2; i++)
        ok_answer(&two->site, c[i], 200, "hello\n");
    pass_ms(1000);
}

static uint64_t evicted_by(struct two *two, int i)
{
    return atomic_load(&two->site.board.slots[i].evicted_count);
}

static void accept_at(struct two *two, int i)
{
    struct pollfd waits = {.fd = two->site.listeners.items[0].fd, .events = POLLIN};
    ok_eq(poll(&waits, 1, 20000), 1);
    int64_t end = real_ms() + PUMP_MS_MAX;
    while (poll(&waits, 1, 0) > 0 && real_ms() < end) {
        two->workers[i]->woken = true;
        oribi__turn(two->workers[i]);
    }
}

static void test_a_sibling_with_room_gets_the_newcomer(void)
{
    struct two two;
    struct client *c[2];
    two_full(&two, c);
    set_idle(&two, 1);
    struct client *late = newcomer(&two.site);
    accept_at(&two, 0);
    ok_eq(two.workers[0]->reactor.conn_count, 2);
    ok_eq(evicted_by(&two, 0), 0);
    two.site.worker = two.workers[1];
    ok_answer(&two.site, late, 200, "/new");
    ok_eq(two.workers[1]->reactor.conn_count, 1);
    two_close(&two);
}

static void test_a_sibling_without_room_does_not(void)
{
    struct two two;
    struct client *c[2];
    two_full(&two, c);
    set_idle(&two, 1);
    atomic_store(&two.site.board.slots[1].connections_open, 2);
    struct client *late = newcomer(&two.site);
    accept_at(&two, 0);
    ok_eq(evicted_by(&two, 0), 1);
    ok_answer(&two.site, late, 200, "/new");
    ok(closed_after(&two.site, c[0]));
    two_close(&two);
}

/* A request that a sibling passes on is taken in any case, and one that rests goes for it. */
static void test_what_siblings_pass_on_makes_room_too(void)
{
    struct two two;
    struct client *c[2];
    struct client *more[2];
    two_full(&two, c);
    set_idle(&two, 0);
    two.site.options.connections_max = 10;
    two.site.worker = two.workers[1];
    for (int i = 0; i < 2; i++) {
        more[i] = client_open(&two.site);
        ok(pump_until(&two.site, two.workers[1]->reactor.conn_count == (uint32_t)i + 1));
    }
    for (int i = 0; i < 2; i++)
        ok(client_send(&two.site, more[i], GET("/more")));
    atomic_store(&two.site.board.slots[0].connections_open, 10); /* so that it is no question of shares */
    int64_t end = real_ms() + PUMP_MS_MAX;
    while (two.workers[1]->reactor.queue_len < 2 && real_ms() < end)
        oribi__turn_connections(two.workers[1]);
    ok_eq(oribi__pass_on(two.workers[1], 1), 1);
    two.site.options.connections_max = 2;
    struct oribi_req *req = oribi_worker_take(two.workers[0]);
    ok(req);
    ok_eq(two.workers[0]->reactor.conn_count, 2);
    ok_eq(evicted_by(&two, 0), 1);
    if (req)
        reply_text(req, 200, "taken");
    ok(closed_after(&two.site, c[0]));
    ok_answer(&two.site, more[1], 200, "taken");
    two_close(&two);
}

int main(void)
{
    quiet_log();
    alarm(1000);
    run_everywhere(test_at_the_limit_nobody_goes);
    run_everywhere(test_the_one_idle_longest_goes_for_one_more);
    run_everywhere(test_half_read_heads_go_after_the_idle_the_oldest_first);
    run_everywhere(test_a_request_under_way_or_an_unsent_answer_never_goes);
    run_everywhere(test_who_leaves_makes_room);
    run_everywhere(test_a_request_that_waits_unread_is_not_reset);
    run_everywhere(test_two_hundred_silent_clients_keep_nobody_out);
    run_everywhere(test_the_helper_makes_room_too);
    run_everywhere(test_descriptors_are_given_back_by_who_rests);
    run_everywhere(test_a_sibling_with_room_gets_the_newcomer);
    run_everywhere(test_a_sibling_without_room_does_not);
    run_everywhere(test_what_siblings_pass_on_makes_room_too);
    return done_testing();
}
