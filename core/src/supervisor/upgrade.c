/* The two sides of an upgrade. Reading order: the predecessor's side in the order in which it happens, then the
 * successor's. */
#include "supervisor/upgrade.h"

#include "supervisor/context.h"
#include "supervisor/control_socket.h"
#include "supervisor/frontend_inbox.h"
#include "supervisor/frontends.h"
#include "supervisor/module.h"
#include "supervisor/generation.h"
#include "supervisor/server_pid.h"
#include "oribi/observe/observe.h"
#include "oribi/supervisor/control_client.h"

#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/base/os/os.h"
#include "oribi/config/listener.h"
#include "supervisor/mold.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct oribi__upgrade {
    /* in a successor */
    int predecessor_fd;        /* write end of the pipe; -1: no successor, or the predecessor knows */
    bool predecessor_asks_why; /* a line about a failure is welcome there */
    bool predecessor_stops;    /* a command to stop is welcome there, too */
    /* workers that an operator has asked the predecessor for, and those of its configuration; 0: nothing was asked */
    uint32_t workers;
    uint32_t workers_before;
    bool stop_handed; /* one was handed on: the predecessor must not leave its listeners to this server */
    /* in a predecessor */
    int successor_fd;     /* read end of the pipe; -1: no successor is starting */
    char stop;            /* 'S', 'N': a command to stop came by the successor; 0: none did */
    bool failure_follows; /* what comes now is the line about the failure */
    char why[256];        /* that line; "": none came */
    size_t why_len;
    bool why_known; /* the line is complete: later failures follow from the first */
    struct oribi_watcher watcher;
};

/* --- in the predecessor --- */

static struct oribi_policy_event started(pid_t pid, const char *text)
{
    return (struct oribi_policy_event){.type = ORIBI_EVENT_UPGRADE_STARTED, .pid = pid, .text = text};
}

struct oribi_policy_event oribi__upgrade_start(struct oribi__context *context)
{
    char listen[ORIBI_INHERITED_TEXT_CAP + 16];
    char fd_text[48];
    char totals_text[48] = "ORIBI_TOTALS=";
    char workers_text[64] = "ORIBI_UPGRADE_WORKERS=";
    char control_text[ORIBI__CONTROL_PATH_CAP + 24];
    char metrics[ORIBI__APP_STORE_TEXT_CAP];
    char inbox[ORIBI__FRONTEND_INBOX_TEXT_CAP];
    int keep[ORIBI_LISTENERS_MAX + 3 + ORIBI__FRONTEND_INBOX_FDS];
    int fds[2];
    pid_t pid = -1;
    size_t count = oribi__listeners_to_keep(context, listen, sizeof(listen), keep);
    if (oribi_os_pipe(fds) < 0)
        return started(-1, oribi_os_error_text());
    (void)snprintf(fd_text, sizeof(fd_text), "ORIBI_UPGRADE=%d", fds[1]); /* fits */
    (void)snprintf(control_text, sizeof(control_text), "ORIBI_CONTROL_PATH=%s",
                   oribi__control_path(context)); /* fits */
    oribi__app_store_text(&context->process.app, metrics);
    const struct oribi_policy *policy = &context->policy;
    if (policy->target > 0 && policy->target != policy->config.workers)
        (void)snprintf(workers_text, sizeof(workers_text), "ORIBI_UPGRADE_WORKERS=%u %u", policy->target,
                       policy->config.workers); /* fits */
    char *extra[] = {fd_text,
                     control_text,
                     listen,
                     totals_text,
                     workers_text,
                     metrics,
                     inbox,
                     (char *)"LISTEN_FDS=",
                     (char *)"LISTEN_PID=",
                     (char *)"WATCHDOG_PID=", /* the service manager watches the successor from now on */
                     (char *)"ORIBI_MOLD=",
                     (char *)"ORIBI_SINGLE=",
                     (char *)"ORIBI_UPGRADE_WHY=2",
                     NULL};
    keep[count++] = fds[1];
    count += oribi__frontends_hand_inbox_over(context, inbox, keep + count);
    if (context->process.app.fd >= 0)
        keep[count++] = context->process.app.fd;
    if (oribi__inherited_totals_make(&context->observe->inherited) < 0) {
        oribi_log(ORIBI_LOG_WARN, "counters cannot be handed over to the successor: %s", oribi_os_error_text());
    } else {
        (void)snprintf(totals_text, sizeof(totals_text), "ORIBI_TOTALS=%d",
                       context->observe->inherited.to_fd); /* fits */
        keep[count++] = context->observe->inherited.to_fd;
        oribi__export_totals(context->observe);
    }
    context->upgrade->why[0] = '\0';
    context->upgrade->why_len = 0;
    context->upgrade->why_known = false;
    context->upgrade->failure_follows = false;
    context->upgrade->stop = 0;
    oribi__server_pid_step_aside(context);
    oribi__children_ours(true);
    int code = oribi_start_again(&context->start, extra, keep, count, &pid);
    oribi__children_ours(false);
    oribi__inherited_totals_given(&context->observe->inherited);
    oribi_os_close(fds[1]);
    if (code < 0) {
        oribi_os_close(fds[0]);
        return started(-1, oribi_os_error_text());
    }
    context->upgrade->successor_fd = fds[0];
    (void)oribi_dispatcher_watch(&context->dispatcher, &context->upgrade->watcher, fds[0], ORIBI_READ);
    return started(pid, NULL);
}

