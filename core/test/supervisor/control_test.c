/* Clients of the control socket, each at the other end of a socket pair. */
#include "supervisor/control.c"

#include "supervisor/modules.h"
#include "base/clock_ahead.h"
#include "tap.h"

#include "oribi/supervisor/prefork.h"

#include <signal.h>

enum { LONG = 4 * 1024 * 1024 }; /* more than a socket takes */

static struct oribi_options options;

/* A client that has connected; gives its end. */
static int connect_client(struct oribi__context *context, uint32_t i)
{
    struct client *client = &context->control->clients[i];
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) < 0)
        exit(1);
    client->fd = fds[0];
    client->state = ASKS;
    ok_eq(oribi_dispatcher_watch(&context->dispatcher, &client->watcher, client->fd, ORIBI_READ), 0);
    return fds[1];
}

static void say(struct oribi__context *context, int fd, const char *line)
{
    ok(write(fd, line, strlen(line)) == (ssize_t)strlen(line));
    modules_run(context);
}

static void hears(int fd, const char *answer)
{
    char text[128] = "";
    ok(read(fd, text, sizeof(text) - 1) > 0);
    is_str(text, answer);
    ok_eq(read(fd, text, sizeof(text)), 0);
    close(fd);
}

static void answer_at_length(struct client *client)
{
    struct oribi_buf text = {0};
    char *p = oribi_buf_reserve(&text, LONG);
    memset(p, 'x', LONG);
    text.len = LONG;
    answer_long(client, &text);
    oribi_buf_deinit(&text);
}

/* Another reload's generation would be loaded by a program that does something else. */
static void test_a_manager_that_is_paused_does_not_reload(void)
{
    struct oribi_prefork prefork = {.traps = {{SIGUSR2, 0, 0}}, .trap_count = 1};
    struct oribi_policy_event event;
    struct oribi_supervisor *supervisor = modules_create(&oribi__manager, &options);
    struct oribi__context *context = &supervisor->context;
    oribi__prefork_begin(context, &prefork);
    ok(context->kind->signal(context, SIGUSR2, &event) && event.type == ORIBI_EVENT_PAUSE);
    int fd = connect_client(context, 0);
    say(context, fd, "reload\n");
    hears(fd, "error the program does something else just now\n");
    ok_eq(context->events.count, 0);
    modules_destroy(supervisor, &options);
}

static void test_a_client_that_never_reads_holds_up_nobody(void)
{
    struct oribi_supervisor *supervisor = modules_create(&oribi__server, &options);
    struct oribi__context *context = &supervisor->context;
    int silent = connect_client(context, 0);
    int other = connect_client(context, 1);
    answer_at_length(&context->control->clients[0]);
    ok_eq(context->control->clients[0].state, LEAVES); /* and its rest waits */
    say(context, other, "reopen\n");
    hears(other, "ok log files are reopened\n");
    ok_eq(context->events.count, 1);
    modules_run(context);
    ok_eq(context->control->clients[0].state, LEAVES);
    pass_ms(ORIBI__CONTROL_REPLY_MS);
    modules_run(context);
    ok_eq(context->control->clients[0].state, FREE);
    close(silent);
    modules_destroy(supervisor, &options);
}

static void test_a_client_that_reads_slowly_gets_all(void)
{
    static char text[LONG];
    struct oribi_supervisor *supervisor = modules_create(&oribi__server, &options);
    struct oribi__context *context = &supervisor->context;
    int slow = connect_client(context, 0);
    size_t got = 0;
    ssize_t n;
    answer_at_length(&context->control->clients[0]);
    while ((n = read(slow, text, sizeof(text))) != 0) {
        got += n > 0 ? (size_t)n : 0;
        modules_run(context);
    }
    ok_eq(got, LONG + 3);
    ok_eq(context->control->clients[0].state, FREE);
    close(slow);
    modules_destroy(supervisor, &options);
}

static void test_a_client_that_says_nothing_is_closed(void)
{
    struct oribi_supervisor *supervisor = modules_create(&oribi__server, &options);
    struct oribi__context *context = &supervisor->context;
    struct client *client = &context->control->clients[0];
    int fd = connect_client(context, 0);
    oribi_dispatcher_arm(&context->dispatcher, &client->until, oribi_clock_ms() + ORIBI__CONTROL_LINE_MS);
    say(context, fd, "stat");
    ok_eq(client->state, ASKS);
    pass_ms(ORIBI__CONTROL_LINE_MS);
    modules_run(context);
    ok_eq(client->state, FREE);
    close(fd);
    modules_destroy(supervisor, &options);
}

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN); /* as in a supervisor */
    test_a_manager_that_is_paused_does_not_reload();
    test_a_client_that_never_reads_holds_up_nobody();
    test_a_client_that_reads_slowly_gets_all();
    test_a_client_that_says_nothing_is_closed();
    return done_testing();
}
