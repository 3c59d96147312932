/* Publishing: from a message's call, another process or another frontend to the topics of every frontend. The first
 * frontend leads: it reads the server's inbox (worker/inbox.h), gives offsets, and feeds the others, which deliver what
 * comes in its order. doc/internals/publish.md has the ways, the take-over at an upgrade, and what follows from each
 * death. */
#ifndef ORIBI_FRONTEND_PUBLISH_H
#define ORIBI_FRONTEND_PUBLISH_H

#include "frontend/topics.h"

struct oribi__frontend;

/* Makes the frontend's topics, and takes over the histories of the frontend that has led so far, or that leads; waits
 * for them a second at most. 0, ORIBI_ENOMEM or ORIBI_ESYS. */
int oribi__publish_init(struct oribi__frontend *frontend);
void oribi__publish_deinit(struct oribi__frontend *frontend); /* no subscriber is left */

/* Another inbox, of the first frontend: takes the descriptor. */
void oribi__publish_inbox(struct oribi__frontend *frontend, int fd);

/* Once a turn, behind all that has come and before output is sent: delivers what is pending of messages, as far as a
 * turn may. */
void oribi__publish_deliver(struct oribi__frontend *frontend);

/* At the frontend's end: delivers all that is pending, and leaves the loop, which may end before the topics. */
void oribi__publish_finish(struct oribi__frontend *frontend);

/* Once a turn: forgets what has become too old, and sends what has waited. */
void oribi__publish_turn(struct oribi__frontend *frontend);

/* When the next turn is due; INT64_MAX: with an event. */
int64_t oribi__publish_due(const struct oribi__frontend *frontend);

/* False: other frontends of this server still get their messages from this one. */
bool oribi__publish_is_over(const struct oribi__frontend *frontend);

/* Publishes what a call of this frontend's client has asked for. A leader delivers, or begins to; another one, and a
 * leader with many messages pending, sends it to the inbox, from which it comes back. 0; ORIBI_ELIMIT: the leader is
 * away or full, and as much as may wait for it waits already, or the data are too long; ORIBI_EINVAL (also text that
 * is not UTF-8), ORIBI_ENOMEM. */
int oribi__publish_from_call(struct oribi__frontend *frontend, const struct oribi__publication *publication);

#endif
