/* Running another program and taking what it prints, with bounds on its time and its output. No shell is between. */
#ifndef ORIBI_BASE_OS_OS_COMMAND_H
#define ORIBI_BASE_OS_OS_COMMAND_H

#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct oribi_command {
    char *const *argv; /* NULL-terminated; argv[0] is looked for in PATH where it has no slash */
    int input_fd;      /* its standard input, borrowed; -1: /dev/null */
    int64_t timeout_ms;
    char *output; /* what it prints goes there */
    size_t cap;   /* bytes that it may print */
    size_t len;   /* gives how long it is */
    /* private */
    int output_fd; /* -1: its output has ended */
    pid_t pid;     /* 0: it has ended */
    int status;
    bool reaped; /* the caller has reaped it: oribi_os_command_ended() */
    int64_t until_ms;
};

/* oribi_os_run_command() in steps, for a caller that does not wait. Start: 0, or ORIBI_EINVAL with `error`. Step: 0,
 * the program has ended well; ORIBI_AGAIN: not yet, call again when command->output_fd is readable or a child has died,
 * at the latest at until_ms; or ORIBI_EINVAL with `error`. Ended: tells whether the process that the caller has reaped
 * was this one. Stop: ends a program that is not wanted any more; nothing if it has ended. */
int oribi_os_command_start(struct oribi_command *command, char *error);
int oribi_os_command_step(struct oribi_command *command, char *error);
bool oribi_os_command_ended(struct oribi_command *command, pid_t pid, int status);
void oribi_os_command_stop(struct oribi_command *command);

/* Runs it to its end, in a session of its own. Standard error and the environment are the caller's. What is left of it,
 * with all that it has started, is killed when its time is over or its output too long. 0; or ORIBI_EINVAL with what
 * it did in `error` (ORIBI_ERROR_TEXT_CAP): "ended with exit code 3"; nothing of the output counts then. The caller
 * wipes output that is secret. */
int oribi_os_run_command(struct oribi_command *command, char *error);

/* Starts argv[0], looked for in PATH, in a session of its own, with no signal ignored or blocked, and with `files` done
 * first; *pid is the caller's to reap. 0 or an errno, as posix_spawn(3). For base. */
int oribi__os_spawn(char *const *argv, const posix_spawn_file_actions_t *files, pid_t *pid);

#endif
