/* Several threads that make calls in one worker: an application in C over pthreads, the test is its clients. Run it
 * under ThreadSanitizer too (make tsan). */
#include "worker/placement/threads.c"

#include "worker/call.h"
#include "worker/talk.h"

#include <signal.h>
#include <sys/wait.h>

enum { THREADS = 4 };

struct stage {
    struct site site;
    pthread_t threads[THREADS];
    pthread_mutex_t vm; /* stands for a runtime's lock: held in calls but for their sleeps */
};

static struct stage *on_stage;
static atomic_int in_call;          /* calls of /hold and /sleep */
static atomic_int most;             /* of these calls, at a time */
static atomic_int let_go;           /* how many /hold may end */
static atomic_int told[4];          /* calls of /overdue/N whose thread was told */
static atomic_int waits;            /* waits for requests that have begun */
static atomic_int changes;          /* calls by another thread than the one before */
static struct oribi_thread *served; /* whose the last call was; of the VM's lock */
static _Thread_local int own_number = -1;

static void enter_call(void)
{
    int now = atomic_fetch_add(&in_call, 1) + 1;
    int before = atomic_load(&most);
    while (now > before && !atomic_compare_exchange_weak(&most, &before, now))
        continue;
}

static void vm_lock(void)
{
    pthread_mutex_lock(&on_stage->vm);
}

static void vm_unlock(void)
{
    pthread_mutex_unlock(&on_stage->vm);
}

static void sleep_outside(long us)
{
    vm_unlock();
    struct timespec pause = {us / 1000000, us % 1000000 * 1000};
    (void)nanosleep(&pause, NULL);
    vm_lock();
}

static void hold(struct oribi_req *req)
{
    enter_call();
    for (;;) {
        int left = atomic_load(&let_go);
        if (left > 0 && atomic_compare_exchange_strong(&let_go, &left, left - 1))
            break;
        sleep_outside(1000);
    }
    atomic_fetch_sub(&in_call, 1);
    reply_text(req, 200, "held");
}

static void stream(struct oribi_req *req, long us)
{
    char piece[1000];
    memset(piece, 's', sizeof(piece));
    struct iovec vec = {piece, sizeof(piece)};
    if (oribi_reply_begin(req, 200, &text_type, 1, -1) < 0)
        abort();
    for (int i = 0; i < 10; i++) {
        sleep_outside(us);
        int result = oribi_reply_write(req, &vec, 1);
        vm_unlock();
        while (result == 1)
            result = oribi_reply_wait(req);
        vm_lock();
    }
    (void)oribi_reply_end(req);
}

/* A stream that waits for its client, without the runtime's lock; or takes the socket over before its last byte. */
static void pour(struct oribi_req *req, long bytes, bool takes)
{
    char *text = big_text((size_t)bytes);
    struct iovec vec = {text, (size_t)bytes - takes};
    struct oribi_slice rest;
    int fd = -1;
    if (oribi_reply_begin(req, 200, &text_type, 1, bytes) < 0)
        abort();
    int result = oribi_reply_write(req, &vec, 1);
    vm_unlock();
    while (result == 1 && !takes)
        result = oribi_reply_wait(req);
    if (takes)
        result = oribi_req_detach(req, &fd, &rest);
    vm_lock();
    if (!takes) {
        (void)oribi_reply_end(req);
    } else if (result == 0) {
        oribi_req_detached(req);
        if (send(fd, text + bytes - 1, 1, MSG_NOSIGNAL) != 1)
            diag("taken over: %s", strerror(errno));
        oribi_os_close(fd);
    }
    free(text);
}

static void hijack(struct oribi_req *req)
{
    struct oribi_slice rest;
    int fd = -1;
    sleep_outside(500);
    if (oribi_req_detach(req, &fd, &rest) < 0)
        return;
    oribi_req_detached(req);
    sleep_outside(500);
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nmine\n";
    if (send(fd, answer, sizeof(answer) - 1, MSG_NOSIGNAL) < 0)
        diag("hijacked: %s", strerror(errno));
    oribi_os_close(fd);
}

