/* Decisions of a supervisor, without a single call into the operating system: events and the time go in, actions come
 * out. supervisor_actions.c carries them out; the tests feed a fake clock.
 *
 *   oribi_policy_feed(policy, &event, now_ms);
 *   while (oribi_policy_next(policy, now_ms, &action))
 *       carry out action;
 *   sleep until oribi_policy_deadline(policy, now_ms) or the next event;
 *
 * A worker record (one for each slot):
 *
 *            spawn           forked            ready            asked to stop            deadline
 *     FREE ────────► SPAWNING ─────► BOOTING ─────────► SERVING ────────────► STOPPING ─────────► KILLED
 *      ▲                │               │ boot_timeout      │ call deadline       ▲                  │
 *      │   mold died    ▼               └────────► KILLED ◄─┘                     │                  │
 *      ├──────────── LOST                                      LEAVING ───────────┘ (ends by itself) │
 *      │                                                                                             │
 *      └── HELD (back-off) ◄──────────────── exited ─────────────────────────────────────────────────┘
 *
 * A generation is what one mold has loaded. At a reload the next one must load and bring up its first workers before
 * anything happens to the one that serves; then it becomes the current one, and old workers are stopped one for each
 * new one that serves:
 *
 *        reload            mold ready           first workers ready              no old worker left
 *   ──────────► LOADING ────────────► TRIAL ─────────────────────► ROLLING ────────────────────────► done
 *                  └──── any failure ───┴──► its workers and its mold are stopped, the current one was never touched
 *
 * Workers that are to be recycled count as old ones, so they are replaced in the same way and at the same pace.
 *
 * A mold:  FREE ► ASKED ─started► LOADING ─ready► READY ─► STOPPING ─deadline► KILLED ─exited► FREE */
#ifndef ORIBI_POLICY_POLICY_H
#define ORIBI_POLICY_POLICY_H

#include "oribi/base/log.h"
#include "oribi/config/options.h"
#include "oribi/worker/placement/scoreboard.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ORIBI_INTERRUPT_MS = 1000,          /* of calls under way at a Ctrl-C in development */
    ORIBI_MOLDS_MAX = 8,                /* of all generations, leaving ones included */
    ORIBI_BOOT_FAILURES_MAX = 3,        /* in a row, before any worker was ever ready: then give up */
    ORIBI_RESPAWN_DELAY_MS_MAX = 30000, /* doubling of err_respawn_interval ends here */
    /* patient: a worker that lasts less than this counts as one that did not come up */
    ORIBI_EARLY_EXIT_MS = 1000,
    ORIBI_DEATHS_AT_ONCE = 5, /* deaths of workers that served, in one slot: so many are replaced at once */
    /* beyond ORIBI_DEATHS_AT_ONCE one is replaced in err_respawn_interval, or in this if that is shorter */
    ORIBI_DEATHS_INTERVAL_MS_MAX = 1000,
    /* a slot waits no longer than this while no other worker of its generation is there */
    ORIBI_LAST_RESPAWN_MS = 100,
    ORIBI_WATCH_MS = 1000, /* between two looks at the scoreboard */
    ORIBI_WATCH_JUMP_MS =
        3000, /* two looks further apart than this: the machine or the supervisor stood still, so no call is to blame */
    ORIBI_KILL_MS =
        1000, /* from "stop now" to the kill; also what a worker gets beyond shutdown_timeout to leave by itself */
    ORIBI_UNKILLABLE_MS = 10000,         /* the supervisor does not wait longer than this for a killed process */
    ORIBI_LOADING_TOLD_MS = 5000,        /* an application that loads for so long is logged */
    ORIBI_LOADING_TOLD_AGAIN_MS = 10000, /* between two such lines about one application */
    ORIBI_UPGRADE_SPARE_MS = 10000, /* beyond twice boot_timeout (loading, first worker) for a successor to come up */
    ORIBI_MOLD_STOP_MS = 5000,      /* a mold only has to leave its loop */
    ORIBI_LOST_MS = 30000,          /* how long the report of a fork by a mold that died may take */
    ORIBI_SPAWNS_PENDING_MAX = 32, /* spawn commands on their way to one mold: they must fit into its socket's buffer */
    ORIBI_POLICY_TEXT_CAP = 3200,  /* a failure's text and a few words around it */
    ORIBI_POLICY_WHY_CAP = 256,    /* the first line of that text, for the client that asked for the reload */
    ORIBI_POLICY_QUEUE_CAP = 32,   /* actions one event may cause beside those that follow from the state */
};

