/* A request head written anew, as a canonical one that no reader can take for anything else: what a worker gets by
 * a channel. Pure. */
#ifndef ORIBI_FRONTEND_CANONICAL_H
#define ORIBI_FRONTEND_CANONICAL_H

#include "oribi/base/buf.h"
#include "oribi/http/head.h"

#include <stdbool.h>
#include <stdint.h>

/* Appends the head to dst: the request line; of HTTP/1.0 it is one that keeps the connection (it may have no Host, and
 * its answer cannot be chunked); the fields as they came, but for those that concern the client's connection alone
 * (Connection, Keep-Alive, Proxy-Connection, TE, Expect, and Upgrade unless it is asked for) and the framing; then
 * Content-Length, or `chunked`; the empty line. body_len < 0: no body is announced. 0 or ORIBI_ENOMEM. */
int oribi_canonical_head(struct oribi_buf *dst, const struct oribi_head *head, int64_t body_len, bool chunked);

/* Appends the end of such a head alone: framing and the empty line. For what stands in dst already. */
int oribi_canonical_framing(struct oribi_buf *dst, int64_t body_len, bool chunked);

/* May a request be made twice where nothing was answered (RFC 9110 9.2.1)? */
bool oribi_canonical_is_safe(struct oribi_slice method);

#endif
