/* A worker that an application has robbed of one of its own descriptors ends, says which, and closes nobody else's. */
#include "worker/fd_guard.c"

#include "child.h"
#include "worker/client.h"
#include "system.h"

#include <sys/wait.h>

#define GET(target) "GET " target " HTTP/1.1\r\nHost: a\r\n\r\n"

enum how { CLOSED, ANOTHER_FILE };

/* One worker with everything that a worker has, in a child process; what it logs goes to a pipe. */
struct world {
    struct site site;
    struct oribi_handoff handoff;
    int life[2];
    struct client *client;
};

static int log_fds[2];
static char logged[16384];

static void world_open(struct world *world)
{
    struct site *site = &world->site;
    site_init(site);
    oribi_log_init(log_fds[1], ORIBI_LOG_INFO);
    site_open(site, route);
    oribi_worker_destroy(site->worker);
    if (oribi_handoff_create(&world->handoff) < 0 || oribi_scoreboard_create(&site->board, 2) < 0 ||
        pipe2(world->life, O_CLOEXEC | O_NONBLOCK) < 0)
        _exit(2);
    struct oribi_worker_setup setup = {.options = &site->options,
                                       .listeners = &site->listeners,
                                       .slot = &site->board.slots[0],
                                       .board = &site->board,
                                       .handoff = &world->handoff,
                                       .life_fd = world->life[0]};
    if (oribi_worker_create(&setup, &site->worker) < 0)
        _exit(2);
    world->client = client_open(site);
    (void)client_send(site, world->client, GET("/hello"));
    struct answer answer;
    if (!next_answer(site, world->client, &answer))
        _exit(2);
}

static void take_away(int fd, enum how how)
{
    if (how == CLOSED)
        close(fd);
    else if (dup2(open("/dev/zero", O_RDWR | O_CLOEXEC), fd) < 0)
        _exit(2);
}

struct robbery {
    uint32_t item;
    enum how how;
};

/* 1: the worker went on. */
static int rob(void *data)
{
    const struct robbery *robbery = data;
    static struct world world;
    world_open(&world);
    if (robbery->item >= world.site.worker->fd_guard.count)
        return 100;
    take_away(world.site.worker->fd_guard.items[robbery->item].fd, robbery->how);
    settle(&world.site);
    pass_ms(1000);
    settle(&world.site);
    return 1;
}

static void read_log(void)
{
    ssize_t n = read(log_fds[0], logged, sizeof(logged) - 1);
    logged[n > 0 ? n : 0] = '\0';
}

static void test_a_worker_ends_without_any_of_its_descriptors(void)
{
    for (enum how how = CLOSED; how <= ANOTHER_FILE; how++) {
        int code = ORIBI_EXIT_DESCRIPTORS;
        uint32_t count = 0;
        for (; code == ORIBI_EXIT_DESCRIPTORS; count++) {
            struct robbery robbery = {count, how};
            code = child_code(rob, &robbery);
            read_log();
            if (code != 100)
                ok_named(code == ORIBI_EXIT_DESCRIPTORS && strstr(logged, "is not the server's any more") &&
                             strstr(logged, "at the latest in GET /hello") &&
                             strchr(logged, '\n') == logged + strlen(logged) - 1,
                         "%s: item %u: exit code %d: %s", where_name, count, code, logged);
        }
        ok_eq(code, 100);
        /* the loop, its wake, the hand-off queue's two ends, a listener, the supervisor's pipe; and the one that is
         * none */
        ok(count >= 6);
    }
}

/* Nothing was taken: it goes on, looks once after its last call and then sleeps without an end. */
static int leave_alone(void *data)
{
    static struct world world;
    (void)data;
    world_open(&world);
    struct oribi_worker *w = world.site.worker;
    if (!w->own_due || oribi__wait_bound_ms(w) != ORIBI__FD_GUARD_CHECK_US / 1000)
        return 1;
    settle(&world.site);
    pass_ms(1000);
    settle(&world.site);
    return !w->own_due && oribi__wait_bound_ms(w) < 0 ? 0 : 2;
}

