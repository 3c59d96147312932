/* The handle of process.h, shared by take.c (which step comes when), fork.c (what forks change),
 * worker_calls.c (what a worker's language asks) and supervisor_link.c (what the worker's loop asks in each round). */
#ifndef ORIBI_SUPERVISOR_PROCESS_PRIVATE_H
#define ORIBI_SUPERVISOR_PROCESS_PRIVATE_H

#include "oribi/supervisor/process.h"
#include "oribi/supervisor/title.h"

#include "supervisor/mold.h"
#include "supervisor/single.h"

/* Stage of a process: the step that the next take gives. A mold runs from BEGIN to SERVING, one made of a worker begins
 * at SERVING; a worker runs from BEGIN to LEFT. A supervisor is SERVING always. HOOKED: the hook that comes before this
 * one's fork was given. */
enum oribi__stage {
    ORIBI__BEGIN,
    ORIBI__HOOKED,
    ORIBI__LOADED,
    ORIBI__OPENED,
    ORIBI__UP, /* single: server_ready was given */
    ORIBI__READY,
    ORIBI__SERVING,
    ORIBI__REFORK,
    ORIBI__RESTARTS, /* single: before_reload was given */
    ORIBI__LEFT,
};

/* Differences between a process that was forked, or supervises, and one that serves alone (single.h). */
struct oribi__life {
    const struct oribi_step *(*begins)(struct oribi_process *p); /* a worker's first step */
    /* A worker is open, before after_worker_ready: NULL, or a step. */
    const struct oribi_step *(*opened)(struct oribi_process *p);
    const struct oribi_step *(*ran)(struct oribi_process *p); /* RUN is over */
    const struct oribi_step *(*exit)(struct oribi_process *p);
    const struct oribi_step *(*failed)(struct oribi_process *p);
    void (*signal)(struct oribi_process *p, int number);
    void (*stop)(struct oribi_process *p);
    void (*destroy)(struct oribi_process *p);
};

extern const struct oribi__life oribi__life_forked;
extern const struct oribi__life oribi__life_alone;

struct oribi_process {
    struct oribi_link *link;             /* of a worker; first, because the worker's loop reads it in each round */
    struct oribi_supervisor *supervisor; /* of a supervisor and its starter */
    struct oribi_mold *mold;             /* of a mold and its intermediate */
    struct oribi_single *single;         /* of a server of one process, whose role is that of a worker; NULL: others */
    const struct oribi__life *life;
    enum oribi_role role;
    enum oribi__stage stage;
    pid_t pid;
    bool manager;
    bool failed;            /* the next step is EXIT */
    bool over;              /* EXIT was given */
    bool handed_over;       /* and a successor serves */
    bool forking;           /* FORK was given and is not answered */
    bool forked;            /* an intermediate has made its fork */
    bool titled;            /* an intermediate that stays has been told to set its title */
    bool loaded;            /* the application is, here or in the process that this one was forked from */
    bool refork;            /* oribi_process_turn() has said so */
    bool awaits;            /* oribi_process_await_workers() was called, and DONE not given */
    int64_t await_until_ms; /* INT64_MAX: no bound */
    pid_t forked_pid;       /* of a manager's new worker, whose hook is due, or an intermediate's; 0: none */
    struct oribi_step step;
    char text[ORIBI_TITLE_CAP]; /* methods.c: a title that a language is told */
};

/* As the step FORK: the signals are held back, and the fork handler leaves the descriptors alone. */
void oribi__process_hold(struct oribi_process *p, enum oribi_fork_kind kind);

/* supervisor.c: the process that --daemonize was given to. A failed fork (pid < 0) is printed there and then. */
void oribi__starter_enter(struct oribi_supervisor *supervisor, pid_t pid);
void oribi__starter_wait(const struct oribi_supervisor *supervisor, int64_t ms);

/* The code it is to end with, or -1 as long as the daemon has said nothing. */
int oribi__starter_take(struct oribi_supervisor *supervisor);

#endif
