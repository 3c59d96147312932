/* The agent over real sockets, moved on by hand. */
#include "observe/agent.c"

#include "observe_world.h"
#include "tap.h"

#include "oribi/base/mem.h"

#include <arpa/inet.h>
#include <poll.h>
#include <unistd.h>

enum { WORKERS = 2, SLOTS = 4 };

static void begin(void)
{
    char error[ORIBI_ERROR_TEXT_CAP] = "";
    (void)world_begin(WORKERS, SLOTS);
    ok_eq(oribi_options_set(&world->options, "agent", "127.0.0.1:0", error), 0);
    ok_eq(oribi__agent_open(&world->observe, error), 0);
    is_str(error, "");
}

static void end(void)
{
    world_end(world);
}

static void turn(void)
{
    world_turn(world);
}

static uint32_t clients(void)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < ORIBI__AGENT_CLIENTS_MAX; i++)
        count += world->observe.state->agent.clients[i].fd >= 0;
    return count;
}

static int dial(void)
{
    struct sockaddr_in where;
    socklen_t n = sizeof(where);
    (void)getsockname(world->observe.state->agent.side.fd, (struct sockaddr *)&where, &n);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ok_eq(connect(fd, (struct sockaddr *)&where, n), 0);
    return fd;
}

/* All that comes until the other side is shut. */
static const char *hear_all(int fd)
{
    static char line[256];
    size_t len = 0;
    ssize_t n;
    while (len < sizeof(line) - 1 && (n = read(fd, line + len, sizeof(line) - 1 - len)) > 0)
        len += (size_t)n;
    line[len] = '\0';
    return line;
}

static const char *ask(void)
{
    int fd = dial();
    turn();
    const char *line = hear_all(fd);
    close(fd);
    turn();
    return line;
}

static void serve(bool serves)
{
    world->policy.up = serves;
    world->policy.records[0].state = serves ? ORIBI_RECORD_SERVING : ORIBI_RECORD_FREE;
    world->policy.records[0].pid = serves ? getpid() : 0;
}

static void test_each_state_has_its_line(void)
{
    begin();
    is_str(ask(), "maint\n");
    serve(true);
    is_str(ask(), "up ready 100%\n");
    world->policy.stop_at = 1;
    is_str(ask(), "drain\n");
    world->policy.stop_at = 0;
    world->policy.stopping = true;
    is_str(ask(), "drain\n");
    ok_eq(clients(), 0);
    serve(false);
    end();
}

static void test_what_a_balancer_sends_is_read(void)
{
    begin();
    int fd = dial();
    ok_eq(write(fd, "server/one\n", 11), 11);
    turn();
    turn();
    is_str(hear_all(fd), "maint\n");
    ok_eq(write(fd, "more\n", 5), 5);
    turn();
    struct pollfd state = {.fd = fd, .events = POLLIN};
    (void)poll(&state, 1, 0);
    ok(!(state.revents & POLLERR)); /* no reset */
    close(fd);
    turn();
    ok_eq(clients(), 0);
    end();
}

static void test_clients_that_stay_are_few_and_end(void)
{
    int fds[ORIBI__AGENT_CLIENTS_MAX + 1];
    begin();
    for (int i = 0; i <= ORIBI__AGENT_CLIENTS_MAX; i++) {
        fds[i] = dial();
        turn();
        is_str(hear_all(fds[i]), "maint\n");
    }
    ok_eq(clients(), ORIBI__AGENT_CLIENTS_MAX);
    for (uint32_t i = 0; i < ORIBI__AGENT_CLIENTS_MAX; i++) {
        struct oribi_timer *until = &world->observe.state->agent.clients[i].until;
        ok(oribi_timer_at(until) <= oribi_clock_ms() + ORIBI__AGENT_MS);
        world_expire(world, until);
    }
    ok_eq(clients(), 0);
    for (int i = 0; i <= ORIBI__AGENT_CLIENTS_MAX; i++)
        close(fds[i]);
    end();
}

static void test_the_weight_falls_with_load_and_waiting(void)
{
    ok_eq(oribi__agent_weight(0, 0), 100);
    ok_eq(oribi__agent_weight(1, 0), 50);
    ok_eq(oribi__agent_weight(1, 1), 25);
    ok_eq(oribi__agent_weight(0.8, 0), 68);
    ok_eq(oribi__agent_weight(-5, 0), ORIBI__AGENT_WEIGHT_MIN);
    ok_eq(oribi__agent_weight(0, -5), 100);
    /* A rise of the load by a share lowers the weight by a smaller share: what follows it settles. */
    for (int tenths = 1; tenths < 10; tenths++) {
        double lower = oribi__agent_weight(tenths * 0.11, 0) / (double)oribi__agent_weight(tenths * 0.1, 0);
        ok_named(lower <= 1 && lower > 0.8, "at a load of 0.%d", tenths);
    }
}

static void add(struct oribi__history *history, uint32_t permille, uint32_t calls, uint32_t wait_us, uint32_t call_us)
{
    uint32_t *values = history->samples[history->count++ % ORIBI__HISTORY_SAMPLES].values;
    values[ORIBI__HISTORY_UTILISATION] = permille;
    values[ORIBI__HISTORY_CALLS] = calls;
    values[ORIBI__HISTORY_QUEUE_P50] = calls ? wait_us : ORIBI__HISTORY_NONE;
    values[ORIBI__HISTORY_CALL_P50] = calls ? call_us : ORIBI__HISTORY_NONE;
}

static void test_the_weight_follows_the_last_samples(void)
{
    struct oribi__history *history = oribi_mem_alloc(1, sizeof(*history));
    ok_eq(oribi__agent_weight_of(NULL), 100);
    ok_eq(oribi__agent_weight_of(history), 100);
    add(history, 1000, 0, 0, 0);
    ok_eq(oribi__agent_weight_of(history), 50);
    for (int i = 0; i < ORIBI__AGENT_SAMPLES; i++)
        add(history, 0, 0, 0, 0);
    ok_eq(oribi__agent_weight_of(history), 100);
    for (int i = 0; i < ORIBI__AGENT_SAMPLES; i++)
        add(history, 0, 10, 300, 100);
    ok_eq(oribi__agent_weight_of(history), 63); /* 3/4 of the time was waiting */
    oribi_mem_free(history);
}

int main(void)
{
    int64_t before = oribi_mem_blocks();
    test_each_state_has_its_line();
    test_what_a_balancer_sends_is_read();
    test_clients_that_stay_are_few_and_end();
    test_the_weight_falls_with_load_and_waiting();
    test_the_weight_follows_the_last_samples();
    ok_eq(oribi_mem_blocks(), before);
    return done_testing();
}