struct oribi_policy_config {
    uint32_t workers;
    uint32_t workers_max;        /* upper bound of workers at run time; slot_count is at least twice this */
    uint32_t roll_max;           /* workers replaced at a time; 0: a tenth, at least one */
    int64_t boot_timeout_ms;     /* 0: none */
    int64_t shutdown_timeout_ms; /* of a stop; a replaced worker has longer (oribi_options_finish_ms). 0: none */
    bool reload_waits;           /* development: a worker that a reload has replaced has no bound but a stop's */
    int64_t spawn_interval_ms;
    int64_t err_respawn_interval_ms;
    int64_t call_timeout_ms; /* also of a worker that hangs outside any call; 0: none */
    int64_t drain_delay_ms;  /* how long a graceful stop is only announced */
    int64_t age_max_ms;      /* 0: workers may grow old */
    int64_t memory_max;      /* bytes; 0: no limit */
    uint64_t refork_after;   /* requests of one worker; 0: never */
    int deadline_signal;     /* sent to a worker at each look that finds its call over its deadline; 0: none */
    bool watch;              /* look at the scoreboard every ORIBI_WATCH_MS */
    bool frontends;          /* a graceful stop lets frontends end first, which need the workers */
    /* process 1: at its end the system ends all others of its container, so that it cannot hand over */
    bool is_init;
    bool no_reopen; /* USR1 means something else to the workers */
    /* a manager (prefork.h): never gives up, and leaves workers alone that never report whether they are in a job */
    bool patient;
};

enum oribi_policy_event_type {
    ORIBI_EVENT_TICK,           /* nothing but time passed */
    ORIBI_EVENT_START,          /* once, first */
    ORIBI_EVENT_MOLD_STARTED,   /* generation, pid; pid < 0: could not be started, text */
    ORIBI_EVENT_MOLD_READY,     /* pid; config: what it read, NULL: what we know */
    ORIBI_EVENT_MOLD_FAILED,    /* pid, text */
    ORIBI_EVENT_WORKER_FORKED,  /* slot, ticket, pid; pid < 0: fork failed, text */
    ORIBI_EVENT_WORKER_READY,   /* slot, ticket, pid */
    ORIBI_EVENT_WORKER_FAILED,  /* slot, ticket, pid, text */
    ORIBI_EVENT_WORKER_LEAVING, /* slot, ticket, pid: it has begun to drain by itself */
    ORIBI_EVENT_EXITED,         /* pid, status: any reaped child */
    ORIBI_EVENT_STOP,           /* graceful; a second one is STOP_NOW */
    ORIBI_EVENT_STOP_NOW,
    ORIBI_EVENT_INTERRUPT,       /* graceful for ORIBI_INTERRUPT_MS at most; a second one is STOP_NOW */
    ORIBI_EVENT_FRONTENDS_ENDED, /* all of them, after FRONTENDS_END */
    ORIBI_EVENT_RESIZE,          /* delta */
    ORIBI_EVENT_WINCH,           /* no workers until the next RESIZE or RELOAD */
    ORIBI_EVENT_REOPEN,          /* log files */
    ORIBI_EVENT_MEASURED,        /* slot, ticket, bytes of memory */
    ORIBI_EVENT_MOLD_PROMOTED,   /* generation, pid: forked off a worker, ready */
    ORIBI_EVENT_MOLD_AT,         /* pid, text: where its loading stands */
    ORIBI_EVENT_RELOAD,
    ORIBI_EVENT_UPGRADE,
    ORIBI_EVENT_UPGRADE_STARTED, /* pid; pid < 0: could not be started, text */
    ORIBI_EVENT_UPGRADE_READY,   /* the successor serves */
    /* no new workers; status: signal for those there are, 0: none; bytes: ms between two of them */
    ORIBI_EVENT_PAUSE,
    /* a new generation from the same mold beside the workers there are, which are left alone and count */
    ORIBI_EVENT_RESUME,
    /* after PAUSE: no worker is wanted before RESUME, so molds but pid are stopped */
    ORIBI_EVENT_RELEASE_MOLDS,
};

