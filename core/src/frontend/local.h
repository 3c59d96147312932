/* Requests that need no application: local content, answered by a thread on channels of its own. */
#ifndef ORIBI_FRONTEND_LOCAL_H
#define ORIBI_FRONTEND_LOCAL_H

#include "oribi/event/timers.h"
#include "oribi/http/head.h"

#include <stdbool.h>
#include <stdint.h>

struct oribi__channel;
struct oribi__frontend;
struct oribi__frontend_local;
struct oribi__upstream_request;

struct oribi__locals {
    struct oribi__frontend_local *current;
    struct oribi__frontend_local *next; /* of a reload: it takes the place when it has opened its folders */
    struct oribi__frontend_local *retired;
    struct oribi_timer look; /* while a thread begins, ends, or has not answered */
};

/* Takes config->local, and makes local content of it in the place of the one before, which ends when it has answered
 * what it has begun. The first one is waited for, until its folders are open; others take their place in a later turn.
 * 0 or ORIBI_ENOMEM: nothing has changed. */
int oribi__frontend_local_open(struct oribi__frontend *frontend);
void oribi__frontend_local_close(struct oribi__frontend *frontend);
void oribi__frontend_local_close_idle(struct oribi__frontend *frontend);
void oribi__frontend_local_reopen(struct oribi__frontend *frontend); /* its log */

/* May the local content answer? Notes the path in the call. */
bool oribi__frontend_local_claims(struct oribi__frontend *frontend, struct oribi__upstream_request *call,
                                  const struct oribi_head *head);

/* Asks it, in the place of oribi__upstream_submit(). False: it cannot be asked now. */
bool oribi__frontend_local_submit(struct oribi__upstream_request *call);

/* It has no answer: a worker is asked. */
void oribi__frontend_local_passed(struct oribi__channel *channel);

/* Its channels: one rests, rests no longer; its call begins, has bytes of its answer, ends. */
void oribi__frontend_local_idle(struct oribi__channel *channel);
void oribi__frontend_local_unlink(struct oribi__channel *channel);
void oribi__frontend_local_begins(struct oribi__channel *channel);
void oribi__frontend_local_heard(const struct oribi__channel *channel);
void oribi__frontend_local_ends(struct oribi__channel *channel);

#endif
