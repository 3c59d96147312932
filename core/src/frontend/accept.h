/* The frontend's listeners. */
#ifndef ORIBI_FRONTEND_ACCEPT_H
#define ORIBI_FRONTEND_ACCEPT_H

#include "oribi/config/listener.h"
#include "oribi/event/loop.h"
#include "oribi/event/timers.h"

#include <stdbool.h>
#include <stdint.h>

struct oribi__frontend;

struct oribi__accept {
    struct oribi_watch watches[ORIBI_LISTENERS_MAX];
    bool accepting;
    struct oribi_timer pause; /* until its end nothing is accepted */
};

int oribi__frontend_accept_init(struct oribi__frontend *frontend);
void oribi__frontend_accept_turn(struct oribi__frontend *frontend);
/* Accepts no new clients. `last`: except those that have connected to addresses which end with the server. */
void oribi__frontend_accept_stop(struct oribi__frontend *frontend, bool last);
/* Accepts no new clients, without a supervisor: clients that have connected are still accepted, and the addresses are
 * free for the next server. */
void oribi__frontend_accept_end(struct oribi__frontend *frontend);
bool oribi__frontend_accept_listens(const struct oribi__frontend *frontend); /* one of them is not over yet */

#endif
