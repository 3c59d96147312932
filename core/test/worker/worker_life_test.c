/* A worker's life: counting, waiting, stopping, forks, its end. Over TCP and unix sockets, with epoll and with poll(2).
 * Slow clients and those that leave: clients_test.c. */
#include "worker/worker.c"

#include "child.h"
#include "worker/client.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define GET(target)   "GET " target " HTTP/1.1\r\nHost: a\r\n\r\n"
#define CLOSE(target) "GET " target " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

static struct site *app_site;

/* ---- counting ---- */

static void test_keepalive_requests_max(void)
{
    for (uint32_t max = 1; max <= 3; max++) {
        struct site site;
        site_init(&site);
        site.options.keepalive_requests_max = max;
        site_open(&site, route);
        struct client *c = client_open(&site);
        for (uint32_t i = 1; i <= max; i++) {
            ok(client_send(&site, c, GET("/hello")));
            struct answer answer = ok_answer(&site, c, 200, "hello\n");
            ok_named(answer.closes == (i == max), "%s: request %u of %u %s", where_name, i, max,
                     answer.closes ? "closes" : "stays");
        }
        ok(closed_after(&site, c));
        site_close(&site);
    }
}

static void test_requests_max_announces_the_end_and_ends(void)
{
    struct site site;
    site_init(&site);
    site.options.requests_max = (struct oribi_range){3, 3};
    site_open(&site, route);
    struct client *a = client_open(&site);
    struct client *b = client_open(&site);
    ok(client_send(&site, a, GET("/hello")));
    ok(!ok_answer(&site, a, 200, "hello\n").closes);
    ok(client_send(&site, b, GET("/hello")));
    ok(!ok_answer(&site, b, 200, "hello\n").closes);
    ok(!oribi_worker_stopping(site.worker));
    ok(client_send(&site, a, GET("/hello")));
    ok(ok_answer(&site, a, 200, "hello\n").closes);
    ok(oribi_worker_stopping(site.worker));
    ok(client_send(&site, b, GET("/hello"))); /* within the grace: still answered */
    ok(ok_answer(&site, b, 200, "hello\n").closes);
    ok(closed_after(&site, a));
    ok(closed_after(&site, b));
    client_close(&site, a);
    client_close(&site, b);
    ok(pump_until(&site, oribi_worker_done(site.worker)));
    site_close(&site);
}

static void test_drawn_limits_stay_in_their_range(void)
{
    struct oribi_options options;
    oribi_options_init(&options);
    ok_eq(oribi_options_draw_limit(&options), 0);
    options.requests_max = (struct oribi_range){10, 12};
    bool inside = true;
    bool zero = false;
    for (int i = 0; i < 300; i++) {
        uint64_t limit = oribi_options_draw_limit(&options);
        inside &= limit >= 10 && limit <= 12;
    }
    options.requests_max = (struct oribi_range){0, 2}; /* 0 would mean never */
    for (int i = 0; i < 300; i++)
        zero |= oribi_options_draw_limit(&options) == 0;
    ok(inside);
    ok(!zero);
    oribi_options_deinit(&options);
}

static void test_counters_of_the_slot(void)
{
    struct site site;
    site_init(&site);
    site_open(&site, route);
    struct client *c = client_open(&site);
    ok(client_send(&site, c, GET("/hello") GET("/status/404")));
    ok_answer(&site, c, 200, NULL);
    ok_answer(&site, c, 404, NULL);
    settle(&site);
    ok_eq(atomic_load(&site.slot.request_count), 2);
    ok_eq(atomic_load(&site.slot.status_class[2]), 1);
    ok_eq(atomic_load(&site.slot.status_class[4]), 1);
    ok_eq(atomic_load(&site.slot.connection_count), 1);
    ok_eq(atomic_load(&site.slot.connections_open), 1);
    ok_eq(atomic_load(&site.slot.bytes_in), strlen(GET("/hello") GET("/status/404")));
    ok_eq(atomic_load(&site.slot.bytes_out), c->got_len);
    ok_eq(atomic_load(&site.slot.call_started_us), 0);
    is_str(site.slot.line, "GET /status/404");
    site_close(&site);
}

