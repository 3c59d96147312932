/* Calls over their deadline: worker processes with the helper and without, a runtime that listens, one that hangs,
 * one that takes no signals. */
#include "worker/deadline.c"

#include "worker/talk.h"
#include "system.h"

#include <math.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { CALL_TIMEOUT_MS = 100 };

struct world {
    struct site site; /* listener, options and clients; its worker is not used */
    struct oribi_scoreboard board;
    struct oribi_handoff handoff;
    int log_fd;
    pid_t pid;
};

/* ---- the worker process ---- */

static struct oribi_thread *calling;

/* In memory that test and workers share: does call_timeout count for a call that hangs? The test says so when all that
 * it wants to see before the end is there, however long the machine takes for that. */
static atomic_bool *hang_counts;

/* ThreadSanitizer holds signals back until the thread calls the C library. */
static void spin(void)
{
#ifdef __SANITIZE_THREAD__
    (void)poll(NULL, 0, 1);
#endif
}

/* Code that never returns to its runtime. */
static void hang(void)
{
    oribi_thread_extend_deadline(calling, 60000);
    while (!atomic_load(hang_counts))
        spin();
    oribi_thread_extend_deadline(calling, CALL_TIMEOUT_MS);
    volatile bool forever = true;
    while (forever)
        spin();
}
static volatile sig_atomic_t thrown;

/* As a runtime does it: it throws where it is safe, which here is the end of a nap. */
static void on_deadline(int signal_number)
{
    if (calling && oribi_thread_overdue(calling))
        thrown++;
}

static void nap_for(int64_t ms)
{
    int64_t end = oribi_clock_ms() + ms;
    while (oribi_clock_ms() < end)
        (void)poll(NULL, 0, 10);
}

static bool is_over(int64_t since_us)
{
    return oribi_clock_us() - since_us >= CALL_TIMEOUT_MS * 1000;
}

/* The machine did not get there before the deadline, which then rightly comes. */
static bool too_late;

static void extend(struct oribi_thread *thread)
{
    oribi_thread_extend_deadline(thread, 60000);
    too_late = is_over(atomic_load(thread->started_us));
}

static void *extend_soon(void *thread)
{
    nap_for(CALL_TIMEOUT_MS / 4);
    extend(thread);
    return NULL;
}

static const char *outcome(const char *if_thrown, const char *if_not)
{
    return too_late ? "too late" : thrown ? if_thrown : if_not;
}

/* More in the kernel's and our own buffers than the client has room for. */
static void fill_up(struct oribi_req *req)
{
    static char much[1 << 20];
    struct iovec vec = {memset(much, 'x', sizeof(much)), sizeof(much)};
    while (oribi_reply_write(req, &vec, 1) == 0)
        continue;
}

static void stream(struct oribi_req *req)
{
    struct iovec vec = {(char *)".", 1};
    (void)oribi_reply_begin(req, 200, &text_type, 1, -1);
    if (path_is(req, "/trickle")) {
        int64_t last_us = atomic_load(calling->started_us);
        for (int i = 0; i < 30; i++) {
            int64_t now_us = oribi_clock_us();
            (void)oribi_reply_write(req, &vec, 1);
            too_late = too_late || is_over(last_us);
            last_us = now_us;
            nap_for(CALL_TIMEOUT_MS / 20);
        }
        too_late = too_late || is_over(last_us);
    } else {
        fill_up(req);
        thrown += oribi_reply_wait(req) != 0;
    }
    const char *text = outcome("told", "left alone");
    vec = (struct iovec){(char *)text, strlen(text)};
    (void)oribi_reply_write(req, &vec, 1);
    (void)oribi_reply_end(req);
}

static void answer_and_go_on(struct oribi_req *req)
{
    bool hangs = path_is(req, "/after-hang");
    reply_text(req, 200, "answered");
    oribi_thread_after(calling);
    if (hangs)
        hang();
    while (!thrown)
        (void)poll(NULL, 0, 60000); /* broken off by the signal */
    oribi_thread_back(calling);
}

static bool reads_what_is_not_there;

/* Frames, as a binding reads them from its runtime. */
static size_t show_frames(void *self, uint32_t thread, bool own_thread, char *dst, size_t cap)
{
    if (reads_what_is_not_there)
        (void)raise(SIGSEGV);
    return (size_t)snprintf(dst, cap, "app.x:7: in hang of thread %u, %s\n", thread,
                            own_thread ? "stopped" : "running");
}

