/* Shared by the five sources of the policy:
 *   policy.c         init, feed, next, deadline
 *   policy_events.c  what happened, and what the operator wants
 *   policy_steps.c   what follows from the state
 *   policy_watch.c   … and from the scoreboard
 *   policy_state.c   looking at the state and changing it in small, asserted pieces */
#ifndef ORIBI_PROCESS_POLICY_PRIVATE_H
#define ORIBI_PROCESS_POLICY_PRIVATE_H

#include "oribi/process/policy.h"

/* Why we ended a worker; compared by address. */
extern const char oribi__cause_asked[];
extern const char oribi__cause_boot_timeout[];
extern const char oribi__cause_shutdown_timeout[];
extern const char oribi__cause_call_deadline[];
extern const char oribi__cause_mold_ended[];

/* queue and texts */
struct oribi_policy_action *oribi__policy_push(struct oribi_policy *policy, enum oribi_policy_action_type type);
const char *oribi__policy_keep(struct oribi_policy *policy, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void oribi__policy_say(struct oribi_policy *policy, enum oribi_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
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
void oribi__policy_reload(struct oribi_policy *policy);
void oribi__policy_reload_failed(struct oribi_policy *policy, const char *reason); /* reason: kept text */
void oribi__policy_reload_done(struct oribi_policy *policy);
void oribi__policy_upgrade_failed(struct oribi_policy *policy, const char *reason);

void oribi__policy_note(struct oribi_policy *policy, const struct oribi_policy_event *event, int64_t now_ms);
bool oribi__policy_step(struct oribi_policy *policy, int64_t now_ms);
bool oribi__policy_step_watch(struct oribi_policy *policy, int64_t now_ms);
bool oribi__policy_spawn_paced(const struct oribi_policy *policy, int64_t now_ms);

#endif