static void check_addresses(struct oribi_req *req)
{
    is_slice(req->scheme, "http");
    is_slice(req->server_name, "a");
    if (over_unix) {
        is_slice(req->remote_addr, "");
        is_slice(req->remote_port, "");
        is_slice(req->server_port, "80");
    } else {
        is_slice(req->remote_addr, "127.0.0.1");
        ok(req->remote_port.n > 0);
        is_slice(req->server_port, app_site->listeners.items[0].port);
    }
    reply_text(req, 200, "seen");
}

static void test_addresses_of_a_request(void)
{
    struct site site;
    site_init(&site);
    site_open(&site, check_addresses);
    app_site = &site;
    struct client *c = client_open(&site);
    ok(client_send(&site, c, GET("/")));
    ok_answer(&site, c, 200, "seen");
    site_close(&site);
}

/* ---- the access log and bytes that have moved ---- */

/* A head that fills the buffer, makes it grow and never ends: the buffer it began in belongs to somebody else when
 * the log tells of it. */
static void test_late_head_is_logged_as_what_it_is(void)
{
    struct site site;
    char path[] = "/tmp/oribi-test-log-XXXXXX";
    char error[ORIBI_ERROR_TEXT_CAP];
    int fd = mkstemp(path);
    site_init(&site);
    site.options.head_timeout_ms = 10000;
    ok_eq(oribi_access_log_open(path, "combined", NULL, &site.access_log, error), 0);
    site_open(&site, route);
    struct client *c = client_open(&site);
    struct client *other = client_open(&site);
    char text[ORIBI_READ_BUF_BYTES];
    memset(text, 'x', sizeof(text));
    memcpy(text, "GET /long HTTP/1.1\r\nHost: a\r\nX: ", 32);
    ok(client_send_bytes(&site, c, text, sizeof(text)));
    settle(&site);
    ok(client_send(&site, other, "PUT /else HTTP/1.1\r\nHost: a\r\nX: "));
    settle(&site);
    pass_ms(10000);
    ok_answer(&site, c, 408, NULL);
    site_close(&site);
    oribi_access_log_close(site.access_log);
    char line[512] = "";
    ok(read(fd, line, sizeof(line) - 1) > 0);
    line[strcspn(line, "\n")] = '\0';
    ok_named(strstr(line, "\"GET /long HTTP/1.1\" 408 ") != NULL, "%s: logged: %.80s", where_name, line);
    oribi_os_close(fd);
    (void)unlink(path);
}

/* ---- waiting and waking ---- */

static void test_wait_ends_by_wake_and_by_deadline(void)
{
    struct site site;
    site_init(&site);
    site.options.idle_timeout_ms = 30;
    site_open(&site, route);
    oribi_worker_wake(site.worker);
    oribi_worker_wait_for(site.worker, -1); /* would never end otherwise */
    ok(oribi_worker_take(site.worker) == NULL);
    struct client *c = client_open(&site);
    ok(client_send(&site, c, GET("/hello")));
    ok_answer(&site, c, 200, "hello\n");
    while (!nothing_open(&site)) { /* each wait ends by itself: nothing but the deadline can end it */
        oribi_worker_wait_for(site.worker, -1);
        ok(oribi_worker_take(site.worker) == NULL);
    }
    (void)closed_after(&site, c);
    site_close(&site);
}

static void test_an_idle_worker_sleeps(void)
{
    struct site site;
    site_init(&site);
    site_open(&site, route);
    struct client *c = client_open(&site);
    ok(client_send(&site, c, GET("/hello")));
    ok_answer(&site, c, 200, "hello\n");
    struct client *half = client_open(&site);
    ok(client_send(&site, half, "GET / HT"));
    struct client *stuck = client_open(&site);
    stuck->paused = true;
    ok(client_send(&site, stuck, GET("/big/8000000")));
    ok(pump_until(&site, site.calls == 2));
    settle(&site);
    settle(&site);
    struct oribi_event events[16];
    ok(!site.worker->reactor.posted);
    ok_eq(oribi_loop_poll(site.worker->reactor.loop, 0, events, 16), 0);
    site_close(&site);
}

/* ---- stopping ---- */