static void fork_inside(struct oribi_req *req)
{
    struct oribi_worker *w = oribi__exchange_of(req)->worker;
    pid_t pid = fork();
    if (pid == 0) {
        (void)oribi_req_inform(req, 103, NULL, 0); /* goes nowhere, and waits for nobody */
        _exit(oribi_worker_abandoned(w) ? 7 : 1);
    }
    int status = 0;
    (void)waitpid(pid, &status, 0);
    reply_text(req, 200, WIFEXITED(status) && WEXITSTATUS(status) == 7 ? "good" : "bad");
}

/* Computes: the VM's lock is never given up. */
static void grip(struct oribi_req *req)
{
    enter_call();
    while (atomic_load(&let_go) == 0)
        (void)poll(NULL, 0, 1);
    atomic_fetch_sub(&in_call, 1);
    reply_text(req, 200, "gripped");
}

static void be_overdue(struct oribi_req *req, int number)
{
    own_number = number;
    enter_call();
    if (number == 1)
        oribi_thread_extend_deadline(oribi__exchange_of(req)->thread, 60000);
    while (!atomic_load(&told[number]) && atomic_load(&let_go) == 0)
        sleep_outside(1000);
    own_number = -1;
    atomic_fetch_sub(&in_call, 1);
    reply_text(req, 200, atomic_load(&told[number]) ? "told" : "not told");
}

static void app(struct oribi_req *req)
{
    long us;
    if (served != oribi__exchange_of(req)->thread)
        atomic_fetch_add(&changes, 1);
    served = oribi__exchange_of(req)->thread;
    if ((us = path_number(req, "/sleep/")) >= 0) {
        enter_call();
        sleep_outside(us);
        atomic_fetch_sub(&in_call, 1);
        route(req);
    } else if ((us = path_number(req, "/stream/")) >= 0) {
        stream(req, us);
    } else if ((us = path_number(req, "/pour/")) >= 0) {
        pour(req, us, false);
    } else if ((us = path_number(req, "/pour-and-take/")) >= 0) {
        pour(req, us, true);
    } else if ((us = path_number(req, "/overdue/")) >= 0) {
        be_overdue(req, (int)us);
    } else if (path_is(req, "/hold")) {
        hold(req);
    } else if (path_is(req, "/grip")) {
        grip(req);
    } else if (path_is(req, "/hijack")) {
        hijack(req);
    } else if (path_is(req, "/fork")) {
        fork_inside(req);
    } else {
        route(req);
    }
}

static void *serve(void *self)
{
    struct oribi_thread *thread = self;
    vm_lock();
    for (;;) {
        struct oribi_req *req = oribi_thread_take(thread);
        if (req) {
            app(req);
            continue;
        }
        vm_unlock();
        atomic_fetch_add(&waits, 1);
        bool comes = oribi_thread_wait(thread, -1);
        vm_lock();
        if (!comes && oribi_thread_done(thread))
            break;
    }
    vm_unlock();
    return NULL;
}

static void stage_init(struct stage *stage)
{
    memset(stage, 0, sizeof(*stage));
    site_init(&stage->site);
    pthread_mutex_init(&stage->vm, NULL);
    on_stage = stage;
    atomic_store(&let_go, 0);
    atomic_store(&in_call, 0);
    atomic_store(&most, 0);
    atomic_store(&waits, 0);
    atomic_store(&changes, 0);
    served = NULL;
}

static void stage_start(struct stage *stage)
{
    site_open(&stage->site, app);
    ok_eq(oribi_threads_open(stage->site.worker, THREADS), 0);
    for (uint32_t i = 0; i < THREADS; i++)
        ok_eq(pthread_create(&stage->threads[i], NULL, serve, oribi_thread(stage->site.worker, i)), 0);
}

