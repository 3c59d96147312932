/* Messages of the supervisor to the service manager (sd_notify.h). Its socket may be full for a moment; without READY a
 * start counts as failed, and without STOPPING a stop as a crash. So such a message is sent once more, and the log says
 * so. A newer message replaces one that waits. The watchdog hears of the supervisor as long as its loop turns. */
#ifndef ORIBI_SUPERVISOR_NOTIFY_H
#define ORIBI_SUPERVISOR_NOTIFY_H

#include <sys/types.h>

struct oribi__context;

enum oribi__notice { ORIBI__NO_NOTICE, ORIBI__READY_NOTICE, ORIBI__RELOADING_NOTICE, ORIBI__STOPPING_NOTICE };

enum { ORIBI__NOTICE_RETRY_MS = 100 };

/* Borrows `status`, one line for people with READY; NULL: none. Nothing happens where no service manager listens. */
void oribi__notify(struct oribi__context *context, enum oribi__notice notice, const char *status);

/* Another process is the service now, after an upgrade. Sent once. */
void oribi__notify_main_pid(pid_t pid);

#endif
