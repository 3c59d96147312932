/* Answer to a load balancer's agent check: option `agent`. HAProxy connects every few seconds ("agent-check
 * agent-port N agent-inter 2s"), may send a line of its own, and reads one line (HAProxy Configuration Manual,
 * agent-check):
 *
 *     up ready 87%       serves: the share of its usual weight that this server should get
 *     maint              starts, or has no worker that serves
 *     drain              is about to stop: nothing new, what is under way goes on
 *
 * The weight follows from what was so for ORIBI__AGENT_SAMPLES samples of the history, ten seconds, not from what is so
 * at this moment: a balancer that sends by old news sends too much to whoever was idle, until the next news
 * (doc/internals/placement.md). It falls more slowly than load rises, so that servers which are told apart by it settle
 * instead of swinging. Connections are few, short, and closed after ORIBI__AGENT_MS whatever the client does. */
#ifndef ORIBI_OBSERVE_AGENT_H
#define ORIBI_OBSERVE_AGENT_H

#include "oribi/policy/agent_weight.h"
#include "observe/history.h"
#include "observe/side_listener.h"

#include <stdint.h>

enum {
    ORIBI__AGENT_CLIENTS_MAX = 8,
    ORIBI__AGENT_MS = 1000,   /* until a client that does not close is closed */
    ORIBI__AGENT_SAMPLES = 5, /* of the history, which the weight follows from */
    ORIBI__AGENT_LINE_CAP = 32,
};

struct oribi__observe;

struct oribi__agent_client {
    struct oribi_dispatcher *dispatcher;
    int fd; /* -1: none; it was told its line, and its close is waited for */
    struct oribi_watcher watcher;
    struct oribi_timer until;
};

struct oribi__agent {
    struct oribi__side_listener side;
    struct oribi__agent_client clients[ORIBI__AGENT_CLIENTS_MAX];
};

/* The weight of the last samples; 100 when there are none yet. */
uint32_t oribi__agent_weight_of(const struct oribi__history *history);

/* All-zero becomes: no listener, no client. */
void oribi__agent_init(struct oribi__agent *agent);

/* Opens the address of the option and begins the history; does nothing without it. Handlers and timers
 * of the dispatcher do the rest. 0 or a code with `error`. */
int oribi__agent_open(struct oribi__observe *observe, char *error);

/* In a child that shares the descriptors: closes them and does nothing else. */
void oribi__agent_let_go(struct oribi__agent *agent);

void oribi__agent_close(struct oribi__observe *observe, bool unlink_path);

#endif