static void block_signals(void)
{
    sigset_t all;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, NULL);
}

static void app(struct oribi_req *req)
{
    calling = oribi__exchange_of(req)->thread;
    thrown = 0;
    too_late = false;
    if (path_is(req, "/hang")) {
        hang();
    } else if (path_is(req, "/hang-in-pieces")) {
        reads_what_is_not_there = true;
        hang();
    } else if (path_is(req, "/deaf")) {
        block_signals();
        hang();
    } else if (path_is(req, "/stream")) {
        struct iovec vec = {(char *)"begun", 5};
        (void)oribi_reply_begin(req, 200, &text_type, 1, -1);
        (void)oribi_reply_write(req, &vec, 1);
        hang();
    } else if (path_is(req, "/listens")) {
        while (!thrown)
            (void)poll(NULL, 0, 60000); /* broken off by the signal */
        reply_text(req, 503, "timed out");
    } else if (path_is(req, "/left")) {
        while (!oribi_thread_take_gone(calling))
            (void)poll(NULL, 0, 60000); /* broken off by the signal */
        oribi_reply_gone(req);
    } else if (path_is(req, "/listens-late")) {
        int64_t end = oribi_clock_ms() + 3 * CALL_TIMEOUT_MS;
        while (oribi_clock_ms() < end)
            (void)poll(NULL, 0, 10);
        reply_text(req, 200, thrown == 1 ? "once" : thrown ? "more than once" : "never");
    } else if (path_is(req, "/extended")) {
        extend(calling);
        nap_for(3 * CALL_TIMEOUT_MS);
        reply_text(req, 200, outcome("told", "not told"));
    } else if (path_is(req, "/extended-by-a-thread")) {
        pthread_t thread;
        (void)pthread_create(&thread, NULL, extend_soon, calling);
        nap_for(3 * CALL_TIMEOUT_MS);
        (void)pthread_join(thread, NULL);
        reply_text(req, 200, outcome("told", "not told"));
    } else if (path_is(req, "/trickle") || path_is(req, "/flood")) {
        stream(req);
    } else if (path_is(req, "/after-hang") || path_is(req, "/after-listens")) {
        answer_and_go_on(req);
    } else if (path_is(req, "/long")) {
        (void)poll(NULL, 0, 5);
        reply_text(req, 200, "long");
    } else {
        route(req);
    }
    calling = NULL;
}

static _Noreturn void worker_main(struct world *world)
{
    struct oribi_worker *w;
    struct oribi_worker_setup setup = {.options = &world->site.options,
                                       .listeners = &world->site.listeners,
                                       .slot = &world->board.slots[0],
                                       .board = &world->board,
                                       .handoff = &world->handoff,
                                       .deadline_signal = SIGURG,
                                       .life_fd = -1};
    struct sigaction action = {.sa_handler = on_deadline};
    (void)sigaction(SIGURG, &action, NULL);
    (void)dup2(world->log_fd, STDERR_FILENO);
    oribi_log_init(STDERR_FILENO, ORIBI_LOG_DEBUG);
    alarm(1000);
    if (oribi_worker_create(&setup, &w) < 0)
        _exit(1);
    oribi_worker_show_frames(w, show_frames, NULL);
    for (;;) {
        struct oribi_req *req = oribi_worker_take(w);
        if (req)
            app(req);
        else
            oribi_worker_wait_for(w, -1);
    }
}

/* ---- the test's side ---- */

static void start(struct world *world)
{
    fflush(stdout);
    world->pid = fork();
    if (world->pid == 0)
        worker_main(world);
}

static void world_open_for(struct world *world, bool helper, bool cancels)
{
    memset(world, 0, sizeof(*world));
    atomic_store(hang_counts, true);
    site_init(&world->site);
    world->site.options.call_timeout_ms = cancels ? 0 : CALL_TIMEOUT_MS;
    world->site.options.helper = helper;
    char error[ORIBI_ERROR_TEXT_CAP];
    ok_eq(oribi_options_set(&world->site.options, "cancel_gone", cancels ? "on" : "off", error), 0);
    site_open(&world->site, route);
    oribi_worker_destroy(world->site.worker);
    (void)oribi_scoreboard_create(&world->board, 2);
    (void)oribi_handoff_create(&world->handoff);
    (void)oribi_os_temp_file(&world->log_fd);
    start(world);
}