static void test_graceful_stop(void)
{
    struct site site;
    site_init(&site);
    site_open(&site, route);
    struct client *idle = client_open(&site);
    struct client *fresh = client_open(&site);
    struct client *half = client_open(&site);
    struct client *flushing = client_open(&site);
    ok(client_send(&site, idle, GET("/hello")));
    ok_answer(&site, idle, 200, "hello\n");
    ok(client_send(&site, half, "GET /hello HT"));
    flushing->paused = true;
    ok(client_send(&site, flushing, GET("/big/8000000")));
    ok(pump_until(&site, site.calls == 2));
    oribi_worker_stop(site.worker);
    settle(&site);
    ok(oribi_worker_stopping(site.worker));
    ok(!oribi_worker_done(site.worker));
    ok_eq(atomic_load(&site.slot.state), ORIBI_SLOT_DRAINING);
    ok_eq(site.worker->reactor.conn_count, 4);
    ok(client_send(&site, half, "TP/1.1\r\nHost: a\r\n\r\n"));
    ok(ok_answer(&site, half, 200, "hello\n").closes);
    ok(closed_after(&site, half));
    client_close(&site, half);
    flushing->paused = false;
    struct answer answer = {0};
    ok(next_answer(&site, flushing, &answer) && answer.body_len == 8000000);
    ok_eq(idle->eof, 0);
    pass_ms(ORIBI_DRAIN_GRACE_MS);
    ok(closed_after(&site, idle));
    ok(closed_after(&site, fresh));
    ok(closed_after(&site, flushing));
    client_close(&site, flushing);
    ok(pump_until(&site, oribi_worker_done(site.worker)));
    oribi_worker_wait_for(site.worker, -1); /* returns: there is nothing to wait for */
    site_close(&site);
}

static bool stopped_worker_is_done(struct site *site, enum oribi_stop_word word)
{
    atomic_store(&site->slot.stop_soon, word);
    settle(site);
    return oribi_worker_done(site->worker);
}

/* A signal to the process group may reach the worker first: whoever connects until the supervisor has stopped the
 * listeners must find somebody. */
static void test_a_stop_by_signal_stays_for_the_last_to_connect(void)
{
    struct site site;
    site_init(&site);
    site_open(&site, route);
    oribi_worker_stop_signalled(site.worker);
    ok(!stopped_worker_is_done(&site, ORIBI_STOP_NONE));
    ok(!stopped_worker_is_done(&site, ORIBI_STOP_SOON));
    struct client *c = client_open(&site);
    ok(client_send(&site, c, GET("/hello")));
    (void)stopped_worker_is_done(&site, ORIBI_STOP_LAST);
    ok(ok_answer(&site, c, 200, "hello\n").closes);
    ok(closed_after(&site, c));
    client_close(&site, c);
    oribi_os_listen_end(site.listeners.items[0].fd);
    ok(stopped_worker_is_done(&site, ORIBI_STOP_LAST));
    site_close(&site);
}

static void test_a_stop_by_signal_stays_no_longer_than_it_must(void)
{
    struct site site;
    site_init(&site);
    site_open(&site, route);
    oribi_worker_stop_signalled(site.worker);
    ok(!stopped_worker_is_done(&site, ORIBI_STOP_NONE));
    ok(stopped_worker_is_done(&site, ORIBI_STOP_TOLD)); /* others accept */
    ok(!stopped_worker_is_done(&site, ORIBI_STOP_NONE));
    pass_ms(ORIBI_DRAIN_GRACE_MS); /* no word: somebody stopped this worker alone */
    ok(stopped_worker_is_done(&site, ORIBI_STOP_NONE));
    site_close(&site);
    site_init(&site);
    site_open(&site, route);
    oribi_worker_stop(site.worker); /* nobody's signal */
    ok(stopped_worker_is_done(&site, ORIBI_STOP_NONE));
    site_close(&site);
}

/* The signal itself may have been the application's. */
static void test_the_supervisors_word_is_a_stop(void)
{
    struct site site;
    site_init(&site);
    site_open(&site, route);
    struct client *c = client_open(&site);
    ok(client_send(&site, c, GET("/hello")));
    ok(!ok_answer(&site, c, 200, "hello\n").closes);
    atomic_store(&site.slot.stop_soon, ORIBI_STOP_SOON);
    ok(client_send(&site, c, GET("/hello")));
    ok(!ok_answer(&site, c, 200, "hello\n").closes);
    atomic_store(&site.slot.stop_soon, ORIBI_STOP_TOLD);
    ok(client_send(&site, c, GET("/hello")));
    ok(ok_answer(&site, c, 200, "hello\n").closes);
    client_close(&site, c);
    ok(pump_until(&site, oribi_worker_done(site.worker)));
    site_close(&site);
}

