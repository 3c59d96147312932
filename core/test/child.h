/* Runs a function in a child process, for what ends the process or changes it for good. */
#ifndef ORIBI_TEST_CHILD_H
#define ORIBI_TEST_CHILD_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* The child's wait status; its exit code is what `body` returns. A child that takes longer than 1000 s is ended by its
 * own alarm. */
__attribute__((unused)) static int run_child(int (*body)(void *), void *data)
{
    int status = -1;
    fflush(stdout);
    fflush(stderr);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(1000);
        _exit(body(data));
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        perror("run_child");
        exit(2);
    }
    return status;
}

/* The exit code of the child, or -1 when a signal ended it. */
__attribute__((unused)) static int child_code(int (*body)(void *), void *data)
{
    int status = run_child(body, data);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The signal that ended the child, or 0. */
__attribute__((unused)) static int child_signal(int (*body)(void *), void *data)
{
    int status = run_child(body, data);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

#endif
