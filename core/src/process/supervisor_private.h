/* What the sources around the supervisor share.
 *   supervisor.c        the turn: events in, actions out        supervisor_actions.c  carrying them out
 *   start.c  create, destroy, daemon, logs
 *   generation.c  starting molds and successors, and what a new generation tells about itself
 *   listener_shutdown.c    the end of the listeners at the server's end
 *   control.c     the control socket        status.c  what it shows
 *   mold.c, child.c   the other processes      fork_handlers.c  what those that the application forks must not keep
 * A process keeps struct oribi__ties when it is forked from supervisor to mold to worker. */
#ifndef ORIBI_PROCESS_SUPERVISOR_PRIVATE_H
#define ORIBI_PROCESS_SUPERVISOR_PRIVATE_H

#include "oribi/base/buf.h"
#include "oribi/base/os.h"
#include "oribi/worker/access_log.h"
#include "oribi/worker/handoff.h"
#include "process/supervisor.h"
#include "oribi/process/message.h"
#include "oribi/process/pid_file.h"
#include "oribi/base/os_process.h"
#include "oribi/worker/scoreboard.h"
#include "oribi/process/policy.h"
#include "worker/own.h"

#include <stdatomic.h>
#include <stdbool.h>

struct oribi__ties {
    const struct oribi_options *options;
    struct oribi_listeners *listeners; /* never NULL */
    const char *program;
    struct oribi_scoreboard board;
    struct oribi_handoff handoff;        /* all workers of all generations share it */
    struct oribi_access_log *access_log; /* NULL: off */
    struct oribi_log_owner log_owner;    /* the workers' user, while we are root */
    char log_user[64];
    int message_fd; /* to the supervisor; shared by all its molds and workers */
    int life_fd;    /* never written to: at its end the supervisor is dead */
    pid_t supervisor;
    bool prefork;      /* a library's: prefork.h */
    bool usr1_foreign; /* … whose program uses USR1 itself, so that we send it to nobody */
};

struct oribi__mold_socket {
    int32_t pid;
    int fd; /* our end; -1: this place is free */
};

enum { ORIBI__CLIENTS_MAX = 8, ORIBI__COMMAND_CAP = 128 };

/* What a client of the control socket waits for. */
enum oribi__command { ORIBI__COMMAND_NONE, ORIBI__COMMAND_RELOAD, ORIBI__COMMAND_UPGRADE, ORIBI__COMMAND_STOP };

struct oribi__client {
    int fd; /* -1: this place is free */
    enum oribi__command command;
    bool later;    /* that was under way already when it asked */
    int64_t until; /* when a client that says nothing is let go of */
    size_t len;
    char line[ORIBI__COMMAND_CAP];
};

struct oribi__control {
    int fd;          /* listens; -1: none */
    uint64_t device; /* of its file, so that a successor's under the same name stays */
    uint64_t inode;
    struct oribi__client clients[ORIBI__CLIENTS_MAX];
};

/* Of workers that are gone; those that live have theirs in the scoreboard. */
struct oribi__totals {
    uint64_t requests;
    uint64_t connections;
    uint64_t bytes_in;
    uint64_t bytes_out;
    uint64_t status_class[6];
    uint64_t worker_exits;
    uint64_t evicted; /* connections closed for new ones */
    uint64_t lost;    /* … that came from a sibling without their descriptors */
};

