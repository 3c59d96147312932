/* The process that has loaded the application and forks workers when the supervisor says so, and the child of such a
 * worker. take.c and fork.c call these in the order that process.h shows.
 *
 * Signals in a worker: TERM and QUIT drain, INT ends the process in the handler, USR1 reopens the logs, USR2 asks for a
 * mold, HUP, WINCH, TTIN and TTOU do nothing, PIPE is ignored. In a mold: INT, TERM and QUIT end it (workers live on),
 * the others do nothing. Children that the application forks or starts get the actions back that were there before us:
 * at exec the default, by POSIX; after a plain fork by the handler itself, which looks at the pid. */
#ifndef ORIBI_SUPERVISOR_MOLD_H
#define ORIBI_SUPERVISOR_MOLD_H

#include "oribi/base/os/os.h"
#include "oribi/observe/context.h"
#include "oribi/supervisor/process.h"
#include "oribi/worker/fd_guard.h"
#include "oribi/worker/placement/scoreboard.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct oribi_link;
struct oribi_supervisor;
struct oribi_supervisor_setup;

/* Reapers (reaper.c, below) that a mold has forked. */
struct oribi__reapers {
    pid_t *pids;
    uint32_t count;
    uint32_t cap;
};

struct oribi_mold {
    struct oribi__process_context context;
    pid_t pid;
    uint32_t generation;
    bool started_by_exec;
    int socket_fd; /* commands from the supervisor */
    struct oribi_wake wake;
    struct oribi__fd_guard fd_guard; /* what the application must have left open when it is loaded */
    _Atomic bool loaded;             /* read by the signal handler */
    char frameworks[160];            /* that the application has loaded: "rack 3.1.8, rails 8.0.1"; or "" */
    _Atomic bool exit_asked;         /* set by the signal handler */
    _Atomic bool reopen_asked;       /* likewise */
    struct oribi__reapers reapers;
    uint32_t slot; /* of the spawn being carried out */
    uint32_t ticket;
    char title[160];
};

/* Makes the calling process this mold, with its pid, its signals and a descriptor to be woken by. 0 or ORIBI_ESYS. */
int oribi__mold_take_post(struct oribi_mold *mold);

/* In the child forked at ORIBI_SUPERVISOR_FORK_MOLD: takes supervisor, closes what belongs to the supervisor alone,
 * switches user and group if asked for. Gives the mold. 0, or ORIBI_ESYS / ORIBI_EINVAL with one line in `error`,
 * which has then been reported to the supervisor as well. */
int oribi_mold_enter(struct oribi_supervisor *supervisor, struct oribi_mold **out, char *error);

/* True in a command that a supervisor started to become its next mold. */
bool oribi_mold_inherited(void);

/* In such a command: the same for it; only later failures are reported to the supervisor, so print `error`. Clears the
 * environment variable, so that what the application starts knows nothing of it. */
int oribi_mold_inherit(const struct oribi_supervisor_setup *setup, struct oribi_mold **out, char *error);

/* In a mold that was started by exec. */
struct oribi__handed_down {
    uint32_t generation;
    int socket_fd;
    int message_fd;
    int life_fd;
    int inbox_fd; /* -1: none */
    int board_fd;
    struct oribi_handoff handoff;
    uint32_t board_count;
    pid_t parent;
};
/* Takes what ORIBI_MOLD says and clears it; 0 or ORIBI_EINVAL with `error`. */
int oribi__handed_down_read(struct oribi__handed_down *from, char *error);
/* In a command that is to become a mold, and ends before: tells the supervisor why. */
bool oribi__mold_start_failed(const char *text);

const struct oribi_options *oribi_mold_options(const struct oribi_mold *mold);
struct oribi_listeners *oribi_mold_listeners(struct oribi_mold *mold);

/* Frameworks that the application has loaded, of which ready tells then, as far as there is room. Borrows text. */
void oribi_mold_loaded_with(struct oribi_mold *mold, const char *text, size_t len);

/* Tells the supervisor where loading stands: "config/environment.rb:5". Borrows text. Thread-safe. */
void oribi_mold_loading_at(struct oribi_mold *mold, const char *text, size_t len);

/* Tells the supervisor that the application is loaded, or (borrows text) why not: then end the process with code 1. */
void oribi_mold_ready(struct oribi_mold *mold);
void oribi_mold_failed(struct oribi_mold *mold, const char *text, size_t len);

enum oribi_mold_action {
    ORIBI_MOLD_NONE,
    ORIBI_MOLD_SPAWN,
    ORIBI_MOLD_EXIT,
};

/* The next thing to do; never blocks. */
enum oribi_mold_action oribi_mold_take(struct oribi_mold *mold);

/* After SPAWN: the number of the record that the worker is to have. */
uint32_t oribi_mold_worker_index(const struct oribi_mold *mold);

/* Blocks until there may be something to take. Safe without the VM lock. */
void oribi_mold_wait(struct oribi_mold *mold);

/* Ends a current or the next oribi_mold_wait(). Async-signal-safe and thread-safe. */
void oribi_mold_wake(struct oribi_mold *mold);

/* Around the two forks of ORIBI_MOLD_SPAWN. `pid` is fork's result; < 0 with errno. */
void oribi_mold_before_fork(struct oribi_mold *mold);
void oribi_mold_intermediate(struct oribi_mold *mold, pid_t pid);
void oribi_mold_after_fork(struct oribi_mold *mold, pid_t pid);

