/* How this process was started, users, children and memory. What /proc tells where there is one is not needed. */
#include "oribi/base/os_process.h"

#include "oribi/base/buf.h"
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os.h"

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

extern char **environ;

enum {
    PROC_BYTES_MAX = 8 * 1024 * 1024,
    DEPTH_MAX = 4, /* from a supervisor over mold and intermediate to a worker, and one to spare */
};

/* --- how we were started --- */

static char *copy_text(const char *text)
{
    size_t n = strlen(text) + 1;
    char *copy = oribi_mem_alloc(n, 1);
    memcpy(copy, text, n);
    return copy;
}

static char **copy_list(char *const *list)
{
    size_t count = 0;
    while (list[count])
        count++;
    char **copy = oribi_mem_alloc(count + 1, sizeof(*copy));
    for (size_t i = 0; i < count; i++)
        copy[i] = copy_text(list[i]);
    return copy;
}

static void free_list(char **list)
{
    for (size_t i = 0; list && list[i]; i++)
        oribi_mem_free(list[i]);
    oribi_mem_free(list);
}

int oribi__os_read_proc(bool environment, struct oribi_buf *out)
{
    int fd = oribi_os_lift(open(environment ? "/proc/self/environ" : "/proc/self/cmdline", O_RDONLY | O_CLOEXEC));
    if (fd < 0)
        return oribi_os_fail();
    ssize_t n;
    do {
        n = oribi_os_read(fd, oribi_buf_reserve(out, 4096), 4096);
        out->len += n > 0 ? (size_t)n : 0;
    } while (n > 0 && out->len < PROC_BYTES_MAX);
    oribi_os_close(fd);
    return n < 0 ? (int)n : 0;
}

/* Where the string that begins at `at` ends, behind its NUL; 0 where it does not end. */
static size_t behind_text(struct oribi_slice all, size_t at)
{
    const char *end = at < all.n ? memchr(all.p + at, '\0', all.n - at) : NULL;
    return end ? (size_t)(end - all.p) + 1 : 0;
}

int oribi__os_split_started(struct oribi_slice all, bool environment, struct oribi_buf *out)
{
    int words;
    size_t at = sizeof(words);
    if (all.n < sizeof(words))
        return ORIBI_EINVAL;
    memcpy(&words, all.p, sizeof(words));
    at = behind_text(all, at); /* the path of the program */
    while (at && at < all.n && all.p[at] == '\0')
        at++;
    for (int i = 0; at && i < words; i++) {
        size_t next = behind_text(all, at);
        if (next && !environment)
            oribi_buf_append(out, all.p + at, next - at);
        at = next;
    }
    if (!at || words < 1)
        return ORIBI_EINVAL;
    for (size_t next; environment && (next = behind_text(all, at)) > at + 1; at = next)
        oribi_buf_append(out, all.p + at, next - at);
    return 0;
}

/* NUL-terminated strings, as the system keeps command line and environment. */
static int read_list(bool environment, char ***out)
{
    struct oribi_buf buf = {0};
    int code = oribi__os_started(environment, &buf);
    size_t count = 0;
    for (size_t i = 0; i < buf.len; i++)
        count += buf.p[i] == '\0';
    char **list = oribi_mem_alloc(count + 1, sizeof(*list));
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        list[i] = copy_text(buf.p + at);
        at += strlen(list[i]) + 1;
    }
    oribi_buf_deinit(&buf);
    *out = list;
    return code;
}

static const char *value_of(char *const *list, const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; list[i]; i++)
        if (strncmp(list[i], name, n) == 0 && list[i][n] == '=')
            return list[i] + n + 1;
    return NULL;
}

static char *working_dir(char *const *start_environ)
{
    char dir[PATH_MAX];
    const char *named = value_of(start_environ, "PWD");
    struct stat by_name;
    struct stat here;
    if (named && named[0] == '/' && stat(named, &by_name) == 0 && stat(".", &here) == 0 &&
        by_name.st_dev == here.st_dev && by_name.st_ino == here.st_ino)
        return copy_text(named);
    return copy_text(getcwd(dir, sizeof(dir)) ? dir : "/");
}

char *oribi_process_dir(void)
{
    return working_dir(environ);
}

int oribi_process_enter_dir(const char *dir, char *error)
{
    if (chdir(dir) == 0)
        return 0;
    (void)oribi_os_fail();
    (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "chdir %.150s: %s", dir, oribi_os_error_text());
    return ORIBI_ESYS;
}

int oribi_start_record(struct oribi_start *start, char *const *argv, bool environ_is_known, const char *dir)
{
    *start = (struct oribi_start){0};
    int code = 0;
    /* Where the record is overwritten by a title, the environment may have been met too. */
    if (argv)
        start->argv = copy_list(argv);
    else
        code = read_list(false, &start->argv);
    if (code == 0 && (!argv || environ_is_known) && read_list(true, &start->environ) < 0) {
        free_list(start->environ); /* unreadable after a change of user */
        start->environ = NULL;
    }
    if (code == 0 && !start->environ)
        start->environ = copy_list(environ);
    if (code < 0) {
        oribi_start_free(start);
        return code;
    }
    start->dir = dir ? copy_text(dir) : working_dir(start->environ);
    return 0;
}

