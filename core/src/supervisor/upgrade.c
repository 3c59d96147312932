/* The two sides of an upgrade. Reading order: the predecessor's side in the order in which it happens, then the
 * successor's. */
#include "supervisor/upgrade.h"

#include "supervisor/supervisor_private.h"

#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/config/listener.h"
#include "supervisor/mold.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- in the predecessor --- */

/* Our own predecessor may still have the first name, while it answers what it had begun. */
static void step_aside(struct oribi__context *context)
{
    char path[4096];
    char error[ORIBI_ERROR_TEXT_CAP];
    if (context->pid_file.fd < 0)
        return;
    (void)snprintf(path, sizeof(path), "%s.old", context->pid_path); /* a path of the file system fits */
    if (oribi_pid_file_look(path, error) == ORIBI_ELIMIT)
        (void)snprintf(path, sizeof(path), "%s.old.%ld", context->pid_path, (long)context->pid);
    if (oribi_pid_file_rename(&context->pid_file, path) < 0)
        oribi_log(ORIBI_LOG_WARN, "pid_file: cannot be renamed: %s", oribi_os_error_text());
}

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
    int keep[ORIBI_LISTENERS_MAX + 3];
    int fds[2];
    pid_t pid = -1;
    size_t count = oribi__listeners_to_keep(context, listen, sizeof(listen), keep);
    if (oribi_os_pipe(fds) < 0)
        return started(-1, oribi_os_error_text());
    (void)snprintf(fd_text, sizeof(fd_text), "ORIBI_UPGRADE=%d", fds[1]);                               /* fits */
    (void)snprintf(control_text, sizeof(control_text), "ORIBI_CONTROL_PATH=%s", context->control.path); /* fits */
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
                     (char *)"LISTEN_FDS=",
                     (char *)"LISTEN_PID=",
                     (char *)"WATCHDOG_PID=", /* the service manager watches the successor from now on */
                     (char *)"ORIBI_MOLD=",
                     (char *)"ORIBI_SINGLE=",
                     (char *)"ORIBI_UPGRADE_WHY=2",
                     NULL};
    keep[count++] = fds[1];
    if (context->process.app.fd >= 0)
        keep[count++] = context->process.app.fd;
    if (oribi__inherited_totals_make(&context->observe.inherited) < 0) {
        oribi_log(ORIBI_LOG_WARN, "counters cannot be handed over to the successor: %s", oribi_os_error_text());
    } else {
        (void)snprintf(totals_text, sizeof(totals_text), "ORIBI_TOTALS=%d",
                       context->observe.inherited.to_fd); /* fits */
        keep[count++] = context->observe.inherited.to_fd;
        oribi__export_totals(&context->observe);
    }
    context->upgrade.why[0] = '\0';
    context->upgrade.why_len = 0;
    context->upgrade.why_known = false;
    context->upgrade.failure_follows = false;
    context->upgrade.stop = 0;
    step_aside(context);
    oribi__children_ours(true);
    int code = oribi_start_again(&context->start, extra, keep, count, &pid);
    oribi__children_ours(false);
    oribi__inherited_totals_given(&context->observe.inherited);
    oribi_os_close(fds[1]);
    if (code < 0) {
        oribi_os_close(fds[0]);
        return started(-1, oribi_os_error_text());
    }
    context->upgrade.successor_fd = fds[0];
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

/* The successor's death closes the pipe as well; waitpid(2) reports it. */
bool oribi__upgrade_ready(struct oribi__context *context)
{
    char byte;
    if (context->upgrade.successor_fd < 0)
        return false;
    ssize_t n;
    while ((n = oribi_os_read(context->upgrade.successor_fd, &byte, 1)) == 1) {
        if (context->upgrade.failure_follows)
            keep_why(&context->upgrade, byte);
        else if (byte == 'E')
            context->upgrade.failure_follows = true;
        else if (byte == 'S' || byte == 'N')
            context->upgrade.stop = byte;
        else
            break;
    }
    if (n == ORIBI_AGAIN)
        return false;
    oribi_os_close(context->upgrade.successor_fd);
    context->upgrade.successor_fd = -1;
    return n == 1;
}

