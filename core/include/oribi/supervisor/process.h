/* One process of a server, or of a program that manages workers (prefork.h): supervisor, mold, worker, and those
 * that live for a moment between them. A language runtime drives each of them by the same loop: it pulls the next
 * step, and does only what C cannot do for it. After a fork the loop goes on in both processes; in the child the
 * handle has become the child's.
 *
 *   supervisor ──FORK──► mold ──FORK──► intermediate ──FORK──► worker     the intermediate ends at once, so that the
 *        ▲ (subreaper)                  (ends at once)           │        worker becomes the supervisor's child
 *        └────────────── waitpid, signals, messages ◄────────────┘
 *
 * The whole of a language supervisor, in C; a binding writes the same in its own words, with its own fork:
 *
 *   int serve(const struct oribi_process_setup *setup)
 *   {
 *       if (oribi_process_create(setup, &p, error))           // a supervisor, or the next mold of one
 *           return complain(error);                           // "oribi: <error>" on stderr, exit code 1
 *       for (;;) {
 *           const struct oribi_step *step = oribi_process_take(p);
 *           switch (step->type) {
 *           case ORIBI_STEP_WAIT:
 *               show_title(p);
 *               without_vm_lock(oribi_process_wait, p, -1);   // unblock function: oribi_process_wake
 *               break;
 *           case ORIBI_STEP_FORK:
 *               oribi_process_forked(p, fork());              // the language's own fork, nothing else between
 *               break;
 *           case ORIBI_STEP_HOOK:
 *               if (run_hook(step) raised and step->fatal)
 *                   oribi_process_failed(p, text, len);
 *               break;
 *           case ORIBI_STEP_LOAD:                             // the application; in a mold its warm-up too (worker.h)
 *               if (load(&app) raised)
 *                   oribi_process_failed(p, text, len);
 *               break;
 *           case ORIBI_STEP_OPEN:                             // the worker of this process
 *               oribi_process_worker_setup(p, &worker_setup);
 *               if (oribi_worker_create(&worker_setup, &worker) < 0)
 *                   oribi_process_failed(p, text, len);
 *               else
 *                   oribi_process_ready(p, worker);
 *               break;
 *           case ORIBI_STEP_RUN:                              // the loop of worker.h; at the top of each round:
 *               run(worker, app);                             // if (oribi_process_due(p) && …_turn(p)) return;
 *               break;
 *           case ORIBI_STEP_EXIT:
 *               if (step->at_once)
 *                   _exit(step->code);                        // no at_exit, no END blocks, no destructors
 *               oribi_worker_destroy(worker);                 // where there is one
 *               oribi_process_destroy(p);
 *               return step->code;                            // molds and workers end here, as the language ends
 *           case ORIBI_STEP_TRAPPED:                          // managers only: prefork.h
 *           case ORIBI_STEP_DONE:
 *               break;
 *           }
 *       }
 *   }
 *
 * A step that went well is answered by the next oribi_process_take(). Only FORK (oribi_process_forked) and OPEN
 * (oribi_process_ready) have answers of their own. A step that failed is answered by oribi_process_failed(), and the
 * next step is EXIT.
 *
 * The steps of each role, in their order: [] depends on the options, ()* is repeated, | is one of them.
 *
 *   supervisor     [FORK daemon] (WAIT | FORK mold | HOOK server_ready | HOOK before_reload | HOOK on_worker_exit)*
 *                  EXIT code
 *   starter        WAIT* EXIT code at once. It is the process that --daemonize was given to: it ends when the daemon
 *                  is up or failed
 *   mold           [LOAD] (WAIT | HOOK before_fork, FORK intermediate)* EXIT 0. When it cannot become one, or LOAD
 *                  fails: EXIT 1
 *   mold           made of a worker (refork_after): the same without LOAD
 *   intermediate   FORK worker, EXIT 0 at once; for a mold made of a worker: FORK mold, EXIT 0 at once
 *   worker         HOOK after_fork [LOAD] OPEN HOOK after_worker_ready (RUN [HOOK before_refork, FORK intermediate])*
 *                  HOOK before_worker_exit EXIT 0. No LOAD where the process it was forked from has loaded.
 *                  When one of the first three fails: EXIT 1 at once
 *   single         LOAD OPEN HOOK server_ready HOOK after_worker_ready RUN [HOOK before_reload] HOOK before_worker_exit
 *                  EXIT 0. When one of the first two fails: EXIT 1. With the option `single` this is the process that
 *                  would be the supervisor. Where RUN has ended for a reload, oribi_process_destroy() starts the
 *                  program anew under this pid and does not return
 *   and with setup.manager:
 *   manager        [FORK daemon] (WAIT | HOOK before_fork, FORK worker, HOOK after_fork | HOOK on_worker_exit |
 *                  TRAPPED | DONE)* EXIT code, signal
 *   its next mold  (WAIT | HOOK before_fork, FORK intermediate)* EXIT 0 at once; no LOAD: it is ready when made
 *   its worker     RUN, once; take is not called again, the loop is the program's. When it cannot become its user:
 *                  EXIT 1 at once
 *
 * A child that the application has forked, and that comes back into the loop, gets EXIT 0 in every role.
 *
 * Hooks, who runs them, and what the step holds. The language logs what a hook raises, and goes on; where `fatal` is
 * set it calls oribi_process_failed().
 *
 *   server_ready         supervisor, single          once it serves
 *   before_reload        supervisor, single
 *   on_worker_exit       supervisor, manager         pid, status, reason
 *   before_fork          mold, manager               before each worker
 *   after_fork           worker                      index, generation; fatal
 *   after_fork           manager                     pid of the new worker
 *   after_worker_ready   worker                      index, generation
 *   before_refork        worker                      index, generation
 *   before_worker_exit   worker                      index, generation
 *
 * Signals. Between FORK and oribi_process_forked() the calling thread holds back the signals of signals.h, and the
 * fork handler of fork_handlers.c leaves the descriptors alone. So one thread calls both, and nothing but fork(2)
 * happens in between. In the child oribi_process_forked() installs the handlers of the new role before it releases
 * the signals: a stop that is sent meanwhile is neither lost nor taken by the wrong process.
 *
 *   supervisor     the handler writes a byte into a pipe, which ends oribi_process_wait();
 *                  doc/internals/supervisor.md has what follows
 *   mold           TERM, QUIT, INT: while it loads the handler ends it with code 1, afterwards the next step is EXIT.
 *                  USR1: logs
 *   worker         before ready and after EXIT: TERM, QUIT, INT: the handler ends it with code 0. In between TERM and
 *                  QUIT drain, INT ends it in the handler, USR1 and USR2 make oribi_process_due() true
 *   single         as a supervisor, whose signals another thread of the process takes (supervisor/single.h)
 *   manager's      worker: the program's own handlers, until oribi_jobs_watch_signals() (jobs.h)
 *   starter        as any command        intermediate   held back to its end
 *   Others do nothing in molds and workers. PIPE is harmless everywhere.
 *
 * Threads. All calls are for the thread that has created the handle, or was forked from it: the kernel ties a
 * child's death signal to the thread that forks. oribi_process_wake() may be called from any thread and in handlers;
 * _due, _turn, _stopping and _stop_soon by any thread that holds the VM lock.
 *
 * Ownership. The handle belongs to the caller; each process has its own copy, at one address for all roles, so no
 * object is handed on. When oribi_process_forked() returns in a child, what belongs to the parent alone is closed
 * there. Texts in a step live until the next oribi_process_take(). The worker stays the caller's and must live until
 * the step EXIT, which unties it.
 *
 * Errors: what fails, who hears of it, and the next step.
 *   create                            caller, and the server that started this command    none: end with code 1
 *   FORK daemon                       the starter's stderr                                EXIT 1 at once
 *   other FORKs                       the supervisor, which forks again later; the log    the loop goes on
 *   forked() in a child               supervisor, or the log where a worker was to
 *                                     become a mold                                       EXIT 1
 *   LOAD, OPEN, fatal HOOK            supervisor, which logs it                           EXIT 1; workers at once
 *   RUN raises                        no process: this one ends as the language ends programs */
