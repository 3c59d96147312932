/* The shell around the supervisor's decisions (supervisor.h): signals, reaping, pipes, deadlines, pid file, log lines. A language runtime
 * drives it as it drives a worker: it pulls actions and does only what C cannot do for it, which is to fork and to run hooks.
 *
 *   supervisor ──fork──► mold ──fork──► intermediate ──fork──► worker         the mold has loaded the application; the intermediate leaves
 *        ▲ (subreaper)                  (leaves at once)          │           at once, so that the worker becomes the supervisor's child
 *        └────────────── waitpid, signals, messages ◄─────────────┘
 *
 * The whole of a language host, in C; a binding writes the same in its own words, with its own fork:
 *
 *   int serve(struct oribi_options *options)                       // options are final: oribi_options_finish() said 0
 *   {
 *       struct oribi_listeners listeners = {0};
 *       if (oribi_listeners_open(&listeners, options, error))      // also right in a later mold: it takes the handed-down sockets over
 *           return fail(error);                                    // "oribi: <error>" on stderr, exit code 1
 *       if (oribi_mold_inherited())                                // a supervisor started this command to become its next mold
 *           return oribi_mold_inherit(&(struct oribi_host_setup){options, &listeners, "oribi", NULL}, &mold, error)
 *                      ? fail(error) : run_mold(mold);
 *       if (oribi_host_create(&(struct oribi_host_setup){options, &listeners, "oribi", NULL}, &host, error))
 *           return fail(error);
 *       for (;;) {
 *           const struct oribi_host_action *action = oribi_host_take(host);
 *           switch (action->type) {
 *           case ORIBI_HOST_NONE:
 *               without_vm_lock(oribi_host_wait, host);            // unblock function: oribi_host_wake
 *               break;
 *           case ORIBI_HOST_FORK_DAEMON:                           // only with --daemonize, once, first of all
 *               pid = fork();
 *               if (pid == 0)
 *                   oribi_host_daemon_enter(host);                 // the loop goes on in the child
 *               else
 *                   _exit(oribi_host_daemon_wait(host, pid));      // returns when the server is up or has failed
 *               break;
 *           case ORIBI_HOST_FORK_MOLD:
 *               pid = fork();
 *               if (pid == 0)                                      // takes host: never touch it again in this process
 *                   return oribi_mold_enter(host, &mold, error) ? fail(error) : run_mold(mold);
 *               oribi_host_forked(host, pid);                      // also when fork failed (pid < 0)
 *               break;
 *           case ORIBI_HOST_HOOK:
 *               run_hook(action->hook, action->pid, action->status, action->reason);  // a hook that raises is logged, nothing more
 *               break;
 *           case ORIBI_HOST_EXIT:
 *               code = action->exit_code;
 *               oribi_host_destroy(host);                          // removes pid file and unix sockets that are ours
 *               return code;
 *           }
 *       }
 *   }
 *
 * run_mold() and the worker's start are in mold.h. Hooks and where they run:
 *   server_ready, before_reload, on_worker_exit(pid, status, reason)     supervisor, by ORIBI_HOST_HOOK
 *   before_fork                                                          mold, before each worker
 *   after_fork, after_worker_ready, before_worker_exit                   worker
 * The supervisor of the `oribi` and `oribi-psgi` commands loads the config file and never the application. */
#ifndef ORIBI_SERVER_HOST_H
#define ORIBI_SERVER_HOST_H

#include "oribi/server/listener.h"
#include "oribi/server/options.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct oribi_host;

/* What a program that is no server does with signals: prefork.h. */
enum { ORIBI_TRAPS_MAX = 32 };
struct oribi_trap {
    int signal;
    int send; /* to the workers; 0: nothing */
    int64_t interval_ms;
};
struct oribi_prefork {
    struct oribi_trap traps[ORIBI_TRAPS_MAX];
    uint32_t trap_count;
    uint64_t left; /* bit n - 1: signal n is the program's own */
};