bool oribi__upgrade_stop(struct oribi__context *context, struct oribi_policy_event *event)
{
    char stop = context->upgrade.stop;
    context->upgrade.stop = 0;
    *event = (struct oribi_policy_event){.type = stop == 'N' ? ORIBI_EVENT_STOP_NOW : ORIBI_EVENT_STOP};
    return stop != 0;
}

void oribi__upgrade_failed(struct oribi__context *context)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    (void)oribi__upgrade_ready(context);
    oribi_os_close(context->upgrade.successor_fd);
    context->upgrade.successor_fd = -1;
    if (context->pid_file.fd >= 0 && oribi_pid_file_rename(&context->pid_file, context->pid_path) < 0)
        oribi_log(ORIBI_LOG_WARN, "pid_file: cannot be renamed back: %s", oribi_os_error_text());
    if (context->control.path[0] && oribi__control_open(context, true, error) < 0)
        oribi_log(ORIBI_LOG_ERROR, "%s", error);
}

/* --- in the successor --- */

/* A successor is in the background already. */
void oribi__upgrade_inherit(struct oribi__context *context)
{
    const char *text = getenv("ORIBI_UPGRADE");
    char *end = NULL;
    long fd = text && *text ? strtol(text, &end, 10) : -1;
    const char *why = getenv("ORIBI_UPGRADE_WHY");
    context->upgrade.predecessor_asks_why = why && *why;
    context->upgrade.predecessor_stops = why && *why == '2';
    const char *workers = getenv("ORIBI_UPGRADE_WORKERS");
    struct oribi__upgrade *upgrade = &context->upgrade;
    if (!workers || sscanf(workers, "%u %u", &upgrade->workers, &upgrade->workers_before) != 2)
        upgrade->workers = upgrade->workers_before = 0;
    (void)unsetenv("ORIBI_UPGRADE_WORKERS"); /* fails for names with `=` only */
    oribi__inherited_totals_take(&context->observe.inherited);
    (void)unsetenv("ORIBI_UPGRADE"); /* fails for names with `=` only */
    (void)unsetenv("ORIBI_UPGRADE_WHY");
    if (fd < 0 || fd > INT_MAX || *end || oribi_os_set_cloexec((int)fd, true) < 0)
        return;
    upgrade->predecessor_fd = (int)fd;
    context->daemonize = false;
}

/* In one write, so that the predecessor reads the whole line. */
static void tell_predecessor(int fd, const char *text)
{
    char line[sizeof(((struct oribi__context *)0)->upgrade.why) + 2];
    int n = snprintf(line, sizeof(line), "E%.*s", (int)strcspn(text, "\n"), text); /* cut when longer: a hint */
    if (n > 0)
        (void)oribi_os_write(fd, line, (size_t)n < sizeof(line) ? (size_t)n + 1 : sizeof(line)); /* it may be gone */
}

void oribi__upgrade_tell(struct oribi__context *context, const char *text)
{
    if (context->upgrade.predecessor_fd >= 0 && context->upgrade.predecessor_asks_why)
        tell_predecessor(context->upgrade.predecessor_fd, text);
}

bool oribi__upgrade_hand_stop(struct oribi__context *context, bool now)
{
    if (context->upgrade.predecessor_fd < 0 || !context->upgrade.predecessor_stops ||
        oribi_os_write(context->upgrade.predecessor_fd, now ? "N" : "S", 1) != 1)
        return false;
    return context->upgrade.stop_handed = true;
}

void oribi__upgrade_relieve(struct oribi__context *context)
{
    if (context->upgrade.predecessor_fd < 0 || !context->policy.up || context->policy.stopping ||
        context->policy.stop_at || context->upgrade.stop_handed ||
        oribi_policy_serving(&context->policy) < context->policy.target)
        return;
    (void)oribi_os_write(context->upgrade.predecessor_fd, "1", 1); /* a predecessor that is gone needs no word */
    oribi_os_close(context->upgrade.predecessor_fd);
    context->upgrade.predecessor_fd = -1;
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
