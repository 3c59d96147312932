/* Shared by the sources around the supervisor.
 *   supervisor.c           the turn: events in, actions out; waiting
 *   supervisor_actions.c   carries actions out, and says which event follows
 *   events.c               the supervisor's own events
 *   generation.c           starts molds
 *   announced.c            what a new generation says of itself
 *   boot_log.c             what the log says of a start and of a reload
 *   upgrade.c              the successor
 *   control.c              the control socket with all its replies
 *   frontends.c, frontend_start.c, frontend_files.c, frontend_text.c   processes that hold clients of TLS and HTTP/2
 *   listener_shutdown.c    the end of the listeners at the server's end
 *   notify.c               what the service manager hears
 *   watch_event.c          files of the application that change, in development; restart_file, when it is touched
 *   start.c                create, destroy, daemon, logs
 *   single.c, single_restart.c  one process that serves alone; its reload
 *   mold.c, supervisor_link.c        the other processes
 *   fork_handlers.c        what children that the application forks must not keep
 * A process keeps struct oribi__process_context when it is forked from supervisor to mold to worker. */
#ifndef ORIBI_SUPERVISOR_SUPERVISOR_PRIVATE_H
#define ORIBI_SUPERVISOR_SUPERVISOR_PRIVATE_H

#include "oribi/base/buf.h"
#include "oribi/base/os/os.h"
#include "oribi/event/dispatcher.h"
#include "oribi/worker/logs/access_log.h"
#include "oribi/worker/placement/handoff.h"
#include "supervisor/announced.h"
#include "supervisor/boot_log.h"
#include "oribi/supervisor/frontends.h"
#include "oribi/observe/context.h"
#include "oribi/observe/observe.h"
#include "oribi/policy/policy.h"
#include "supervisor/notify.h"
#include "supervisor/supervisor.h"
#include "supervisor/upgrade.h"
#include "oribi/develop/watch.h"
#include "oribi/supervisor/control_place.h"
#include "oribi/supervisor/message.h"
#include "oribi/supervisor/pid_file.h"
#include "oribi/base/os/os_process.h"
#include "oribi/worker/app_metrics.h"
#include "oribi/worker/placement/scoreboard.h"
#include "oribi/worker/fd_guard.h"

#include <stdatomic.h>
#include <stdbool.h>

struct oribi__mold_socket {
    int32_t pid;
    int fd; /* our end; -1: no mold */
};

enum { ORIBI__CLIENTS_MAX = 8, ORIBI__COMMAND_CAP = 128 };

/* Command whose end a client of the control socket waits for. */
enum oribi__command {
    ORIBI__COMMAND_NONE,
    ORIBI__COMMAND_RELOAD,
    ORIBI__COMMAND_UPGRADE,
    ORIBI__COMMAND_STOP,
    ORIBI__COMMAND_STACKS,
    ORIBI__COMMAND_CERTIFICATES,
};

struct oribi__client {
    int fd; /* -1: no client */
    enum oribi__command command;
    bool later;    /* that was under way already when it asked */
    int64_t until; /* when a client that sends nothing is closed */
    size_t len;
    char line[ORIBI__COMMAND_CAP];
};

/* A good reply to a reload or an upgrade that is done, while old workers still accept connections. */
struct oribi__deferred_reply {
    enum oribi__command command; /* RELOAD, UPGRADE; NONE: no reply is deferred */
    int64_t look_at;             /* when to look at the old workers again */
    int64_t until;               /* then the reply is sent whatever they do */
    char text[160];
};

struct oribi__control {
    int fd;                             /* listens; -1: none */
    char path[ORIBI__CONTROL_PATH_CAP]; /* of its file; "": none */
    struct oribi_socket_file file;      /* so that a successor's under the same name stays */
    struct oribi__client clients[ORIBI__CLIENTS_MAX];
    struct oribi__deferred_reply deferred; /* control.c's alone */
};

/* A mold that is being started: from the action to oribi__mold_started(). */
struct oribi__next_mold {
    int fds[2]; /* its command socket, our end first; -1: none is being started */
    uint32_t generation;
};

