/* Messages to the service manager, sent once more where its socket is full. The watchdog's messages and the change of
 * the main pid do not come here: the next watchdog message follows in time, and the service manager watches the
 * successor whether or not it has heard of it. */
#include "supervisor/notify.h"

#include "supervisor/context.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/supervisor/sd_notify.h"

#include <stdio.h>

enum { STATUS_CAP = 512 };

struct oribi__notify {
    enum oribi__notice waiting; /* NO_NOTICE: none waits */
    struct oribi_timer again;
    char status[STATUS_CAP];
    int64_t watchdog_ms; /* interval in which the service manager expects to hear of us; 0: it does not */
    struct oribi_timer watchdog;
};

static const char *const names[] = {
    [ORIBI__NO_NOTICE] = "",
    [ORIBI__READY_NOTICE] = "READY",
    [ORIBI__RELOADING_NOTICE] = "RELOADING",
    [ORIBI__STOPPING_NOTICE] = "STOPPING",
};

static int send_notice(enum oribi__notice notice, const char *status)
{
    switch (notice) {
    case ORIBI__READY_NOTICE:
        return oribi_sd_ready(status && status[0] ? status : NULL);
    case ORIBI__RELOADING_NOTICE:
        return oribi_sd_reloading();
    case ORIBI__STOPPING_NOTICE:
        return oribi_sd_stopping();
    case ORIBI__NO_NOTICE:
        break;
    }
    return 0;
}

void oribi__notify(struct oribi__context *context, enum oribi__notice notice, const char *status)
{
    struct oribi__notify *notify = context->notify;
    notify->waiting = ORIBI__NO_NOTICE;
    oribi_dispatcher_arm(&context->dispatcher, &notify->again, INT64_MAX);
    if (send_notice(notice, status) != ORIBI_AGAIN)
        return;
    notify->waiting = notice;
    (void)snprintf(notify->status, sizeof(notify->status), "%s", status ? status : ""); /* cut: for people */
    oribi_dispatcher_arm(&context->dispatcher, &notify->again, oribi_clock_ms() + ORIBI__NOTICE_RETRY_MS);
    oribi_log(ORIBI_LOG_WARN, "the service manager's socket is full: sending %s again in %d ms", names[notice],
              ORIBI__NOTICE_RETRY_MS);
}

void oribi__notify_main_pid(pid_t pid)
{
    (void)oribi_sd_main_pid(pid); /* a full socket: the service manager finds out by itself */
}

static void send_again(void *owner)
{
    struct oribi__context *context = owner;
    enum oribi__notice notice = context->notify->waiting;
    context->notify->waiting = ORIBI__NO_NOTICE;
    if (send_notice(notice, context->notify->status) == ORIBI_AGAIN)
        oribi_log(ORIBI_LOG_ERROR, "the service manager's socket is still full: %s is lost", names[notice]);
}

static void pat_watchdog(void *owner)
{
    struct oribi__context *context = owner;
    struct oribi__notify *notify = context->notify;
    oribi_dispatcher_arm(&context->dispatcher, &notify->watchdog, oribi_clock_ms() + notify->watchdog_ms);
    (void)oribi_sd_watchdog(); /* a lost one is followed by another in time */
}

static void init(struct oribi__context *context)
{
    context->notify->again = (struct oribi_timer){.expired = send_again, .owner = context};
    context->notify->watchdog = (struct oribi_timer){.expired = pat_watchdog, .owner = context};
}

static int begin(struct oribi__context *context, char *error)
{
    context->notify->watchdog_ms = oribi_sd_watchdog_ms();
    if (context->notify->watchdog_ms)
        oribi_dispatcher_arm(&context->dispatcher, &context->notify->watchdog, 0);
    return 0;
}

static void end(struct oribi__context *context)
{
    oribi_dispatcher_arm(&context->dispatcher, &context->notify->again, INT64_MAX);
    oribi_dispatcher_arm(&context->dispatcher, &context->notify->watchdog, INT64_MAX);
}

const struct oribi__module oribi__notify_module = {
    .bytes = sizeof(struct oribi__notify),
    .init = init,
    .begin = begin,
    .end = end,
};
