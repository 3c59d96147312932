/* Workers that die, or stand still, at every step of a hand-off: the requests that they have not taken are answered by
 * others. The fault points are compiled into the copy of the queue that this file includes. */
#define ORIBI_FAULTS 1
#include "worker/placement/handoff.c"

#include "worker/talk.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

static const char *fault_point; /* where this process gets fault_signal */
static int fault_signal;

void oribi__fault(const char *point)
{
    if (fault_point && strcmp(fault_point, point) == 0) {
        fault_point = NULL;
        raise(fault_signal);
    }
}

struct world {
    struct site site; /* listener and options; its worker is not used */
    struct oribi_handoff queue;
    pid_t pids[3];
};

static void world_open(struct world *world)
{
    memset(world, 0, sizeof(*world));
    site_init(&world->site);
    site_open(&world->site, route);
    oribi_worker_destroy(world->site.worker);
    ok_eq(oribi_handoff_create(&world->queue), 0);
    ok_eq(oribi_scoreboard_create(&world->site.board, 3), 0);
}

static _Noreturn void worker_main(struct world *world, int index, const char *point, int signal_number, bool listens)
{
    struct oribi_worker *w;
    struct oribi_listeners none = world->site.listeners;
    struct oribi_worker_setup setup = {.options = &world->site.options,
                                       .listeners = listens ? &world->site.listeners : &none,
                                       .slot = &world->site.board.slots[index],
                                       .board = &world->site.board,
                                       .handoff = &world->queue,
                                       .life_fd = -1};
    fault_point = point;
    fault_signal = signal_number;
    if (oribi_worker_create(&setup, &w) < 0)
        _exit(1);
    if (!listens)
        oribi__listener_watches_close(w), w->acceptor.watch_count = 0;
    else
        /* it would be free to take its own message back, and often the first to do so */
        oribi__handoff_watch(w, false);
    for (;;) {
        w->call_lengths.average_us = 10000;
        struct oribi_req *req = oribi_worker_take(w);
        if (!req)
            oribi_worker_wait_for(w, -1);
        else
            route(req);
    }
}

static void start(struct world *world, int index, const char *point, int signal_number, bool listens)
{
    pid_t pid = fork();
    if (pid == 0)
        worker_main(world, index, point, signal_number, listens);
    world->pids[index] = pid;
}

static void end(struct world *world, int index)
{
    if (world->pids[index] <= 0)
        return;
    kill(world->pids[index], SIGKILL);
    waitpid(world->pids[index], NULL, 0);
    world->pids[index] = 0;
}

static void world_close(struct world *world)
{
    for (int i = 0; i < 3; i++)
        end(world, i);
    close_clients(&world->site);
    oribi_listeners_close(&world->site.listeners, true);
    oribi_options_deinit(&world->site.options);
    oribi_scoreboard_destroy(&world->site.board);
    oribi_handoff_close(&world->queue);
}

static bool is_idle(struct world *world, int index)
{
    return atomic_load(&world->site.board.slots[index].state) == ORIBI_SLOT_IDLE;
}

static bool answered(struct client *c)
{
    struct answer answer;
    size_t len;
    (void)client_read(c);
    return peek_answer(c, false, &answer, &len) && answer.status == 200;
}

static bool cut(struct client *c)
{
    (void)client_read(c);
    return c->eof || c->error;
}

/* Worker 0, alone, so that it keeps both. */
static void open_two(struct world *world, struct client *c[2])
{
    ok(wait_for(is_idle(world, 0)));
    for (int i = 0; i < 2; i++) {
        c[i] = client_open(&world->site);
        ok(wait_for(atomic_load(&world->site.board.slots[0].connections_open) == (uint32_t)i + 1));
    }
}

/* It is stopped while both send, so that it finds two requests in one turn. */
static void send_at_once(struct world *world, struct client *c[2])
{
    ok(wait_for(is_idle(world, 0)));
    kill(world->pids[0], SIGSTOP);
    ok_eq(waitpid(world->pids[0], NULL, WUNTRACED), world->pids[0]);
    for (int i = 0; i < 2; i++)
        ok_eq(send(c[i]->fd, GET("/hello"), strlen(GET("/hello")), MSG_NOSIGNAL), (ssize_t)strlen(GET("/hello")));
}

static void test_sender_dies(const char *point, bool given)
{
    struct world world;
    struct client *c[2];
    world_open(&world);
    start(&world, 0, point, SIGKILL, true);
    open_two(&world, c);
    send_at_once(&world, c);
    atomic_store(&world.site.board.slots[1].state, ORIBI_SLOT_IDLE); /* it will be there when it is started */
    kill(world.pids[0], SIGCONT);
    int status;
    ok_eq(waitpid(world.pids[0], &status, 0), world.pids[0]);
    ok(WIFSIGNALED(status));
    world.pids[0] = 0;
    start(&world, 1, NULL, 0, false);
    if (given) {
        ok_named(wait_for(answered(c[0]) || answered(c[1])), "%s: what was given is answered", point);
        ok_named(wait_for(cut(c[0]) || cut(c[1])), "%s: what was not given is cut", point);
    } else {
        ok_named(wait_for(cut(c[0]) && cut(c[1])), "%s: both are cut", point);
    }
    world_close(&world);
}