/* --daemonize: the process that was started waits for the daemon, which serves. */
struct oribi__starter {
    int fds[2]; /* from the daemon to the starter */
    char *text; /* in the starter: the bytes that have come so far */
    size_t len;
    bool heard; /* the daemon has said all */
};

struct oribi__listener_shutdown {
    int64_t look_at;     /* while the listeners end; 0: they do not */
    int64_t held_until;  /* until then connections that the kernel holds back are waited for */
    bool frontends_only; /* those of frontends end, and those of workers only let nobody in */
};

/* prefork.h: a manager, whose program owns the loop. */
struct oribi__manager {
    struct oribi_prefork prefork;
    struct oribi_policy_action spawn; /* between ORIBI_SUPERVISOR_FORK_WORKER and oribi_supervisor_worker_forked() */
    bool can_outlive_thread;          /* the fork is not the main thread's: its end must not stop the worker */
    bool paused;                      /* a trapped signal has ended the loop */
    bool ending;                      /* that signal is one that asks a program to end */
    bool resume_asked;                /* the program begins its loop again */
    bool release_asked;               /* the program waits for its workers' end, so that molds may go */
    int trapped;                      /* signal that take reports once all actions are carried out; 0: none */
    int pending;                      /* signal that was trapped while paused; 0: none */
    int reraise; /* signal that is not trapped, and is raised again when all workers have ended; 0: none */
};

/* Context of the supervisor's modules. */
struct oribi__context {
    struct oribi__process_context process;
    pid_t pid;
    struct oribi_start start;
    struct oribi_policy policy;
    struct oribi__events events; /* the policy hears of them before anything else */
    struct oribi_listeners no_listeners;
    struct oribi__mold_socket molds[ORIBI_MOLDS_MAX];
    struct oribi_dispatcher dispatcher; /* descriptors and deadlines with handlers */
    /* deadlines and descriptors that turns look at, until they have handlers of their own */
    struct oribi_timer asked_at;
    struct oribi_watcher asked[ORIBI_POLL_MAX];
    int message_fd;        /* our end of process.message_fd */
    int life_write_fd;     /* the last copy goes with us */
    int signal_fds[2];     /* one byte per signal, 0 to wake */
    _Atomic bool wakes_up; /* a byte that only wakes is in there; set by the handler, taken back by the turn */
    struct oribi_pid_file pid_file;
    char *pid_path; /* its name in normal times; NULL: none */
    bool daemonize; /* still to be done */
    bool begun;
    int64_t watchdog_ms; /* interval in which the service manager expects to hear of us; 0: it does not */
    int64_t watchdog_at;
    int64_t reapers_look_at; /* reaper.h */
    struct oribi__waiting_notice waiting_notice;
    struct oribi__starter starter;
    struct oribi__control control;
    struct oribi__observe observe;
    struct oribi__frontends frontends;
    struct oribi__listener_shutdown shutdown;
    struct oribi__next_mold next_mold;
    struct oribi__announced announced;
    struct oribi__boot_log boot_log;
    struct oribi__upgrade upgrade;
    struct oribi__watch watch;
    struct oribi__restart_file restart_file;
    struct oribi__manager manager;
    /* what take returned */
    struct oribi_supervisor_action action;
    char reason[256];
    /* a reload that is done, until its frontends have what it has changed */
    bool reload_told_late;
    char reload_text[192];
};

struct oribi_supervisor {
    struct oribi__context context;
    char title[160];
};

/* fork_handlers.c. From now on a child that the application forks calls all(owner) first; NULL: nothing is to be let
 * go of any more. One per process: each role replaces the one before it. In the child, `all` closes
 * descriptors and does nothing else. */
void oribi__children_let_go(void (*all)(void *owner), void *owner);
/* what the calling thread forks next is a process of ours, which keeps everything; false: no longer */
void oribi__children_ours(bool ours);
void oribi__close(int *fd); /* leaves -1 */
/* in such a child; hand-off socket and listeners unless a worker has them */
void oribi__process_context_close(struct oribi__process_context *context, bool listeners);

/* For a server of one process (single.h), which has no policy. Begin alone: pid file, watched files, 0 or a code with
 * `error`. Signalled: the next event that signals have made. Turns: what a supervisor does in each turn beside its
 * processes. Up: the lines of a server that is up. Let go: in a child that the application forks. */