static void stage_join(struct stage *stage)
{
    oribi_worker_stop(stage->site.worker);
    for (int i = 0; i < THREADS; i++)
        pthread_join(stage->threads[i], NULL);
}

static void stage_destroy(struct stage *stage)
{
    struct site *site = &stage->site;
    struct oribi_reactor *r = &site->worker->reactor;
    oribi_threads_close(site->worker);
    (void)oribi_worker_take(site->worker);
    ok_eq(r->conn_pool.lent_count + r->buf_pool.lent_count + r->exchange_pool.lent_count, 0);
    oribi_worker_destroy(site->worker);
    oribi_listeners_close(&site->listeners, true);
    oribi_options_deinit(&site->options);
    pthread_mutex_destroy(&stage->vm);
}

static void stage_close(struct stage *stage)
{
    struct site *site = &stage->site;
    close_clients(site);
    stage_join(stage);
    stage_destroy(stage);
}

static struct client *ask(struct stage *stage, const char *text)
{
    struct client *c = client_open(&stage->site);
    ok(say(c, text));
    return c;
}

static bool is_answer(struct client *c, const char *body)
{
    struct answer answer = {0};
    return heard(c, &answer) == 200 && answer.body_len == strlen(body) && !memcmp(answer.body, body, answer.body_len);
}

/* ---- */

static void test_as_many_calls_as_capacity_at_a_time(void)
{
    struct stage stage;
    struct client *c[THREADS + 2];
    stage_init(&stage);
    stage_start(&stage);
    for (int i = 0; i < THREADS; i++)
        c[i] = ask(&stage, GET("/hold"));
    ok(wait_for(atomic_load(&in_call) == THREADS));
    ok(wait_for(atomic_load(&stage.site.slot.state) == ORIBI_SLOT_BUSY));
    ok_eq(oribi_threads_busy(stage.site.worker), THREADS);
    for (int i = THREADS; i < THREADS + 2; i++)
        c[i] = ask(&stage, GET("/hold"));
    atomic_store(&let_go, THREADS + 2);
    for (int i = 0; i < THREADS + 2; i++)
        ok(is_answer(c[i], "held"));
    ok_eq(atomic_load(&most), THREADS);
    ok(wait_for(oribi_threads_busy(stage.site.worker) == 0));
    ok_eq(atomic_load(&stage.site.slot.state), ORIBI_SLOT_IDLE);
    stage_close(&stage);
}

static void test_one_free_hand_serves_the_others_connections(void)
{
    struct stage stage;
    struct client *held[THREADS - 1];
    stage_init(&stage);
    stage_start(&stage);
    for (int i = 0; i < THREADS - 1; i++)
        held[i] = ask(&stage, GET("/hold"));
    ok(wait_for(atomic_load(&in_call) == THREADS - 1));
    ok_eq(atomic_load(&stage.site.slot.state), ORIBI_SLOT_IDLE);
    struct client *c = ask(&stage, GET("/hello"));
    ok_eq(status_of(c), 200);
    for (int i = 0; i < 50; i++) {
        ok(say(c, GET("/hello")));
        ok_eq(status_of(c), 200);
    }
    ok_eq(atomic_load(&in_call), THREADS - 1);
    atomic_store(&let_go, THREADS - 1);
    for (int i = 0; i < THREADS - 1; i++)
        ok(is_answer(held[i], "held"));
    stage_close(&stage);
}