#ifndef ORIBI_SUPERVISOR_PROCESS_H
#define ORIBI_SUPERVISOR_PROCESS_H

#include "oribi/config/listener.h"
#include "oribi/config/options.h"
#include "oribi/worker/placement/scoreboard.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct oribi_worker;
struct oribi_worker_setup;

struct oribi_process;
struct oribi_prefork; /* prefork.h */
struct oribi_title;   /* title.h */
struct oribi_warmup;  /* worker.h */

enum { ORIBI_FAILURE_TEXT_MAX = 3072 }; /* longer reasons are cut */

enum oribi_role {
    ORIBI_ROLE_SUPERVISOR, /* a manager too */
    ORIBI_ROLE_STARTER,
    ORIBI_ROLE_MOLD,
    ORIBI_ROLE_INTERMEDIATE,
    ORIBI_ROLE_WORKER,
};

struct oribi_process_setup {
    const struct oribi_options *options; /* borrowed for the process's life; final: oribi_options_finish() said 0 */
    /* Borrowed for the process's life; opened by oribi_listeners_open(), which takes over what was handed down. NULL
     * or empty: workers that listen to nothing. */
    struct oribi_listeners *listeners;
    const char *program; /* borrowed for the process's life; "oribi", "oribi-psgi" */
    /* Borrowed during the call: what the log says at the start, "0.1.0" and "ruby 3.3.8". NULL: it says neither. */
    const char *version;
    const char *language;
    /* Borrowed during the call: command line of later generations and successors, NULL-terminated, with the
     * environment of this moment, or with that of the start if environ_is_known. NULL: command line and environment
     * of this process's start, which is right unless a title was written over them before. */
    char *const *argv;
    bool environ_is_known;
    char *const *environ; /* borrowed during the call: their environment, NULL-terminated; NULL: as said with argv */
    const char *needed;   /* borrowed during the call: a file without which they cannot start; NULL: none is known */
    const struct oribi_prefork *manager; /* borrowed during the call; NULL: a server */
};

