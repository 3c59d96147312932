/* The protocol between a supervisor and the program that asks an authority for certificates: `oribi-frontend --acme`,
 * a child of the supervisor that does one thing and ends (frontend/acme.h). Its standard input is a SOCK_SEQPACKET
 * socket to the supervisor, its standard error the log. It may block: nobody waits for it but timers.
 *
 * The supervisor's first message, LOOK or ORDER, comes with the descriptor of a text of records (frontend_protocol.h):
 *
 *   dir            absolute path (oribi_acme_dir()); made where it is missing
 *   directory      URL of the authority's directory
 *   command        the client, split at spaces: `uacme`
 *   user           of the client, where the server was started as root; empty: this one
 *   clock          seconds that are added to the system's clock; for tests
 *   order I        number of the certificate that is asked for; only with ORDER
 *   certificate    one for each certificate, in the order of the option: its line, as oribi_acme_read() has it
 *
 * Then, each a message of at most ORIBI_ACME_MESSAGE_MAX bytes, the kind in the first one:
 *
 *   program    FACTS "I BEGINS EXPIRES FAILURES TRIED SERIAL STATE REASON": one for each certificate; after LOOK, and
 *              after an ORDER for that certificate alone. SERIAL: in hex, "-": none. STATE: one of none (no file),
 *              good, names (others than the line's), bad (no pair, unreadable). REASON: the last failure, or what is
 *              wrong; to the end of the message
 *   program    BEGIN "TOKEN AUTHORIZATION": to be answered under /.well-known/acme-challenge/TOKEN
 *   supervisor READY: all frontends answer so; or FAILED: they do not, "why"
 *   program    END "TOKEN": not any more. The supervisor forgets all tokens when the program ends
 *   program    DONE: the end of a look; of an order, the new certificate stands in its file; or FOUND: one that another
 *              process has ordered meanwhile stands there
 *   program    REFUSED "why": the order has failed, one line: what the authority said and what to do; or BUSY: another
 *              process asks in this folder
 *
 * BUSY after a look comes behind its FACTS.
 *
 * A program that ends without DONE, FOUND, REFUSED or BUSY has failed. */
#ifndef ORIBI_WORKER_ACME_PROTOCOL_H
#define ORIBI_WORKER_ACME_PROTOCOL_H

enum {
    ORIBI_ACME_MESSAGE_MAX = 2048,
    ORIBI_ACME_TOKENS_MAX = 128,         /* at a time: more than a certificate has names */
    ORIBI_ACME_REASON_MAX = 500,         /* bytes of a reason */
    ORIBI_ACME_ORDER_MS = 5 * 60 * 1000, /* of an order; then the client is ended, and the order has failed */
    ORIBI_ACME_LOOK_MS = 20 * 1000,
};

enum {
    ORIBI_ACME_TOLD_LOOK = 'L',
    ORIBI_ACME_TOLD_ORDER = 'O',
    ORIBI_ACME_TOLD_READY = 'y',
    ORIBI_ACME_TOLD_FAILED = 'n',
    ORIBI_ACME_SAYS_FACTS = 'F',
    ORIBI_ACME_SAYS_BEGIN = 'b',
    ORIBI_ACME_SAYS_END = 'e',
    ORIBI_ACME_SAYS_DONE = 'D',
    ORIBI_ACME_SAYS_FOUND = 'd',
    ORIBI_ACME_SAYS_REFUSED = 'X',
    ORIBI_ACME_SAYS_BUSY = 'B',
};

#endif
