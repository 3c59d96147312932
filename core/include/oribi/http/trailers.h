/* Fields behind a chunked body (RFC 9112 7.1.2), for applications that ask for them. They are never merged with the
 * head's: what a trailer could say about framing, routing, access or content came too late to be believed (RFC 9110
 * 6.5.1). */
#ifndef ORIBI_HTTP_TRAILERS_H
#define ORIBI_HTTP_TRAILERS_H

#include "oribi/http/head.h"

#include <stdint.h>

/* All-zero is none. */
struct oribi_trailers {
    /* names in lower case and unique, values of repeats joined with ", "; every id is ORIBI_FIELD_OTHER */
    struct oribi_field *fields;
    uint32_t count;
    uint32_t dropped_count; /* fields left out */
};

/* Reads a trailer section that oribi_chunked_decode() has validated and kept: lines with CRLF, without the empty
 * line at the end. Left out are all fields of the core's table, those that RFC 9110 forbids or that speak about the
 * message's content, names with `_` and `Proxy`. Borrows text; gives the trailers, free them with
 * oribi_trailers_release(). 0 or ORIBI_ENOMEM. */
int oribi_trailers_read(struct oribi_slice text, struct oribi_trailers *trailers);

void oribi_trailers_release(struct oribi_trailers *trailers);

#endif
