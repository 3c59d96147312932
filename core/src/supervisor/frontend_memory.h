/* Memory that all frontends share with the supervisor: their counters (worker/frontend_slot.h), and the keys of session
 * tickets (worker/frontend_protocol.h). */
#ifndef ORIBI_SUPERVISOR_FRONTEND_MEMORY_H
#define ORIBI_SUPERVISOR_FRONTEND_MEMORY_H

#include "oribi/worker/frontend_protocol.h"
#include "oribi/worker/frontend_slot.h"

enum { ORIBI__TICKETS_MS = 8 * 3600 * 1000 }; /* RFC 8446 C.4: keys live for hours */

/* Gives mapped slots and their descriptor. NULL, -1: without memory for them nothing of frontends is counted, and a
 * line in the log says so. */
struct oribi_frontend_slot *oribi__frontend_slots_make(int *fd);

/* NULL, -1: every handshake is a full one, and a line in the log says so. */
struct oribi_tls_tickets *oribi__frontend_tickets_make(int *fd);

/* A new key encrypts from now on; the last ones still decrypt. */
void oribi__frontend_tickets_turn(struct oribi_tls_tickets *tickets);

#endif