static void test_a_worker_that_has_all_looks_once_after_its_last_call(void)
{
    ok_eq(child_code(leave_alone, NULL), 0);
    read_log();
    is_str(logged, "");
}

/* Requests that other clients have sent and the worker has not answered go to a sibling. */
static int rob_with_connections(void *data)
{
    static struct world world;
    (void)data;
    world_open(&world);
    struct client *late = client_open(&world.site);
    if (!pump_until(&world.site, world.site.worker->reactor.conn_count == 2))
        return 2;
    (void)client_send(&world.site, late, GET("/late"));
    (void)oribi_reactor_turn(&world.site.worker->reactor);
    close(world.site.worker->wake.read_fd);
    oribi__fd_guard_check(world.site.worker);
    return 1;
}

static void test_connections_go_to_siblings(void)
{
    ok_eq(child_code(rob_with_connections, NULL), ORIBI_EXIT_DESCRIPTORS);
    read_log();
    ok_named(strstr(logged, "(wake)") && strstr(logged, "2 connections passed on"), "%s", logged);
}

static int other_fds[2]; /* the application's */

/* The log's own copy is gone as well, with its number in other threads; standard error leads to the same place. */
static int rob_of_all(void *data)
{
    static struct world world;
    (void)data;
    if (dup2(log_fds[1], STDERR_FILENO) < 0)
        return 2;
    world_open(&world);
    for (int fd = 3; fd < 64; fd++)
        if (fd != other_fds[1])
            (void)dup2(other_fds[1], fd);
    settle(&world.site);
    return 1;
}

static void test_the_reason_is_told_where_everything_is_gone(void)
{
    if (!only_on_linux("poll(2) does not see that it is not asked about what it was"))
        return;
    char byte;
    ok_eq(pipe2(other_fds, O_CLOEXEC | O_NONBLOCK), 0);
    ok_eq(child_code(rob_of_all, NULL), ORIBI_EXIT_DESCRIPTORS);
    read_log();
    ok_named(strstr(logged, "is not the server's any more") != NULL, "%s", logged);
    ok_named(read(other_fds[0], &byte, 1) < 0, "nothing was written to what is not ours");
    close(other_fds[0]);
    close(other_fds[1]);
}

/* Each lost connection keeps some memory, so a worker that has lost the most there may be is replaced. */
static int lose_connections(void *data)
{
    static struct world world;
    (void)data;
    world_open(&world);
    struct oribi_worker *w = world.site.worker;
    w->reactor.lost_count = ORIBI_LOST_CONNECTIONS_MAX - 2;
    for (int i = 0; i < 2; i++) {
        struct client *c = client_open(&world.site);
        (void)client_send(&world.site, c, GET("/hello"));
        struct answer answer;
        if (oribi_worker_stopping(w) || !next_answer(&world.site, c, &answer))
            return 2;
        struct oribi_conn *conn = w->reactor.conns;
        close(conn->watch.fd);
        oribi_conn_abort(&w->reactor, conn, false);
        settle(&world.site);
    }
    return oribi_worker_stopping(w) ? 0 : 3;
}

static void test_a_worker_that_has_lost_many_connections_is_replaced(void)
{
    ok_eq(child_code(lose_connections, NULL), 0);
    read_log();
    ok_named(strstr(logged, "the descriptors of 1000 connections: the worker ends") != NULL, "%s", logged);
}

static void run(const char *name)
{
    where_name = name;
    test_a_worker_ends_without_any_of_its_descriptors();
    test_a_worker_that_has_all_looks_once_after_its_last_call();
    test_connections_go_to_siblings();
    test_a_worker_that_has_lost_many_connections_is_replaced();
}

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    if (pipe2(log_fds, O_CLOEXEC | O_NONBLOCK) < 0)
        return 2;
    run("epoll");
    test_the_reason_is_told_where_everything_is_gone();
    setenv("ORIBI_EVENT_SOURCE", "poll", 1);
    run("poll");
    return done_testing();
}
