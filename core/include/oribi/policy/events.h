/* The supervisor's own events: what follows from an action that it has carried out or from a fork that the language
 * has made. The policy hears of them, in their order, before it hears of anything that other processes have done.
 *
 * An action starts at most one process or ends at most one own mold, and the supervisor takes events from here before
 * it asks the policy for a further step. So the queue holds the events of one event's actions: a handful at most. */
#ifndef ORIBI_POLICY_EVENTS_H
#define ORIBI_POLICY_EVENTS_H

#include "oribi/policy/policy.h"

#include <stdbool.h>
#include <stdint.h>

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
