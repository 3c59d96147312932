/* Messages to the service manager, sent once more where its socket is full. The watchdog's messages and the change of
 * the main pid do not come here: the next watchdog message follows in time, and the service manager watches the
 * successor whether or not it has heard of it. */
#include "supervisor/notify.h"

#include "supervisor/supervisor_private.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/supervisor/sd_notify.h"

#include <stdio.h>

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
    struct oribi__waiting_notice *waiting = &context->waiting_notice;
    waiting->notice = ORIBI__NO_NOTICE;
    if (send_notice(notice, status) != ORIBI_AGAIN)
        return;
    waiting->notice = notice;
    waiting->at = oribi_clock_ms() + ORIBI__NOTICE_RETRY_MS;
    (void)snprintf(waiting->status, sizeof(waiting->status), "%s", status ? status : ""); /* cut: for people */
    oribi_log(ORIBI_LOG_WARN, "the service manager's socket is full: %s is sent once more in %d ms", names[notice],
              ORIBI__NOTICE_RETRY_MS);
}

void oribi__notify_turn(struct oribi__context *context)
{
    struct oribi__waiting_notice *waiting = &context->waiting_notice;
    enum oribi__notice notice = waiting->notice;
    if (notice == ORIBI__NO_NOTICE || oribi_clock_ms() < waiting->at)
        return;
    waiting->notice = ORIBI__NO_NOTICE;
    if (send_notice(notice, waiting->status) == ORIBI_AGAIN)
        oribi_log(ORIBI_LOG_ERROR, "the service manager's socket is still full: %s is lost", names[notice]);
}
