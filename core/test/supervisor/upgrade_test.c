/* The pipe between the two servers of an upgrade: what each writes and how the other understands it. */
#include "supervisor/upgrade.c"

#include "supervisor/modules.h"
#include "tap.h"

#include <signal.h>

static struct oribi_options options[2];
static struct oribi_supervisor *old_supervisor;
static struct oribi_supervisor *new_supervisor;
static struct oribi__context *old_server;
static struct oribi__context *new_server;

static void start(void)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
        exit(1);
    old_supervisor = modules_create(&oribi__server, &options[0]);
    new_supervisor = modules_create(&oribi__server, &options[1]);
    old_server = &old_supervisor->context;
    new_server = &new_supervisor->context;
    old_server->upgrade->successor_fd = fds[0];
    ok_eq(oribi_dispatcher_watch(&old_server->dispatcher, &old_server->upgrade->watcher, fds[0], ORIBI_READ), 0);
    new_server->upgrade->predecessor_fd = fds[1];
    new_server->upgrade->predecessor_asks_why = new_server->upgrade->predecessor_stops = true;
    new_server->policy.up = true; /* all of its 0 workers serve */
}

static void finish(void)
{
    modules_destroy(new_supervisor, &options[1]);
    modules_destroy(old_supervisor, &options[0]);
}

/* The event that follows from what the successor has said; START: none does. */
static enum oribi_policy_event_type heard(void)
{
    struct oribi_policy_event event;
    modules_run(old_server);
    return oribi__events_pop(&old_server->events, &event) ? event.type : ORIBI_EVENT_START;
}

static void test_a_successor_that_serves_relieves(void)
{
    start();
    ok_eq(heard(), ORIBI_EVENT_START);
    relieve(new_server);
    ok_eq(heard(), ORIBI_EVENT_UPGRADE_READY);
    ok_eq(new_server->upgrade->predecessor_fd, -1);
    finish();
}

/* Else both would be gone: the old server by the word, the new one by its own stop. */
static void test_a_successor_that_stops_relieves_nobody(void)
{
    start();
    new_server->policy.stopping = true;
    relieve(new_server);
    ok_eq(heard(), ORIBI_EVENT_START);
    new_server->policy.stopping = false;
    new_server->policy.stop_at = 1; /* drain_delay */
    relieve(new_server);
    ok_eq(heard(), ORIBI_EVENT_START);
    finish();
}

static void test_a_stop_is_handed_on(void)
{
    start();
    ok(oribi__upgrade_hand_stop(new_server, false));
    relieve(new_server);
    ok_eq(heard(), ORIBI_EVENT_STOP);
    ok_eq(heard(), ORIBI_EVENT_START); /* once */
    ok(oribi__upgrade_hand_stop(new_server, true));
    ok_eq(heard(), ORIBI_EVENT_STOP_NOW);
    oribi__upgrade_tell(new_server, "Stop: No\nmore");
    ok(oribi__upgrade_hand_stop(new_server, false));
    ok_eq(heard(), ORIBI_EVENT_STOP);
    is_str(old_server->upgrade->why, "Stop: No");
    oribi__upgrade_tell(new_server, "another worker, for the same reason");
    ok_eq(heard(), ORIBI_EVENT_START);
    is_str(old_server->upgrade->why, "Stop: No");
    finish();
}

static void test_no_stop_is_handed_on_where_nobody_takes_it(void)
{
    start();
    new_server->upgrade->predecessor_stops = false; /* an earlier build takes every other byte for "1" */
    ok(!oribi__upgrade_hand_stop(new_server, false));
    ok_eq(heard(), ORIBI_EVENT_START);
    new_server->upgrade->predecessor_stops = true;
    let_go(old_server);
    ok(!oribi__upgrade_hand_stop(new_server, false)); /* it is dead */
    let_go(new_server);
    ok(!oribi__upgrade_hand_stop(new_server, true));
    finish();
}

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN); /* as in a supervisor */
    test_a_successor_that_serves_relieves();
    test_a_successor_that_stops_relieves_nobody();
    test_a_stop_is_handed_on();
    test_no_stop_is_handed_on_where_nobody_takes_it();
    return done_testing();
}