static void test_the_helper_has_the_reactor_when_no_hand_is_free(void)
{
    struct stage stage;
    struct client *held[THREADS];
    stage_init(&stage);
    stage.site.options.helper = true;
    stage_start(&stage);
    struct client *c = ask(&stage, GET("/hello"));
    ok_eq(status_of(c), 200);
    for (int i = 0; i < THREADS; i++)
        held[i] = ask(&stage, GET("/hold"));
    ok(wait_for(atomic_load(&in_call) == THREADS));
    ok(say(c, "GET / HTTP/1.1\r\n: x\r\n\r\n"));
    ok_eq(status_of(c), 400);
    ok_eq(atomic_load(&in_call), THREADS);
    struct client *next = ask(&stage, GET("/hello")); /* the accept sources open again */
    atomic_store(&let_go, THREADS);
    ok_eq(status_of(next), 200);
    for (int i = 0; i < THREADS; i++)
        ok(is_answer(held[i], "held"));
    stage_close(&stage);
}

/* Many at once: they come fast, however busy the machine is. */
static void ask_often(struct client *c, int count)
{
    enum { AT_ONCE = 50 };
    char text[AT_ONCE * 64] = "";
    int wrong = 0;
    for (int i = 0; i < AT_ONCE; i++)
        (void)strncat(text, GET("/hello"), sizeof(text) - strlen(text) - 1);
    for (int i = 0; i < count; i++) {
        wrong += i % AT_ONCE == 0 && !say(c, text);
        wrong += status_of(c) != 200;
    }
    ok_eq(wrong, 0);
}

/* A wake-up for each would cost more than such a call itself. */
static void test_short_calls_in_a_row_are_one_hands(void)
{
    enum { REQUESTS = 1000 };
    struct stage stage;
    stage_init(&stage);
    stage.site.options.helper = true;
    stage_start(&stage);
    struct client *c = client_open(&stage.site);
    ask_often(c, 100);
    atomic_store(&changes, 0);
    ask_often(c, REQUESTS);
    ok_named(atomic_load(&changes) < REQUESTS / 2, "another thread %d times", atomic_load(&changes));
    stage_close(&stage);
}

/* ... and when one of them lasts, as none before, another thread leads. */
static void test_a_call_that_lasts_is_seen(void)
{
    struct stage stage;
    struct client *held[THREADS - 1];
    stage_init(&stage);
    stage.site.options.helper = true;
    stage_start(&stage);
    struct client *c = client_open(&stage.site);
    for (int i = 0; i < THREADS - 1; i++) {
        ask_often(c, 100);
        held[i] = ask(&stage, GET("/hold"));
        ok(wait_for(atomic_load(&in_call) == i + 1));
    }
    ask_often(c, 100);
    ok_eq(atomic_load(&in_call), THREADS - 1);
    atomic_store(&let_go, THREADS - 1);
    for (int i = 0; i < THREADS - 1; i++)
        ok(is_answer(held[i], "held"));
    stage_close(&stage);
}

/* A thread that must wait for the VM's lock takes no request with it into its wait. */
static void test_a_request_is_taken_with_the_lock(bool helper)
{
    struct stage stage;
    struct client *c[THREADS - 1];
    stage_init(&stage);
    stage.site.options.helper = helper;
    stage_start(&stage);
    ok(wait_for(atomic_load(&waits) >= THREADS)); /* the start of a thread needs the lock, too */
    struct client *gripped = ask(&stage, GET("/grip"));
    ok(wait_for(atomic_load(&in_call) == 1));
    for (int i = 0; i < THREADS - 1; i++)
        c[i] = ask(&stage, GET("/hello"));
    ok(wait_for(atomic_load(&stage.site.slot.queue_len) == THREADS - 1));
    ok_eq(oribi_threads_busy(stage.site.worker), 1);
    atomic_store(&let_go, 1);
    ok(is_answer(gripped, "gripped"));
    for (int i = 0; i < THREADS - 1; i++)
        ok_eq(status_of(c[i]), 200);
    stage_close(&stage);
}

static void test_a_request_is_taken_with_the_lock_and_a_helper(void)
{
    test_a_request_is_taken_with_the_lock(true);
}

static void test_a_request_is_taken_with_the_lock_and_no_helper(void)
{
    test_a_request_is_taken_with_the_lock(false);
}