static void test_stop_ends_at_its_deadline(void)
{
    struct site site;
    site_init(&site);
    site.options.shutdown_timeout_ms = 30000;
    site_open(&site, route);
    struct client *c = client_open(&site);
    ok(client_send(&site, c, "GET /hello HT"));
    settle(&site);
    oribi_worker_stop(site.worker);
    settle(&site);
    pass_ms(29000);
    settle(&site);
    site.options.head_timeout_ms = 0;
    ok(!oribi_worker_done(site.worker));
    pass_ms(1000);
    settle(&site);
    ok(oribi_worker_done(site.worker));
    ok_eq(site.worker->reactor.conn_count, 1);
    client_close(&site, c);
    site_close(&site);
}

/* Of a worker with a supervisor; one that nobody replaces has shutdown_timeout alone. */
static void test_a_replaced_worker_ends_after_the_time_of_a_call_unless_the_server_stops(void)
{
    struct site site;
    int life[2];
    for (int stops = 0; stops < 2; stops++) {
        ok_eq(pipe2(life, O_CLOEXEC | O_NONBLOCK), 0);
        site_init(&site);
        site.life_fd = life[0];
        site.options.shutdown_timeout_ms = 1000;
        site.options.call_timeout_ms = 6000;
        site.options.head_timeout_ms = 0;
        site_open(&site, route);
        struct client *c = client_open(&site);
        ok(client_send(&site, c, "GET /hello HT"));
        settle(&site);
        atomic_store(&site.slot.stop_soon, ORIBI_STOP_TOLD);
        settle(&site);
        pass_ms(8000);
        settle(&site);
        ok(!oribi_worker_done(site.worker));
        if (stops)
            atomic_store(&site.slot.stop_soon, ORIBI_STOP_LAST);
        settle(&site);
        pass_ms(stops ? 999 : 1999);
        settle(&site);
        ok(!oribi_worker_done(site.worker));
        pass_ms(1);
        settle(&site);
        ok(oribi_worker_done(site.worker));
        client_close(&site, c);
        site_close(&site);
        oribi_os_close(life[0]);
        oribi_os_close(life[1]);
    }
}

static void test_supervisor_gone_is_a_graceful_stop(void)
{
    struct site site;
    int life[2];
    ok_eq(pipe2(life, O_CLOEXEC | O_NONBLOCK), 0);
    site_init(&site);
    site.life_fd = life[0];
    site_open(&site, route);
    struct client *c = client_open(&site);
    ok(client_send(&site, c, GET("/hello")));
    ok_answer(&site, c, 200, "hello\n");
    ok(!oribi_worker_stopping(site.worker));
    oribi_os_close(life[1]);
    ok(pump_until(&site, oribi_worker_stopping(site.worker)));
    ok(client_send(&site, c, GET("/hello")));
    ok(ok_answer(&site, c, 200, "hello\n").closes);
    ok(closed_after(&site, c));
    client_close(&site, c);
    ok(pump_until(&site, oribi_worker_done(site.worker)));
    oribi_os_close(life[0]);
    site_close(&site);
}

/* ---- children of the application ---- */

/* How many of this process's descriptors are sockets, epolls or eventfds. */
static int open_sockets(void)
{
    int count = 0;
    for (int fd = 3; fd < 1024; fd++) {
        char path[64];
        char target[128] = "";
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        if (readlink(path, target, sizeof(target) - 1) > 0)
            count += strncmp(target, "socket:", 7) == 0 || strstr(target, "[eventpoll]") || strstr(target, "[eventfd]");
    }
    return count;
}

static int sockets_before; /* whatever the test was started with */
static int child_status;
static void forking_app(struct oribi_req *req)
{
    if (!path_is(req, "/fork")) {
        route(req);
        return;
    }
    for (uint32_t i = 0; i < app_site->client_count; i++)
        if (app_site->clients[i]) /* ours here, not the child's business: it must not count them */
            (void)fcntl(app_site->clients[i]->fd, F_SETFD, FD_CLOEXEC);
    pid_t pid = fork();
    if (pid == 0) {
        for (uint32_t i = 0; i < app_site->client_count; i++)
            if (app_site->clients[i])
                oribi_os_close(app_site->clients[i]->fd);
        int left = open_sockets();
        bool abandoned = oribi_worker_abandoned(app_site->worker);
        oribi_worker_destroy(app_site->worker); /* does no harm here */
        _exit(abandoned ? left - sockets_before : 100);
    }
    (void)waitpid(pid, &child_status, 0);
    route(req);
}

