/* The runtime around the policy (policy.h): signals, reaping, pipes, deadlines, pid file, log
 * lines. It says what the language is to do next; take.c makes a step of process.h of that. A library's
 * manager (prefork.h) is the same with the functions at the end. */
#ifndef ORIBI_SUPERVISOR_SUPERVISOR_H
#define ORIBI_SUPERVISOR_SUPERVISOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct oribi_listeners;
struct oribi_options;
struct oribi_prefork;
struct oribi_supervisor;

struct oribi_supervisor_setup {
    const struct oribi_options *options; /* borrowed for the process's life */
    /* borrowed for the process's life; NULL or empty: workers that listen to nothing */
    struct oribi_listeners *listeners;
    const char *program; /* borrowed; "oribi", "oribi-psgi" */
    const char *version; /* borrowed during the call; for the log, as is language; NULL: not said there */
    const char *language;
    /* Borrowed during the call; command line of later generations, NULL-terminated; they get the environment of this
     * moment. NULL: command line and environment this process was started with, which is right unless a title was
     * written over them before. */
    char *const *argv;
    /* with argv: nothing was written over, so that they get the environment of the start all the same */
    bool environ_is_known;
    char *const *environ; /* borrowed during the call; their environment whatever argv says; NULL: as said there */
    const char *needed;   /* borrowed during the call: a file without which they cannot start; NULL: none is known */
    const struct oribi_prefork *prefork; /* borrowed during the call; NULL: a server */
};

enum oribi_supervisor_action_type {
    ORIBI_SUPERVISOR_NONE,
    ORIBI_SUPERVISOR_FORK_DAEMON,
    ORIBI_SUPERVISOR_FORK_MOLD,
    ORIBI_SUPERVISOR_HOOK,
    ORIBI_SUPERVISOR_EXIT,
    ORIBI_SUPERVISOR_FORK_WORKER, /* prefork.h */
    ORIBI_SUPERVISOR_TRAPPED,     /* likewise */
};

/* Valid until the next oribi_supervisor_take(). */
struct oribi_supervisor_action {
    enum oribi_supervisor_action_type type;
    const char *hook; /* HOOK: "server_ready", "before_reload", "on_worker_exit" */
    const char
        *reason;    /* on_worker_exit: one line, such as "exit code 1", "signal 9", "call deadline", "asked to stop" */
    pid_t pid;      /* on_worker_exit */
    int status;     /* on_worker_exit: as waitpid(2) gives it */
    uint32_t index; /* on_worker_exit: the worker's record */
    int exit_code;  /* EXIT */
    int signal;     /* TRAPPED; EXIT: the signal to raise again now that no worker is left, 0: none */
};

/* In a command that ends with `text` before it has become a supervisor or a mold: the server that started it for a
 * reload or an upgrade tells the line to the client that asked. Nothing happens where no server started it. True: that
 * server logs the line, so that this command need not print it. Borrows text. */
bool oribi_start_failed(const char *text);

/* Makes the calling process the supervisor: remembers how it was started, becomes child subreaper, maps the
 * scoreboard, opens pipes and installs the signal handlers. Call it before anything changes the process's title.
 * Gives the supervisor. 0, or ORIBI_EINVAL, ORIBI_ESYS, ORIBI_ENOMEM with one line in `error` (ORIBI_ERROR_TEXT_CAP):
 * the listeners are closed then, and their socket files are gone as after a stop. */
int oribi_supervisor_create(const struct oribi_supervisor_setup *setup, struct oribi_supervisor **out, char *error);

/* One turn: handles what has happened and returns the next thing that the language runtime must do. Never blocks,
 * never NULL. */
const struct oribi_supervisor_action *oribi_supervisor_take(struct oribi_supervisor *supervisor);

/* Blocks until a signal, a message or a deadline calls for oribi_supervisor_take(), at most so many milliseconds; <
 * 0: no bound. Safe without the VM lock. */
void oribi_supervisor_wait_for(struct oribi_supervisor *supervisor, int64_t ms);

/* Ends a current or the next oribi_supervisor_wait(). Async-signal-safe and thread-safe. */
void oribi_supervisor_wake(struct oribi_supervisor *supervisor);

/* Asks for a graceful stop, once: nothing follows where the server is about to stop, also by a signal that came before
 * and has not been looked at. From any thread and signal handler. */
void oribi_supervisor_stop(struct oribi_supervisor *supervisor);

/* A successor serves since an upgrade. */
bool oribi_supervisor_handed_over(const struct oribi_supervisor *supervisor);

/* In the parent, after the fork asked for by ORIBI_SUPERVISOR_FORK_MOLD; pid < 0: the fork failed with errno. */
void oribi_supervisor_forked(struct oribi_supervisor *supervisor, pid_t pid);

/* In the child of ORIBI_SUPERVISOR_FORK_DAEMON: a new session; standard streams go to the error log or /dev/null
 * once the server is up. */
void oribi_supervisor_daemon_enter(struct oribi_supervisor *supervisor);

/* Text that the process title should have now ("oribi supervisor, generation 1, 4 workers"), NUL-terminated, cut at
 * cap. Returns its length, or 0 if nothing changed since the last call. */
size_t oribi_supervisor_title(struct oribi_supervisor *supervisor, char *dst, size_t cap);

/* Takes supervisor. In its own process: removes what is ours (pid file, socket files), closes, frees. Signals do
 * nothing from here on, so that one that comes late does not change the exit code; where the program goes on,
 * oribi_signals_uninstall() follows. For a manager (prefork.h) it has done that itself. */
void oribi_supervisor_destroy(struct oribi_supervisor *supervisor);

/* --- a manager: prefork.h --- */

/* Around the fork of ORIBI_SUPERVISOR_FORK_WORKER, in the parent. `pid` is fork's result; < 0 with errno. */
void oribi_supervisor_before_fork(struct oribi_supervisor *supervisor);
void oribi_supervisor_worker_forked(struct oribi_supervisor *supervisor, pid_t pid);

/* Do the work of oribi_process_resume() and so on. */
void oribi_supervisor_resume(struct oribi_supervisor *supervisor);
void oribi_supervisor_configure(struct oribi_supervisor *supervisor);
uint32_t oribi_supervisor_signal_all(struct oribi_supervisor *supervisor, int signal);
uint32_t oribi_supervisor_workers(const struct oribi_supervisor *supervisor);

/* The program waits for its workers' end: molds of reloads are stopped, if the loop is paused. */
void oribi_supervisor_release_molds(struct oribi_supervisor *supervisor);

/* Workers and molds of reloads. */
uint32_t oribi_supervisor_processes(const struct oribi_supervisor *supervisor);

#endif
