/* A worker that runs out of descriptors: what is in the hand-off queue stays there for others, newcomers are left to
 * them, and nothing is lost in silence. */
#include "worker/placement/placement.c"

#include "worker/two.h"

#include <sys/resource.h>

#include <signal.h>
#include <sys/wait.h>

/* Worker 0 passes all but one of three requests on to worker 1. */
static struct oribi_req *pass_two(struct two *two, struct client *c[3])
{
    accept_all(two, c, 3, GET("/hello"));
    set_idle(two, 1);
    struct oribi_req *mine = oribi_worker_take(two->workers[0]);
    ok_eq(oribi__pass_on(two->workers[0], 0) + atomic_load(&two->site.board.slots[0].passed_count) >= 2, 1);
    return mine;
}

static bool starved(struct two *two, int i)
{
    return atomic_load(&two->site.board.slots[i].starved);
}

static void test_the_pool_is_left_alone_without_descriptors(void)
{
    struct two two;
    struct client *c[3];
    two_open(&two);
    struct oribi_req *mine = pass_two(&two, c);
    ok_eq(two.workers[0]->reactor.conn_count, 1);
    limit_descriptors(1); /* one is not enough: a body may come in a file */
    for (int i = 0; i < 3; i++)
        ok(!oribi_worker_take(two.workers[1]));
    ok_eq(two.workers[1]->reactor.conn_count, 0);
    ok(starved(&two, 1));
    ok_eq(oribi__idle_siblings(two.workers[0], 1), 0); /* nobody gives it anything */
    ok(!two.workers[1]->placement.watched);
    struct oribi_event events[8];
    ok_eq(oribi_loop_poll(two.workers[1]->reactor.loop, 0, events, 8), 0); /* and what is there keeps it not awake */
    ok_eq(oribi__wait_bound_ms(two.workers[1]), 1000);
    limit_descriptors(-1);
    two.site.worker = two.workers[1];
    for (int i = 1; i < 3; i++)
        ok_answer(&two.site, c[i], 200, "hello\n");
    ok(!starved(&two, 1));
    ok(two.workers[1]->placement.watched);
    reply_text(mine, 200, "mine");
    ok_answer(&two.site, c[0], 200, "mine");
    ok_eq(atomic_load(&two.site.board.slots[1].lost_count), 0);
    two_close(&two);
}

/* The worker that gave it takes it back. */
static void test_what_nobody_takes_comes_back(void)
{
    struct two two;
    struct client *c[3];
    two_open(&two);
    struct oribi_req *mine = pass_two(&two, c);
    limit_descriptors(0);
    ok(!oribi_worker_take(two.workers[1]));
    limit_descriptors(-1);
    reply_text(mine, 200, "mine");
    two.site.worker = two.workers[0];
    ok_answer(&two.site, c[0], 200, "mine");
    for (int i = 1; i < 3; i++)
        ok_answer(&two.site, c[i], 200, "hello\n");
    ok_eq(two.workers[0]->reactor.conn_count, 3);
    two_close(&two);
}

/* Another thread was faster to the last descriptor: what came without one is counted and logged, and a client whose
 * socket did come hears 503. */
static void check_lost(int room, bool answered)
{
    struct two two;
    struct client *c[2];
    char *body = big_text(300000);
    char *text = malloc(300200);
    two_open(&two);
    accept_all(&two, c, 2, "");
    int n = snprintf(text, 200, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\n\r\n");
    memcpy(text + n, body, 300001);
    size_t sent = 0;
    while (two.workers[0]->reactor.queue_len < 1) {
        ssize_t put = send(c[0]->fd, text + sent, (size_t)n + 300000 - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        sent += put > 0 ? (size_t)put : 0;
        oribi__turn_connections(two.workers[0]);
    }
    set_idle(&two, 1);
    ok_eq(oribi__pass_on(two.workers[0], 0), 1);
    limit_descriptors(room);
    struct oribi_handoff_item item;
    struct oribi_worker *w = two.workers[1];
    ok_eq(oribi_handoff_take(&w->placement.queue, w->placement.buf, ORIBI_HANDOFF_BUF_BYTES, &item), ORIBI_ELIMIT);
    lose(w, &item);
    limit_descriptors(-1);
    ok_eq(atomic_load(&two.site.board.slots[1].lost_count), 1);
    two.site.worker = w;
    if (answered) {
        struct answer answer = ok_answer(&two.site, c[0], 503, NULL);
        ok(answer.closes && has_line(&answer, "Retry-After: 1"));
    } else {
        ok(pump_until(&two.site, c[0]->eof || c[0]->error));
    }
    two_close(&two);
    free(body);
    free(text);
}

static void test_what_came_without_its_descriptor_is_counted(void)
{
    check_lost(0, false);
    check_lost(1, true);
}

/* ---- processes, which sleep ---- */

static pid_t start(struct two *two, int index)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    struct oribi_worker *w;
    struct oribi_worker_setup setup = {.options = &two->site.options,
                                       .listeners = &two->site.listeners,
                                       .slot = &two->site.board.slots[index],
                                       .board = &two->site.board,
                                       .handoff = &two->handoff,
                                       .life_fd = -1};
    if (oribi_worker_create(&setup, &w) < 0)
        _exit(1);
    for (;;) {
        struct oribi_req *req = oribi_worker_take(w);
        if (req)
            route(req);
        else
            oribi_worker_wait_for(w, -1);
    }
}

/* The lowest number that is free there is beyond what it may open. */
static void starve_process(pid_t pid)
{
    char path[64];
    struct rlimit limit;
    rlim_t fd = 0;
    do
        (void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, (int)fd);
    while (access(path, F_OK) == 0 && ++fd);
    ok_eq(prlimit(pid, RLIMIT_NOFILE, NULL, &limit), 0);
    limit.rlim_cur = fd;
    ok_eq(prlimit(pid, RLIMIT_NOFILE, &limit, NULL), 0);
}

/* The kernel tells one sleeper of a newcomer, here the one without descriptors, which slept first. */
static void test_newcomers_go_to_a_sibling_that_sleeps(void)
{
    struct two two;
    struct client *c[3];
    pid_t pids[2];
    two_open(&two);
    for (int i = 0; i < 2; i++)
        oribi_worker_destroy(two.workers[i]);
    for (int i = 0; i < 2; i++) {
        pids[i] = start(&two, i);
        ok(wait_for(atomic_load(&two.site.board.slots[i].state) == ORIBI_SLOT_IDLE));
    }
    starve_process(pids[0]);
    for (int i = 0; i < 3; i++) {
        c[i] = client_open(&two.site);
        ok(say(c[i], GET("/hello")));
        ok_eq(status_of(c[i]), 200);
    }
    ok(wait_for(atomic_load(&two.site.board.slots[1].request_count) == 3)); /* counted behind the answer */
    for (int i = 0; i < 2; i++) {
        kill(pids[i], SIGKILL);
        ok_eq(waitpid(pids[i], NULL, 0), pids[i]);
    }
    close_clients(&two.site);
    oribi_listeners_close(&two.site.listeners, true);
    oribi_options_deinit(&two.site.options);
    oribi_scoreboard_destroy(&two.site.board);
    oribi_handoff_close(&two.handoff);
}

int main(void)
{
    quiet_log();
    alarm(1000);
    run_everywhere(test_the_pool_is_left_alone_without_descriptors);
    run_everywhere(test_what_nobody_takes_comes_back);
    run_everywhere(test_what_came_without_its_descriptor_is_counted);
    run_everywhere(test_newcomers_go_to_a_sibling_that_sleeps);
    return done_testing();
}