struct oribi_host_setup {
    const struct oribi_options *options; /* borrowed for the process's life */
    struct oribi_listeners
        *listeners;      /* borrowed for the process's life; NULL or empty: workers that listen to nothing */
    const char *program; /* borrowed; "oribi", "oribi-psgi" */
    char *const *
        argv; /* borrowed during the call; command line of later generations, NULL-terminated; they get the environment of
                        * this moment. NULL: command line and environment this process was started with, which is right unless a
                        * title was written over them before */
    bool environ_is_known; /* with argv: nothing was written over, so that they get the environment of the start all the same */
    const struct oribi_prefork *prefork; /* borrowed during the call; NULL: a server */
};

enum oribi_host_action_type {
    ORIBI_HOST_NONE,
    ORIBI_HOST_FORK_DAEMON,
    ORIBI_HOST_FORK_MOLD,
    ORIBI_HOST_HOOK,
    ORIBI_HOST_EXIT,
    ORIBI_HOST_FORK_WORKER, /* prefork.h */
    ORIBI_HOST_TRAPPED,     /* likewise */
};

/* Valid until the next oribi_host_take(). */
struct oribi_host_action {
    enum oribi_host_action_type type;
    const char *hook; /* HOOK: "server_ready", "before_reload", "on_worker_exit" */
    const char
        *reason;   /* on_worker_exit: one line, such as "exit code 1", "signal 9", "call deadline", "asked to stop" */
    pid_t pid;     /* on_worker_exit */
    int status;    /* on_worker_exit: as waitpid(2) gives it */
    int exit_code; /* EXIT */
    int signal;    /* TRAPPED; EXIT: what is to strike now that no worker is left, 0: nothing */
};

/* In a command that ends with `text` before it has become a supervisor or a mold: the server that started it for a reload or an upgrade tells
 * the line to whoever asked. Nothing happens where no server started it. Borrows text. */
void oribi_start_failed(const char *text);

/* Makes the calling process the supervisor: remembers how it was started, becomes child subreaper, maps the scoreboard, opens pipes and
 * installs the signal handlers. Call it before anything changes the process's title. Gives the host. 0, or ORIBI_EINVAL, ORIBI_ESYS,
 * ORIBI_ENOMEM with one line in `error` (ORIBI_OPTIONS_ERROR_CAP): the listeners are closed then, and their socket files are gone as after a stop. */
int oribi_host_create(const struct oribi_host_setup *setup, struct oribi_host **out, char *error);

/* One turn: handles what has happened and returns the next thing that the language runtime must do. Never blocks, never NULL. */
const struct oribi_host_action *oribi_host_take(struct oribi_host *host);

/* Blocks until a signal, a message or a deadline calls for oribi_host_take(). Safe without the VM lock. */
void oribi_host_wait(struct oribi_host *host);

/* Ends a current or the next oribi_host_wait(). Async-signal-safe and thread-safe. */
void oribi_host_wake(struct oribi_host *host);

/* In the parent, after the fork asked for by ORIBI_HOST_FORK_MOLD; pid < 0: the fork failed with errno. */
void oribi_host_forked(struct oribi_host *host, pid_t pid);

/* In the child of ORIBI_HOST_FORK_DAEMON: a new session; standard streams go to the error log or /dev/null once the server is up. */
void oribi_host_daemon_enter(struct oribi_host *host);

/* In the parent of ORIBI_HOST_FORK_DAEMON: blocks until the child says it is up (returns 0), or failed (its exit code); a failed fork is 1. */
int oribi_host_daemon_wait(struct oribi_host *host, pid_t pid);

/* What the process title should say now ("oribi supervisor, generation 1, 4 workers"), NUL-terminated, cut at cap. Returns its length, or 0
 * if nothing changed since the last call. */
size_t oribi_host_title(struct oribi_host *host, char *dst, size_t cap);

/* Takes host. In the supervisor: removes what is ours (pid file, socket files), closes, frees. Signals do nothing from here on, so that one that comes late
 * does not change the exit code; where the program goes on, oribi_signals_uninstall() follows. A library's host (prefork.h) has done that itself. */
void oribi_host_destroy(struct oribi_host *host);

#endif