struct oribi_supervisor {
    struct oribi__ties ties;
    pid_t pid;
    int64_t started_ms;
    struct oribi_start start;
    struct oribi_policy policy;
    struct oribi_listeners no_listeners;
    struct oribi__mold_socket molds[ORIBI_MOLDS_MAX];
    int message_fd;         /* our end of ties.message_fd */
    int life_write_fd;      /* the last copy goes with us */
    int signal_fds[2];      /* one byte per signal, 0 to wake */
    _Atomic bool wake_told; /* a byte that only wakes is in there; set by the handler, taken back by the turn */
    int daemon_fds[2];      /* from the daemon to the process that waits for it */
    char *starter_text;     /* in that process: what has come so far … */
    size_t starter_len;
    bool starter_heard; /* … and that was all */
    struct oribi_pid_file pid_file;
    char *pid_path; /* its name in normal times; NULL: none */
    bool daemonize; /* still to be done */
    bool begun;
    struct oribi__control control;
    struct oribi__totals totals;
    int64_t watchdog_ms; /* 0: nobody watches us */
    int64_t watchdog_at;
    int64_t measured_at;
    uint32_t measure_next;  /* place */
    uint32_t measure_left;  /* workers still to be measured by this look … */
    uint32_t measure_looks; /* … and places still to be looked at */
    uint8_t passed_over[ORIBI_SLOTS_MAX];
    int64_t listen_look_at;    /* while the listeners end; 0: they do not */
    int64_t listen_held_until; /* until then connections that the kernel holds back are waited for */
    int64_t deferred_look_at;  /* while a good answer waits for old workers to be out of the way; 0: none waits */
    int64_t deferred_until;
    enum oribi__command deferred_command; /* reload or upgrade */
    char deferred_text[160];
    /* between ORIBI_SUPERVISOR_FORK_MOLD and oribi_supervisor_forked() */
    int next_mold_fds[2];
    uint32_t next_generation;
    /* what the next take tells the supervisor */
    bool has_started;
    struct oribi_policy_event started;
    bool has_dead;
    struct oribi_policy_event dead;
    /* what a generation that is loading has told so far */
    int32_t announcing_mold;                    /* pid of its mold */
    char announced_error[ORIBI_ERROR_TEXT_CAP]; /* why it cannot be the next one, though it is ready; "": it can */
    bool has_config;
    struct oribi_policy_config config;
    uint32_t named_count;
    char named[ORIBI_LISTENERS_MAX][ORIBI_ADDRESS_TEXT_CAP]; /* specs of its listeners */
    uint32_t adopted_from;                                   /* from here on listeners are its own */
    /* upgrade */
    int upgrade_fd;          /* we are the successor: written to when we serve; -1: we are not */
    bool upgrade_why;        /* and the predecessor wants to hear why, should we fail */
    int successor_fd;        /* our successor writes there; -1: there is none */
    int successor_end;       /* its end until it is started */
    bool successor_tells;    /* what it writes there is a line about its failure */
    char successor_why[256]; /* that line; "": none came */
    size_t successor_why_len;
    /* prefork.h */
    struct oribi_prefork prefork;
    struct oribi_policy_action spawn; /* between ORIBI_SUPERVISOR_FORK_WORKER and oribi_supervisor_worker_forked() */
    bool can_outlive_thread;          /* the fork is not the main thread's: its end must not stop the worker */
    bool paused;                      /* a trapped signal has ended the loop … */
    bool ending;                      /* … and is one that asks a program to end */
    bool resume_asked;
    int trapped; /* what take is to say once all actions are carried out */
    int pending; /* trapped while paused */
    int reraise; /* a signal that is not trapped ends everything, and then strikes */
    /* what take returned */
    struct oribi_supervisor_action action;
    char reason[256];
    char title[160];
};

/* fork_handlers.c. From now on a child that the application forks calls all(owner) first; NULL: nothing is to be let
 * go of any more. One per process: each role takes the place of the one before it. In the child, `all` closes
 * descriptors and does nothing else. */
void oribi__children_let_go(void (*all)(void *owner), void *owner);
/* what the calling thread forks next is a process of ours, which keeps everything; false: no longer */
void oribi__children_ours(bool ours);
void oribi__close(int *fd); /* leaves -1 */
/* in such a child; hand-off socket and listeners unless a worker has them */
void oribi__ties_let_go(struct oribi__ties *ties, bool listeners);

/* supervisor_actions.c. True when the language is to do something, which is in supervisor->action then. */
bool oribi__carry_out(struct oribi_supervisor *supervisor, const struct oribi_policy_action *action);

/* The answer to a reload or an upgrade that is done: when no old worker lets anybody in any more, and at once. */
void oribi__deferred_reply_turn(struct oribi_supervisor *supervisor);
void oribi__deferred_reply_now(struct oribi_supervisor *supervisor);

/* start.c: logs */
int oribi__open_logs(struct oribi__ties *ties,
                     char *error); /* level and error log as the options say; 0 or a code with `error` */
void oribi__reopen_logs(struct oribi__ties *ties);
void oribi__log_text(struct oribi_supervisor *supervisor, enum oribi_log_level level, const char *text);
void oribi__close_listeners(struct oribi_supervisor *supervisor, bool unlink_paths);
void oribi__release_starter(struct oribi_supervisor *supervisor, int code);
void oribi__supervisor_signal(void *self, int number); /* the handler */

/* listener_shutdown.c: the end of the listeners, at once or, while somebody waits there, turn by turn. */
void oribi__end_listening(struct oribi_supervisor *supervisor, bool handed_over);
void oribi__listening_turn(struct oribi_supervisor *supervisor);

/* Copies title to dst unless it is what `last` (of `last_cap` bytes) holds; remembers it there. */
size_t oribi__title_changed(const char *title, char *last, size_t last_cap, char *dst, size_t cap);

