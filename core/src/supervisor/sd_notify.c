/* Service manager notification, without libsystemd: the protocol is one datagram of lines. */
#include "oribi/supervisor/sd_notify.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/os/os.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { MESSAGE_CAP = 512 };

static int send_message(const char *message)
{
    const char *name = getenv("NOTIFY_SOCKET");
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    size_t n = name ? strlen(name) : 0;
    if (n == 0)
        return 0;
    if ((name[0] != '/' && name[0] != '@') || n < 2 || n >= sizeof(where.sun_path))
        return ORIBI_EINVAL; /* other families exist (vsock); nobody on this machine listens there */
    memcpy(where.sun_path, name, n);
    if (name[0] == '@')
        where.sun_path[0] = '\0'; /* abstract names have no end but their length, unix(7) */

    int fd = oribi_os_socket(AF_UNIX, SOCK_DGRAM, true);
    if (fd < 0)
        return fd;
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
    ssize_t sent = sendto(fd, message, strlen(message), MSG_NOSIGNAL, (struct sockaddr *)&where, len);
    int code = sent < 0 ? oribi_os_fail() : 1;
    oribi_os_close(fd);
    return code;
}

/* A status is one line: what follows a newline would be read as another variable. */
static int send_with_status(const char *first, const char *status)
{
    char message[MESSAGE_CAP];
    int n = snprintf(message, sizeof(message), "%s%s%s", first, status ? "STATUS=" : "", status ? status : "");
    if (n < 0)
        return ORIBI_EINVAL;
    for (char *p = message + strlen(first); *p; p++)
        *p = *p == '\n' ? ' ' : *p;
    return send_message(message);
}

int oribi_sd_ready(const char *status)
{
    return send_with_status("READY=1\n", status);
}

/* Managers of Type=notify-reload match the reload they asked for by this time stamp. */
int oribi_sd_reloading(void)
{
    char message[MESSAGE_CAP];
    (void)snprintf(message, sizeof(message), "RELOADING=1\nMONOTONIC_USEC=%lld\n",
                   (long long)oribi_clock_us()); /* fits */
    return send_message(message);
}

int oribi_sd_stopping(void)
{
    return send_message("STOPPING=1\n");
}

int oribi_sd_watchdog(void)
{
    return send_message("WATCHDOG=1\n");
}

int oribi_sd_main_pid(pid_t pid)
{
    char message[MESSAGE_CAP];
    (void)snprintf(message, sizeof(message), "MAINPID=%ld\n", (long)pid); /* fits */
    return send_message(message);
}

/* Half of what the manager waits, so that one late turn does no harm (sd_watchdog_enabled(3)). */
int64_t oribi_sd_watchdog_ms(void)
{
    const char *usec_text = getenv("WATCHDOG_USEC");
    const char *pid_text = getenv("WATCHDOG_PID");
    char *end;
    if (!usec_text || !*usec_text)
        return 0;
    if (pid_text && *pid_text && (strtol(pid_text, &end, 10) != (long)getpid() || *end))
        return 0;
    long long usec = strtoll(usec_text, &end, 10);
    if (*end || usec <= 0)
        return 0;
    int64_t ms = usec / 2000;
    return ms > 0 ? ms : 1;
}
