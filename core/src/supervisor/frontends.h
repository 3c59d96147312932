/* frontends - processes that hold the clients of tls:// addresses and of those with frontend=on (frontend_protocol.h).
 * A frontend is a place of its own: started before any worker serves, started again when it dies, kept through reloads
 * and recycling; told to end, and waited for, before the workers are, since it needs them for what it has begun.
 *
 * frontend_start.c starts them, frontends.c hears and ends them, frontend_renewal.c brings new certificates;
 * frontend_memory.c has the memory that they share; frontend_text.c and frontend_certificates.c write the texts that
 * they are started with (frontend_text.h). */
#ifndef ORIBI_SUPERVISOR_FRONTENDS_PRIVATE_H
#define ORIBI_SUPERVISOR_FRONTENDS_PRIVATE_H

#include "oribi/base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct oribi__context;
struct oribi__frontend_set;

enum { ORIBI__FRONTEND_READY_MS = 30 * 1000 }; /* from the start of a frontend until it serves */

/* Begins to start those that the listeners ask for; oribi__serve() of start.h follows when all are ready, or none is
 * wanted, and oribi__serve_not() when one cannot be started. */
void oribi__frontends_start(struct oribi__context *context);

/* For observe. */
const struct oribi__frontend_set *oribi__frontends_set(const struct oribi__context *context);

/* Are any wanted? */
bool oribi__frontends_any(const struct oribi__context *context);

/* Reads the files of the certificates and gives them to all frontends. Its end is logged, and told to the clients of
 * the control socket that wait for it. One that is under way is followed by another. */
void oribi__frontends_certificates(struct oribi__context *context);
bool oribi__frontends_renewing(const struct oribi__context *context);

/* Why the last renewal has failed, for the reply to a reload; "": it has not. Forget: empties it. */
const char *oribi__frontends_refusal(const struct oribi__context *context);
void oribi__frontends_forget_refusal(struct oribi__context *context);

/* Asks all for their WebSockets; oribi__control_sockets() follows, within a second. */
void oribi__frontend_sockets_ask(struct oribi__context *context);

/* Is a renewal under way, or have frontends still to take a reload's local content? */
bool oribi__frontends_settle(const struct oribi__context *context);

/* A child has ended: was it a frontend, or a command that prints a password? */
bool oribi__frontends_ended(struct oribi__context *context, pid_t pid, int status);

/* A new generation is in force, and this is its text of oribi__frontend_text_local(): frontends get it, and read anew
 * what it names. Borrows the text. */
void oribi__frontends_local(struct oribi__context *context, const struct oribi_buf *local);

/* Records of a frontend's text (frontend_protocol.h), options of fixed answers, that frontends have from now on beside
 * the local content of the generation. Borrows the text. 0, or ORIBI_ENOMEM: nothing has changed. */
int oribi__frontends_challenges(struct oribi__context *context, const struct oribi_buf *challenges);

/* All that serve have taken the local content that they were told last. */
bool oribi__frontends_locals_taken(const struct oribi__context *context);

/* Tells them to end: they answer what has begun and those who have connected; `handed_over`: others serve their
 * addresses. False: that has been done. */
bool oribi__frontends_end(struct oribi__context *context, bool handed_over);

/* Tells them that no worker takes anything any more. */
void oribi__frontends_give_up(struct oribi__context *context);

/* Notes for a supervisor's death whether this server alone has the addresses (frontend_slot.h). */
void oribi__frontends_note_sole(struct oribi__context *context, bool sole);

void oribi__frontends_reopen(struct oribi__context *context); /* logs */

/* For the start of a successor: oribi__frontend_inbox_hand_over() of this server's. */
size_t oribi__frontends_hand_inbox_over(const struct oribi__context *context, char *text, int *keep);

#endif