/* In a child: closes what belongs to the supervisor alone and frees it. `keep_fd` stays open. */
void oribi__supervisor_forget(struct oribi_supervisor *supervisor, int keep_fd);
void oribi__supervisor_config(const struct oribi_options *options, uint32_t workers_max,
                              struct oribi_policy_config *config);

/* generation.c, in the supervisor */
struct oribi__mold_socket *oribi__mold_socket_of(struct oribi_supervisor *supervisor, int32_t pid);
void oribi__mold_socket_close(struct oribi_supervisor *supervisor, int32_t pid);
/* true: the language is to fork */
bool oribi__start_mold(struct oribi_supervisor *supervisor, uint32_t generation, bool fresh);
void oribi__mold_started(struct oribi_supervisor *supervisor, pid_t pid);
void oribi__generation_announced(struct oribi_supervisor *supervisor, const struct oribi_message *message,
                                 int passed); /* takes passed */
void oribi__generation_ready(struct oribi_supervisor *supervisor,
                             /* adds what it told; makes a failure of it when we cannot take that over */
                             struct oribi_policy_event *event);
void oribi__generation_committed(struct oribi_supervisor *supervisor);
void oribi__generation_failed(struct oribi_supervisor *supervisor);
/* takes passed */
bool oribi__mold_promoted(struct oribi_supervisor *supervisor, const struct oribi_message *message, int passed);
void oribi__start_successor(struct oribi_supervisor *supervisor);
bool oribi__successor_ready(struct oribi_supervisor *supervisor);
void oribi__successor_failed(struct oribi_supervisor *supervisor);
void oribi__successor_tell(struct oribi_supervisor *supervisor, const char *text); /* in a successor: why it may fail */

/* prefork.c */
void oribi__prefork_begin(struct oribi_supervisor *supervisor, const struct oribi_prefork *prefork);
/* true: feed it */
bool oribi__prefork_signal(struct oribi_supervisor *supervisor, int number, struct oribi_policy_event *event);
/* what a client of the control socket wants; likewise */
bool oribi__prefork_command(struct oribi_supervisor *supervisor, struct oribi_policy_event *event);
/* likewise */
bool oribi__prefork_resume(struct oribi_supervisor *supervisor, struct oribi_policy_event *event);

/* child.c: a child with these ties. */
struct oribi_child *oribi__child_new(const struct oribi__ties *ties, uint32_t index, uint32_t ticket,
                                     uint32_t generation);

/* generation.c, in a mold that was started by exec */
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
int oribi__handed_down_read(struct oribi__handed_down *from, char *error);
void oribi__tell_generation(struct oribi__ties *ties, uint32_t generation);

/* control.c */
int oribi__control_open(struct oribi_supervisor *supervisor, bool replace, char *error);
bool oribi__control_turn(struct oribi_supervisor *supervisor, struct oribi_policy_event *event); /* true: feed it */
void oribi__control_answer(struct oribi_supervisor *supervisor, enum oribi__command command, int code,
                           const char *text);
/* Only those who asked first; for the others the next one is theirs. Or only those others. */
void oribi__control_answer_first(struct oribi_supervisor *supervisor, enum oribi__command command, int code,
                                 const char *text);
void oribi__control_answer_later(struct oribi_supervisor *supervisor, enum oribi__command command, int code,
                                 const char *text);
size_t oribi__control_fds(const struct oribi_supervisor *supervisor, int *fds);
int64_t oribi__control_deadline(const struct oribi_supervisor *supervisor);
void oribi__control_close(struct oribi_supervisor *supervisor, bool unlink_path);

/* status.c */
void oribi__status_text(struct oribi_supervisor *supervisor, struct oribi_buf *out);
void oribi__status_json(struct oribi_supervisor *supervisor, struct oribi_buf *out);
void oribi__totals_add(struct oribi__totals *totals, const struct oribi_slot *slot);

struct oribi_mold {
    struct oribi__ties ties;
    pid_t pid;
    uint32_t generation;
    bool started_by_exec;
    int socket_fd; /* commands from the supervisor */
    struct oribi_wake wake;
    struct oribi__own own;     /* what the application must have left open when it is loaded */
    _Atomic bool loaded;       /* read by the signal handler */
    _Atomic bool exit_asked;   /* set by the signal handler */
    _Atomic bool reopen_asked; /* likewise */
    uint32_t slot;             /* of the spawn being carried out */
    uint32_t ticket;
    char title[160];
};

/* mold.c: makes the calling process this mold, with its pid, its signals and a descriptor to be woken by. 0 or
 * ORIBI_ESYS. */
int oribi__mold_take_post(struct oribi_mold *mold);

#endif