struct oribi_policy_event {
    enum oribi_policy_event_type type;
    int32_t pid;
    int32_t status; /* waitpid's */
    uint32_t generation;
    uint32_t slot;
    uint32_t ticket; /* names one spawn, so that a late message about an earlier one is recognised */
    int32_t delta;
    int64_t bytes;
    bool refused;                             /* MOLD_FAILED: it has loaded, and the supervisor does not take it */
    const char *text;                         /* borrowed; may be NULL */
    const struct oribi_policy_config *config; /* borrowed; may be NULL */
};

enum oribi_policy_action_type {
    ORIBI_ACTION_LOG,             /* level, text; more than one line: a block */
    ORIBI_ACTION_START_MOLD,      /* generation, fresh: by exec, else by the language's fork */
    ORIBI_ACTION_STOP_MOLD,       /* pid: close its command socket */
    ORIBI_ACTION_SPAWN,           /* pid of the mold, generation, slot, ticket */
    ORIBI_ACTION_SIGNAL,          /* pid, signal */
    ORIBI_ACTION_UP,              /* the first worker serves: start line, readiness */
    ORIBI_ACTION_WORKER_EXIT,     /* pid, status, slot, text: hook, and the slot's shared memory may be cleared */
    ORIBI_ACTION_REOPEN,          /* our own log files */
    ORIBI_ACTION_STOP_SOON,       /* a stop is announced: readiness is over, service is not */
    ORIBI_ACTION_FRONTENDS_END,   /* the stop has begun with the frontends; code 1: a successor has our sockets */
    ORIBI_ACTION_STOPPING,        /* the workers' stop has begun; code likewise */
    ORIBI_ACTION_RELOADING,       /* generation: the reload begins */
    ORIBI_ACTION_COMMITTED,       /* generation: it is the current one now */
    ORIBI_ACTION_RELOADED,        /* code 0: done; 1: failed, text */
    ORIBI_ACTION_START_UPGRADE,   /* start the successor, feed UPGRADE_STARTED */
    ORIBI_ACTION_UPGRADED,        /* code 0: it serves, pid; 1: failed, text */
    ORIBI_ACTION_UPGRADE_REFUSED, /* text; one that is under way goes on */
    ORIBI_ACTION_REFORK,          /* pid: ask this worker for a mold; SIGUSR2 is on its way */
    ORIBI_ACTION_REFORKED,        /* generation: all its workers come from the new mold */
    ORIBI_ACTION_EXIT,            /* code; text when it is not 0. The last action */
};

struct oribi_policy_action {
    enum oribi_policy_action_type type;
    enum oribi_log_level level;
    int32_t pid;
    int32_t status;
    int32_t signal;
    int32_t code;
    uint32_t generation;
    uint32_t slot;
    uint32_t ticket;
    bool fresh;
    bool loaded;            /* LOG: the line tells that an application has loaded */
    int64_t loaded_ms;      /* time that loading took; with `loaded` */
    bool of_worker;         /* LOG: the line concerns the worker of this slot and generation */
    const char *request_id; /* request of that worker's call; NULL: none. Lives as long as text */
    const char *text;       /* lives until the next call */
};

enum oribi_worker_record_state {
    ORIBI_RECORD_FREE,
    ORIBI_RECORD_HELD,     /* waits for `until` before it is free again, counted as a worker meanwhile */
    ORIBI_RECORD_SPAWNING, /* the mold has got the command; no pid yet */
    ORIBI_RECORD_BOOTING,
    ORIBI_RECORD_SERVING,
    ORIBI_RECORD_LEAVING,  /* drains by its own decision */
    ORIBI_RECORD_STOPPING, /* asked to drain */
    ORIBI_RECORD_KILLED,
    ORIBI_RECORD_LOST, /* its mold died between the command and the fork's report; free again at `until` */
};

enum oribi_mold_state {
    ORIBI_MOLD_IS_FREE,
    ORIBI_MOLD_IS_ASKED,
    ORIBI_MOLD_IS_LOADING,
    ORIBI_MOLD_IS_READY,
    ORIBI_MOLD_IS_STOPPING,
    ORIBI_MOLD_IS_KILLED,
};