static void world_open(struct world *world, bool helper)
{
    world_open_for(world, helper, false);
}

static void world_close(struct world *world)
{
    if (world->pid > 0) {
        kill(world->pid, SIGKILL);
        waitpid(world->pid, NULL, 0);
    }
    close_clients(&world->site);
    oribi_listeners_close(&world->site.listeners, true);
    oribi_options_deinit(&world->site.options);
    oribi_scoreboard_destroy(&world->board);
    oribi_handoff_close(&world->handoff);
    oribi_os_close(world->log_fd);
}

static bool logged(struct world *world, const char *text)
{
    char log[16384] = "";
    ssize_t n = pread(world->log_fd, log, sizeof(log) - 1, 0);
    bool found = n > 0 && strstr(log, text);
    if (!found)
        diag("log: %s", log);
    return found;
}

static void ask(struct client *c, const char *path)
{
    char text[128];
    int n = snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path);
    ok_eq(send(c->fd, text, (size_t)n, MSG_NOSIGNAL), n);
}

static struct client *ask_new(struct world *world, const char *path)
{
    struct client *c = client_open(&world->site);
    ask(c, path);
    return c;
}

static int exit_code(struct world *world)
{
    int status = 0;
    if (!wait_for(waitpid(world->pid, &status, WNOHANG) == world->pid))
        return -1;
    world->pid = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* Reminds the worker, as the supervisor does when there is no helper, until the condition holds. */
#define remind_until(world, condition)                                                                                 \
    wait_for((kill((world)->pid, oribi_os_private_signal()), (void)poll(NULL, 0, 20), (condition)))

static void warm_up(struct world *world)
{
    struct answer answer;
    struct client *c = ask_new(world, "/long"); /* brings the helper in */
    ok_eq(heard(c, &answer), 200);
    client_close(&world->site, c);
}

static void test_the_runtime_is_told_at_the_deadline(void)
{
    struct world world;
    struct answer answer;
    world_open(&world, true);
    warm_up(&world);
    int64_t start_ms = oribi_clock_ms();
    struct client *c = ask_new(&world, "/listens");
    ok_eq(heard(c, &answer), 503);
    is_bytes(answer.body, answer.body_len, "timed out", 9);
    ok(oribi_clock_ms() - start_ms >= CALL_TIMEOUT_MS);
    ok(oribi_clock_ms() - start_ms < ORIBI_DEADLINE_HARD_MS);
    ask(c, "/listens-late");
    ok_eq(heard(c, &answer), 200);
    is_bytes(answer.body, answer.body_len, "once", 4);
    ask(c, "/hello"); /* and the worker goes on */
    ok_eq(heard(c, &answer), 200);
    world_close(&world);
}

static uint64_t cancelled(const struct world *world)
{
    return atomic_load(&world->board.slots[0].cancelled_count);
}

/* One after the other, each on a connection that the loop does not watch yet, and on one that it does. */
static void test_the_runtime_is_told_of_clients_that_left(void)
{
    struct world world;
    struct answer answer;
    world_open_for(&world, true, true);
    struct client *other = ask_new(&world, "/hello");
    ok_eq(heard(other, &answer), 200);
    for (uint64_t i = 0; i < 6; i++) {
        struct client *c = client_open(&world.site);
        if (i % 2) {
            ask(c, "/hello");
            ok_eq(heard(c, &answer), 200);
        }
        ask(c, "/left");
        ok(wait_for(memcmp(world.board.slots[0].line, "GET /left", 9) == 0 &&
                    atomic_load(&world.board.slots[0].call_started_us)));
        client_close(&world.site, c);
        ok(wait_for(cancelled(&world) == i + 1 && !atomic_load(&world.board.slots[0].call_started_us)));
        ask(other, "/hello");
        ok_eq(heard(other, &answer), 200);
    }
    ok_eq(cancelled(&world), 6);
    ok_eq(atomic_load(&world.board.slots[0].status_class[0]), 6);
    ok_eq(atomic_load(&world.board.slots[0].overdue_count), 0);
    world_close(&world);
}

/* A call that extends its deadline is not told, unless the machine was too slow for it: then it is asked for again. */
static void check_extension(const char *path)
{
    struct world world;
    struct answer answer = {0};
    world_open(&world, true);
    warm_up(&world);
    struct client *c = client_open(&world.site);
    ok(wait_for((ask(c, path), heard(c, &answer) != 200 || memcmp(answer.body, "too late", 8) != 0)));
    ok_eq(answer.status, 200);
    is_bytes(answer.body, answer.body_len, "not told", 8);
    world_close(&world);
}

static void test_an_extended_call_is_left_alone(void)
{
    check_extension("/extended");
}

static void test_a_thread_of_the_application_extends_too(void)
{
    check_extension("/extended-by-a-thread");
}

static bool ends_with(const struct client *c, const char *text)
{
    return memmem(c->got, c->got_len, text, strlen(text)) && memmem(c->got, c->got_len, "0\r\n\r\n", 5);
}

/* The client of the answer to the `count`-th request; the machine may be too slow to send it in time. */
static struct client *ask_for_trickle(struct world *world, uint64_t *count)
{
    struct client *c = ask_new(world, "/trickle");
    ok(wait_for(((void)client_read(c), c->eof || memmem(c->got, c->got_len, "0\r\n\r\n", 5))));
    ++*count;
    return c;
}

static void test_what_is_written_begins_the_clock_anew(void)
{
    struct world world;
    uint64_t count = 1;
    world_open(&world, true);
    warm_up(&world);
    struct client *c;
    ok(wait_for((c = ask_for_trickle(&world, &count), !ends_with(c, "too late"))));
    ok(ends_with(c, "left alone"));
    ok(wait_for(atomic_load(&world.board.slots[0].request_count) == count));
    world_close(&world);
}

/* The client takes longer than call_timeout and the time after it, then reads. */
static void test_waiting_for_the_client_does_not_count(void)
{
    struct world world;
    world_open(&world, true);
    warm_up(&world);
    struct client *c = ask_new(&world, "/flood");
    ok(wait_for(atomic_load(&world.board.slots[0].call_started_us) &&
                !atomic_load(&world.board.slots[0].call_deadline_us)));
    nap_for(CALL_TIMEOUT_MS + ORIBI_DEADLINE_HARD_MS + 2 * ORIBI_DEADLINE_TAKEOVER_MS);
    ok(wait_for(((void)client_read(c), c->eof || c->error || ends_with(c, "left alone"))));
    ok(ends_with(c, "left alone"));
    world_close(&world);
}

static void test_what_runs_after_the_answer_has_a_deadline(void)
{
    struct world world;
    struct answer answer;
    world_open(&world, true);
    warm_up(&world);
    struct client *c = ask_new(&world, "/after-listens");
    ok_eq(heard(c, &answer), 200);
    ask(c, "/hello"); /* it was told, and came back */
    ok_eq(heard(c, &answer), 200);
    struct client *waiting = ask_new(&world, "/hello");
    ok_eq(heard(waiting, &answer), 200);

    atomic_store(hang_counts, false);
    ask(c, "/after-hang");
    ok_eq(heard(c, &answer), 200);
    is_bytes(answer.body, answer.body_len, "answered", 8);
    ask(waiting, "/waited"); /* read meanwhile */
    ok(wait_for(atomic_load(&world.board.slots[0].queue_len) == 1));
    atomic_store(hang_counts, true);
    ok_eq(exit_code(&world), ORIBI_EXIT_CALL_DEADLINE);
    ok(logged(&world, "call deadline: GET /after-hang has run for"));
    ok(logged(&world, "answer complete; 2 connections passed on, 0 cut"));
    start(&world);
    ok_eq(heard(waiting, &answer), 200);
    is_bytes(answer.body, answer.body_len, "/waited", 7);
    world_close(&world);
}

static void test_a_signal_to_a_call_in_time_does_nothing(void)
{
    struct world world;
    struct answer answer;
    world_open(&world, false);
    struct client *c = ask_new(&world, "/extended");
    bool found = false;
    ok(remind_until(&world, (found = heard(c, &answer) == 200)));
    is_bytes(answer.body, answer.body_len, "not told", 8);
    world_close(&world);
}

static void test_without_a_helper_the_supervisor_reminds(void)
{
    struct world world;
    struct answer answer;
    size_t len;
    world_open(&world, false);
    struct client *c = ask_new(&world, "/listens");
    ok(remind_until(&world, ((void)client_read(c), peek_answer(c, false, &answer, &len))));
    ok_eq(heard(c, &answer), 503);
    world_close(&world);
}

/* A hung call: 504 for its client, the others go to the next worker, the process ends with its code and says why. */
/* Native frames are found by glibc's unwinder. */
#ifdef __GLIBC__
#define NATIVE "    C: "
#else
#define NATIVE ""
#endif

static void check_hang(const char *path, bool helper, const char *log_line)
{
    struct world world;
    struct answer answer;
    size_t len;
    world_open(&world, helper);
    if (helper)
        warm_up(&world);
    struct client *idle = ask_new(&world, "/hello");
    ok_eq(heard(idle, &answer), 200);
    struct client *waiting = ask_new(&world, "/hello");
    ok_eq(heard(waiting, &answer), 200);
    atomic_store(hang_counts, false);
    struct client *stuck = ask_new(&world, path);
    ok(wait_for(atomic_load(&world.board.slots[0].state) == ORIBI_SLOT_BUSY &&
                atomic_load(&world.board.slots[0].call_started_us)));
    atomic_store(&world.board.slots[0].long_call_us, 0); /* of the call that brought the helper in */
    if (helper) { /* without one nobody reads it meanwhile, but it is not lost either */
        ask(waiting, "/waited");
        ok(wait_for(atomic_load(&world.board.slots[0].queue_len) == 1));
    }
    atomic_store(hang_counts, true);
    if (!helper)
        ok(remind_until(&world, ((void)client_read(stuck), peek_answer(stuck, false, &answer, &len))));
    ok_named(heard(stuck, &answer) == 504, "%s: 504", path);
    ok(answer.closes);
    ok(wait_for(((void)client_read(stuck), stuck->eof)));
    ok_eq(exit_code(&world), ORIBI_EXIT_CALL_DEADLINE);
    ok(logged(&world, "call deadline: GET /"));
    ok(logged(&world, log_line));
    ok(logged(&world, "2 connections passed on, 0 cut"));
    ok_named(atomic_load(&world.board.slots[0].long_call_us) != 0, "%s: the next worker will expect long calls", path);
    start(&world); /* the next worker of the slot */
    if (helper) {
        ok_eq(heard(waiting, &answer), 200);
        is_bytes(answer.body, answer.body_len, "/waited", 7);
    } else {
        ask(waiting, "/after");
        ok_eq(heard(waiting, &answer), 200);
    }
    ask(idle, "/hello");
    ok_eq(heard(idle, &answer), 200);
    world_close(&world);
}

static void test_a_hung_call_is_answered(void)
{
    bool known = oribi_os_adopts_orphans(); /* the language's frames */
    check_hang("/hang", true,
               known ? "innermost first\n    app.x:7: in hang of thread 0, stopped\n" NATIVE : "hang of thread 0");
    check_hang("/hang", false, known && *NATIVE ? "(deadline_test)\n" : "the worker ends\n"); /* a native frame */
    check_hang("/deaf", true, "    app.x:7: in hang of thread 0, running\n");
    check_hang("/hang-in-pieces", true, "the worker ends\n");
}

static void test_a_begun_answer_is_cut(void)
{
    struct world world;
    world_open(&world, true);
    warm_up(&world);
    struct client *c = ask_new(&world, "/stream");
    ok(wait_for(((void)client_read(c), c->eof || c->error)));
    ok(c->got_len > 0 && memmem(c->got, c->got_len, "begun", 5) && !memmem(c->got, c->got_len, "0\r\n\r\n", 5) &&
       !memmem(c->got, c->got_len, "504", 3));
    ok_eq(exit_code(&world), ORIBI_EXIT_CALL_DEADLINE);
    ok(logged(&world, "answer begun"));
    world_close(&world);
}

/* Suspended, frozen or stopped: the call has not run either. The helper looks again when all go on, and whoever is
 * looked at first must not be found minutes late. */
static void test_a_machine_that_stood_still_is_forgiven(void)
{
    const int64_t second = 1000000;
    struct oribi_slot slot = {0};
    struct oribi_worker *w = calloc(1, sizeof(*w));
    int64_t now = 1000 * second;
    w->slot = &slot;
    oribi__threads_init(w);
    atomic_store(&slot.call_started_us, now);
    atomic_store(&slot.call_deadline_us, now + 60 * second);

    ok_eq(oribi_deadline_look(w, now += second), 59001);
    ok_eq(oribi_deadline_look(w, now += ORIBI_DEADLINE_JUMP_MS * 1000 - 1), 56001);
    ok_eq(oribi_deadline_look(w, now += 300 * second), 56001);
    ok_eq(atomic_load(&slot.call_deadline_us), 1360 * second);
    ok_eq(oribi_deadline_look(w, now += ORIBI_DEADLINE_JUMP_MS * 1000), 56001);

    atomic_store(&slot.call_started_us, now + 10 * second); /* another call: nobody looked at it before it began */
    atomic_store(&slot.call_deadline_us, now + 70 * second);
    oribi_deadline_seen(w, now += 11 * second);
    ok_eq(oribi_deadline_look(w, now), 59001);

    atomic_store(&slot.call_deadline_us, 0); /* none is none */
    oribi_deadline_seen(w, now += 300 * second);
    ok_eq(atomic_load(&slot.call_deadline_us), 0);
    free(w);
}

/* One of several calls that waits for its client has none; it must not hide the deadline of another. */
static void test_a_call_that_waits_hides_no_deadline(void)
{
    struct oribi_slot slot = {0};
    struct oribi_thread threads[2];
    struct oribi_worker *w = calloc(1, sizeof(*w));
    memset(threads, 0, sizeof(threads));
    w->slot = &slot;
    w->threads.list = threads;
    w->threads.count = 2;
    for (int i = 0; i < 2; i++) {
        threads[i].worker = w;
        threads[i].started_us = &threads[i].own_started_us;
        threads[i].deadline_us = &threads[i].own_deadline_us;
        threads[i].line = threads[i].own_line;
        threads[i].after = true; /* runs, and has no request any more */
        atomic_store(threads[i].started_us, 1000 + i);
    }
    snprintf(threads[1].own_line, sizeof(threads[1].own_line), "GET /second");
    atomic_store(threads[1].deadline_us, 5000);
    oribi__note_entered(w);
    oribi__threads_publish(w);
    ok_eq(atomic_load(&slot.call_deadline_us), 5000);
    is_str(slot.line, "GET /second");
    atomic_store(threads[0].deadline_us, 4000);
    oribi__threads_publish(w);
    ok_eq(atomic_load(&slot.call_deadline_us), 4000);
    threads[0].after = threads[1].after = false;
    oribi__threads_publish(w);
    ok_eq(atomic_load(&slot.call_started_us), 0);
    oribi__note_entered(NULL);
    free(w);
}

static void test_what_applications_may_ask_for(void)
{
    ok_eq(oribi_extension_ms(1.5), 1500);
    ok_eq(oribi_extension_ms(0.0001), 1);
    ok_eq(oribi_extension_ms(ORIBI_EXTENSION_S_MAX), (int64_t)ORIBI_EXTENSION_S_MAX * 1000);
    const double refused[] = {0, -1, ORIBI_EXTENSION_S_MAX + 0.001, 1e300, NAN, INFINITY};
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        ok_eq(oribi_extension_ms(refused[i]), ORIBI_EBAD);
}

int main(void)
{
    quiet_log();
    alarm(1000);
    hang_counts = mmap(NULL, sizeof(*hang_counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (hang_counts == MAP_FAILED)
        return 2;
    test_what_applications_may_ask_for();
    test_a_call_that_waits_hides_no_deadline();
    test_a_machine_that_stood_still_is_forgiven();
    test_the_runtime_is_told_at_the_deadline();
    test_the_runtime_is_told_of_clients_that_left();
    test_an_extended_call_is_left_alone();
    test_a_thread_of_the_application_extends_too();
    test_what_is_written_begins_the_clock_anew();
    test_waiting_for_the_client_does_not_count();
    test_what_runs_after_the_answer_has_a_deadline();
    test_a_signal_to_a_call_in_time_does_nothing();
    test_without_a_helper_the_supervisor_reminds();
    test_a_hung_call_is_answered();
    test_a_begun_answer_is_cut();
    return done_testing();
}
