/* The helper thread: a worker runs in a thread of its own with an application of scripted durations, the test is its
 * clients. Run it under ThreadSanitizer too (make tsan). */
#include "worker/placement/helper.c"

#include "worker/talk.h"

#include <dirent.h>
#include <sys/resource.h>
#include <sys/wait.h>

struct stage {
    struct site site;
    pthread_t thread;
    struct oribi_handoff handoff;
    int64_t nvcsw; /* voluntary context switches of the worker's own thread */
};

static atomic_int in_call; /* path of the current call begins with /sleep or /stream */
static atomic_bool let_go; /* ends /hold */

static void sleep_us(long us)
{
    int64_t end = oribi_clock_us() + us;
    while (oribi_clock_us() < end)
        if (end - oribi_clock_us() > 2000)
            (void)poll(NULL, 0, 1);
}

/* Ten pieces with pauses between them: the own thread takes the reactor back again and again. */
static void stream(struct oribi_req *req, long pause_us)
{
    char piece[1000];
    memset(piece, 's', sizeof(piece));
    struct iovec vec = {piece, sizeof(piece)};
    if (oribi_reply_begin(req, 200, &text_type, 1, -1) < 0)
        abort();
    for (int i = 0; i < 10; i++) {
        sleep_us(pause_us);
        (void)oribi_reply_write(req, &vec, 1);
    }
    (void)oribi_reply_end(req);
}

/* The child must neither run on nor answer; what it finds goes to its exit code. */
static void fork_inside(struct oribi_req *req)
{
    struct oribi_worker *w = oribi__exchange_of(req)->worker;
    pid_t pid = fork();
    if (pid == 0)
        _exit(oribi_worker_abandoned(w) && !w->helper ? 7 : 1);
    int status = 0;
    (void)waitpid(pid, &status, 0);
    reply_text(req, 200, WIFEXITED(status) && WEXITSTATUS(status) == 7 ? "good" : "bad");
}

static void app(struct oribi_req *req)
{
    long us;
    if ((us = path_number(req, "/sleep/")) >= 0) {
        atomic_fetch_add(&in_call, 1);
        sleep_us(us);
        atomic_fetch_sub(&in_call, 1);
        route(req);
    } else if ((us = path_number(req, "/stream/")) >= 0) {
        stream(req, us);
    } else if (path_is(req, "/hold")) {
        atomic_fetch_add(&in_call, 1);
        while (!atomic_load(&let_go))
            (void)poll(NULL, 0, 1);
        atomic_fetch_sub(&in_call, 1);
        reply_text(req, 200, "held");
    } else if (path_is(req, "/fork")) {
        sleep_us(5000);
        fork_inside(req);
    } else {
        route(req);
    }
}

static void *serve(void *self)
{
    struct stage *stage = self;
    struct oribi_worker *w = stage->site.worker;
    while (!oribi_worker_done(w)) {
        struct oribi_req *req = oribi_worker_take(w);
        if (req)
            app(req);
        else
            oribi_worker_wait_for(w, -1);
    }
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    stage->nvcsw = usage.ru_nvcsw;
    return NULL;
}

static void stage_init(struct stage *stage)
{
    memset(stage, 0, sizeof(*stage));
    site_init(&stage->site);
    stage->site.options.helper = true;
    stage->handoff = (struct oribi_handoff){-1, -1};
    atomic_store(&let_go, false);
    (void)oribi_scoreboard_create(&stage->site.board, 2);
}

/* As site_open(), with a sibling on the board that a test plays itself. */
static void stage_open(struct stage *stage, bool with_pool)
{
    struct site *site = &stage->site;
    site_open(site, app);
    oribi_worker_destroy(site->worker);
    if (with_pool)
        ok_eq(oribi_handoff_create(&stage->handoff), 0);
    struct oribi_worker_setup setup = {.options = &site->options,
                                       .listeners = &site->listeners,
                                       .slot = &site->board.slots[0],
                                       .board = &site->board,
                                       .handoff = with_pool ? &stage->handoff : NULL,
                                       .life_fd = -1};
    ok_eq(oribi_worker_create(&setup, &site->worker), 0);
}