enum oribi_step_type {
    ORIBI_STEP_WAIT,
    ORIBI_STEP_FORK,
    ORIBI_STEP_HOOK,
    ORIBI_STEP_LOAD,
    ORIBI_STEP_OPEN,
    ORIBI_STEP_RUN,
    ORIBI_STEP_EXIT,
    ORIBI_STEP_TRAPPED,
    ORIBI_STEP_DONE,
};

/* The role that the child is to have. A runtime whose fork takes a block, which ends the process, must know DAEMON:
 * there it is the child that goes on in the caller's program. */
enum oribi_fork_kind { ORIBI_FORK_DAEMON, ORIBI_FORK_MOLD, ORIBI_FORK_INTERMEDIATE, ORIBI_FORK_WORKER };

struct oribi_step {
    enum oribi_step_type type;
    enum oribi_fork_kind fork; /* FORK */
    const char *hook;          /* HOOK: one of the names above */
    bool fatal;                /* HOOK: the process fails if it raises */
    pid_t pid;                 /* HOOK: on_worker_exit, a manager's after_fork */
    int status;                /* HOOK on_worker_exit: as waitpid(2) gives it */
    const char *reason;        /* HOOK on_worker_exit: "exit code 1", "signal 9", "asked to stop" …; else NULL */
    /* HOOK of a server in or about a worker (before_fork, on_worker_exit): has_index, and the number of the worker's
     * record, from 0, used again by later workers */
    uint32_t index;
    bool has_index;
    uint32_t generation; /* HOOK in a worker: 1 at the start, one more for each reload */
    int code;            /* EXIT */
    bool at_once;        /* EXIT: by _exit(2) */
    int signal;          /* TRAPPED; a manager's EXIT: the signal to raise again now that no worker is left, 0: none */
};