void oribi_start_free(struct oribi_start *start)
{
    free_list(start->argv);
    free_list(start->environ);
    oribi_mem_free(start->dir);
    *start = (struct oribi_start){0};
}

static bool same_name(const char *a, const char *b)
{
    size_t n = strcspn(a, "=");
    return n == strcspn(b, "=") && memcmp(a, b, n) == 0;
}

/* The list only; its strings are borrowed. NULL when out of memory: the process goes on serving. */
static char **try_merge_environ(char *const *base, char *const *extra)
{
    size_t count = 0;
    for (size_t i = 0; base[i]; i++)
        count++;
    for (size_t i = 0; extra[i]; i++)
        count++;
    char **list = oribi_mem_try_alloc(count + 1, sizeof(*list));
    if (!list)
        return NULL;
    size_t n = 0;
    for (size_t i = 0; base[i]; i++) {
        bool replaced = false;
        for (size_t k = 0; extra[k]; k++)
            replaced |= same_name(base[i], extra[k]);
        if (!replaced)
            list[n++] = base[i];
    }
    for (size_t k = 0; extra[k]; k++)
        list[n++] = extra[k];
    return list;
}

/* Resets handlers as exec(2) will do anyway, but before a signal can come that is meant for the new program: our
 * handlers would take that signal and no one would act on it. */
static void forget_handlers(void)
{
    struct sigaction action;
    for (int number = 1; number < NSIG; number++) {
        if (sigaction(number, NULL, &action) < 0 || action.sa_handler == SIG_IGN || action.sa_handler == SIG_DFL)
            continue;
        action = (struct sigaction){.sa_handler = SIG_DFL};
        (void)sigaction(number, &action, NULL); /* fails only for numbers that do not exist */
    }
}

/* Between fork and exec only what signal-safety(7) allows; a search through PATH is the exception every shell-like
 * program relies on. Signals are blocked. */
static void become(const struct oribi_start *start, char **merged, const int *keep, size_t keep_count)
{
    for (size_t i = 0; i < keep_count; i++)
        (void)fcntl(keep[i], F_SETFD, 0);
    forget_handlers();
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (chdir(start->dir) == 0)
        oribi__os_exec(start->argv, merged);
    static const char text[] = "oribi: the command cannot be started again\n";
    (void)!write(STDERR_FILENO, text, sizeof(text) - 1);
    _exit(127);
}

int oribi_start_again(const struct oribi_start *start, char *const *extra, const int *keep, size_t keep_count,
                      pid_t *pid)
{
    if (!start->argv || !start->argv[0])
        return ORIBI_EINVAL;
    char **merged = try_merge_environ(start->environ, extra);
    if (!merged)
        return ORIBI_ENOMEM;
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t child = fork();
    if (child == 0)
        become(start, merged, keep, keep_count);
    int code = child < 0 ? oribi_os_fail() : 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    oribi_mem_free(merged);
    if (code == 0)
        *pid = child;
    return code;
}

static void set_action(int number, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};
    (void)sigaction(number, &action, NULL); /* fails only for numbers that do not exist */
}

void oribi_start_arrive(const int *held, size_t held_count, bool ready)
{
    sigset_t mask;
    (void)sigemptyset(&mask);
    for (size_t i = 0; i < held_count; i++)
        (void)sigaddset(&mask, held[i]);
    (void)pthread_sigmask(ready ? SIG_UNBLOCK : SIG_BLOCK, &mask, NULL);
    for (size_t i = 0; !ready && i < held_count; i++)
        set_action(held[i], SIG_DFL);
}

/* Blocked ones wait for their handlers; but Ruby unblocks all signals when it begins, and leaves alone what is ignored. */
void oribi_start_become(const struct oribi_start *start, char *const *extra, const int *keep, size_t keep_count,
                        const int *held, size_t held_count)
{
    char **merged = start->argv && start->argv[0] ? try_merge_environ(start->environ, extra) : NULL;
    sigset_t mask;
    sigset_t before;
    if (!merged)
        return;
    (void)sigemptyset(&mask);
    for (size_t i = 0; i < held_count; i++)
        (void)sigaddset(&mask, held[i]);
    for (size_t i = 0; i < keep_count; i++)
        (void)fcntl(keep[i], F_SETFD, 0);
    (void)pthread_sigmask(SIG_SETMASK, &mask, &before);
    for (size_t i = 0; i < held_count; i++)
        set_action(held[i], SIG_IGN);
    if (chdir(start->dir) == 0)
        oribi__os_exec(start->argv, merged);
    (void)oribi_os_fail();
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    for (size_t i = 0; i < keep_count; i++)
        (void)fcntl(keep[i], F_SETFD, FD_CLOEXEC);
    oribi_mem_free(merged);
}

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
    /* What macros such as WIFEXITED() take apart again. */
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