int oribi__supervisor_begin_alone(struct oribi__context *context, char *error);
bool oribi__supervisor_signalled(struct oribi__context *context, struct oribi_policy_event *event);
void oribi__supervisor_turns(struct oribi__context *context);
void oribi__supervisor_up(struct oribi__context *context);
void oribi__supervisor_let_go(void *context);

/* The one that `supervisor` begins with. */
struct oribi__context *oribi__supervisor_context(struct oribi_supervisor *supervisor);

/* supervisor.c. An event of the supervisor's own, which the policy hears of next. There is room (events.h). */
void oribi__follow(struct oribi__context *context, const struct oribi_policy_event *event);

/* supervisor_actions.c. True when an event follows at once, which is in `event`. What only the language can do is in
 * supervisor->action then, whose type is else left as it was. */
bool oribi__carry_out(struct oribi__context *context, const struct oribi_policy_action *action,
                      struct oribi_policy_event *event);

/* start.c. The view that observe has of this supervisor. */
void oribi__supervisor_show(struct oribi__context *context);

/* start.c: logs */
enum oribi_log_level oribi__log_level(const struct oribi_options *options);
int oribi__open_logs(struct oribi__process_context *context,
                     char *error); /* level and error log as the options say; 0 or a code with `error` */
void oribi__reopen_logs(struct oribi__process_context *context);
void oribi__log_text(struct oribi__context *context, enum oribi_log_level level, const char *text);
void oribi__close_listeners(struct oribi__context *context, bool unlink_paths);
void oribi__release_starter(struct oribi__context *context, int code);
void oribi__supervisor_signal(void *self, int number); /* the handler */

/* supervisor_actions.c. The reply to a reload that has waited for frontends; `now`: whatever they do. */
void oribi__reload_turn(struct oribi__context *context, bool now);

/* listener_shutdown.c: the end of the listeners, at once or, while connections wait there, turn by turn. End newcomers:
 * those of frontends end, and no other lets anybody in whom the kernel has not yet; workers serve on. */
void oribi__end_newcomers(struct oribi__context *context, bool handed_over);
void oribi__end_listening(struct oribi__context *context, bool handed_over);
void oribi__listening_turn(struct oribi__context *context);

/* Copies title to dst unless it is what `last` (of `last_cap` bytes) holds; remembers it there. */
size_t oribi__title_changed(const char *title, char *last, size_t last_cap, char *dst, size_t cap);

/* In a child: closes what belongs to the supervisor alone and frees it. `keep_fd` stays open. */
void oribi__supervisor_forget(struct oribi_supervisor *supervisor, int keep_fd);
void oribi__supervisor_config(const struct oribi_options *options, uint32_t workers_max, bool prefork,
                              struct oribi_policy_config *config);

/* generation.c, in the supervisor; ORIBI_MOLD begins with the layout */
enum {
    ORIBI__PROTOCOL = 1,
    /* Builds that lay out shared memory differently must not share it. */
    ORIBI__LAYOUT = ORIBI__PROTOCOL << 28 ^ (int)sizeof(struct oribi_slot) << 14 ^
                    (int)sizeof(struct oribi_stacks) << 1 ^ (int)sizeof(struct oribi_stack) << 5 ^
                    (int)sizeof(struct oribi_message),
};

struct oribi__mold_socket *oribi__mold_socket_of(struct oribi__context *context, int32_t pid);
void oribi__mold_socket_close(struct oribi__context *context, int32_t pid);
/* True: MOLD_STARTED follows at once, in `event`. False: the language is to fork, and oribi__mold_started() gives the
 * event after that. */
bool oribi__start_mold(struct oribi__context *context, uint32_t generation, bool fresh,
                       struct oribi_policy_event *event);
/* pid < 0: the system's words for the reason are in oribi_os_error_text(). */
struct oribi_policy_event oribi__mold_started(struct oribi__context *context, pid_t pid);
/* takes passed */
bool oribi__mold_promoted(struct oribi__context *context, const struct oribi_message *message, int passed);
/* ORIBI_LISTEN and its descriptors (room for ORIBI_LISTENERS_MAX), which are counted. */
size_t oribi__listeners_to_keep(struct oribi__context *context, char *listen, size_t cap, int *keep);

