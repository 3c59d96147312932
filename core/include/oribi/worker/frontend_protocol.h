/* The protocol between a supervisor and its frontends: the text that a frontend is started with, the first bytes of
 * messages, and the keys of session tickets that all frontends share. The frontend's side is frontend/config.c, the
 * supervisor's supervisor/frontends.c and supervisor/frontend_text.c; both are of one build.
 *
 * The text is of records, each "name length\n", so many bytes, and "\n":
 *
 *   option NAME       a value; lists have a record for each item
 *   local             such records of options, and `folder`, the base of relative paths in them: the local content
 *                     of the newest generation
 *   listener          "fd index hash tls proxy inherited text"
 *   certificate I     the name of a certificate of listener I; then, in this order:
 *   chain, key, ocsp  what its files hold
 *   managed           its host names, comma separated: of a certificate by ACME. Where such a pair cannot be used at
 *                     a begin, a placeholder serves for it; at a renewal it is refused as any other
 *   placeholder       the same names, with no chain and key: a frontend makes a self-signed pair for them
 *   password          of the key, where that is encrypted
 *   strict            nothing: certificates that have expired are refused
 *   client_ca         what that file holds
 *   client_ca_name    what it is called
 *
 * ORIBI_FRONTEND in the environment: "version text control board count take give tickets log access first channels
 * slots slot inbox inbox_write joins joins_write predecessor", numbers, of which text, control, board, take, give,
 * tickets (-1: none), log, access (-1: none), slots (-1: none; worker/frontend_slot.h) and the last five (-1: none;
 * frontend/publish.h) are descriptors. */
#ifndef ORIBI_WORKER_FRONTEND_PROTOCOL_H
#define ORIBI_WORKER_FRONTEND_PROTOCOL_H

#include "oribi/base/buf.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    ORIBI_FRONTEND_PROTOCOL = 7,
    ORIBI_FRONTEND_TEXT_MAX = 64 * 1024 * 1024,
    ORIBI_FRONTEND_LOCAL_MAX = 1024 * 1024,
    ORIBI_FRONTEND_WORD_MAX = 512,
    ORIBI_FRONTEND_FILE_MAX = 1024 * 1024, /* of a certificate, a key, a response */
    ORIBI_FRONTEND_CERTIFICATES_MAX = 256, /* of a listener */
    ORIBI_FRONTEND_PASSWORD_MAX = 1024,
};

/* The first byte of a message on the control socket. */
enum {
    ORIBI_FRONTEND_SAYS_READY = 'Y',
    ORIBI_FRONTEND_SAYS_FAILED = 'E', /* and why */
    ORIBI_FRONTEND_SAYS_TAKEN = 'c',  /* the certificates; a warning may follow */
    ORIBI_FRONTEND_SAYS_REFUSED = 'e',
    ORIBI_FRONTEND_SAYS_LOCAL = 'w',        /* it answers by the last local content that it was told */
    ORIBI_FRONTEND_SAYS_SOCKETS = 'l',      /* its WebSockets are written */
    ORIBI_FRONTEND_SAYS_INBOX = 'i',        /* a process has shut the inbox of publications: it needs another one */
    ORIBI_FRONTEND_TOLD_CERTIFICATES = 'C', /* with a descriptor of such a text */
    ORIBI_FRONTEND_TOLD_DRAIN = 'D',        /* others serve the addresses */
    ORIBI_FRONTEND_TOLD_STOP = 'S',         /* the addresses end: who has connected is served */
    ORIBI_FRONTEND_TOLD_GIVE_UP = 'G',      /* workers end: what waits for them is answered 503 */
    ORIBI_FRONTEND_TOLD_REOPEN = 'R',       /* with a descriptor of the log */
    ORIBI_FRONTEND_TOLD_ACCESS_LOG = 'A',   /* the same of the access log */
    ORIBI_FRONTEND_TOLD_SOCKETS = 'L',      /* with a descriptor of empty memory for rows (frontend_socket_rows.h) */
    ORIBI_FRONTEND_TOLD_INBOX = 'I',        /* with the end of the inbox that the first frontend reads */
    ORIBI_FRONTEND_TOLD_INBOX_WRITE = 'P',  /* with the other end */
    ORIBI_FRONTEND_TOLD_LOCAL = 'W',        /* with a descriptor of what follows `local` in such a text */
};

enum {
    ORIBI_TLS_TICKET_KEYS = 3,       /* current, next, last */
    ORIBI_TLS_TICKET_KEY_BYTES = 80, /* name 16, AES-256 32, HMAC-SHA-256 32 */
};

/* Keys of session tickets (RFC 5077 4, RFC 8446 4.6.1): a mapping that the supervisor writes to and frontends read;
 * `version` is odd while it does. [0] encrypts, the others only decrypt. All zero: no tickets. */
struct oribi_tls_tickets {
    _Atomic uint32_t version;
    uint8_t keys[ORIBI_TLS_TICKET_KEYS][ORIBI_TLS_TICKET_KEY_BYTES];
};

/* Names of the options that local content is made of, up to a NULL. */
extern const char *const oribi__frontend_local_options[];

/* Is this option one of them? */
bool oribi__frontend_is_of_local(struct oribi_slice name);

/* Appends a text of records from memory with this descriptor, which any process may have made: 0, ORIBI_ENOMEM, or
 * ORIBI_EBAD where it is longer than ORIBI_FRONTEND_LOCAL_MAX or no such thing. */
int oribi__frontend_text_read(int fd, struct oribi_buf *out);

/* Sends a message with a descriptor, which stays the caller's. Waits while the socket is full, where it may. 0, or
 * ORIBI_ESYS. */
int oribi__frontend_message_send(int socket_fd, struct oribi_slice message, int passed);

/* Receives a message without waiting. `passed`: the descriptor that has come with it, the caller's from now on; -1:
 * none. Gives the number of bytes, 0: the peer has gone, or a negative code. */
ssize_t oribi__frontend_message_receive(int socket_fd, char *dst, size_t cap, int *passed);

#endif
