/* acme - certificates that an authority issues (option acme). The supervisor decides when one is asked for, by the
 * dates of the certificates and the clock; a child, `oribi-frontend --acme` (worker/acme_protocol.h), looks at the
 * files and asks. Frontends answer the authority's challenges: their text of local content has the answers in it.
 * Nothing here blocks; a child that takes too long is ended.
 *
 *   acme.c          the plan: when the files are looked at, when a certificate is asked for; the module
 *   acme_program.c  the child: its start, its messages, its end
 *   acme_shown.c    lines of the log, the table of ctl
 *
 * A clock that is put forward or back, for tests: ORIBI_ACME_CLOCK in the environment, seconds. */
#ifndef ORIBI_SUPERVISOR_ACME_H
#define ORIBI_SUPERVISOR_ACME_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct oribi__acme_set;
struct oribi__context;
struct oribi_buf;

/* For observe. */
const struct oribi__acme_set *oribi__acme_set(const struct oribi__context *context);

/* A child has ended: was it ours? */
bool oribi__acme_ended(struct oribi__context *context, pid_t pid, int status);

/* A frontend has answered or died: have all of them the answers to challenges? */
void oribi__acme_look_at_challenges(struct oribi__context *context);

/* --- for ctl --- */

/* Has the files looked at; oribi__control_looked() follows. False: not now, or there is nothing to look at. */
bool oribi__acme_look(struct oribi__context *context);

/* Asks now for certificates that have failed or are missing, for each of them once a minute at most; writes how that
 * went. False: no certificate is asked for. */
bool oribi__acme_renew(struct oribi__context *context, char *line, size_t cap);

/* Appends a table of the certificates. */
void oribi__acme_table(const struct oribi__context *context, struct oribi_buf *out);

#endif