static void test_forked_child_holds_no_socket_and_the_parent_goes_on(void)
{
    struct site site;
    sockets_before = open_sockets();
    site_init(&site);
    site_open(&site, forking_app);
    app_site = &site;
    child_status = -1;
    struct client *c = client_open(&site);
    struct client *other = client_open(&site);
    ok(client_send(&site, other, GET("/hello")));
    ok_answer(&site, other, 200, "hello\n");
    ok(client_send(&site, c, GET("/fork")));
    ok_answer(&site, c, 200, "/fork");
    ok_named(WIFEXITED(child_status) && WEXITSTATUS(child_status) == 0, "%s: sockets left in the child: %d", where_name,
             WEXITSTATUS(child_status));
    ok(!oribi_worker_abandoned(site.worker));
    ok(client_send(&site, other, GET("/hello")));
    ok_answer(&site, other, 200, "hello\n");
    ok(client_send(&site, c, GET("/fork") GET("/two")));
    ok_answer(&site, c, 200, "/fork");
    ok_answer(&site, c, 200, "/two");
    struct client *third = client_open(&site);
    ok(client_send(&site, third, GET("/hello")));
    ok_answer(&site, third, 200, "hello\n");
    site_close(&site);
}

/* In the child of a fork every number that was a socket is a file of its own. Returns how many bytes got into them, or
 * how many are closed. */
static int child_answers(struct oribi_req *req, bool begun)
{
    enum { FILES = 64 };
    static int files[FILES];
    struct iovec vec = {"child", 5};
    int wrong = 0;
    for (int i = 0; i < FILES; i++)
        files[i] = memfd_create("child", 0);
    if (begun) {
        wrong += oribi_reply_write(req, &vec, 1) != ORIBI_ECLOSED;
        wrong += oribi_reply_flush(req) != ORIBI_ECLOSED;
        wrong += oribi_reply_wait(req) != ORIBI_ECLOSED;
        wrong += oribi_reply_end(req) != ORIBI_ECLOSED;
        oribi_reply_abort(req);
    } else {
        int fd;
        struct oribi_slice rest;
        wrong += oribi_req_inform(req, 103, NULL, 0) != ORIBI_ECLOSED;
        wrong += oribi_reply(req, 200, NULL, 0, &vec, 1) != ORIBI_ECLOSED;
        wrong += oribi_reply_begin(req, 200, NULL, 0, -1) != ORIBI_ECLOSED;
        wrong += oribi_reply_path(req, 200, NULL, 0, "/proc/self/exe") != ORIBI_ECLOSED;
        wrong += oribi_req_detach(req, &fd, &rest) != ORIBI_ECLOSED;
        wrong += oribi_req_fd(req) != -1;
        oribi_thread_extend_deadline(oribi__exchange_of(req)->thread, 1000);
        oribi_reply_error(req, 500);
    }
    wrong += oribi_worker_take(app_site->worker) != NULL;
    wrong += !oribi_worker_done(app_site->worker);
    oribi_worker_wait_for(app_site->worker, -1); /* does not wait */
    for (int i = 0; i < FILES; i++) {
        struct stat st;
        wrong += fstat(files[i], &st) < 0 || st.st_size != 0;
    }
    return wrong;
}

static void answering_child_app(struct oribi_req *req)
{
    bool begun = path_is(req, "/begun");
    struct iovec vec = {"parent", 6};
    if (begun) {
        ok_eq(oribi_reply_begin(req, 200, NULL, 0, -1), 0);
        ok_eq(oribi_reply_write(req, &vec, 1), 0);
    }
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(1000);
        _exit(child_answers(req, begun));
    }
    (void)waitpid(pid, &child_status, 0);
    ok_eq(begun ? oribi_reply_end(req) : oribi_reply(req, 200, NULL, 0, &vec, 1), 0);
}

