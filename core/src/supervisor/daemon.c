/* The daemon and its starter; see the header. */
#include "supervisor/start.h"

#include "supervisor/context.h"
#include "supervisor/module.h"
#include "supervisor/logs.h"
#include "supervisor/events.h"
#include "supervisor/upgrade.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/base/signals.h"
#include "oribi/config/options.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { DAEMON_TEXT_CAP = 4096 }; /* first lines of a daemon that its starter shows */

struct oribi__daemon {
    bool wanted; /* the fork is still to be made */
    int fds[2];  /* from the daemon to the starter */
    char *text;  /* in the starter: the bytes that have come so far */
    size_t len;
    bool heard; /* the daemon has said all */
};

static void point_at_null(int fd, int flags)
{
    int null_fd = open("/dev/null", flags | O_CLOEXEC);
    if (null_fd >= 0 && dup2(null_fd, fd) < 0)
        oribi_log(ORIBI_LOG_WARN, "a standard stream could not be closed");
    if (null_fd != fd)
        oribi_os_close(null_fd);
}

void oribi__daemon_enter(struct oribi__context *context)
{
    struct oribi__daemon *daemon = context->daemon;
    oribi__children_ours(false);
    context->pid = getpid();
    context->process.supervisor = context->pid;
    oribi__close(&daemon->fds[0]);
    oribi__signals_install(context);
    (void)setsid(); /* fails only for a group leader, which a fresh child is not */
    point_at_null(STDIN_FILENO, O_RDONLY);
    const char *log = context->process.options->error_log;
    if (log && log[0] && strcmp(log, "-") != 0) {
        (void)dup2(STDERR_FILENO, STDOUT_FILENO); /* both are open: it cannot fail */
    } else {
        point_at_null(STDOUT_FILENO, O_WRONLY);
        point_at_null(STDERR_FILENO, O_WRONLY);
    }
    oribi__logs_follow_streams(&context->process);
}

void oribi__daemon_starter(struct oribi__context *context, pid_t pid)
{
    struct oribi__daemon *daemon = context->daemon;
    oribi_signals_uninstall();
    oribi__children_ours(false);
    oribi__close(&daemon->fds[1]);
    daemon->text = oribi_mem_alloc(1, DAEMON_TEXT_CAP); /* lives as long as the process */
    if (pid >= 0)
        return;
    (void)oribi_os_fail();
    daemon->len = (size_t)snprintf(daemon->text, DAEMON_TEXT_CAP, "cannot fork: %s", oribi_os_error_text());
    daemon->heard = true;
}

void oribi__daemon_await(const struct oribi__context *context, int64_t ms)
{
    oribi_process_poll(&context->daemon->fds[0], 1, ms);
}

/* Line by line, as other errors are printed. */
static void print_lines(const struct oribi__context *context, size_t said)
{
    const char *text = context->daemon->text;
    for (size_t at = 0; at < said;) {
        size_t end = at;
        while (end < said && text[end] != '\n')
            end++;
        (void)dprintf(STDERR_FILENO, "%s: %.*s\n", context->process.program, (int)(end - at), text + at);
        at = end + 1;
    }
}

int oribi__daemon_said(struct oribi__context *context)
{
    struct oribi__daemon *daemon = context->daemon;
    ssize_t n = 1;
    while (n > 0 && !daemon->heard && daemon->len < DAEMON_TEXT_CAP) {
        n = oribi_os_read(daemon->fds[0], daemon->text + daemon->len, DAEMON_TEXT_CAP - daemon->len);
        daemon->len += n > 0 ? (size_t)n : 0;
        daemon->heard = daemon->len >= 2 && daemon->text[daemon->len - 2] == '\0';
    }
    if (n == ORIBI_AGAIN)
        return -1;
    size_t said = strnlen(daemon->text, daemon->len);
    print_lines(context, said);
    return said + 1 < daemon->len ? (unsigned char)daemon->text[said + 1] : 1;
}

void oribi__daemon_tell(struct oribi__context *context, const char *text)
{
    int fd = context->daemon->fds[1];
    if (fd < 0)
        return;
    (void)oribi_os_write(fd, text, strnlen(text, DAEMON_TEXT_CAP / 4)); /* the starter may be gone */
    (void)oribi_os_write(fd, "\n", 1);
}

void oribi__daemon_release(struct oribi__context *context, int code)
{
    const char last[2] = {'\0', (char)code};
    if (context->daemon->fds[1] < 0)
        return;
    (void)oribi_os_write(context->daemon->fds[1], last, sizeof(last)); /* it may have been killed meanwhile */
    oribi__close(&context->daemon->fds[1]);
}

bool oribi__daemon_wanted(const struct oribi__context *context)
{
    return context->daemon->wanted;
}

void oribi__daemon_made(struct oribi__context *context)
{
    context->daemon->wanted = false;
}

/* --- the module --- */

static void init(struct oribi__context *context)
{
    context->daemon->fds[0] = context->daemon->fds[1] = -1;
}

/* A successor is in the background already. */
static int begin(struct oribi__context *context, char *error)
{
    struct oribi__daemon *daemon = context->daemon;
    daemon->wanted = context->process.options->daemonize && !oribi__upgrade_is_successor(context);
    if (!daemon->wanted || oribi_os_pipe(daemon->fds) == 0)
        return 0;
    (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "cannot make pipes: %s", oribi_os_error_text());
    return ORIBI_ESYS;
}

static void let_go(struct oribi__context *context)
{
    oribi__close(&context->daemon->fds[0]);
    oribi__close(&context->daemon->fds[1]);
}

static void end(struct oribi__context *context)
{
    oribi__daemon_release(context, 1);
    let_go(context);
}

const struct oribi__module oribi__daemon_module = {
    .bytes = sizeof(struct oribi__daemon),
    .init = init,
    .begin = begin,
    .let_go = let_go,
    .end = end,
};
