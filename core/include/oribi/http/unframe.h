/* Bodies that an application has framed itself: it has given Transfer-Encoding: chunked, and writes chunk sizes and the
 * last chunk with its content. The framing is taken off here, by the decoder that reads requests; the server frames the
 * content anew, as the connection needs it. Trailer fields of the application are dropped (RFC 9110 6.5.1 allows
 * it). */
#ifndef ORIBI_HTTP_UNFRAME_H
#define ORIBI_HTTP_UNFRAME_H

#include "oribi/http/chunked.h"

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
