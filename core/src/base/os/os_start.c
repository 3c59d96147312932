/* How this process was started, and starting the same command again. */
#include "oribi/base/os/os_process.h"

#include "oribi/base/buf.h"
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

enum { PROC_BYTES_MAX = 8 * 1024 * 1024 };

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

void oribi_start_set_environ(struct oribi_start *start, char *const *list)
{
    char **copy = copy_list(list);
    free_list(start->environ);
    start->environ = copy;
}

void oribi_start_set_needed(struct oribi_start *start, const char *path)
{
    char *copy = copy_text(path);
    oribi_mem_free(start->needed);
    start->needed = copy;
}

void oribi_start_free(struct oribi_start *start)
{
    oribi_mem_free(start->needed);
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

/* Names the cause before the command runs: its runtime would end with an exit code alone. */
static int look(const struct oribi_start *start)
{
    char path[PATH_MAX];
    if (access(start->dir, X_OK) < 0)
        return oribi_os_fail_saying("the folder that it was started in cannot be entered: %.160s", start->dir);
    if (!start->needed)
        return 0;
    bool whole = start->needed[0] == '/';
    int n = snprintf(path, sizeof(path), "%s%s%s", whole ? "" : start->dir, whole ? "" : "/", start->needed);
    if (n > 0 && (size_t)n < sizeof(path) && access(path, F_OK) < 0)
        return oribi_os_fail_saying("a file that it needs is missing: %.160s", path);
    return 0;
}

int oribi_start_again(const struct oribi_start *start, char *const *extra, const int *keep, size_t keep_count,
                      pid_t *pid)
{
    if (!start->argv || !start->argv[0])
        return ORIBI_EINVAL;
    int missing = look(start);
    if (missing < 0)
        return missing;
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

/* Blocked ones wait for their handlers; but Ruby unblocks all signals when it begins, and leaves alone those that are
 * ignored. */
void oribi_start_become(const struct oribi_start *start, char *const *extra, const int *keep, size_t keep_count,
                        const int *held, size_t held_count)
{
    char **merged = start->argv && start->argv[0] ? try_merge_environ(start->environ, extra) : NULL;
    char **own = environ;
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
    environ = own; /* where there is no execvpe(3) it is another one now */
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    for (size_t i = 0; i < keep_count; i++)
        (void)fcntl(keep[i], F_SETFD, FD_CLOEXEC);
    oribi_mem_free(merged);
}
