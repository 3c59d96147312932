/* posix_spawn(3) of a program whose output is wanted. */
#include "oribi/base/os/os_process.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/os/os.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    END_LOOK_MS = 5, /* output is closed just before the end */
    KILLED_MS = 1000,
};

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

static int refuse_late(const struct oribi_command *command, char *error)
{
    return refuse(error, "ran longer than %.1f s", (double)command->timeout_ms / 1000);
}

/* 0: the output has ended. */
static int take_output(struct oribi_command *command, char *error)
{
    for (;;) {
        char beyond;
        bool full = command->len == command->cap;
        ssize_t n = oribi_os_read(command->output_fd, full ? &beyond : command->output + command->len,
                                  full ? 1 : command->cap - command->len);
        if (n == 0)
            return 0;
        if (n > 0 && full)
            return refuse(error, "printed more than %zu bytes", command->cap);
        if (n > 0)
            command->len += (size_t)n;
        else if (n == ORIBI_AGAIN)
            return oribi_clock_ms() < command->until_ms ? ORIBI_AGAIN : refuse_late(command, error);
        else
            return refuse(error, "cannot be read: %s", oribi_os_error_text());
    }
}

/* Its end follows that of its output, unless it has closed that by itself. */
static int take_end(struct oribi_command *command, char *error)
{
    pid_t ended = command->reaped ? command->pid : oribi_process_reap(command->pid, false, &command->status);
    if (ended == 0)
        return oribi_clock_ms() < command->until_ms ? ORIBI_AGAIN : refuse_late(command, error);
    bool known = ended == command->pid;
    command->pid = 0;
    if (!known)
        return refuse(error, "ended, and its exit code is not known");
    if (WIFSIGNALED(command->status))
        return refuse(error, "was ended by signal %d", WTERMSIG(command->status));
    return WEXITSTATUS(command->status) ? refuse(error, "ended with exit code %d", WEXITSTATUS(command->status)) : 0;
}

int oribi_os_command_start(struct oribi_command *command, char *error)
{
    int fds[2];
    command->pid = 0;
    command->output_fd = -1;
    command->reaped = false;
    command->len = 0;
    command->until_ms = oribi_clock_ms() + command->timeout_ms;
    if (oribi_os_pipe(fds) < 0)
        return refuse(error, "cannot be started: %s", oribi_os_error_text());
    (void)oribi_os_set_nonblock(fds[1], false); /* the program expects to wait; it is open: cannot fail */
    int failed = spawn(command, fds[1], &command->pid);
    oribi_os_close(fds[1]);
    if (!failed) {
        command->output_fd = fds[0];
        return 0;
    }
    command->pid = 0;
    oribi_os_close(fds[0]);
    return refuse(error, "cannot be started: %s", strerror(failed));
}

int oribi_os_command_step(struct oribi_command *command, char *error)
{
    int code = command->output_fd >= 0 ? take_output(command, error) : 0;
    if (code == 0) {
        oribi_os_close(command->output_fd);
        command->output_fd = -1;
        code = take_end(command, error);
    }
    if (code != ORIBI_AGAIN)
        oribi_os_command_stop(command);
    return code;
}

bool oribi_os_command_ended(struct oribi_command *command, pid_t pid, int status)
{
    if (command->pid <= 0 || command->pid != pid)
        return false;
    command->reaped = true;
    command->status = status;
    return true;
}

/* Killed, it ends at once, as far as the kernel lets it: nobody waits for one that sleeps in there. */
void oribi_os_command_stop(struct oribi_command *command)
{
    oribi_os_close(command->output_fd);
    command->output_fd = -1;
    if (command->pid > 0) {
        (void)kill(-command->pid, SIGKILL); /* its session has one group, unless it made others */
        if (!command->reaped)
            (void)kill(command->pid, SIGKILL);
        if (!command->reaped)
            (void)oribi_process_reap_within(command->pid, KILLED_MS);
    }
    command->pid = 0;
}

int oribi_os_run_command(struct oribi_command *command, char *error)
{
    int code = oribi_os_command_start(command, error);
    if (code < 0)
        return code;
    while ((code = oribi_os_command_step(command, error)) == ORIBI_AGAIN) {
        int64_t left_ms = command->until_ms - oribi_clock_ms();
        bool prints = command->output_fd >= 0;
        oribi_process_poll(&command->output_fd, prints, !prints ? END_LOOK_MS : left_ms > 0 ? left_ms : 0);
    }
    return code;
}