/* A byte of the line about the successor's failure. Only the first failure is kept: it has led to the others. */
static void keep_why(struct oribi__upgrade *upgrade, char byte)
{
    if (!byte) {
        upgrade->failure_follows = false;
        upgrade->why_known = true;
    } else if (!upgrade->why_known && upgrade->why_len + 1 < sizeof(upgrade->why)) {
        upgrade->why[upgrade->why_len++] = byte;
        upgrade->why[upgrade->why_len] = '\0';
    }
}

/* Reads what the successor has written; true when its workers serve. The successor's death closes the pipe as well;
 * waitpid(2) reports it. */
static bool is_relieved(struct oribi__context *context)
{
    struct oribi__upgrade *upgrade = context->upgrade;
    char byte;
    ssize_t n;
    if (upgrade->successor_fd < 0)
        return false;
    while ((n = oribi_os_read(upgrade->successor_fd, &byte, 1)) == 1) {
        if (upgrade->failure_follows)
            keep_why(upgrade, byte);
        else if (byte == 'E')
            upgrade->failure_follows = true;
        else if (byte == 'S' || byte == 'N')
            upgrade->stop = byte;
        else
            break;
    }
    if (n == ORIBI_AGAIN)
        return false;
    oribi_dispatcher_forget(&context->dispatcher, &upgrade->watcher);
    oribi__close(&upgrade->successor_fd);
    return n == 1;
}

static bool is_told_to_stop(struct oribi__upgrade *upgrade, struct oribi_policy_event *event)
{
    char stop = upgrade->stop;
    upgrade->stop = 0;
    *event = (struct oribi_policy_event){.type = stop == 'N' ? ORIBI_EVENT_STOP_NOW : ORIBI_EVENT_STOP};
    return stop != 0;
}

static void successor_says(void *owner, uint8_t ready)
{
    struct oribi__context *context = owner;
    struct oribi_policy_event event;
    if (is_relieved(context))
        oribi__happened(context, &(struct oribi_policy_event){.type = ORIBI_EVENT_UPGRADE_READY});
    if (is_told_to_stop(context->upgrade, &event))
        oribi__happened(context, &event);
}

const char *oribi__upgrade_why(const struct oribi__context *context)
{
    return context->upgrade->why;
}

void oribi__upgrade_failed(struct oribi__context *context)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    struct oribi_policy_event event;
    (void)is_relieved(context);
    if (is_told_to_stop(context->upgrade, &event))
        oribi__happened(context, &event);
    oribi_dispatcher_forget(&context->dispatcher, &context->upgrade->watcher);
    oribi__close(&context->upgrade->successor_fd);
    oribi__server_pid_take_back(context);
    if (oribi__control_open(context, true, error) < 0)
        oribi_log(ORIBI_LOG_ERROR, "%s", error);
}

/* --- in the successor --- */

/* In one write, so that the predecessor reads the whole line. */
static void tell_predecessor(int fd, const char *text)
{
    char line[sizeof(((struct oribi__upgrade *)0)->why) + 2];
    int n = snprintf(line, sizeof(line), "E%.*s", (int)strcspn(text, "\n"), text); /* cut when longer: a hint */
    if (n > 0)
        (void)oribi_os_write(fd, line, (size_t)n < sizeof(line) ? (size_t)n + 1 : sizeof(line)); /* it may be gone */
}

