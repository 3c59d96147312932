/* The head of an answer as a worker has written it, read again by the frontend: strict (RFC 9112 4, 5, 6), since an
 * application that has taken its socket may have written anything. Pure: bytes in, slices out. */
#ifndef ORIBI_HTTP_ANSWER_H
#define ORIBI_HTTP_ANSWER_H

#include "oribi/base/limits.h"
#include "oribi/http/response.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

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

#endif