static void stage_start(struct stage *stage)
{
    ok_eq(pthread_create(&stage->thread, NULL, serve, stage), 0);
}

static void stage_close(struct stage *stage)
{
    struct site *site = &stage->site;
    close_clients(site);
    oribi_worker_stop(site->worker);
    pthread_join(stage->thread, NULL);
    struct oribi_reactor *r = &site->worker->reactor;
    (void)oribi_worker_take(site->worker);
    ok_eq(r->conn_pool.lent_count + r->buf_pool.lent_count + r->exchange_pool.lent_count, 0);
    oribi_worker_destroy(site->worker);
    oribi_listeners_close(&site->listeners, true);
    oribi_options_deinit(&site->options);
    oribi_scoreboard_destroy(&site->board);
    oribi_handoff_close(&stage->handoff);
}

/* A long call, so that the helper is there. */
static void warm_up(struct stage *stage)
{
    struct client *c = client_open(&stage->site);
    ok(say(c, GET("/sleep/3000")));
    ok_eq(status_of(c), 200);
    client_close(&stage->site, c);
}

/* A call that lasts until let_go. */
static struct client *hold(struct stage *stage)
{
    struct client *c = client_open(&stage->site);
    ok(say(c, GET("/hold")));
    ok(wait_for(atomic_load(&in_call) == 1));
    return c;
}

static void release(struct client *c)
{
    atomic_store(&let_go, true);
    ok_eq(status_of(c), 200);
}

static int thread_count(void)
{
    int count = -2; /* . and .. */
    DIR *dir = opendir("/proc/self/task");
    while (dir && readdir(dir))
        count++;
    if (dir)
        closedir(dir);
    return count;
}

/* ---- no long calls, no helper ---- */

static void test_fast_calls_need_no_thread_and_no_context_switch(void)
{
    struct stage stage;
    stage_init(&stage);
    stage_open(&stage, true);
    enum { CLIENTS = 32, REQUESTS = 60 };
    struct client *c[CLIENTS];
    int threads = thread_count();
    for (int i = 0; i < CLIENTS; i++) {
        c[i] = client_open(&stage.site);
        for (int k = 0; k < REQUESTS; k++)
            ok_eq(say(c[i], GET("/hello")), 1);
    }
    /* In this thread, with everything there to be read: the worker has no reason to sleep. By a clock that stands
     * still, or a call in which the machine did something else would be a long one. */
    struct oribi_worker *w = stage.site.worker;
    uint32_t served = 0;
    struct rusage before;
    struct rusage after;
    hold_clock(true);
    getrusage(RUSAGE_THREAD, &before);
    int64_t end = real_ms() + PUMP_MS_MAX;
    while (served < CLIENTS * REQUESTS && real_ms() < end) {
        struct oribi_req *req = oribi_worker_take(w);
        if (!req)
            continue;
        route(req);
        served++;
    }
    getrusage(RUSAGE_THREAD, &after);
    ok_eq(served, CLIENTS * REQUESTS);
    hold_clock(false);
    ok(!w->helper);
    ok_eq(thread_count(), threads);
    /* The kernel may make a thread wait for a page or a lock of its own, now and then. */
    ok(after.ru_nvcsw - before.ru_nvcsw < CLIENTS * REQUESTS / 100);
    for (int i = 0; i < CLIENTS; i++)
        for (int k = 0; k < REQUESTS; k++)
            if (status_of(c[i]) != 200)
                fail("answer %d of client %d", k, i);
    stage_start(&stage);
    stage_close(&stage);
}

static void test_helper_off_stays_off(void)
{
    struct stage stage;
    stage_init(&stage);
    stage.site.options.helper = false;
    stage_open(&stage, true);
    stage_start(&stage);
    for (int i = 0; i < 3; i++)
        warm_up(&stage);
    ok(!stage.site.worker->helper);
    stage_close(&stage);
}

static void test_it_parks_when_calls_are_fast_again(void)
{
    struct stage stage;
    stage_init(&stage);
    stage_open(&stage, true);
    stage_start(&stage);
    warm_up(&stage);
    struct client *c = client_open(&stage.site);
    ok(say(c, GET("/hello")));
    ok_eq(status_of(c), 200);
    ok(stage.site.worker->helper);
    ok(wait_for(oribi_helper_parked(stage.site.worker)));
    warm_up(&stage); /* and comes back */
    stage_close(&stage);
}

