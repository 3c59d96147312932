/* posix_spawn(3) of a program whose output is wanted. */
#include "oribi/base/os_command.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/os.h"
#include "oribi/base/os_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { END_LOOK_MS = 5 }; /* output is closed just before the end */

extern char **environ;

__attribute__((format(printf, 2, 3))) static int refuse(char *error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(error, ORIBI_ERROR_TEXT_CAP, format, args); /* cut when longer */
    va_end(args);
    return ORIBI_EINVAL;
}

int oribi__os_spawn(char *const *argv, const posix_spawn_file_actions_t *files, pid_t *pid)
{
    posix_spawnattr_t attributes;
    sigset_t all;
    sigset_t none;
    (void)sigfillset(&all);
    (void)sigemptyset(&none);
    int failed = posix_spawnattr_init(&attributes);
    if (failed)
        return failed;
    failed = posix_spawnattr_setsigdefault(&attributes, &all);
    failed = failed ? failed : posix_spawnattr_setsigmask(&attributes, &none);
    failed = failed ? failed
                    : posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK |
                                                                oribi__os_spawn_apart());
    failed = failed ? failed : posix_spawnp(pid, argv[0], files, &attributes, argv, environ);
    (void)posix_spawnattr_destroy(&attributes);
    return failed;
}

static int spawn(const struct oribi_command *command, int output_fd, pid_t *pid)
{
    posix_spawn_file_actions_t files;
    int failed = posix_spawn_file_actions_init(&files);
    if (failed)
        return failed;
    if (command->input_fd >= 0)
        failed = posix_spawn_file_actions_adddup2(&files, command->input_fd, STDIN_FILENO);
    else
        failed = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    failed = failed ? failed : posix_spawn_file_actions_adddup2(&files, output_fd, STDOUT_FILENO);
    failed = failed ? failed : oribi__os_spawn(command->argv, &files, pid);
    (void)posix_spawn_file_actions_destroy(&files);
    return failed;
}

/* Until the end of the output. 0, or a code with `error`. */
static int take_output(struct oribi_command *command, int fd, int64_t until_ms, char *error)
{
    command->len = 0;
    for (;;) {
        char beyond;
        bool full = command->len == command->cap;
        int64_t left_ms = until_ms - oribi_clock_ms();
        ssize_t n =
            oribi_os_read(fd, full ? &beyond : command->output + command->len, full ? 1 : command->cap - command->len);
        if (n == 0)
            return 0;
        if (n > 0 && full)
            return refuse(error, "printed more than %zu bytes", command->cap);
        if (n > 0)
            command->len += (size_t)n;
        else if (n != ORIBI_AGAIN)
            return refuse(error, "cannot be read: %s", oribi_os_error_text());
        else if (left_ms <= 0)
            return refuse(error, "ran longer than %.1f s", (double)command->timeout_ms / 1000);
        else
            oribi_process_poll(&fd, 1, left_ms);
    }
}

/* Its end follows that of its output, unless it has closed that by itself. */
static int await_end(pid_t pid, int64_t until_ms, int *status)
{
    for (;;) {
        pid_t ended = oribi_process_reap(pid, false, status);
        if (ended != 0)
            return ended == pid ? 0 : ORIBI_ESYS;
        if (oribi_clock_ms() >= until_ms)
            return ORIBI_ELIMIT;
        oribi_process_poll(NULL, 0, END_LOOK_MS);
    }
}

static void end(pid_t pid)
{
    (void)kill(-pid, SIGKILL); /* its session has one group, unless it made others */
    (void)kill(pid, SIGKILL);
    (void)oribi_process_reap(pid, true, &(int){0}); /* ours, and killed */
}

int oribi_os_run_command(struct oribi_command *command, char *error)
{
    int fds[2];
    pid_t pid = 0;
    int status = 0;
    int64_t until_ms = oribi_clock_ms() + command->timeout_ms;
    if (oribi_os_pipe(fds) < 0)
        return refuse(error, "cannot be started: %s", oribi_os_error_text());
    (void)oribi_os_set_nonblock(fds[1], false); /* the program expects to wait; it is open: cannot fail */
    int failed = spawn(command, fds[1], &pid);
    oribi_os_close(fds[1]);
    if (failed) {
        oribi_os_close(fds[0]);
        return refuse(error, "cannot be started: %s", strerror(failed));
    }
    int code = take_output(command, fds[0], until_ms, error);
    oribi_os_close(fds[0]);
    int ended = code < 0 ? ORIBI_ELIMIT : await_end(pid, until_ms, &status);
    if (ended == ORIBI_ELIMIT)
        end(pid);
    if (code < 0)
        return code;
    if (ended == ORIBI_ELIMIT)
        return refuse(error, "ran longer than %.1f s", (double)command->timeout_ms / 1000);
    if (ended < 0)
        return refuse(error, "ended, and its exit code is not known");
    if (WIFSIGNALED(status))
        return refuse(error, "was ended by signal %d", WTERMSIG(status));
    return WEXITSTATUS(status) ? refuse(error, "ended with exit code %d", WEXITSTATUS(status)) : 0;
}