static void test_receiver_dies_after_taking(void)
{
    struct world world;
    struct client *c[2];
    world_open(&world);
    start(&world, 0, NULL, 0, true);
    open_two(&world, c);
    start(&world, 1, "take: after recvmsg", SIGKILL, false);
    ok(wait_for(is_idle(&world, 1)));
    send_at_once(&world, c);
    kill(world.pids[0], SIGCONT);
    int status;
    ok_eq(waitpid(world.pids[1], &status, 0), world.pids[1]);
    world.pids[1] = 0;
    ok(wait_for(answered(c[0]) || answered(c[1])));
    ok(wait_for(cut(c[0]) || cut(c[1])));
    world_close(&world);
}

/* The sleeper that is woken is stopped, then killed: the message stays, and a wake-up finds the next sleeper. */
static void test_receiver_dies_before_taking(void)
{
    struct world world;
    struct client *c[2];
    world_open(&world);
    start(&world, 0, NULL, 0, true);
    open_two(&world, c);
    start(&world, 1, NULL, 0, false);
    ok(wait_for(is_idle(&world, 1)));
    send_at_once(&world, c);
    kill(world.pids[1], SIGSTOP);
    ok_eq(waitpid(world.pids[1], NULL, WUNTRACED), world.pids[1]);
    kill(world.pids[0], SIGCONT);
    ok(wait_for(atomic_load(&world.site.board.slots[0].passed_count) == 1));
    kill(world.pids[0], SIGSTOP); /* it would take its own message back */
    ok_eq(waitpid(world.pids[0], NULL, WUNTRACED), world.pids[0]);
    end(&world, 1);
    oribi_handoff_notify(&world.queue);
    start(&world, 2, NULL, 0, false);
    ok(wait_for(answered(c[0]) || answered(c[1])));
    kill(world.pids[0], SIGCONT);
    ok(wait_for(answered(c[0]) && answered(c[1])));
    world_close(&world);
}

static void test_a_wakeup_wakes_a_sleeper(void)
{
    struct world world;
    struct client *c[2];
    world_open(&world);
    start(&world, 0, NULL, 0, true);
    open_two(&world, c);
    start(&world, 1, NULL, 0, false);
    ok(wait_for(is_idle(&world, 1)));
    start(&world, 2, NULL, 0, false);
    ok(wait_for(is_idle(&world, 2)));
    send_at_once(&world, c);
    for (int i = 1; i < 3; i++) { /* both sleepers are woken by one message at most, and neither moves */
        kill(world.pids[i], SIGSTOP);
        ok_eq(waitpid(world.pids[i], NULL, WUNTRACED), world.pids[i]);
    }
    kill(world.pids[0], SIGCONT);
    ok(wait_for(atomic_load(&world.site.board.slots[0].passed_count) == 1));
    kill(world.pids[0], SIGSTOP);
    ok_eq(waitpid(world.pids[0], NULL, WUNTRACED), world.pids[0]);
    end(&world, 1);
    kill(world.pids[2], SIGCONT);
    oribi_handoff_notify(&world.queue);
    ok(wait_for(answered(c[0]) || answered(c[1])));
    kill(world.pids[0], SIGCONT);
    ok(wait_for(answered(c[0]) && answered(c[1])));
    world_close(&world);
}

/* Stopped at a step and let go later: everything is answered. */
static void test_stopped_at(const char *point, int victim)
{
    struct world world;
    struct client *c[2];
    world_open(&world);
    start(&world, 0, victim == 0 ? point : NULL, SIGSTOP, true);
    open_two(&world, c);
    start(&world, 1, victim == 1 ? point : NULL, SIGSTOP, false);
    ok(wait_for(is_idle(&world, 1)));
    send_at_once(&world, c);
    kill(world.pids[0], SIGCONT);
    int status;
    ok_eq(waitpid(world.pids[victim], &status, WUNTRACED), world.pids[victim]);
    ok(WIFSTOPPED(status));
    kill(world.pids[victim], SIGCONT);
    ok_named(wait_for(answered(c[0]) && answered(c[1])), "stopped at %s", point);
    world_close(&world);
}

/* Whoever made the queue may die while messages are in it. */
static void test_supervisor_dies(int signal_number)
{
    struct world world;
    struct client *c[2];
    world_open(&world);
    start(&world, 0, NULL, 0, true);
    open_two(&world, c);
    send_at_once(&world, c);
    pid_t supervisor = fork(); /* holds the queue as the supervisor does; we close ours */
    if (supervisor == 0)
        for (;;)
            pause();
    atomic_store(&world.site.board.slots[1].state, ORIBI_SLOT_IDLE);
    kill(world.pids[0], SIGCONT);
    ok(wait_for(atomic_load(&world.site.board.slots[0].passed_count) == 1 || (answered(c[0]) && answered(c[1]))));
    kill(supervisor, signal_number);
    ok_eq(waitpid(supervisor, NULL, WUNTRACED), supervisor);
    start(&world, 1, NULL, 0, false);
    ok(wait_for(answered(c[0]) && answered(c[1])));
    kill(supervisor, SIGKILL);
    if (signal_number == SIGSTOP)
        waitpid(supervisor, NULL, 0);
    world_close(&world);
}

int main(void)
{
    quiet_log();
    alarm(1000); /* a process that waits for ever ends with a failure */
    test_sender_dies("give: before sendmsg", false);
    test_sender_dies("give: after sendmsg", true);
    test_receiver_dies_after_taking();
    test_receiver_dies_before_taking();
    test_a_wakeup_wakes_a_sleeper();
    test_stopped_at("give: before sendmsg", 0);
    test_stopped_at("give: after sendmsg", 0);
    test_stopped_at("take: after recvmsg", 1);
    test_supervisor_dies(SIGKILL);
    test_supervisor_dies(SIGSTOP);
    return done_testing();
}