/* A thread that was to come and has ended instead, as one that is killed, keeps no request from the others. */
static void test_a_hand_that_does_not_come(void)
{
    struct stage stage;
    stage_init(&stage);
    site_open(&stage.site, app);
    struct oribi_worker *w = stage.site.worker;
    ok_eq(oribi_threads_open(w, 2), 0);
    struct client *c = ask(&stage, GET("/hello"));
    ok(oribi_thread_wait(oribi_thread(w, 0), PUMP_MS_MAX));
    ok_eq(w->threads.coming_count, 1);
    ok(!oribi_thread_wait(oribi_thread(w, 1), 1));          /* it is another's */
    ok(oribi_thread_wait(oribi_thread(w, 0), PUMP_MS_MAX)); /* its successor waits before it takes */
    struct oribi_req *req = oribi_thread_take(oribi_thread(w, 0));
    ok(req != NULL);
    ok_eq(w->threads.coming_count, 0);
    route(req);
    ok(!oribi_thread_take(oribi_thread(w, 0)));
    ok_eq(status_of(c), 200);
    close_clients(&stage.site);
    oribi_worker_stop(w);
    ok(wait_for(!oribi_thread_take(oribi_thread(w, 0)) && oribi_thread_done(oribi_thread(w, 0))));
    stage_destroy(&stage);
}

static void test_answers_of_one_connection_keep_their_order(void)
{
    enum { REQUESTS = 40 };
    struct stage stage;
    char text[REQUESTS * 96] = "";
    stage_init(&stage);
    stage_start(&stage);
    for (int i = 0; i < REQUESTS; i++) {
        char one[96];
        (void)snprintf(one, sizeof(one),
                       "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n%02d"
                       "GET /sleep/%d HTTP/1.1\r\nHost: a\r\n\r\n",
                       i, (REQUESTS - i) * 50);
        (void)strncat(text, one, sizeof(text) - strlen(text) - 1);
    }
    struct client *c[3];
    for (int k = 0; k < 3; k++)
        c[k] = ask(&stage, text);
    for (int k = 0; k < 3; k++) {
        int wrong = 0;
        for (int i = 0; i < REQUESTS; i++) {
            char body[3];
            (void)snprintf(body, sizeof(body), "%02d", i);
            wrong += !is_answer(c[k], body);
            wrong += status_of(c[k]) != 200;
        }
        ok_eq(wrong, 0);
    }
    stage_close(&stage);
}

static void test_streams_and_hijacked_sockets(void)
{
    struct stage stage;
    struct answer answer;
    struct client *streams[6];
    struct client *taken[6];
    stage_init(&stage);
    stage_start(&stage);
    for (int i = 0; i < 6; i++) {
        streams[i] = ask(&stage, GET("/stream/300"));
        taken[i] = ask(&stage, GET("/hijack"));
    }
    for (int i = 0; i < 6; i++) {
        ok_eq(heard(streams[i], &answer), 200);
        ok_eq(answer.body_len, 10000);
        ok(is_answer(taken[i], "mine\n"));
    }
    stage_close(&stage);
}

/* The clock of a call stands still while its client is waited for, and the supervisor sees that: with the reactor. */
static void ask_and_read_late(const char *target, size_t bytes, int64_t call_timeout_ms)
{
    struct stage stage;
    struct answer answer = {0};
    stage_init(&stage);
    stage.site.options.call_timeout_ms = call_timeout_ms;
    stage.site.options.response_memory_max = 64 * 1024;
    stage_start(&stage);
    struct client *slow = client_open(&stage.site);
    client_hold_little(slow);
    ok(say(slow, target));
    ok(wait_for(poll(&(struct pollfd){.fd = slow->fd, .events = POLLIN}, 1, 0) == 1)); /* its answer has begun */
    struct client *c = ask(&stage, GET("/hello"));
    for (int i = 0; i < 20 && status_of(c) == 200; i++)
        ok(say(c, GET("/hello")));
    ok_eq(status_of(c), 200);
    ok_eq(heard(slow, &answer), 200);
    ok_eq(answer.body_len, bytes);
    ok(is_big_text(answer.body, answer.body_len));
    stage_close(&stage);
}

