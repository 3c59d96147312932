/* Handlers are called one at a time; a forgotten watcher's and a stopped timer's never. */
#include "event/dispatcher.c"

#include "oribi/base/os/os.h"
#include "tap.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct oribi_dispatcher dispatcher;

struct end {
    struct oribi_watcher watcher;
    struct oribi_timer timer;
    int fds[2]; /* watched, far */
    int calls;
    int expirations;
    uint8_t ready;
    struct end *forgets; /* by its handler */
    bool drains;
};

static void on_ready(void *owner, uint8_t ready)
{
    struct end *end = owner;
    char bytes[8];
    end->calls++;
    end->ready = ready;
    if (end->drains)
        (void)!read(end->fds[0], bytes, sizeof(bytes));
    if (end->forgets)
        oribi_dispatcher_forget(&dispatcher, &end->forgets->watcher);
}

static void on_expired(void *owner)
{
    struct end *end = owner;
    end->expirations++;
}

static void open_end(struct end *end)
{
    *end = (struct end){
        .watcher = {.ready = on_ready, .owner = end}, .timer = {.expired = on_expired, .owner = end}, .drains = true};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, end->fds) < 0)
        fail("socketpair");
    ok_eq(oribi_dispatcher_watch(&dispatcher, &end->watcher, end->fds[0], ORIBI_READ), 0);
}

static void close_end(struct end *end)
{
    oribi_dispatcher_forget(&dispatcher, &end->watcher);
    oribi_dispatcher_arm(&dispatcher, &end->timer, INT64_MAX);
    oribi_os_close(end->fds[0]);
    oribi_os_close(end->fds[1]);
}

static void say(struct end *end)
{
    ok_eq(write(end->fds[1], "x", 1), 1);
}

static void test_one_handler_at_a_time(void)
{
    struct end a;
    struct end b;
    open_end(&a);
    open_end(&b);
    ok(!oribi_dispatcher_next(&dispatcher));
    say(&a);
    say(&b);
    ok(oribi_dispatcher_next(&dispatcher));
    ok_eq(a.calls + b.calls, 1);
    ok(oribi_dispatcher_next(&dispatcher));
    ok(a.calls == 1 && b.calls == 1);
    ok(!oribi_dispatcher_next(&dispatcher));
    close_end(&a);
    close_end(&b);
}

static void test_ready_is_reported_until_it_is_read(void)
{
    struct end a;
    open_end(&a);
    a.drains = false;
    say(&a);
    for (int i = 0; i < 3; i++)
        ok(oribi_dispatcher_next(&dispatcher));
    ok_eq(a.calls, 3);
    ok_eq(a.ready, ORIBI_READ);
    ok_eq(oribi_dispatcher_watch(&dispatcher, &a.watcher, a.fds[0], 0), 0); /* of no interest */
    ok(!oribi_dispatcher_next(&dispatcher));
    ok_eq(oribi_dispatcher_watch(&dispatcher, &a.watcher, a.fds[0], ORIBI_WRITE), 0);
    ok(oribi_dispatcher_next(&dispatcher));
    ok_eq(a.ready & ORIBI_WRITE, ORIBI_WRITE);
    close_end(&a);
}

static void test_hangup_is_reported(void)
{
    struct end a;
    open_end(&a);
    oribi_os_close(a.fds[1]);
    a.fds[1] = -1;
    ok(oribi_dispatcher_next(&dispatcher));
    ok_eq(a.ready & ORIBI_HANGUP, ORIBI_HANGUP);
    oribi_dispatcher_forget(&dispatcher, &a.watcher);
    ok(!oribi_dispatcher_next(&dispatcher));
    oribi_os_close(a.fds[0]);
}

/* Both are ready at one look; the first handler closes the other's descriptor, whose number another socket gets. */
static void test_a_forgotten_watcher_is_not_called(void)
{
    struct end a;
    struct end b;
    open_end(&a);
    open_end(&b);
    a.forgets = &b;
    b.forgets = &a;
    say(&a);
    say(&b);
    oribi_dispatcher_wait(&dispatcher, 0);
    while (oribi_dispatcher_next(&dispatcher)) {
    }
    ok_eq(a.calls + b.calls, 1);
    close_end(&a);
    close_end(&b);
}

static void test_timers(void)
{
    struct end a;
    open_end(&a);
    int64_t now_ms = oribi_clock_ms();
    oribi_dispatcher_arm(&dispatcher, &a.timer, now_ms + 3600 * 1000);
    ok(!oribi_dispatcher_next(&dispatcher));
    oribi_dispatcher_arm(&dispatcher, &a.timer, now_ms + 5);
    while (!a.expirations) {
        oribi_dispatcher_wait(&dispatcher, -1);
        (void)oribi_dispatcher_next(&dispatcher);
    }
    ok(oribi_clock_ms() >= now_ms + 5);
    ok(!oribi_dispatcher_next(&dispatcher));
    ok_eq(a.expirations, 1);
    oribi_dispatcher_arm(&dispatcher, &a.timer, now_ms);
    oribi_dispatcher_arm(&dispatcher, &a.timer, INT64_MAX);
    ok(!oribi_dispatcher_next(&dispatcher));
    ok_eq(a.expirations, 1);
    close_end(&a);
}

/* A descriptor that is always ready keeps no timer from its turn. */
static void test_timers_have_their_turn_beside_descriptors(void)
{
    struct end a;
    open_end(&a);
    a.drains = false;
    say(&a);
    oribi_dispatcher_arm(&dispatcher, &a.timer, oribi_clock_ms());
    for (int i = 0; i < 4; i++)
        ok(oribi_dispatcher_next(&dispatcher));
    ok_eq(a.expirations, 1);
    ok_eq(a.calls, 3);
    close_end(&a);
}

static void test_more_descriptors_than_one_look_reports(void)
{
    enum { ENDS = 2 * ORIBI_DISPATCHER_EVENTS + 1 };
    static struct end ends[ENDS];
    for (int i = 0; i < ENDS; i++) {
        open_end(&ends[i]);
        say(&ends[i]);
    }
    int called = 0;
    while (oribi_dispatcher_next(&dispatcher))
        called++;
    ok_eq(called, ENDS);
    for (int i = 0; i < ENDS; i++)
        close_end(&ends[i]);
}

static void test_waits_no_longer_than_asked(void)
{
    oribi_dispatcher_wait(&dispatcher, 1); /* with nothing to watch: it returns */
    ok(!oribi_dispatcher_next(&dispatcher));
}

int main(void)
{
    ok_eq(oribi_dispatcher_init(&dispatcher), 0);
    test_one_handler_at_a_time();
    test_ready_is_reported_until_it_is_read();
    test_hangup_is_reported();
    test_a_forgotten_watcher_is_not_called();
    test_timers();
    test_timers_have_their_turn_beside_descriptors();
    test_more_descriptors_than_one_look_reports();
    test_waits_no_longer_than_asked();
    oribi_dispatcher_deinit(&dispatcher);
    return done_testing();
}