static void test_forked_child_that_answers_does_nothing(void)
{
    struct site site;
    site_init(&site);
    site_open(&site, answering_child_app);
    app_site = &site;
    struct client *c = client_open(&site);
    for (int i = 0; i < 2; i++) {
        child_status = -1;
        ok(client_send(&site, c, i ? GET("/begun") : GET("/open")));
        ok_answer(&site, c, 200, "parent");
        ok_named(WIFEXITED(child_status) && WEXITSTATUS(child_status) == 0, "%s: wrong in the child: %x", where_name,
                 child_status);
        ok_eq(oribi_worker_request_count(site.worker), i + 1);
    }
    site_close(&site);
}

/* ---- what destroying finds ---- */

static struct oribi_req *taken;
static void keep_it(struct oribi_req *req)
{
    taken = req;
}

static void test_destroy_with_connections_in_every_state(void)
{
    struct site site;
    site_init(&site);
    site_open(&site, route);
    static const char *const inputs[] = {"", "GET / HT", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nx",
                                         "BAD\r\n\r\n", GET("/big/8000000")};
    struct client *clients[8];
    for (int i = 0; i < 5; i++) {
        clients[i] = client_open(&site);
        clients[i]->paused = true;
        ok(client_send(&site, clients[i], inputs[i]));
    }
    ok(pump_until(&site, site.worker->reactor.conn_count == 5 && site.calls == 1));
    site.app = keep_it;
    clients[5] = client_open(&site);
    clients[6] = client_open(&site);
    ok(client_send(&site, clients[5], GET("/called")));
    ok(client_send(&site, clients[6], GET("/queued")));
    struct oribi_req *req = NULL;
    while (!req || !site.worker->reactor.queue_len) {
        if (!req)
            req = oribi_worker_take(site.worker);
        else
            oribi__turn(site.worker);
    }
    ok_eq(site.worker->reactor.queue_len, 1);
    oribi_worker_destroy(site.worker); /* a sanitizer tells what is left */
    for (int i = 0; i < 7; i++)
        client_close(&site, clients[i]);
    oribi_listeners_close(&site.listeners, true);
    oribi_options_deinit(&site.options);
}

/* Runs in a child, which has few descriptors: the epoll still gets one, the wake descriptor does not. */
static int create_without_descriptors(void *data)
{
    struct oribi_options options;
    struct rlimit limit;
    int at = dup(0);
    int code = 0;
    oribi_options_init(&options);
    oribi_os_close(at);
    if (at < 0 || getrlimit(RLIMIT_NOFILE, &limit) < 0)
        code = 2;
    for (int more = 0; more < 3 && code == 0; more++) {
        limit.rlim_cur = (rlim_t)(at + more);
        if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
            code = 3;
        struct oribi_worker_setup setup = {.options = &options, .life_fd = -1};
        struct oribi_worker *worker = NULL;
        if (oribi_worker_create(&setup, &worker) == 0)
            oribi_worker_destroy(worker);
        if (fcntl(0, F_GETFD) < 0)
            code = 4; /* somebody closed what was not his */
    }
    oribi_options_deinit(&options);
    return code;
}

static void test_no_descriptors_for_a_worker(void)
{
    ok_eq(child_code(create_without_descriptors, NULL), 0);
}

int main(void)
{
    quiet_log();
    run_everywhere(test_keepalive_requests_max);
    run_everywhere(test_requests_max_announces_the_end_and_ends);
    test_drawn_limits_stay_in_their_range();
    run_everywhere(test_counters_of_the_slot);
    run_everywhere(test_addresses_of_a_request);
    run_everywhere(test_late_head_is_logged_as_what_it_is);
    run_everywhere(test_wait_ends_by_wake_and_by_deadline);
    run_everywhere(test_an_idle_worker_sleeps);
    run_everywhere(test_graceful_stop);
    run_everywhere(test_a_stop_by_signal_stays_for_the_last_to_connect);
    run_everywhere(test_a_stop_by_signal_stays_no_longer_than_it_must);
    run_everywhere(test_the_supervisors_word_is_a_stop);
    run_everywhere(test_stop_ends_at_its_deadline);
    run_everywhere(test_supervisor_gone_is_a_graceful_stop);
    run_everywhere(test_forked_child_holds_no_socket_and_the_parent_goes_on);
    run_everywhere(test_forked_child_that_answers_does_nothing);
    run_everywhere(test_no_descriptors_for_a_worker);
    run_everywhere(test_destroy_with_connections_in_every_state);
    return done_testing();
}