static void test_a_slow_reader_holds_its_own_hand_only(void)
{
    for (int64_t call_timeout_ms = 0; call_timeout_ms <= 60000; call_timeout_ms += 60000) {
        ask_and_read_late(GET("/big/20000000"), 20000000, call_timeout_ms);
        ask_and_read_late(GET("/pour/4000000"), 4000000, call_timeout_ms);
        ask_and_read_late(GET("/pour-and-take/4000000"), 4000000, call_timeout_ms);
    }
}

static void test_a_stop_waits_for_all_calls(void)
{
    struct stage stage;
    struct client *held[THREADS - 1];
    stage_init(&stage);
    stage_start(&stage);
    struct client *idle = ask(&stage, GET("/hello"));
    ok_eq(status_of(idle), 200);
    for (int i = 0; i < THREADS - 1; i++)
        held[i] = ask(&stage, GET("/hold"));
    ok(wait_for(atomic_load(&in_call) == THREADS - 1));
    oribi_worker_stop(stage.site.worker);
    ok(wait_for(((void)client_read(idle), idle->eof)));
    ok_eq(atomic_load(&in_call), THREADS - 1);
    atomic_store(&let_go, THREADS - 1);
    for (int i = 0; i < THREADS - 1; i++)
        ok(is_answer(held[i], "held"));
    for (int i = 0; i < THREADS - 1; i++)
        client_close(&stage.site, held[i]);
    client_close(&stage.site, idle);
    stage_join(&stage);
    stage_destroy(&stage);
}

