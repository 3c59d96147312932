/* The pipe between the two servers of an upgrade: what each writes and how the other understands it. */
#include "supervisor/upgrade.c"

#include "tap.h"

#include <signal.h>

static struct oribi__context old_server;
static struct oribi__context new_server;

static void begin(void)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
        exit(1);
    old_server = (struct oribi__context){.upgrade = {.predecessor_fd = -1, .successor_fd = fds[0]}};
    new_server = (struct oribi__context){
        .upgrade = {.predecessor_fd = fds[1], .predecessor_asks_why = true, .predecessor_stops = true}};
    new_server.policy.up = true; /* all of its 0 workers serve */
}

static void end(void)
{
    oribi_os_close(old_server.upgrade.successor_fd);
    oribi_os_close(new_server.upgrade.predecessor_fd);
}

/* The event that a stop by way of the successor has become; START: there was none. */
static enum oribi_policy_event_type stop_heard(void)
{
    struct oribi_policy_event event;
    ok(!oribi__upgrade_ready(&old_server));
    return oribi__upgrade_stop(&old_server, &event) ? event.type : ORIBI_EVENT_START;
}

static void test_a_successor_that_serves_relieves(void)
{
    begin();
    ok_eq(stop_heard(), ORIBI_EVENT_START);
    oribi__upgrade_relieve(&new_server);
    ok(oribi__upgrade_ready(&old_server));
    ok_eq(new_server.upgrade.predecessor_fd, -1);
    end();
}

/* Else both would be gone: the old server by the word, the new one by its own stop. */
static void test_a_successor_that_stops_relieves_nobody(void)
{
    begin();
    new_server.policy.stopping = true;
    oribi__upgrade_relieve(&new_server);
    ok(!oribi__upgrade_ready(&old_server));
    new_server.policy.stopping = false;
    new_server.policy.stop_at = 1; /* drain_delay */
    oribi__upgrade_relieve(&new_server);
    ok(!oribi__upgrade_ready(&old_server));
    end();
}

static void test_a_stop_is_handed_on(void)
{
    begin();
    ok(oribi__upgrade_hand_stop(&new_server, false));
    oribi__upgrade_relieve(&new_server);
    ok_eq(stop_heard(), ORIBI_EVENT_STOP);
    ok_eq(stop_heard(), ORIBI_EVENT_START); /* once */
    ok(oribi__upgrade_hand_stop(&new_server, true));
    ok_eq(stop_heard(), ORIBI_EVENT_STOP_NOW);
    oribi__upgrade_tell(&new_server, "Stop: No\nmore");
    ok(oribi__upgrade_hand_stop(&new_server, false));
    ok_eq(stop_heard(), ORIBI_EVENT_STOP);
    is_str(old_server.upgrade.why, "Stop: No");
    oribi__upgrade_tell(&new_server, "another worker, for the same reason");
    ok(!oribi__upgrade_ready(&old_server));
    is_str(old_server.upgrade.why, "Stop: No");
    end();
}

static void test_no_stop_is_handed_on_where_nobody_takes_it(void)
{
    begin();
    new_server.upgrade.predecessor_stops = false; /* an earlier build takes every other byte for "1" */
    ok(!oribi__upgrade_hand_stop(&new_server, false));
    ok_eq(stop_heard(), ORIBI_EVENT_START);
    new_server.upgrade.predecessor_stops = true;
    oribi_os_close(old_server.upgrade.successor_fd);
    old_server.upgrade.successor_fd = -1;
    ok(!oribi__upgrade_hand_stop(&new_server, false)); /* it is dead */
    end();
    new_server.upgrade.predecessor_fd = -1;
    ok(!oribi__upgrade_hand_stop(&new_server, true));
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
