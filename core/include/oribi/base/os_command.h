/* Running another program and taking what it prints, with bounds on its time and its output. No shell is between. */
#ifndef ORIBI_BASE_OS_COMMAND_H
#define ORIBI_BASE_OS_COMMAND_H

#include <spawn.h>
#include <stddef.h>
#include <stdint.h>

struct oribi_command {
    char *const *argv; /* NULL-terminated; argv[0] is looked for in PATH where it has no slash */
    int input_fd;      /* its standard input, borrowed; -1: /dev/null */
    int64_t timeout_ms;
    char *output; /* what it prints goes there … */
    size_t cap;   /* … and may be so long */
    size_t len;   /* gives how long it is */
};

/* Runs it to its end, in a session of its own. Standard error and the environment are the caller's. What is left of it,
 * with all that it has started, is killed when its time is over or its output too long. 0; or ORIBI_EINVAL with what
 * it did in `error` (ORIBI_ERROR_TEXT_CAP): "ended with exit code 3"; nothing of the output counts then. The caller
 * wipes output that is secret. */
int oribi_os_run_command(struct oribi_command *command, char *error);

/* Starts argv[0], looked for in PATH, in a session of its own, with no signal ignored or blocked, and with `files` done
 * first; *pid is the caller's to reap. 0 or an errno, as posix_spawn(3). For base. */
int oribi__os_spawn(char *const *argv, const posix_spawn_file_actions_t *files, pid_t *pid);

#endif