/* The first call that turns out long has others behind it, which no idle worker had to wait for. */
static void test_parked_it_comes_by_often_while_calls_are_made(void)
{
    struct stage stage;
    stage_init(&stage);
    stage_open(&stage, true);
    ok_eq(parked_ms(stage.site.worker, false), PARKED_MS);
    ok_eq(parked_ms(stage.site.worker, true), PARKED_BUSY_MS);
    stage.site.options.queue_time_max_ms = 4 * PARKED_MS_MIN;
    ok_eq(parked_ms(stage.site.worker, true), PARKED_MS_MIN);
    stage_start(&stage);
    stage_close(&stage);
}

/* Long calls among fast ones: parked or not there yet, the helper is called when the next call begins, because that
 * may be such a one. */
static void test_long_calls_among_fast_ones_are_expected(void)
{
    struct stage stage;
    stage_init(&stage);
    stage_open(&stage, true);
    stage_start(&stage);
    struct client *c = client_open(&stage.site);
    ok(say(c, GET("/sleep/6000")));
    ok_eq(status_of(c), 200);
    for (int i = 0; i < 60; i++) { /* the average has forgotten */
        ok(say(c, GET("/hello")));
        ok_eq(status_of(c), 200);
    }
    ok(wait_for(oribi_helper_parked(stage.site.worker)));
    struct client *held = hold(&stage);
    ok(!oribi_helper_parked(stage.site.worker));
    release(held);
    stage_close(&stage);
}

static void test_what_a_sibling_has_seen_is_expected_of_the_first_call(void)
{
    struct stage stage;
    stage_init(&stage);
    stage_open(&stage, true);
    atomic_store(&stage.site.board.slots[1].long_call_us, oribi_clock_us());
    stage_start(&stage);
    struct client *other = client_open(&stage.site); /* will wait at the same worker */
    ok(say(other, GET("/hello")));
    ok_eq(status_of(other), 200);
    struct client *held = hold(&stage);
    ok(stage.site.worker->helper);
    ok(say(other, "GET /\r\n\r\n"));
    ok_eq(status_of(other), 400);
    release(held);
    stage_close(&stage);
}

static void test_what_runs_long_at_a_sibling_is_expected_at_once(void)
{
    struct stage stage;
    stage_init(&stage);
    stage_open(&stage, true);
    stage.site.worker->call_lengths.looked_us = oribi_clock_us(); /* it has just looked, and seen nothing */
    struct oribi_slot *sibling = &stage.site.board.slots[1];
    atomic_store(&sibling->state, ORIBI_SLOT_BUSY);
    atomic_store(&sibling->call_started_us, oribi_clock_us() - ORIBI_EXPECT_US);
    (void)poll(NULL, 0, 100 /* EXPECT_LOOK_US and more */);
    stage_start(&stage);
    struct client *held = hold(&stage);
    ok(stage.site.worker->helper);
    release(held);
    stage_close(&stage);
}

/* A limit on waiting must hold from the first call on, about which nobody could know anything. */
static void check_limits_from_the_first_call(uint32_t queue_max, int64_t queue_time_max_ms)
{
    struct stage stage;
    stage_init(&stage);
    stage.site.options.queue_max = queue_max;
    stage.site.options.queue_time_max_ms = queue_time_max_ms;
    stage_open(&stage, true);
    stage_start(&stage);
    struct client *held = hold(&stage);
    struct client *waiting[2];
    for (int i = 0; i < 2; i++) {
        waiting[i] = client_open(&stage.site);
        ok(say(waiting[i], GET("/hello")));
    }
    ok_eq(status_of(waiting[1]), 503);
    if (queue_time_max_ms)
        ok_eq(status_of(waiting[0]), 503);
    ok(atomic_load(&in_call) == 1); /* still inside */
    release(held);
    if (queue_max)
        ok_eq(status_of(waiting[0]), 200);
    stage_close(&stage);
}

static void test_limits_on_waiting_hold_from_the_first_call_on(void)
{
    check_limits_from_the_first_call(1, 0);
    check_limits_from_the_first_call(0, 50);
}

