/* Heads of answers, read: for programs that are clients (response_head.c), for the frontend (answer.c), and heads that
 * a program has as a string (from_string.c). */
#ifndef ORIBI_HTTP_RESPONSE_HEAD_H
#define ORIBI_HTTP_RESPONSE_HEAD_H

#include "oribi/base/limits.h"
#include "oribi/http/head.h"
#include "oribi/http/response.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- response_head ---- */

/* Strict reader of response heads (RFC 9112 4, 5), for programs that are clients. Pure: bytes in, slices out. */

struct oribi_response_head {
    uint16_t status;           /* 100 … 999 */
    uint8_t minor;             /* 0 or 1 (1.2 … 1.9 are treated as 1) */
    struct oribi_slice reason; /* as it came; may be empty */
    uint32_t field_count;
    struct oribi_field fields[ORIBI_FIELDS_CAP]; /* all of them in their order, repeats as they came */
};

/* Reads the head at the front of [buf, buf+len). Of `limits` head_bytes_max and fields_max count.
 *
 * Returns its length with the final CRLF (> 0) and fills `head`, whose slices point into buf and live as long as it;
 * ORIBI_AGAIN when these bytes may become a head; or, with `fault` set and `head` unspecified, ORIBI_EBAD, ORIBI_EHEAD
 * (a maximum), ORIBI_EVERSION (the major version is not 1). More bytes behind these never change a length or an error.
 * Bytes behind the head are not looked at.
 *
 * Lines end with CRLF; folded lines are refused. So is what leaves open where the body ends: a Content-Length that is
 * no number of at most 2^63 - 1 or comes twice, Transfer-Encoding beside it, twice or in HTTP/1.0. */
ssize_t oribi_response_head_read(const struct oribi_limits *limits, const char *buf, size_t len,
                                 struct oribi_response_head *head, struct oribi_fault *fault);

/* ---- answer ---- */

/* The head of an answer as a worker has written it, read again by the frontend: strict (RFC 9112 4, 5, 6), since an
 * application that has taken its socket may have written anything. Pure: bytes in, slices out. */

struct oribi_answer {
    int status; /* 100 … 999 */
    uint32_t count;
    struct oribi_header *headers; /* the caller's, room for `room` of them; all fields of the head as they came */
    uint32_t room;
    enum oribi_framing framing; /* of the body that follows; _CLOSE: until the end of the connection */
    int64_t content_length;     /* what Content-Length says, also where no body follows; -1: nothing */
    bool closes;                /* no other answer can follow on this connection */
    bool switches;              /* 101, or 2xx to CONNECT: what follows are no longer messages */
    const char *reason;         /* after ORIBI_EBAD, ORIBI_ELIMIT: static words */
};

/* Reads [p, p+n), which begins with the first byte of an answer. `is_head`: it answers HEAD. Sets everything but
 * headers and room, which the caller has set. Returns the length of the head with its final CRLF; ORIBI_AGAIN;
 * ORIBI_EBAD; or ORIBI_ELIMIT: more than ORIBI_RESPONSE_HEAD_BYTES_MAX bytes or `room` fields. */
ssize_t oribi_answer_head(const char *p, size_t n, bool is_head, struct oribi_answer *answer);

/* ---- from_string ---- */

/* Heads that a program has as a string, in one call: what both bindings make HTTP::Parser::XS's interface of. The
 * results are its own, and so are two of the limits: ORIBI_STRING_FIELDS_MAX fields, ORIBI_FIELD_NAME_BYTES_MAX bytes
 * of a name. */

enum { ORIBI_STRING_BROKEN = -1, ORIBI_STRING_INCOMPLETE = -2 };

/* Parses the request head at the front of [p, p+n), as strictly as the server does. Bodies of any length and CONNECT
 * are taken, a head or target may have ORIBI_HEAD_BYTES_CAP bytes. Returns the head's length and fills `head`, to be
 * given to oribi_head_release(); or ORIBI_STRING_BROKEN, whatever the server would answer, or ORIBI_STRING_INCOMPLETE,
 * and `head` holds nothing. A target with a host makes a Host field where there is none, beyond the maximum of
 * fields. */
ssize_t oribi_from_string_request(const char *p, size_t n, struct oribi_head *head);

/* Reads a response's head as oribi_from_string_request() reads a request's; see oribi_response_head_read(). Nothing is
 * to be released. */
ssize_t oribi_from_string_response(const char *p, size_t n, struct oribi_response_head *head);

#endif
