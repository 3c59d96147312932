/* Chunked transfer coding (RFC 9112 7.1): of requests, and of what an application has framed itself. */
#ifndef ORIBI_HTTP_CHUNKED_H
#define ORIBI_HTTP_CHUNKED_H

#include "oribi/base/buf.h"
#include "oribi/base/limits.h"
#include "oribi/http/head.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- chunked ---- */

/* Chunked transfer coding (RFC 9112 7.1): strict incremental decoder, and the few bytes an encoder needs. */

/* All-zero at the start of a body. */
struct oribi_chunked {
    int64_t body_len;          /* decoded bytes so far */
    const char *reason;        /* after an error */
    struct oribi_buf trailers; /* the trailer section so far, for oribi_trailers_read(); the caller frees it */
    uint64_t chunk_left;       /* private from here on */
    uint32_t ext_len;
    uint32_t trailer_len;
    uint32_t overhead_len;
    uint16_t trailer_count;
    uint8_t digits;
    uint8_t zeros;
    uint8_t state;
    bool done; /* public: the empty line after the trailer section was read */
};

/* Decodes in place: body bytes found in [buf, buf+*len) are moved to its front. On return *len is how many decoded
 * bytes stand there and *used how many input bytes were taken (less than the input only when the body ended inside
 * it: the rest, left where it was at buf+*used, is the next request). Returns 0 (body->done tells whether the body
 * ended), or ORIBI_EBAD (grammar), ORIBI_EBODY (over body_bytes_max), ORIBI_EHEAD (trailers too long or too many).
 * Cost per byte is bounded: overhead beyond 64 KiB that is more than eight times the body so far is ORIBI_EBAD.
 * Trailer fields are validated like head fields and kept, as they came, in body->trailers; ORIBI_ENOMEM when there
 * is no room for them. */
int oribi_chunked_decode(struct oribi_chunked *body, const struct oribi_limits *limits, char *buf, size_t *len,
                         size_t *used);

/* Room for a chunk's size line. */
enum { ORIBI_CHUNK_HEAD_CAP = 20 };

/* Writes `size` (> 0) in hex and CRLF to dst; returns the length. */
size_t oribi_chunk_head(char dst[ORIBI_CHUNK_HEAD_CAP], uint64_t size);

#define ORIBI_CHUNK_TAIL      ORIBI_SLICE("\r\n")
#define ORIBI_CHUNK_LAST      ORIBI_SLICE("0\r\n\r\n")
#define ORIBI_CHUNK_TAIL_LAST ORIBI_SLICE("\r\n0\r\n\r\n")

/* ---- unframe ---- */

/* Bodies that an application has framed itself: it has given Transfer-Encoding: chunked, and writes chunk sizes and the
 * last chunk with its content. The framing is taken off here, by the decoder that reads requests; the server frames the
 * content anew, as the connection needs it. Trailer fields of the application are dropped (RFC 9110 6.5.1 allows
 * it). */

/* All-zero at the start of a body. */
struct oribi_unframe {
    struct oribi_chunked chunked; /* private */
    const char *reason;           /* after an error: static words */
};

/* Takes the framing off the next bytes of the body, in place: on return *len bytes of content stand at buf. 0; or
 * ORIBI_EAPP when they are not framed as RFC 9112 7.1 says, or stand behind the last chunk. After an error there is no
 * way on: every further call gives it again. */
int oribi_unframe(struct oribi_unframe *body, char *buf, size_t *len);

/* At the end of the body: 0, or ORIBI_EAPP when its last chunk has not come. */
int oribi_unframe_end(struct oribi_unframe *body);

void oribi_unframe_deinit(struct oribi_unframe *body);

#endif
