/* Messages to a service manager: datagrams to NOTIFY_SOCKET (sd_notify(3)), a path or, with a leading @, an
 * abstract name. */
#ifndef ORIBI_SUPERVISOR_SD_NOTIFY_H
#define ORIBI_SUPERVISOR_SD_NOTIFY_H

#include <stdint.h>
#include <sys/types.h>

/* Each sends one message and never blocks. 1 when sent, 0 when there is no service manager (no NOTIFY_SOCKET),
 * ORIBI_AGAIN when its socket is full, or another code of os.h. */

int oribi_sd_ready(const char *status); /* up, or up again after a reload; borrows one line for people, or NULL */
int oribi_sd_reloading(void);
int oribi_sd_stopping(void);
int oribi_sd_watchdog(void);
int oribi_sd_main_pid(pid_t pid); /* another process is the service now: after an upgrade */

/* How often to call oribi_sd_watchdog(), in ms: half of WATCHDOG_USEC; 0 when no watchdog is set for this process. */
int64_t oribi_sd_watchdog_ms(void);

#endif