/* True in a command that a running server has started to become its next mold. Changes nothing. */
bool oribi_process_is_next_mold(void);

/* In a command that ends with `text` before oribi_process_create(): the server that has started it for a reload or an
 * upgrade tells the line to the client that asked. Nothing happens where no server has started it. True: that server
 * logs the line, so that this command need not print it. Borrows text. */
bool oribi_process_start_failed(const char *text);

/* Makes the calling process a supervisor or, where oribi_process_is_next_mold(), that mold. A supervisor remembers
 * how it was started, becomes child subreaper, maps the scoreboard, opens pipes and installs its signal handlers; a
 * mold takes its process context from the environment, and removes it there. Call it before anything changes the
 * process's title. Gives the handle. 0, or ORIBI_EINVAL, ORIBI_ESYS, ORIBI_ENOMEM, ORIBI_ECLOSED (a mold whose
 * supervisor is gone) with one line in `error` (ORIBI_ERROR_TEXT_CAP), which the server that has started this command
 * has got as well. On error nothing is left behind. */
int oribi_process_create(const struct oribi_process_setup *setup, struct oribi_process **out, char *error);

/* One turn: handles what has happened, and gives the next thing that the language must do. Never NULL, never blocks.
 * A FORK that was not answered, because an exception came in between, counts as one that failed. Not after EXIT,
 * which is asserted. */
const struct oribi_step *oribi_process_take(struct oribi_process *p);

/* Blocks until oribi_process_take() may have something to do, for `ms` milliseconds at most (< 0: no bound). After
 * WAIT, and between two starts of a manager. Safe without the VM lock. */
void oribi_process_wait(struct oribi_process *p, int64_t ms);

/* Ends a current or the next oribi_process_wait(). Async-signal-safe and thread-safe. */
void oribi_process_wake(struct oribi_process *p);

/* The outcome of FORK, in the parent and in the child. `pid` is fork(2)'s result.
 *   < 0, with errno   the supervisor's policy hears of it and asks for another fork later; a daemon's starter prints
 *                     one line, and its next step is EXIT 1
 *   0                 the handle takes its new role. The supervisor hears of what fails in that, and the next step is
 *                     EXIT 1
 *   > 0               in the parent of an intermediate it waits for that to end, which takes no longer than a fork
 * Gives the role that the calling process has now. */
enum oribi_role oribi_process_forked(struct oribi_process *p, pid_t pid);

/* Why this mold cannot load, or this worker cannot serve: one line, then the backtrace if one helps; cut at
 * ORIBI_FAILURE_TEXT_MAX. Borrows text. In LOAD, OPEN and a fatal HOOK. */
void oribi_process_failed(struct oribi_process *p, const char *text, size_t len);

/* In LOAD of a mold, without effect in others. Loaded with: what of frameworks the application uses, for the log:
 * "rack 3.1.8, rails 8.0.1". Loading at: where loading stands, "/app/config/environment.rb:5", for the log's lines
 * about an application that loads for long; thread-safe, for a thread that looks from 4 seconds on each second. Both
 * borrow text. */
void oribi_process_loaded_with(struct oribi_process *p, const char *text, size_t len);
void oribi_process_loading_at(struct oribi_process *p, const char *text, size_t len);

/* With `dev`: paths of files that the application was loaded from, each followed by NUL; what is named once stays
 * watched. In LOAD, also where it has failed, and in a worker whenever there are more. Borrows the list.
 * Thread-safe. */
