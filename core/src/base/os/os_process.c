/* Users, children and memory of processes. What /proc tells where there is one is not needed. */
#include "oribi/base/os/os_process.h"

#include "oribi/base/buf.h"
#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum {
    DEPTH_MAX = 4, /* from a supervisor over mold and intermediate to a worker, and one to spare */
    REAP_LOOK_MS = 5,
};

/* --- user --- */

static bool parse_id(const char *text, long *id)
{
    char *end;
    errno = 0;
    *id = strtol(text, &end, 10);
    return isdigit((unsigned char)text[0]) && *end == '\0' && errno == 0 && *id >= 0 && *id < INT_MAX;
}

int oribi_process_find_user(const char *user, const char *group, uid_t *uid, gid_t *gid, char *error)
{
    long number;
    *uid = (uid_t)-1;
    *gid = (gid_t)-1;
    if (user) {
        struct passwd *entry = parse_id(user, &number) ? getpwuid((uid_t)number) : getpwnam(user);
        if (!entry && !parse_id(user, &number)) {
            (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "user: there is no user '%.64s'", user);
            return ORIBI_EINVAL;
        }
        *uid = entry ? entry->pw_uid : (uid_t)number;
        *gid = entry ? entry->pw_gid : (gid_t)number;
    }
    if (group) {
        struct group *entry = parse_id(group, &number) ? getgrgid((gid_t)number) : getgrnam(group);
        if (!entry && !parse_id(group, &number)) {
            (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "group: there is no group '%.64s'", group);
            return ORIBI_EINVAL;
        }
        *gid = entry ? entry->gr_gid : (gid_t)number;
    }
    return 0;
}

/* CAP_SETUID (7) and CAP_SETGID (6) among the effective capabilities: what setuid(2) asks for, under any user. */
static bool may_change_user(void)
{
    char text[4096];
    int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : oribi_os_read(fd, text, sizeof(text) - 1);
    oribi_os_close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *line = strstr(text, "\nCapEff:");
    if (!line)
        return geteuid() == 0;
    return (strtoull(line + 8, NULL, 16) >> 6 & 3) == 3;
}

int oribi_process_check_user(const char *user, const char *group, char *error)
{
    uid_t uid;
    gid_t gid;
    int code = oribi_process_find_user(user, group, &uid, &gid, error);
    if (code < 0)
        return code;
    bool stays = (uid == (uid_t)-1 || uid == geteuid()) && (gid == (gid_t)-1 || gid == getegid());
    if (stays || may_change_user())
        return 0;
    (void)snprintf(
        error, ORIBI_ERROR_TEXT_CAP,
        "user: only root can change to %.64s, and this is user %u: start as root, or leave user and group out",
        user ? user : group, (unsigned)geteuid());
    return ORIBI_EINVAL;
}

const char *oribi_process_user_name(uid_t uid, char *dst, size_t cap)
{
    const struct passwd *entry = uid != (uid_t)-1 ? getpwuid(uid) : NULL;
    int n = entry ? snprintf(dst, cap, "%s", entry->pw_name) : -1;
    return n > 0 && (size_t)n < cap ? dst : NULL;
}

static int denied(const char *what, char *error)
{
    int code = oribi_os_fail();
    (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "%s: %s", what, oribi_os_error_text());
    return code < 0 ? code : ORIBI_ESYS;
}

/* Groups first: without root's rights they cannot be changed any more (setuid(2), initgroups(3)). */
int oribi_process_switch_user(const char *user, const char *group, char *error)
{
    uid_t uid;
    gid_t gid;
    int code = oribi_process_find_user(user, group, &uid, &gid, error);
    if (code < 0)
        return code;
    bool same_group = gid == (gid_t)-1 || (gid == getgid() && gid == getegid());
    bool same_user = uid == (uid_t)-1 || (uid == getuid() && uid == geteuid());
    if (same_group && same_user)
        return 0;
    struct passwd *entry = uid != (uid_t)-1 ? getpwuid(uid) : NULL;
    if (geteuid() == 0 && (entry ? initgroups(entry->pw_name, gid) : setgroups(1, &gid)) < 0)
        return denied("group: cannot set the supplementary groups", error);
    if (gid != (gid_t)-1 && setgid(gid) < 0)
        return denied("group: cannot change to it", error);
    if (uid != (uid_t)-1 && setuid(uid) < 0)
        return denied("user: cannot change to it", error);
    if (uid != (uid_t)-1 && uid != 0 && setuid(0) == 0) {
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "user: the change can be undone, which it must not");
        return ORIBI_ESYS;
    }
    return 0;
}

