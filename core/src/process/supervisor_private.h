/* Shared by the five sources of the supervisor's decisions:
 *   supervisor.c         init, feed, next, deadline
 *   supervisor_events.c  what happened, and what the operator wants
 *   supervisor_steps.c   what follows from the state
 *   supervisor_watch.c   … and from the scoreboard
 *   supervisor_state.c   looking at the state and changing it in small, asserted pieces */
#ifndef ORIBI_PROCESS_SUPERVISOR_PRIVATE_H
#define ORIBI_PROCESS_SUPERVISOR_PRIVATE_H

#include "oribi/process/supervisor.h"

/* Why we ended a worker; compared by address. */
extern const char oribi__cause_asked[];
extern const char oribi__cause_boot_timeout[];
extern const char oribi__cause_shutdown_timeout[];
extern const char oribi__cause_call_deadline[];
extern const char oribi__cause_mold_ended[];

/* queue and texts */
struct oribi_action *oribi__sup_push(struct oribi_supervisor *sup, enum oribi_action_type type);
const char *oribi__sup_keep(struct oribi_supervisor *sup, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void oribi__sup_say(struct oribi_supervisor *sup, enum oribi_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void oribi__sup_signal(struct oribi_supervisor *sup, int32_t pid, int number);

/* looking */
bool oribi__has_process(enum oribi_place_state state);
bool oribi__is_member(enum oribi_place_state state); /* counts as one of the workers that are wanted */

/* How many members there are, by what they are to become. */
struct oribi__tally {
    uint32_t current;         /* of the current generation, not to be replaced */
    uint32_t current_serving; /* of those */
    uint32_t old;             /* to be replaced: of earlier generations, or due for recycling */
    uint32_t next;            /* on trial */
    uint32_t next_serving;
    uint32_t odd;  /* of a generation that failed */
    uint32_t left; /* left alone since a resume */
};
struct oribi__tally oribi__sup_tally(const struct oribi_supervisor *sup);
enum oribi__role { ORIBI__CURRENT, ORIBI__OLD, ORIBI__NEXT, ORIBI__ODD, ORIBI__LEFT };
enum oribi__role oribi__sup_role(const struct oribi_supervisor *sup, const struct oribi_place *place);

uint32_t oribi__sup_wanted(const struct oribi_supervisor *sup);
uint32_t oribi__sup_roll_max(const struct oribi_supervisor *sup);
uint32_t oribi__sup_number(const struct oribi_supervisor *sup, const struct oribi_place *place);
struct oribi_place *oribi__sup_place_of_pid(struct oribi_supervisor *sup, int32_t pid);
struct oribi_place *oribi__sup_place_of_ticket(struct oribi_supervisor *sup, const struct oribi_event *event);
struct oribi_mold_place *oribi__sup_mold_of_pid(struct oribi_supervisor *sup, int32_t pid);
struct oribi_mold_place *oribi__sup_mold_of_generation(struct oribi_supervisor *sup, uint32_t generation);
const char *oribi__sup_status_text(struct oribi_supervisor *sup, int status);
int64_t oribi__sup_backoff_ms(const struct oribi_supervisor *sup, uint32_t failures);
/* Books the death of a worker that served. How long its slot is to wait before it is used again: 0 unless its workers die in series. */
int64_t oribi__sup_death_wait_ms(struct oribi_supervisor *sup, struct oribi_place *place, int64_t now_ms);
int64_t oribi__deadline_in(int64_t timeout_ms, int64_t now_ms); /* 0 when there is no timeout */
int64_t oribi__sup_stop_deadline(const struct oribi_supervisor *sup, int64_t now_ms);

/* changing */
void oribi__sup_kill(struct oribi_supervisor *sup, struct oribi_place *place, const char *cause, int64_t now_ms);
void oribi__sup_stop(struct oribi_supervisor *sup, struct oribi_place *place, int64_t now_ms);
void oribi__sup_hold(struct oribi_supervisor *sup, struct oribi_place *place, int64_t wait_ms, int64_t now_ms);
void oribi__sup_kill_mold(struct oribi_supervisor *sup, struct oribi_mold_place *mold, int64_t now_ms);
void oribi__sup_stop_mold(struct oribi_supervisor *sup, struct oribi_mold_place *mold, int64_t now_ms);
void oribi__sup_begin_stop(struct oribi_supervisor *sup, int exit_code);
void oribi__sup_reload(struct oribi_supervisor *sup);
void oribi__sup_reload_failed(struct oribi_supervisor *sup, const char *reason); /* reason: kept text */
void oribi__sup_reload_done(struct oribi_supervisor *sup);
void oribi__sup_upgrade_failed(struct oribi_supervisor *sup, const char *reason);

void oribi__sup_note(struct oribi_supervisor *sup, const struct oribi_event *event, int64_t now_ms);
bool oribi__sup_step(struct oribi_supervisor *sup, int64_t now_ms);
bool oribi__sup_step_watch(struct oribi_supervisor *sup, int64_t now_ms);
bool oribi__sup_spawn_paced(const struct oribi_supervisor *sup, int64_t now_ms);

#endif