/* prefork.c */
void oribi__prefork_begin(struct oribi__context *context, const struct oribi_prefork *prefork);
/* true: feed it */
bool oribi__prefork_signal(struct oribi__context *context, int number, struct oribi_policy_event *event);
/* what a client of the control socket wants; likewise */
bool oribi__prefork_command(struct oribi__context *context, struct oribi_policy_event *event);
/* likewise */
bool oribi__prefork_resume(struct oribi__context *context, struct oribi_policy_event *event);

/* mold.c, in a mold that was started by exec */
struct oribi__handed_down {
    uint32_t generation;
    int socket_fd;
    int message_fd;
    int life_fd;
    int board_fd;
    struct oribi_handoff handoff;
    uint32_t board_count;
    pid_t parent;
};
/* Takes what ORIBI_MOLD says and clears it; 0 or ORIBI_EINVAL with `error`. */
int oribi__handed_down_read(struct oribi__handed_down *from, char *error);
/* In a command that is to become a mold, and ends before: tells the supervisor why. */
bool oribi__mold_start_failed(const char *text);

/* control.c */
int oribi__control_open(struct oribi__context *context, bool replace, char *error);

/* supervisor_link.c. New: the child of a worker that this process is now, with a worker's signal handlers; the signals
 * are held back before (signals.h). Copies `context`. Let go: what a child that the application forks does first. */
struct oribi_link;
struct oribi_link *oribi__link_new(const struct oribi__process_context *context, uint32_t index, uint32_t ticket,
                                   uint32_t generation);
void oribi__link_let_go(void *child);
const struct oribi__process_context *oribi__link_context(const struct oribi_link *child);

/* watch_event.c. Takes the descriptor with the paths that an application was loaded from. */
void oribi__watch_message(struct oribi__context *context, int fd);

/* True when a file has changed: the event is a reload. */
bool oribi__watch_event(struct oribi__context *context, struct oribi_policy_event *event);

/* True when restart_file was touched: the event is a reload. */
bool oribi__restart_event(struct oribi__context *context, struct oribi_policy_event *event);

/* When to look at restart_file at the latest, on oribi_clock_ms(), and the descriptor that is readable before;
 * INT64_MAX and -1 while the supervisor does not look. */
int64_t oribi__restart_deadline(const struct oribi__context *context);
int oribi__restart_fd(const struct oribi__context *context);

/* At the start: where the option says; else where ctl finds it from the folder, and a failure is not told then but in
 * verbose lines. ORIBI_CONTROL_PATH in a successor's environment is the place of its predecessor's. */
int oribi__control_begin(struct oribi__context *context, char *error);
bool oribi__control_turn(struct oribi__context *context, struct oribi_policy_event *event); /* true: feed it */
/* To every client that waits for this command. */
void oribi__control_answer(struct oribi__context *context, enum oribi__command command, int code, const char *text);
/* A reload has ended, for the clients that wait for it; `code` 0: it is done. */
void oribi__control_reloaded(struct oribi__context *context, int code, const char *text);
/* To those who asked before it began: the next one is for the others. */
void oribi__control_answer_first(struct oribi__context *context, enum oribi__command command, int code,
                                 const char *text);
void oribi__control_upgraded(struct oribi__context *context, int code, const char *text);
void oribi__control_upgrade_refused(struct oribi__context *context, const char *text);
void oribi__control_stopping(struct oribi__context *context);
void oribi__control_stopped(struct oribi__context *context);
/* Where the calls stand, for the clients that wait for it. */
void oribi__control_stacks(struct oribi__context *context);
/* Sends a deferred reply whose time has come. */
void oribi__control_deferred_turn(struct oribi__context *context);
size_t oribi__control_fds(const struct oribi__context *context, int *fds);
int64_t oribi__control_deadline(const struct oribi__context *context);
void oribi__control_close(struct oribi__context *context, bool unlink_path);

/* Processes of reaper.h that a mold has forked. */
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

/* mold.c: makes the calling process this mold, with its pid, its signals and a descriptor to be woken by. 0 or
 * ORIBI_ESYS. */
int oribi__mold_take_post(struct oribi_mold *mold);

#endif