/* Text that the process title should have ("oribi mold, generation 1"). As oribi_supervisor_title(). */
size_t oribi_mold_title(struct oribi_mold *mold, char *dst, size_t cap);

void oribi_mold_destroy(struct oribi_mold *mold);

/* --- supervisor link: a worker's slot on the scoreboard and its connection to the supervisor --- */

/* New: the child of a worker that this process is now, with a worker's signal handlers; the signals are held back
 * before (signals.h). Copies `context`. Let go: what a child that the application forks does first. */
struct oribi_link *oribi__link_new(const struct oribi__process_context *context, uint32_t index, uint32_t ticket,
                                   uint32_t generation);
void oribi__link_let_go(void *child);

/* The process is the whole server (single.h). */
void oribi__link_alone(struct oribi_link *child);
const struct oribi__process_context *oribi__link_context(const struct oribi_link *child);

/* In the grandchild: takes mold, installs a worker's signal handlers. Never fails. */
struct oribi_link *oribi_link_enter(struct oribi_mold *mold);

/* Fills in everything oribi_worker_create() wants. All of it lives until the process ends. */
void oribi_link_setup(struct oribi_link *child, struct oribi_worker_setup *setup);

const struct oribi_options *oribi_link_options(const struct oribi_link *child);
struct oribi_slot *oribi_link_slot(struct oribi_link *child);
struct oribi_listeners *oribi_link_listeners(struct oribi_link *child);
/* 0, 1, 2 … : name of the record, reused by later workers */
uint32_t oribi_link_index(const struct oribi_link *child);
uint32_t oribi_link_generation(const struct oribi_link *child); /* 1 at start, one more per reload */
int oribi_link_life_fd(const struct oribi_link *child);         /* at EOF the supervisor is dead; borrowed */

/* Binds the worker (NULL: none) to the signals and tells the supervisor that this worker serves. A stop that
 * came before takes effect now. */
void oribi_link_ready(struct oribi_link *child, struct oribi_worker *worker);

/* Borrows text: why this worker cannot serve. End the process with code 1 after it. */
void oribi_link_failed(struct oribi_link *child, const char *text, size_t len);

/* Around the two forks that make a mold of this worker. The listeners are duplicated for it, because the worker
 * closes its own in a child. */
void oribi_link_before_fork(struct oribi_link *child);
void oribi_link_after_fork(struct oribi_link *child, pid_t pid);
struct oribi_mold *oribi_link_promote(struct oribi_link *child);

/* Does the work of oribi_process_signalled(). */
void oribi_link_signal(struct oribi_link *child, int number);

/* True from the moment a stop is announced (drain_delay): a readiness check should fail, requests are still welcome. */
bool oribi_link_stop_soon(const struct oribi_link *child);

/* True once a signal has asked the worker to stop (TERM, QUIT), or the supervisor is gone. */
bool oribi_link_stopping(struct oribi_link *child);

/* Becomes readable at a signal and at the supervisor's end, for loops of their own; never read from it. Borrowed. */
int oribi_link_wake_fd(struct oribi_link *child);

/* Text that the process title should have ("oribi worker 2, generation 1, idle, 4711 requests"). As
 * oribi_supervisor_title(); cheap enough once a second. */
size_t oribi_link_title(struct oribi_link *child, char *dst, size_t cap);

/* Unties the worker from the signals: from here on INT ends the process, TERM and QUIT leave it to its own end.
 * Takes child. */
void oribi_link_leave(struct oribi_link *child);

/* --- a manager's worker: prefork.h --- */

/* In the child: takes supervisor, becomes the user that the options name. Gives the child; NULL with `error`: end
 * the process with code 1. */
struct oribi_link *oribi_link_enter_managed(struct oribi_supervisor *supervisor, char *error);

/* Tells the supervisor that the worker is up; for a child of oribi_link_enter() too. */
void oribi_link_begin(struct oribi_link *child);

/* Do the work of the functions of jobs.h. */
void oribi_link_watch_signals(struct oribi_link *child);
bool oribi_link_asked(struct oribi_link *child);
void oribi_link_job_begin(struct oribi_link *child, const char *text, size_t len);
void oribi_link_job_end(struct oribi_link *child);
size_t oribi_link_job_title(struct oribi_link *child, bool rest, char *dst, size_t cap);

/* --- reaper.c ---
 *
 * Where no process but init adopts orphans (oribi_os_adopts_orphans()), a worker cannot become its supervisor's child.
 * Then the intermediate process between a mold and its worker stays, as the worker's parent: a reaper, which reports
 * with which status its child has ended. Its title names the worker's pid. So it is with a mold that is made of a
 * worker.
 *
 *   supervisor ──► mold ──FORK──► reaper ──FORK──► worker
 *        ▲                           │ waits        │ ends
 *        └──── ORIBI_MESSAGE_ENDED ◄─┘◄─────────────┘
 *
 * A reaper outlives its mold, as its worker does. It is the mold's child, and is reaped when the mold next forks.
 * Should a reaper be killed, the supervisor finds its worker gone at a look once a second, and does not know how it
 * has ended. */

/* In the intermediate, whose signals are held back: closes all descriptors but message_fd, with the null device
 * for standard streams; waits for the end of its
 * child, and reports it. */
void oribi__reaper_keep(int message_fd, pid_t pid);

/* In the mold: notes one more, and reaps those that have ended. */
void oribi__reapers_add(struct oribi__reapers *reapers, pid_t pid);
void oribi__reapers_free(struct oribi__reapers *reapers);

#endif