static void test_requests_max_is_counted_once_for_all(void)
{
    struct stage stage;
    stage_init(&stage);
    stage.site.options.requests_max = (struct oribi_range){10, 10};
    stage_start(&stage);
    for (int i = 0; i < 10; i++) {
        struct client *c = ask(&stage, GET("/sleep/100"));
        ok_eq(status_of(c), 200);
        client_close(&stage.site, c);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(stage.threads[i], NULL);
    ok_eq(oribi_worker_request_count(stage.site.worker), 10);
    stage_destroy(&stage);
}

static void *wait_for_once(void *self)
{
    return oribi_thread_wait(self, -1) ? self : NULL;
}

static void test_a_hand_is_woken_whether_it_leads_or_follows(void)
{
    struct stage stage;
    pthread_t threads[2];
    void *result;
    stage_init(&stage);
    site_open(&stage.site, app);
    struct oribi_worker *w = stage.site.worker;
    ok_eq(oribi_threads_open(w, 2), 0);
    for (int round = 0; round < 50; round++) {
        for (uint32_t i = 0; i < 2; i++)
            ok_eq(pthread_create(&threads[i], NULL, wait_for_once, oribi_thread(w, i)), 0);
        for (uint32_t i = 0; i < 2; i++) {
            oribi_thread_wake(oribi_thread(w, (i + (uint32_t)round) % 2));
            pthread_join(threads[(i + (uint32_t)round) % 2], &result);
            ok(!result);
        }
    }
    ok_eq(pthread_create(&threads[0], NULL, wait_for_once, oribi_thread(w, 0)), 0);
    oribi_worker_wake(w);
    pthread_join(threads[0], &result);
    ok(!result);
    ok(!oribi_thread_wait(oribi_thread(w, 0), 1)); /* and comes back by itself when its time is over */
    oribi_worker_stop(w);
    ok(wait_for(!oribi_thread_take(oribi_thread(w, 0)) && oribi_thread_done(oribi_thread(w, 0))));
    stage_destroy(&stage);
}

static void test_a_fork_inside_a_call(void)
{
    struct stage stage;
    stage_init(&stage);
    stage_start(&stage);
    struct client *c[8];
    for (int i = 0; i < 8; i++)
        c[i] = ask(&stage, GET("/fork"));
    for (int i = 0; i < 8; i++)
        ok(is_answer(c[i], "good"));
    stage_close(&stage);
}

/* A runtime's handler: on the thread of the call. */
static void on_deadline(int signal_number)
{
    if (own_number >= 0)
        atomic_store(&told[own_number], 1);
}

static void test_the_deadline_finds_its_thread(void)
{
    struct stage stage;
    struct sigaction action = {.sa_handler = on_deadline};
    (void)sigaction(SIGUSR1, &action, NULL);
    memset((void *)told, 0, sizeof(told));
    stage_init(&stage);
    stage.site.options.helper = true;
    stage.site.options.call_timeout_ms = 150;
    site_open(&stage.site, app);
    stage.site.worker->setup.deadline_signal = SIGUSR1;
    ok_eq(oribi_threads_open(stage.site.worker, THREADS), 0);
    for (uint32_t i = 0; i < THREADS; i++)
        ok_eq(pthread_create(&stage.threads[i], NULL, serve, oribi_thread(stage.site.worker, i)), 0);
    struct client *extended = ask(&stage, GET("/overdue/1"));
    ok(wait_for(atomic_load(&in_call) == 1));
    struct client *late[] = {ask(&stage, GET("/overdue/2")), ask(&stage, GET("/overdue/3"))};
    ok(is_answer(late[0], "told"));
    ok(is_answer(late[1], "told"));
    ok_eq(atomic_load(&told[1]), 0);
    /* The deadline that the supervisor sees, once the calls that have ended are off the board. */
    ok(wait_for(atomic_load(&stage.site.slot.call_deadline_us) > oribi_clock_us() + 1000000));
    atomic_store(&let_go, 1);
    ok(is_answer(extended, "not told"));
    stage_close(&stage);
}

/* How many threads are free is what siblings count. */
static void test_placement_counts_free_capacity(void)
{
    struct stage stage;
    struct oribi_scoreboard board;
    stage_init(&stage);
    site_open(&stage.site, app);
    struct oribi_worker *w = stage.site.worker;
    ok_eq(oribi_scoreboard_create(&board, 3), 0);
    w->setup.board = &board;
    atomic_store(&board.slots[0].state, ORIBI_SLOT_IDLE);
    atomic_store(&board.slots[1].state, ORIBI_SLOT_IDLE);
    atomic_store(&board.slots[1].threads, 5);
    atomic_store(&board.slots[1].threads_busy, 2);
    atomic_store(&board.slots[2].state, ORIBI_SLOT_BUSY);
    ok_eq(oribi__idle_siblings(w, 9), 4);
    ok_eq(oribi_threads_open(w, 3), 0); /* two more beside the one that takes the next */
    ok_eq(oribi__idle_siblings(w, 9), 1);
    atomic_store(&w->slot->threads_busy, 3);
    ok_eq(oribi__idle_siblings(w, 9), 4);
    atomic_store(&w->slot->threads_busy, 0);
    oribi_threads_close(w);
    w->setup.board = NULL;
    oribi_scoreboard_destroy(&board);
    stage_destroy(&stage);
}

static int ask_anything(struct client *c, uint32_t *seed)
{
    char text[160];
    *seed = *seed * 1103515245u + 12345u;
    int kind = *seed >> 16 & 7;
    if (kind < 3)
        (void)snprintf(text, sizeof(text), "GET /sleep/%u HTTP/1.1\r\nHost: a\r\n\r\n", (*seed >> 20 & 15) * 100);
    else if (kind < 5)
        (void)snprintf(text, sizeof(text), "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\n%08u",
                       *seed % 100000000);
    else if (kind == 5)
        (void)snprintf(text, sizeof(text), "GET /stream/20 HTTP/1.1\r\nHost: a\r\n\r\n");
    else
        (void)snprintf(text, sizeof(text),
                       "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n%08u\r\n0\r\n\r\n",
                       *seed % 100000000);
    return say(c, text) ? kind : -1;
}

static bool as_asked(const struct answer *answer, int kind, uint32_t seed)
{
    char body[9];
    (void)snprintf(body, sizeof(body), "%08u", seed % 100000000);
    if (answer->status != 200)
        return false;
    if (kind < 3)
        return true;
    return kind == 5 ? answer->body_len == 10000 : answer->body_len == 8 && !memcmp(answer->body, body, 8);
}

static void test_many_clients_and_mixed_calls(void)
{
    enum { CLIENTS = 64 };
    struct stage stage;
    struct client *c[CLIENTS];
    int kind[CLIENTS];
    uint32_t seed[CLIENTS];
    int64_t end = oribi_clock_ms() + (getenv("ORIBI_SOAK") ? 60000 : 1500);
    long answers = 0;
    long wrong = 0;
    stage_init(&stage);
    stage.site.options.helper = true;
    stage_start(&stage);
    for (int i = 0; i < CLIENTS; i++) {
        c[i] = client_open(&stage.site);
        seed[i] = (uint32_t)i * 7919u;
        kind[i] = -1;
    }
    for (bool going = true, open = true; open;) {
        going = going && oribi_clock_ms() < end;
        open = false;
        for (int i = 0; i < CLIENTS; i++) {
            struct answer answer;
            size_t len;
            (void)client_read(c[i]);
            if (kind[i] >= 0 && peek_answer(c[i], false, &answer, &len)) {
                answers++;
                wrong += !as_asked(&answer, kind[i], seed[i]);
                c[i]->pos += len;
                wrong += c[i]->pos != c[i]->got_len; /* nobody else's bytes */
                c[i]->pos = c[i]->got_len = 0;
                kind[i] = -1;
            }
            wrong += c[i]->eof || c[i]->error;
            if (kind[i] < 0 && going)
                kind[i] = ask_anything(c[i], &seed[i]);
            open |= kind[i] >= 0 && !c[i]->eof && !c[i]->error && oribi_clock_ms() < end + PUMP_MS_MAX;
        }
        (void)poll(NULL, 0, 1);
    }
    for (int i = 0; i < CLIENTS; i++)
        wrong += kind[i] >= 0;
    ok_eq(wrong, 0);
    ok_named(answers > 100, "%ld answers", answers);
    ok_named(atomic_load(&most) > 1, "%d calls at a time", atomic_load(&most));
    stage_close(&stage);
}

int main(void)
{
    quiet_log();
    alarm(1000);
    run_everywhere(test_as_many_calls_as_capacity_at_a_time);
    run_everywhere(test_one_free_hand_serves_the_others_connections);
    run_everywhere(test_the_helper_has_the_reactor_when_no_hand_is_free);
    run_everywhere(test_short_calls_in_a_row_are_one_hands);
    run_everywhere(test_a_call_that_lasts_is_seen);
    run_everywhere(test_a_request_is_taken_with_the_lock_and_a_helper);
    run_everywhere(test_a_request_is_taken_with_the_lock_and_no_helper);
    run_everywhere(test_a_hand_that_does_not_come);
    run_everywhere(test_answers_of_one_connection_keep_their_order);
    run_everywhere(test_streams_and_hijacked_sockets);
    run_everywhere(test_a_slow_reader_holds_its_own_hand_only);
    run_everywhere(test_a_stop_waits_for_all_calls);
    run_everywhere(test_requests_max_is_counted_once_for_all);
    run_everywhere(test_a_hand_is_woken_whether_it_leads_or_follows);
    run_everywhere(test_a_fork_inside_a_call);
    test_the_deadline_finds_its_thread();
    test_placement_counts_free_capacity();
    run_everywhere(test_many_clients_and_mixed_calls);
    return done_testing();
}
