/* acme - `oribi-frontend --acme`: looks at the certificates of the option acme, and asks the authority for one (an
 * order, RFC 8555 7.4). The supervisor starts it (worker/acme_protocol.h); it may block, and ends when it is done.
 *
 *   acme_order.c    the program: a look, an order from its state to the new file
 *   acme_store.c    the folder: lock, state of failures, installing
 *   acme_request.c  key and request; the certificate that comes back (OpenSSL)
 *   acme_client.c   the client (uacme) as a child with a user of its own, and its words when it fails
 *   acme_hook.c     the client's hook: this program once more, which tells the order of a challenge
 *
 *   state is written ─► key, request ─► client: new account ─► client: order ─┬─► checked ─► installed ─► state cleared
 *                                             hook ◄─ challenge ─► supervisor ┘
 *
 * A kill at any moment leaves the old file, and the state of a failure. The key is in memory until it is installed
 * with its chain, in one file. */
#ifndef ORIBI_FRONTEND_ACME_H
#define ORIBI_FRONTEND_ACME_H

#include "oribi/base/buf.h"
#include "oribi/base/error.h"
#include "oribi/config/acme.h"
#include "oribi/worker/acme_protocol.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Environment of the client, for its hook: the number of a socket to the order. */
#define ORIBI__ACME_HOOK "ORIBI_ACME_HOOK"

enum {
    ORIBI__ACME_DIR_CAP = 1024,
    ORIBI__ACME_OUTPUT_MAX = 64 * 1024, /* bytes kept of what a client prints, of its begin and its end */
    ORIBI__ACME_FILE_MAX = 256 * 1024,  /* of a chain with its key */
    ORIBI__ACME_COMMAND_WORDS_MAX = 32, /* of acme_command */
};

/* --- acme_order.c --- */

/* The whole program. Gives its exit code. */
int oribi_frontend_acme(void);

/* --- acme_hook.c --- */

/* As the client calls it: begin|done|failed TYPE IDENT TOKEN AUTHORIZATION. Gives its exit code: 0, the challenge is
 * taken. */
int oribi_frontend_acme_hook(int argc, char **argv);

/* --- acme_store.c --- */

struct oribi__acme_store {
    char dir[ORIBI__ACME_DIR_CAP];
    int lock_fd; /* -1: not locked */
    uid_t uid;   /* of the client; this user's where `switches` is not */
    gid_t gid;
    bool switches;
};

/* Makes the folders where they are missing: DIR, DIR/account and DIR/request, the last two of the client's user. 0,
 * or a code with one line in `error`, which tells what to do. */
int oribi__acme_store_open(struct oribi__acme_store *store, char *error);

/* 0; ORIBI_AGAIN: another process asks in this folder; ORIBI_ESYS with `error`. */
int oribi__acme_store_lock(struct oribi__acme_store *store, char *error);

/* Does another process ask in this folder now? */
bool oribi__acme_store_is_locked(const struct oribi__acme_store *store);

/* Reads DIR/NAME.state into `facts` and `reason` (ORIBI_ACME_REASON_MAX + 1 bytes); none: zeros, "". */
void oribi__acme_state_read(const struct oribi__acme_store *store, const char *name, struct oribi_acme_facts *facts,
                            char *reason);

/* Writes it, synced and renamed. 0 or a code with `error`. */
int oribi__acme_state_write(const struct oribi__acme_store *store, const char *name,
                            const struct oribi_acme_facts *facts, const char *reason, char *error);

/* Writes the file for the client: of its user, mode 0600. */
int oribi__acme_store_put(const struct oribi__acme_store *store, const char *path, struct oribi_slice text,
                          bool for_client, char *error);

/* Writes, syncs and renames, mode 0600: whoever opens `path` finds the old text or the new one. */
int oribi__acme_store_install(const char *path, struct oribi_slice text, char *error);

/* Can that be replaced by a file? 0 or a code with `error`. For before the authority is asked. */
int oribi__acme_store_check(const char *path, char *error);

/* Reads a whole file. 0; 1: there is none; or a code with `error`. The caller wipes it. */
int oribi__acme_store_read(const char *path, struct oribi_buf *out, char *error);

/* Reads so a file that the client has left, whose user may have put a link there: that is refused. */
int oribi__acme_store_take(const char *path, struct oribi_buf *out, char *error);

/* --- acme_request.c --- */

/* Gives a new key (EC P-256, PEM) and a request for these names (DER in PEM), appended. 0 or ORIBI_ENOMEM. */
int oribi__acme_request_make(const struct oribi_acme_line *line, struct oribi_buf *key, struct oribi_buf *request);

struct oribi__acme_found {
    int64_t begins_s;
    int64_t expires_s;
    char serial[80]; /* hex; "-": longer than that */
    bool has_names;  /* all that the line has */
};

/* Looks at a chain with its key: pair, chain, dates. 0; or ORIBI_EINVAL with what is wrong in `error`. */
int oribi__acme_look(struct oribi_slice chain, struct oribi_slice key, const struct oribi_acme_line *line,
                     struct oribi__acme_found *found, char *error);

/* --- acme_client.c --- */

struct oribi__acme_client {
    const struct oribi__acme_store *store;
    const char *command;   /* the client and its first arguments */
    const char *directory; /* URL */
    const char *user;      /* "": this one */
    char account[PATH_MAX];
    const char *hook; /* that the client's user must be able to run; NULL: none */
    int supervisor_fd;
    int64_t until_ms;
};

/* Makes the account, if its folder has none or `again`. 0; or ORIBI_EINVAL with a reason (ORIBI_ACME_REASON_MAX + 1
 * bytes), ORIBI_ECLOSED: the supervisor has gone. */
int oribi__acme_client_account(struct oribi__acme_client *client, const char *email, bool again, char *reason);

/* Has the certificate issued that the file with the request asks for; it stands beside that as NAME-cert.pem then. Same
 * results; 1: the authority has lost the account. */
int oribi__acme_client_issue(struct oribi__acme_client *client, const char *request, char *reason);

/* The words of a client that has failed, in one line of printable ASCII: of the authority's problem document (RFC 7807)
 * where there is one. Writes at most ORIBI_ACME_REASON_MAX bytes and a NUL. */
void oribi__acme_client_words(struct oribi_slice output, char *reason);

#endif
