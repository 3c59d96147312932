/* Publishing: from a message's call, another process or another frontend to the topics of every frontend. The first
 * frontend leads: it gives offsets, and forwards to the others; they deliver what comes from it, in its order. */
#ifndef ORIBI_FRONTEND_PUBLISH_H
#define ORIBI_FRONTEND_PUBLISH_H

#include "frontend/topics.h"

struct oribi__frontend;

/* Makes the frontend's topics. 0 or ORIBI_ENOMEM. */
int oribi__publish_init(struct oribi__frontend *frontend);
void oribi__publish_deinit(struct oribi__frontend *frontend); /* no subscriber is left */

/* Once a turn: forgets what has become too old. */
void oribi__publish_turn(struct oribi__frontend *frontend);

/* Publishes what a call of this frontend's client has asked for. A leader delivers before this returns; another
 * one sends it to its leader, from which it comes back. 0; ORIBI_ELIMIT: the leader is away or full, and as much as may
 * wait for it waits already, or the data are too long; ORIBI_EINVAL, ORIBI_ENOMEM. */
int oribi__publish_from_call(struct oribi__frontend *frontend, const struct oribi__publication *publication);

#endif