/* --- children and waiting --- */

/* The fourth field of /proc/PID/stat; the second is a name in brackets that may hold anything (proc(5)). */
static pid_t parent_of(pid_t pid)
{
    char path[32];
    char text[512];
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid); /* fits */
    int fd = oribi_os_lift(open(path, O_RDONLY | O_CLOEXEC));
    ssize_t n = fd < 0 ? -1 : oribi_os_read(fd, text, sizeof(text) - 1);
    oribi_os_close(fd);
    if (n <= 0)
        return -1;
    text[n] = '\0';
    int parent = -1;
    const char *after = strrchr(text, ')');
    return after && sscanf(after + 1, " %*c %d", &parent) == 1 ? parent : -1;
}

static bool leads_to_us(pid_t pid)
{
    for (int level = 0; level < DEPTH_MAX && pid > 1; level++) {
        pid = parent_of(pid);
        if (pid == getpid())
            return true;
    }
    return false;
}

/* A second look, because an intermediate may have ended between two steps of the first: its child is ours then. */
bool oribi_process_is_below(pid_t pid)
{
    return !oribi_os_adopts_orphans() || access("/proc/self/stat", R_OK) < 0 || leads_to_us(pid) || leads_to_us(pid);
}

pid_t oribi_process_reap(pid_t pid, bool wait, int *status)
{
    pid_t got;
    do
        got = waitpid(pid, status, wait ? 0 : WNOHANG);
    while (got < 0 && errno == EINTR);
    return got < 0 ? ORIBI_ESYS : got;
}

bool oribi_process_reap_within(pid_t pid, int64_t ms)
{
    int status;
    int64_t until_ms = oribi_clock_ms() + ms;
    while (oribi_process_reap(pid, false, &status) == 0) {
        if (oribi_clock_ms() >= until_ms)
            return false;
        oribi_process_poll(NULL, 0, REAP_LOOK_MS);
    }
    return true;
}

pid_t oribi_process_ended(void)
{
    siginfo_t info = {0};
    int code;
    do
        code = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT);
    while (code < 0 && errno == EINTR);
    return code < 0 ? ORIBI_ESYS : info.si_pid;
}

bool oribi_process_await(pid_t pid, int *status)
{
    siginfo_t info = {0};
    int code;
    do
        code = waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
    while (code < 0 && errno == EINTR);
    /* The status of wait(2), which macros such as WIFEXITED() take apart again. */
    *status = info.si_code == CLD_EXITED   ? (info.si_status & 0xff) << 8
              : info.si_code == CLD_DUMPED ? info.si_status | 0x80
                                           : info.si_status;
    return code == 0;
}

bool oribi_process_is_gone(pid_t pid)
{
    return kill(pid, 0) < 0 && (errno == ESRCH || errno == EPERM);
}

static nfds_t watch(struct pollfd polled[ORIBI_POLL_MAX], nfds_t n, const int *fds, size_t count, short events)
{
    for (size_t i = 0; i < count && n < ORIBI_POLL_MAX; i++)
        if (fds[i] >= 0)
            polled[n++] = (struct pollfd){.fd = fds[i], .events = events};
    return n;
}

void oribi_process_poll(const int *fds, size_t count, int64_t timeout_ms)
{
    oribi_process_poll_both(fds, count, NULL, 0, timeout_ms);
}

void oribi_process_poll_both(const int *fds, size_t count, const int *out_fds, size_t out_count, int64_t timeout_ms)
{
    struct pollfd polled[ORIBI_POLL_MAX];
    nfds_t n = watch(polled, 0, fds, count, POLLIN);
    n = watch(polled, n, out_fds, out_count, POLLOUT);
    if (timeout_ms > INT_MAX)
        timeout_ms = INT_MAX;
    (void)poll(polled, n, (int)timeout_ms); /* whatever ends it, the caller looks at everything */
}

bool oribi_process_terminal_gone(void)
{
    struct termios terminal;
    return tcgetattr(STDIN_FILENO, &terminal) < 0 && errno == EIO;
}

bool oribi_process_has_terminal(void)
{
    return isatty(STDIN_FILENO) || isatty(STDOUT_FILENO) || isatty(STDERR_FILENO);
}

/* --- memory --- */

int oribi_process_shared_memory_size(int fd, size_t *bytes)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return oribi_os_fail();
    *bytes = (size_t)st.st_size;
    return 0;
}
