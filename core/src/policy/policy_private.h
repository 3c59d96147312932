/* Shared by the sources of the policy:
 *   policy.c           the map: which event leads where, and which step comes before which; feed, next, deadline
 *   policy_events.c    what happened to molds and workers, and what the operator wants
 *   policy_steps.c     what follows from the state: deadlines, too many workers, too few, stop
 *   policy_watch.c     … and from the scoreboard
 *   policy_reload.c    a reload from the command to its end
 *   policy_upgrade.c   an upgrade likewise
 *   policy_manager.c   pause, resume and signals of a manager (prefork.h)
 *   policy_state.c     looking at the state and changing it in small, asserted pieces */
#ifndef ORIBI_POLICY_POLICY_PRIVATE_H
#define ORIBI_POLICY_POLICY_PRIVATE_H

#include "oribi/policy/policy.h"

/* queue and texts */
struct oribi_policy_action *oribi__policy_push(struct oribi_policy *policy, enum oribi_policy_action_type type);
const char *oribi__policy_keep(struct oribi_policy *policy, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
struct oribi_policy_action *oribi__policy_say(struct oribi_policy *policy, enum oribi_log_level level,
                                              const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Marks the line just said as one about the worker of this record; `call`: and about the call that its slot shows. */
void oribi__policy_of(struct oribi_policy *policy, const struct oribi_worker_record *record,
                      struct oribi_policy_action *said, bool call);
/* oribi_slot_call_text() of its slot. */
const char *oribi__policy_call_text(struct oribi_policy *policy, const struct oribi_worker_record *record);
void oribi__policy_signal(struct oribi_policy *policy, int32_t pid, int number);

/* looking */
bool oribi__has_process(enum oribi_worker_record_state state);
bool oribi__is_member(enum oribi_worker_record_state state); /* counts as one of the workers that are wanted */

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
struct oribi__tally oribi__policy_tally(const struct oribi_policy *policy);
enum oribi__role { ORIBI__CURRENT, ORIBI__OLD, ORIBI__NEXT, ORIBI__ODD, ORIBI__LEFT };
enum oribi__role oribi__policy_role(const struct oribi_policy *policy, const struct oribi_worker_record *record);

uint32_t oribi__policy_wanted(const struct oribi_policy *policy);
uint32_t oribi__policy_roll_max(const struct oribi_policy *policy);
uint32_t oribi__policy_number(const struct oribi_policy *policy, const struct oribi_worker_record *record);
struct oribi_worker_record *oribi__policy_record_of_pid(struct oribi_policy *policy, int32_t pid);
struct oribi_worker_record *oribi__policy_record_of_ticket(struct oribi_policy *policy,
                                                           const struct oribi_policy_event *event);
struct oribi_mold_record *oribi__policy_mold_of_pid(struct oribi_policy *policy, int32_t pid);
struct oribi_mold_record *oribi__policy_mold_of_generation(struct oribi_policy *policy, uint32_t generation);
const char *oribi__policy_status_text(struct oribi_policy *policy, int status);
int64_t oribi__policy_backoff_ms(const struct oribi_policy *policy, uint32_t failures);
/* Books the death of a worker that served. How long its slot is to wait before it is used again: 0 unless its
 * workers die in series. */
int64_t oribi__policy_death_wait_ms(struct oribi_policy *policy, struct oribi_worker_record *record, int64_t now_ms);
int64_t oribi__deadline_in(int64_t timeout_ms, int64_t now_ms); /* 0 when there is no timeout */
/* When a worker that is told to end now is killed; 0: never. */
int64_t oribi__policy_stop_deadline(const struct oribi_policy *policy, int64_t now_ms);

/* changing */
void oribi__policy_kill(struct oribi_policy *policy, struct oribi_worker_record *record, const char *cause,
                        int64_t now_ms);
void oribi__policy_stop(struct oribi_policy *policy, struct oribi_worker_record *record, int64_t now_ms);
void oribi__policy_hold(struct oribi_policy *policy, struct oribi_worker_record *record, int64_t wait_ms,
                        int64_t now_ms);
void oribi__policy_kill_mold(struct oribi_policy *policy, struct oribi_mold_record *mold, int64_t now_ms);
void oribi__policy_stop_mold(struct oribi_policy *policy, struct oribi_mold_record *mold, int64_t now_ms);
void oribi__policy_begin_stop(struct oribi_policy *policy, int exit_code);
/* The graceful begin: frontends first, where there are any. */
void oribi__policy_begin_drain(struct oribi_policy *policy, int64_t now_ms);
/* Frontends have ended, or are waited for no longer: the workers' turn. Nothing where they are not waited for. */
void oribi__policy_frontends_ended(struct oribi_policy *policy);

/* policy_events.c */
void oribi__policy_mold_started(struct oribi_policy *policy, const struct oribi_policy_event *event, int64_t now_ms);
void oribi__policy_mold_ready(struct oribi_policy *policy, const struct oribi_policy_event *event, int64_t now_ms);
void oribi__policy_mold_failed(struct oribi_policy *policy, const struct oribi_policy_event *event, int64_t now_ms);
void oribi__policy_mold_at(struct oribi_policy *policy, const struct oribi_policy_event *event);
void oribi__policy_mold_promoted(struct oribi_policy *policy, const struct oribi_policy_event *event, int64_t now_ms);
void oribi__policy_worker_forked(struct oribi_policy *policy, const struct oribi_policy_event *event, int64_t now_ms);
void oribi__policy_worker_ready(struct oribi_policy *policy, const struct oribi_policy_event *event, int64_t now_ms);
void oribi__policy_worker_failed(struct oribi_policy *policy, const struct oribi_policy_event *event, int64_t now_ms);
void oribi__policy_worker_leaving(struct oribi_policy *policy, const struct oribi_policy_event *event, int64_t now_ms);
void oribi__policy_measured(struct oribi_policy *policy, const struct oribi_policy_event *event);
void oribi__policy_exited(struct oribi_policy *policy, const struct oribi_policy_event *event, int64_t now_ms);
void oribi__policy_resize(struct oribi_policy *policy, int32_t delta);
void oribi__policy_reopen(struct oribi_policy *policy);
void oribi__policy_stop_asked(struct oribi_policy *policy, bool now, int64_t now_ms);
void oribi__policy_interrupted(struct oribi_policy *policy, int64_t now_ms);
const char *oribi__policy_text_of(const struct oribi_policy_event *event); /* or "no reason given" */

/* policy_steps.c: each does one thing and is true, or has nothing to do. */
bool oribi__policy_step_deadlines(struct oribi_policy *policy, int64_t now_ms);
bool oribi__policy_step_give_up(struct oribi_policy *policy);
bool oribi__policy_step_surplus(struct oribi_policy *policy, int64_t now_ms);
bool oribi__policy_step_stop(struct oribi_policy *policy, int64_t now_ms);
bool oribi__policy_step_old_molds(struct oribi_policy *policy, int64_t now_ms);
bool oribi__policy_step_missing(struct oribi_policy *policy, int64_t now_ms);
bool oribi__policy_step_reopen(struct oribi_policy *policy);
bool oribi__policy_step_watch(struct oribi_policy *policy, int64_t now_ms); /* policy_watch.c */
/* False when all records are in use by processes that do not end. */
bool oribi__policy_start_mold(struct oribi_policy *policy, uint32_t generation, bool fresh);
bool oribi__policy_spawn(struct oribi_policy *policy, struct oribi_mold_record *mold, int64_t now_ms);
bool oribi__policy_spawn_paced(const struct oribi_policy *policy, int64_t now_ms);

/* policy_reload.c */
void oribi__policy_reload(struct oribi_policy *policy);
bool oribi__policy_step_trial(struct oribi_policy *policy, int64_t now_ms);
bool oribi__policy_step_rolled(struct oribi_policy *policy);
void oribi__policy_keep_why(struct oribi_policy *policy, uint32_t generation, const struct oribi_policy_event *event);
void oribi__policy_reload_failed(struct oribi_policy *policy, const char *reason); /* reason: kept text */

/* policy_upgrade.c */
void oribi__policy_upgrade(struct oribi_policy *policy);
void oribi__policy_upgrade_started(struct oribi_policy *policy, const struct oribi_policy_event *event, int64_t now_ms);
void oribi__policy_upgrade_ready(struct oribi_policy *policy, int64_t now_ms);
void oribi__policy_successor_exited(struct oribi_policy *policy, int status);
bool oribi__policy_upgrade_expired(struct oribi_policy *policy, int64_t now_ms); /* true: an action follows */

/* policy_manager.c */
void oribi__policy_pause(struct oribi_policy *policy, const struct oribi_policy_event *event, int64_t now_ms);
void oribi__policy_resume(struct oribi_policy *policy);
void oribi__policy_release_molds(struct oribi_policy *policy, int32_t beside, int64_t now_ms);
bool oribi__policy_step_send(struct oribi_policy *policy, int64_t now_ms);

#endif