void oribi__upgrade_tell(struct oribi__context *context, const char *text)
{
    if (context->upgrade->predecessor_fd >= 0 && context->upgrade->predecessor_asks_why)
        tell_predecessor(context->upgrade->predecessor_fd, text);
}

bool oribi__upgrade_hand_stop(struct oribi__context *context, bool now)
{
    if (context->upgrade->predecessor_fd < 0 || !context->upgrade->predecessor_stops ||
        oribi_os_write(context->upgrade->predecessor_fd, now ? "N" : "S", 1) != 1)
        return false;
    return context->upgrade->stop_handed = true;
}

bool oribi__upgrade_is_successor(const struct oribi__context *context)
{
    return context->upgrade->predecessor_fd >= 0;
}

const int *oribi__upgrade_predecessor_fd(const struct oribi__context *context)
{
    return &context->upgrade->predecessor_fd;
}

void oribi__upgrade_workers(const struct oribi__context *context, uint32_t *workers, uint32_t *before)
{
    *workers = context->upgrade->workers;
    *before = context->upgrade->workers_before;
}

static void relieve(struct oribi__context *context)
{
    struct oribi__upgrade *upgrade = context->upgrade;
    if (upgrade->predecessor_fd < 0 || !context->policy.up || context->policy.stopping || context->policy.stop_at ||
        upgrade->stop_handed || oribi_policy_serving(&context->policy) < context->policy.target)
        return;
    (void)oribi_os_write(upgrade->predecessor_fd, "1", 1); /* a predecessor that is gone needs no word */
    oribi__close(&upgrade->predecessor_fd);
}

/* The environment tells as long as no supervisor or mold of ours has taken it over. */
bool oribi_start_failed(const char *text)
{
    const char *fd = getenv("ORIBI_UPGRADE");
    const char *why = getenv("ORIBI_UPGRADE_WHY");
    if (oribi_mold_inherited())
        return oribi__mold_start_failed(text);
    if (fd && *fd && why && *why)
        tell_predecessor((int)strtol(fd, NULL, 10), text);
    return false;
}

/* --- the module --- */

static void init(struct oribi__context *context)
{
    context->upgrade->predecessor_fd = context->upgrade->successor_fd = -1;
    context->upgrade->watcher = (struct oribi_watcher){.ready = successor_says, .owner = context};
}

/* Finds out whether this is a successor, and clears the environment of that. */
static int begin(struct oribi__context *context, char *error)
{
    struct oribi__upgrade *upgrade = context->upgrade;
    const char *text = getenv("ORIBI_UPGRADE");
    char *end = NULL;
    long fd = text && *text ? strtol(text, &end, 10) : -1;
    const char *why = getenv("ORIBI_UPGRADE_WHY");
    upgrade->predecessor_asks_why = why && *why;
    upgrade->predecessor_stops = why && *why == '2';
    const char *workers = getenv("ORIBI_UPGRADE_WORKERS");
    if (!workers || sscanf(workers, "%u %u", &upgrade->workers, &upgrade->workers_before) != 2)
        upgrade->workers = upgrade->workers_before = 0;
    (void)unsetenv("ORIBI_UPGRADE_WORKERS"); /* fails for names with `=` only */
    oribi__inherited_totals_take(&context->observe->inherited);
    (void)unsetenv("ORIBI_UPGRADE"); /* fails for names with `=` only */
    (void)unsetenv("ORIBI_UPGRADE_WHY");
    if (fd >= 0 && fd <= INT_MAX && !*end && oribi_os_set_cloexec((int)fd, true) == 0)
        upgrade->predecessor_fd = (int)fd;
    return 0;
}

static void let_go(struct oribi__context *context)
{
    oribi__close(&context->upgrade->predecessor_fd);
    oribi__close(&context->upgrade->successor_fd);
}

static void end(struct oribi__context *context)
{
    oribi_dispatcher_forget(&context->dispatcher, &context->upgrade->watcher);
    let_go(context);
}

const struct oribi__module oribi__upgrade_module = {
    .bytes = sizeof(struct oribi__upgrade),
    .init = init,
    .begin = begin,
    .settle = relieve,
    .let_go = let_go,
    .end = end,
};