/* Parked, it comes by often enough to see that the limit has passed. */
static void test_limits_on_waiting_hold_after_many_fast_calls(void)
{
    struct stage stage;
    stage_init(&stage);
    stage.site.options.queue_time_max_ms = 50;
    stage_open(&stage, true);
    stage_start(&stage);
    struct client *c = client_open(&stage.site);
    ok(say(c, GET("/hello")));
    ok_eq(status_of(c), 200);
    ok(wait_for(oribi_helper_parked(stage.site.worker)));
    struct client *held = hold(&stage);
    ok(say(c, GET("/hello")));
    ok_eq(status_of(c), 503);
    ok(atomic_load(&in_call) == 1);
    release(held);
    stage_close(&stage);
}

static void test_what_was_long_ago_is_not(void)
{
    struct stage stage;
    stage_init(&stage);
    stage_open(&stage, true);
    atomic_store(&stage.site.board.slots[1].long_call_us, oribi_clock_us() - ORIBI_EXPECT_FOR_US - 1);
    stage_start(&stage);
    struct client *held = hold(&stage);
    ok(!stage.site.worker->helper);
    release(held);
    stage_close(&stage);
}

/* ---- while a call is long ---- */

static void test_mistakes_are_answered_during_a_call(void)
{
    struct stage stage;
    stage_init(&stage);
    stage.site.options.head_timeout_ms = 100;
    stage.site.options.body_timeout_ms = 100;
    stage.site.options.limits.body_bytes_max = 1000;
    stage_open(&stage, true);
    stage_start(&stage);
    warm_up(&stage);
    struct client *bad = client_open(&stage.site);
    struct client *slow = client_open(&stage.site);
    struct client *slow_body = client_open(&stage.site);
    struct client *large = client_open(&stage.site);
    struct client *early[] = {bad, slow, slow_body, large};
    for (int i = 0; i < 4; i++) { /* new connections wait in the backlog, so these are made before */
        ok(say(early[i], GET("/hello")));
        ok_eq(status_of(early[i]), 200);
    }
    struct client *held = hold(&stage);
    ok(say(bad, "GET / HTTP/1.1\r\n: x\r\n\r\n"));
    ok_eq(status_of(bad), 400);
    ok(say(large, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n"));
    ok_eq(status_of(large), 413);
    ok(say(slow, "GET / HTT"));
    ok_eq(status_of(slow), 408);
    ok(say(slow_body, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nx"));
    ok_eq(status_of(slow_body), 408);
    ok_eq(atomic_load(&in_call), 1);
    release(held);
    stage_close(&stage);
}

static void test_a_slow_reader_is_served_during_a_call(void)
{
    struct stage stage;
    struct answer answer;
    stage_init(&stage);
    stage_open(&stage, true);
    stage_start(&stage);
    warm_up(&stage);
    enum { BYTES = 16 << 20 };
    struct client *reader = client_open(&stage.site);
    char text[64];
    (void)snprintf(text, sizeof(text), "GET /big/%d HTTP/1.1\r\nHost: a\r\n\r\n", BYTES);
    ok(say(reader, text));
    ok(wait_for(poll(&(struct pollfd){.fd = reader->fd, .events = POLLIN}, 1, 0) == 1));
    struct client *held = hold(&stage);
    ok_eq(heard(reader, &answer), 200);
    ok_eq(answer.body_len, BYTES);
    ok(is_big_text(answer.body, answer.body_len));
    ok_eq(atomic_load(&in_call), 1);
    release(held);
    stage_close(&stage);
}

/* Nobody is idle, and who is free first is not known: so the hand-off queue has them, and not one worker. */
static void test_behind_a_long_call_requests_wait_for_any_worker(void)
{
    enum { COUNT = 3 };
    struct stage stage;
    struct client *c[COUNT];
    stage_init(&stage);
    stage_open(&stage, true);
    stage_start(&stage);
    warm_up(&stage);
    for (int i = 0; i < COUNT; i++) {
        c[i] = client_open(&stage.site);
        ok(say(c[i], GET("/hello")));
        ok_eq(status_of(c[i]), 200);
    }
    struct oribi_slot *slots = stage.site.board.slots;
    atomic_store(&slots[1].state, ORIBI_SLOT_BUSY);
    struct client *held = hold(&stage);
    static char buf[ORIBI_HANDOFF_BUF_BYTES];
    for (int i = 0; i < COUNT; i++) {
        struct oribi_handoff_item item = {.fd = -1};
        ok(say(c[i], GET("/hello")));
        ok(wait_for(atomic_load(&slots[0].passed_count) == (uint64_t)i + 1));
        ok_eq(oribi_handoff_take(&stage.handoff, buf, sizeof(buf), &item), 0); /* no busy worker took it back */
        is_slice(item.bytes, GET("/hello"));
        oribi_os_close(item.fd);
    }
    ok_eq(atomic_load(&slots[0].queue_len), 0);
    ok_eq(atomic_load(&slots[0].idle_waiters), 0); /* so nobody has to be woken when one becomes idle */
    release(held);
    stage_close(&stage);
}

/* Where what waits is limited, which counts what each worker has itself. */
static void test_complete_requests_go_to_a_sibling_that_becomes_idle(void)
{
    struct stage stage;
    stage_init(&stage);
    stage.site.options.queue_max = 100;
    stage_open(&stage, true);
    stage_start(&stage);
    warm_up(&stage);
    struct client *c = client_open(&stage.site);
    ok(say(c, GET("/hello")));
    ok_eq(status_of(c), 200);
    struct oribi_slot *slots = stage.site.board.slots;
    atomic_store(&slots[1].state, ORIBI_SLOT_BUSY);
    struct client *held = hold(&stage);
    ok(say(c, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody"));
    ok(wait_for(atomic_load(&slots[0].queue_len) == 1));
    /* it has nobody to give to, and does not look all the time */
    ok(wait_for(atomic_load(&slots[0].idle_waiters) == 1));
    atomic_store(&slots[1].state, ORIBI_SLOT_IDLE);
    uint32_t wake = atomic_load(&slots[0].idle_waiters_wake);
    ok(wait_for((oribi__idle_waiter_wake(stage.site.worker), atomic_load(&slots[0].passed_count) == 1)));
    ok(atomic_load(&slots[0].idle_waiters_wake) != wake || atomic_load(&slots[0].idle_waiters) == 0);
    atomic_store(&slots[1].state, ORIBI_SLOT_BUSY);
    static char buf[ORIBI_HANDOFF_BUF_BYTES];
    struct oribi_handoff_item item = {.fd = -1};
    ok_eq(oribi_handoff_take(&stage.handoff, buf, sizeof(buf), &item), 0); /* a busy worker did not take it back */
    is_slice(item.bytes, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody");
    ok_eq(item.request_count, 1);
    ok(item.complete_us > 0 && item.complete_us <= oribi_clock_us());
    oribi_os_close(item.fd);
    release(held);
    ok(wait_for(atomic_load(&slots[0].idle_waiters) == 0));
    wake = atomic_load(&slots[0].idle_waiters_wake);
    oribi__idle_waiter_wake(stage.site.worker);
    ok_eq(atomic_load(&slots[0].idle_waiters_wake), wake); /* nobody to wake, no system call */
    stage_close(&stage);
}

static void test_newcomers_wait_for_whoever_is_free(void)
{
    struct stage stage;
    stage_init(&stage);
    stage_open(&stage, true);
    stage_start(&stage);
    warm_up(&stage);
    struct client *held = hold(&stage);
    ok(wait_for(stage.site.worker->helper != NULL));
    struct client *c = client_open(&stage.site);
    ok(say(c, GET("/hello")));
    /* Nobody takes it off the listener, so a sibling that sleeps there would be woken. */
    struct pollfd listener = {.fd = stage.site.listeners.items[0].fd, .events = POLLIN};
    ok_eq(poll(&listener, 1, 5000), 1);
    release(held);
    ok_eq(status_of(c), 200);
    stage_close(&stage);
}

/* A request that needs no call waits for none: neither on connections that are there nor on new ones, from the first
 * call on. */
static void test_newcomers_ask_for_files_during_a_call(void)
{
    struct stage stage;
    char folder[] = "/tmp/oribi-helper-XXXXXX";
    char path[64];
    char mount[64];
    char *mounts[] = {mount};
    ok(mkdtemp(folder) != NULL);
    (void)snprintf(path, sizeof(path), "%s/a", folder);
    (void)snprintf(mount, sizeof(mount), "/s=%s", folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    ok(fd >= 0 && write(fd, "a", 1) == 1 && close(fd) == 0);
    stage_init(&stage);
    stage.site.options.mounts = (struct oribi_text_list){mounts, 1};
    stage_open(&stage, true);
    stage_start(&stage);
    struct client *held = hold(&stage);
    for (int i = 0; i < 20; i++) {
        struct client *c = client_open(&stage.site);
        for (int j = 0; j < 5; j++) {
            ok(say(c, GET("/s/a")));
            ok_eq(status_of(c), 200);
        }
    }
    struct client *waiting = client_open(&stage.site);
    ok(say(waiting, GET("/hello")));
    ok(atomic_load(&in_call) == 1); /* still inside */
    release(held);
    ok_eq(status_of(waiting), 200);
    stage.site.options.mounts = (struct oribi_text_list){0};
    stage_close(&stage);
    ok(unlink(path) == 0 && rmdir(folder) == 0);
}

/* Both threads answer from one cache, in turn, while the files change. */
static void test_files_beside_calls_of_many_lengths(void)
{
    enum { CLIENTS = 12, ROUNDS = 15, BYTES = 200000 };
    struct stage stage;
    struct client *c[CLIENTS];
    char folder[] = "/tmp/oribi-helper-XXXXXX";
    char mount[64];
    char *mounts[] = {mount};
    char path[2][64];
    ok(mkdtemp(folder) != NULL);
    (void)snprintf(mount, sizeof(mount), "/s=%s", folder);
    for (int i = 0; i < 2; i++)
        (void)snprintf(path[i], sizeof(path[i]), "%s/%s", folder, i ? "next" : "a");
    char *text = big_text(BYTES);
    stage_init(&stage);
    stage.site.options.mounts = (struct oribi_text_list){mounts, 1};
    stage_open(&stage, true);
    stage_start(&stage);
    for (int i = 0; i < CLIENTS; i++)
        c[i] = client_open(&stage.site);
    for (int round = 0; round < ROUNDS; round++) {
        int fd = open(path[1], O_WRONLY | O_CREAT | O_TRUNC, 0644);
        ok(fd >= 0 && write(fd, text, BYTES) == BYTES && close(fd) == 0 && rename(path[1], path[0]) == 0);
        for (int i = 0; i < CLIENTS; i++) {
            char call[64];
            (void)snprintf(call, sizeof(call), "GET /sleep/%d HTTP/1.1\r\nHost: a\r\n\r\n", 100 << i % 7);
            ok(say(c[i], i % 3 ? GET("/s/a") : call));
        }
        for (int i = 0; i < CLIENTS; i++) {
            struct answer answer;
            ok_eq(heard(c[i], &answer), 200);
            ok(i % 3 == 0 || (answer.body_len == BYTES && is_big_text(answer.body, BYTES)));
        }
    }
    free(text);
    stage.site.options.mounts = (struct oribi_text_list){0};
    stage_close(&stage);
    ok(unlink(path[0]) == 0 && rmdir(folder) == 0);
}

static void test_the_worker_goes_on_without_waiting_for_the_helper(void)
{
    struct stage stage;
    struct answer answer;
    stage_init(&stage);
    stage_open(&stage, true);
    stage_start(&stage);
    warm_up(&stage);
    struct client *streaming = client_open(&stage.site);
    struct client *c = client_open(&stage.site);
    ok(say(c, GET("/hello")));
    ok_eq(status_of(c), 200);
    ok(say(streaming, GET("/stream/3000")));
    for (int i = 0; i < 20; i++)
        ok(say(c, GET("/x")));
    ok_eq(heard(streaming, &answer), 200);
    ok_eq(answer.body_len, 10000);
    for (int i = 0; i < 20; i++)
        ok_eq(status_of(c), 200);
    stage_close(&stage);
}

static void test_a_fork_inside_a_long_call(void)
{
    struct stage stage;
    struct answer answer;
    stage_init(&stage);
    stage_open(&stage, true);
    stage_start(&stage);
    warm_up(&stage);
    struct client *c = client_open(&stage.site);
    for (int i = 0; i < 3; i++) {
        ok(say(c, GET("/fork")));
        ok_eq(heard(c, &answer), 200);
        is_bytes(answer.body, answer.body_len, "good", 4);
    }
    stage_close(&stage);
}

/* Durations just below, at and above the millisecond at which the helper comes in, on many connections. */
static void test_many_durations_around_a_millisecond(void)
{
    enum { CLIENTS = 24 };
    static const int durations_us[] = {0, 200, 700, 950, 1000, 1050, 1500, 3000};
    struct stage stage;
    struct client *c[CLIENTS];
    int sent[CLIENTS] = {0};
    int64_t end = oribi_clock_ms() + (getenv("ORIBI_SOAK") ? 60000 : 1500);
    uint32_t seed = 1;
    long answers = 0;
    long wrong = 0;
    stage_init(&stage);
    stage_open(&stage, true);
    stage_start(&stage);
    for (int i = 0; i < CLIENTS; i++)
        c[i] = client_open(&stage.site);
    while (oribi_clock_ms() < end || answers <= 100) {
        for (int i = 0; i < CLIENTS; i++) {
            struct answer answer;
            size_t len;
            (void)client_read(c[i]);
            while (peek_answer(c[i], false, &answer, &len)) {
                c[i]->pos += len;
                sent[i]--;
                answers++;
                wrong += answer.status != 200;
            }
            if (c[i]->pos == c[i]->got_len)
                c[i]->pos = c[i]->got_len = 0;
            wrong += c[i]->eof || c[i]->error;
            seed = seed * 1103515245u + 12345u;
            if (sent[i] >= 2)
                continue;
            char text[128];
            int us = durations_us[seed >> 16 & 7];
            if (seed >> 20 & 1)
                (void)snprintf(text, sizeof(text), "GET /sleep/%d HTTP/1.1\r\nHost: a\r\n\r\n", us);
            else
                (void)snprintf(
                    text, sizeof(text),
                    "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n");
            wrong += !say(c[i], text);
            sent[i]++;
        }
        (void)poll(NULL, 0, 1);
    }
    for (int i = 0; i < CLIENTS; i++)
        for (; sent[i] > 0; sent[i]--)
            wrong += status_of(c[i]) != 200;
    ok_eq(wrong, 0);
    ok_named(answers > 100, "%ld answers", answers);
    stage_close(&stage);
}

int main(void)
{
    quiet_log();
    alarm(2000);
    test_fast_calls_need_no_thread_and_no_context_switch();
    run_everywhere(test_helper_off_stays_off);
    run_everywhere(test_long_calls_among_fast_ones_are_expected);
    run_everywhere(test_what_a_sibling_has_seen_is_expected_of_the_first_call);
    run_everywhere(test_what_runs_long_at_a_sibling_is_expected_at_once);
    run_everywhere(test_limits_on_waiting_hold_from_the_first_call_on);
    run_everywhere(test_limits_on_waiting_hold_after_many_fast_calls);
    run_everywhere(test_what_was_long_ago_is_not);
    test_it_parks_when_calls_are_fast_again();
    test_parked_it_comes_by_often_while_calls_are_made();
    run_everywhere(test_mistakes_are_answered_during_a_call);
    run_everywhere(test_a_slow_reader_is_served_during_a_call);
    run_everywhere(test_behind_a_long_call_requests_wait_for_any_worker);
    run_everywhere(test_complete_requests_go_to_a_sibling_that_becomes_idle);
    run_everywhere(test_newcomers_wait_for_whoever_is_free);
    run_everywhere(test_newcomers_ask_for_files_during_a_call);
    run_everywhere(test_files_beside_calls_of_many_lengths);
    run_everywhere(test_the_worker_goes_on_without_waiting_for_the_helper);
    run_everywhere(test_a_fork_inside_a_long_call);
    run_everywhere(test_many_durations_around_a_millisecond);
    return done_testing();
}