void oribi_process_files(struct oribi_process *p, const char *list, size_t len);

enum oribi_role oribi_process_role(const struct oribi_process *p);

/* A server of one process (`single`): its role is that of a worker, and when it ends the program goes on. */
bool oribi_process_is_single(const struct oribi_process *p);

/* At EXIT of a supervisor: the successor of its upgrade serves in its place. */
bool oribi_process_handed_over(const struct oribi_process *p);

/* Text that the process title should have now ("oribi supervisor, generation 1, 4 workers"), NUL-terminated, cut at
 * cap. Gives its length, or 0 if nothing has changed since the last call; intermediates and starters have none. */
size_t oribi_process_title(struct oribi_process *p, char *dst, size_t cap);

/* Takes the handle. A supervisor that has not come to EXIT (a manager's program may end at any time) first closes its
 * control socket and removes pid file and socket files, as EXIT does. A worker's handle stays for the signal
 * handlers, and goes with the process. In a process that the application forked it does nothing. */
void oribi_process_destroy(struct oribi_process *p);

/* --- a worker --- */

/* Fills in everything oribi_worker_create() wants but deadline_signal. All of it lives until the process ends. From
 * here on the worker closes listeners and hand-off queue in children that the application forks. In a mold: for the
 * worker that its warm-up goes through (worker.h). */
void oribi_process_worker_setup(struct oribi_process *p, struct oribi_worker_setup *setup);

/* The answer to OPEN: ties the worker to the signals, and tells the supervisor that it serves. A stop that came
 * before takes effect now. `worker` NULL: a loop that is none of worker.h; it ends when it leaves RUN without
 * oribi_process_turn() having said so. */
void oribi_process_ready(struct oribi_process *p, struct oribi_worker *worker);

/* Steps that follow oribi_worker_create() in either role, for a language that opens both kinds of workers by one
 * function. In a worker: oribi_title_init() and oribi_process_ready(). In a mold: oribi_warmup_begin(), whose errors it
 * gives. Leaves alone what it does not fill in. */
int oribi_process_opened(struct oribi_process *p, struct oribi_worker *worker, struct oribi_title *title,
                         struct oribi_warmup **warmup);

/* True when a signal has asked for something, or the worker drains by itself. A few relaxed loads. p may be NULL:
 * false. */
bool oribi_process_due(const struct oribi_process *p);

/* Does what C can do alone of that: reopens the logs, reports to the supervisor that the worker leaves. True: leave the
 * loop and call oribi_process_take(), which gives HOOK before_refork; RUN comes again after it. With several threads
 * one gets true, and all leave. */
bool oribi_process_turn(struct oribi_process *p);

/* True from the moment a stop is announced (drain_delay): a readiness check should fail, requests are still served. */
bool oribi_process_stop_soon(const struct oribi_process *p);

/* As if the worker had got this signal: for a runtime whose own handlers stand beside the core's. Does nothing in other
 * roles. Async-signal-safe. */
void oribi_process_signalled(struct oribi_process *p, int number);

/* Asks the server for a graceful stop, once (supervisor.h): for the program that has started it and holds its
 * supervisor. Does nothing in other roles and after the end. */
void oribi_process_stop(struct oribi_process *p);

/* True once a signal has asked the worker to stop (TERM, QUIT), or the supervisor is gone. */
bool oribi_process_stopping(struct oribi_process *p);

/* Of a mold (options, listeners, generation) or a worker (all). Borrowed. */
const struct oribi_options *oribi_process_options(const struct oribi_process *p);
struct oribi_listeners *oribi_process_listeners(struct oribi_process *p);
uint32_t oribi_process_generation(const struct oribi_process *p);
uint32_t oribi_process_index(const struct oribi_process *p);
struct oribi_slot *oribi_process_slot(struct oribi_process *p);
int oribi_process_life_fd(const struct oribi_process *p); /* at EOF the supervisor is dead */

#endif