/* All private; tests look. */
struct oribi_worker_record {
    enum oribi_worker_record_state state;
    uint32_t generation;
    uint32_t ticket;
    int32_t pid;
    int32_t mold_pid;
    int64_t until;         /* deadline of the state; 0: none */
    int64_t ready_at;      /* 0: never was */
    int64_t call_started;  /* start of the call last looked at, in us; 0: none */
    int64_t call_deadline; /* that call's deadline, in us: another one is looked at anew */
    bool remind;           /* that call is overdue: the worker is to get the deadline signal */
    int64_t overdue_since; /* when a look first found that call overdue; 0: it is not */
    uint32_t awake;        /* the worker's last word of its turns, as the scoreboard had it */
    int64_t awake_since;   /* when that word was first seen outside any call; 0: the worker is in one, or sleeps */
    bool interrupted;      /* INT was sent */
    bool reopen;           /* USR1 is to be sent */
    /* one interval for each death of a worker that served here (oribi__policy_death_wait); outlives the worker */
    int64_t deaths_paid_at;
    const char *retire; /* why it is to be replaced; static text, NULL: it is not */
    const char *cause;  /* why we ended it; static text */
};

enum { ORIBI_MOLD_PLACE_MAX = 300 }; /* bytes of what is told of where loading stands */

struct oribi_mold_record {
    enum oribi_mold_state state;
    uint32_t generation;
    int32_t pid;
    int64_t until;
    int64_t started_at;
    int64_t tell_at;                      /* when the log is told next that it still loads */
    char place[ORIBI_MOLD_PLACE_MAX + 1]; /* where loading stood, as it was last told; "": not known */
    bool reopen;
};

struct oribi_policy {
    struct oribi_policy_config config;
    const struct oribi_slot *slots; /* the scoreboard; read only */
    uint32_t slot_count;
    uint32_t target;          /* workers wanted now */
    uint32_t generation;      /* the one that serves */
    uint32_t next_generation; /* the one that is loading or on trial; 0: none */
    struct oribi_policy_config next_config;
    bool next_asked; /* its mold was */
    bool has_next_config;
    uint32_t own_generation;  /* its mold is forked by the language, not started by exec */
    uint32_t left_generation; /* up to this one workers are left alone; 0: none */
    bool paused;
    int32_t send_signal; /* to the workers one after the other; 0: nothing to send */
    int64_t send_interval_ms;
    int64_t send_at;
    uint32_t send_after; /* ticket of the last one that got it */
    uint32_t send_upto;  /* ticket of the last one that is to get it */
    bool rolling;        /* a reload's workers are being replaced */
    bool reload_again;   /* asked for while one was under way */
    uint32_t last_generation;
    uint32_t last_ticket;
    uint32_t boot_failures; /* in a row */
    int64_t boot_failed_at;
    uint32_t mold_failures; /* in a row */
    int64_t mold_not_before;
    int64_t spawned_at; /* last spawn; -1: none yet */
    int64_t watched_at; /* last look at the scoreboard */
    bool started;
    bool up;             /* a worker was ready once */
    int64_t hurry_at;    /* a graceful stop becomes STOP_NOW; 0: it does not */
    int64_t stop_at;     /* end of drain_delay; 0: not announced */
    int64_t stop_until;  /* when a graceful stop that began with frontends is over; 0: another stop, or no bound */
    bool frontends_end;  /* the server stops, and workers go on until its frontends have ended, or stop_until */
    int32_t upgrade_pid; /* the successor that is starting; 0: none, -1: asked for */
    int64_t upgrade_until;
    bool handed_over;     /* it serves */
    uint32_t reforked;    /* generation that has a mold made of a worker, or was asked for one */
    int64_t refork_until; /* when to ask again; 0: nothing asked for */
    bool reforking;       /* its workers are being replaced */
    bool stopping;
    bool stopping_now;
    bool exited;
    int32_t exit_code;
    struct oribi_worker_record records[ORIBI_SLOTS_MAX];
    struct oribi_mold_record molds[ORIBI_MOLDS_MAX];
    struct oribi_policy_action queue[ORIBI_POLICY_QUEUE_CAP];
    uint32_t queue_head;
    uint32_t queue_len;
    char why[ORIBI_POLICY_WHY_CAP]; /* what the next generation has said of its failure; "": nothing */
    size_t text_len;
    char texts[2 * ORIBI_POLICY_TEXT_CAP]; /* of the queued actions */
    char exit_text[ORIBI_POLICY_TEXT_CAP];
};

