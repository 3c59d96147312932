/* A small simulated world around a policy: it answers the policy's actions against a fake clock, so that a test says
 * only what is special about it. Begin each test with begin() or start(); everything is in `w`. */
#ifndef ORIBI_TEST_POLICY_POLICY_WORLD_H
#define ORIBI_TEST_POLICY_POLICY_WORLD_H

#include "oribi/policy/policy.h"
#include "tap.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { SLOTS = 64, MOLD_PID_FIRST = 1000, WORKER_PID_FIRST = 2000 };

struct proc {
    int32_t pid;
    uint32_t slot;
    uint32_t ticket;
    uint32_t generation;
    bool is_mold;
    bool alive;
    bool ready;
    int terms, ints, kills, usr1s, usr2s;
    uint32_t reminders;
    bool socket_closed;
    bool undead;   /* nothing ends it */
    bool reported; /* a mold whose start was reported */
};

struct world {
    struct oribi_policy policy;
    struct oribi_slot slots[SLOTS];
    struct proc procs[8192];
    uint32_t proc_count;
    int64_t now;
    const struct oribi_policy_config *next_config; /* what the next mold read */
    /* what the world does by itself */
    bool molds_load;
    bool workers_boot;
    bool workers_obey;
    bool molds_obey;
    /* what was seen */
    int ups, stoppings, frontend_ends, reopens, exits, worker_exits, mold_starts, spawns;
    int reloadings, commits, reloads_done, reloads_failed, upgrades_asked, upgrades_done, upgrades_failed, stop_soons;
    int upgrades_refused;
    int reforks_asked, reforks_done;
    int32_t refork_pid;
    bool fresh;
    int exit_code;
    bool killed_twice;
    uint32_t serving_max;
    char exit_text[256];
    char log[16384];
    char last_reason[64];
};

extern struct world w;

/* Processes; NULL when there is none. worker(n): the n-th that is alive, from 0. */
struct proc *proc_of(int32_t pid);
struct proc *add_proc(int32_t pid, bool is_mold, uint32_t generation);
struct proc *worker(uint32_t nth);
struct proc *mold(void);
struct proc *mold_of(uint32_t generation);

/* Reports of processes. */
void event_exit(struct proc *proc, int status);
void event_forked(struct proc *proc);
void event_ready(struct proc *proc);
void event_measured(struct proc *proc, int64_t bytes);
void report_mold(struct proc *proc);

/* An event, and then everything that follows from it. */
void feed(struct oribi_policy_event event);
void just(enum oribi_policy_event_type type);
void pause_with(int signal, int64_t interval_ms);

/* Lets processes do what they would do by themselves, until nothing moves. */
void settle(void);

/* Sleeps as a supervisor does: from deadline to deadline. */
void pass_ms(int64_t ms);

/* A fresh world with a policy of so many workers; start() feeds START as well and lets everything settle. */
void begin(uint32_t workers);
void start(uint32_t workers);

/* Shows a call on the scoreboard. */
void put_call(uint32_t slot, int64_t started_ms, int64_t deadline_ms, const char *line);

/* Results that were seen. */
bool logged(const char *text);
int count_signalled(int which);
uint32_t serving_of(uint32_t generation);

#endif