/* Borrows `slots` (shared memory of at least slot_count entries) for its life. */
void oribi_policy_init(struct oribi_policy *policy, const struct oribi_policy_config *config,
                       const struct oribi_slot *slots, uint32_t slot_count);

/* An operator has asked an earlier policy for so many workers (TTIN, TTOU), whose configuration had `before`: they are
 * kept while the configuration's number is that one still. Right behind init; true, and ORIBI_POLICY_WORKERS_KEPT is to
 * be logged, where the number is another one than the configuration's now. */
bool oribi_policy_keep_workers(struct oribi_policy *policy, uint32_t asked, uint32_t before);

/* With the number that is kept, and the configuration's. */
#define ORIBI_POLICY_WORKERS_KEPT "workers: %u as asked for, not the %u of the configuration, which has not changed"

/* Notes an event. Take all actions before the next one (asserted). */
void oribi_policy_feed(struct oribi_policy *policy, const struct oribi_policy_event *event, int64_t now_ms);

/* The next thing to do, or false. */
bool oribi_policy_next(struct oribi_policy *policy, int64_t now_ms, struct oribi_policy_action *action);

/* When to feed a TICK if nothing else happens, INT64_MAX: not at all. Never before now_ms. */
int64_t oribi_policy_deadline(const struct oribi_policy *policy, int64_t now_ms);

/* The server stops, and no worker is needed any more: frontends, where there are any, have ended. */
bool oribi_policy_ends(const struct oribi_policy *policy);

/* Workers that serve, and processes that exist. */
uint32_t oribi_policy_serving(const struct oribi_policy *policy);
uint32_t oribi_policy_alive(const struct oribi_policy *policy);

/* Molds that exist, or are being started, beside the one with this pid, and without those that SIGKILL does not end. */
uint32_t oribi_policy_molds_beside(const struct oribi_policy *policy, int32_t pid);

/* The program has sent this signal to the worker of a record, which has a process. If the signal asks the worker to
 * end, its end is no failure, and shutdown_timeout runs. */
void oribi_policy_signalled(struct oribi_policy *policy, uint32_t slot, int signal, int64_t now_ms);

/* True when the worker of this slot is a process now. */
bool oribi_policy_has_process(const struct oribi_policy *policy, uint32_t slot);

/* Reasons for which the supervisor ends a worker, as its log says them. Compared by address. */
extern const char oribi__cause_asked[];
extern const char oribi__cause_boot_timeout[];
extern const char oribi__cause_shutdown_timeout[];
extern const char oribi__cause_call_deadline[];
extern const char oribi__cause_hang[];
extern const char oribi__cause_mold_ended[];
extern const char oribi__cause_age_max[];
extern const char oribi__cause_memory_max[];
extern const char oribi__cause_refork[];

/* The supervisor's own events: what follows from an action that it has carried out or from a fork that the language
 * has made. The policy hears of them, in their order, before it hears of anything that other processes have done.
 *
 * An action starts at most one process or ends at most one own mold, and the supervisor takes events from here before
 * it asks the policy for a further step. So the queue holds the events of one event's actions: a handful at most. A
 * handler of a descriptor or a timer runs while the queue is empty, and adds one event at most. */
enum {
    ORIBI__EVENTS_MAX = 8,
    ORIBI__EVENT_TEXT_CAP = 3 * 1024 + 1, /* as long as that of a record (supervisor/message.h); a longer one is cut */
};

struct oribi__events {
    uint32_t first;
    uint32_t count;
    struct oribi_policy_event items[ORIBI__EVENTS_MAX];
    char texts[ORIBI__EVENTS_MAX][ORIBI__EVENT_TEXT_CAP];
};

/* Appends a copy of the event and of its text (not of its config, which stays borrowed). False when the queue is full:
 * the event is refused, those in the queue stay. */
bool oribi__events_push(struct oribi__events *events, const struct oribi_policy_event *event);

/* Takes the oldest event; its text lives until the next push. False when there is none. */
bool oribi__events_pop(struct oribi__events *events, struct oribi_policy_event *event);

#endif
