/* The first line of a request head; private to the parser. */
#ifndef ORIBI_HTTP_REQUEST_LINE_H
#define ORIBI_HTTP_REQUEST_LINE_H

#include "oribi/base/limits.h"
#include "oribi/http/head.h"

#include "http/head_private.h"

#include <stddef.h>
#include <stdint.h>

/* Offsets from the line's first byte. */
struct request_line {
    size_t method_len;
    size_t target;
    size_t target_len;
    size_t query; /* of the first `?` from the target's start, or target_len */
    size_t len;   /* with CRLF */
    uint8_t minor;
};

/* Scans the request line that begins at p; *scanned of its bytes are known to be good. Returns 0 with `line` filled,
 * ORIBI_AGAIN with *scanned advanced, or ORIBI_EBAD, _ETARGET, _EVERSION with `fault` set. Every verdict hangs on the
 * first bytes that allow it, so waiting for more cannot change it. */
int oribi__request_line_scan(const char *p, size_t n, uint32_t *scanned, const struct oribi_limits *limits,
                             struct request_line *line, struct oribi_fault *fault);

/* Fills the request line's part of `head`, and the authority of a target that has one, RFC 9112 3.2. Returns 0, or
 * ORIBI_EBAD or _EMETHOD with `fault` set. */
int oribi__request_line_take(const char *p, const struct request_line *line, const struct oribi_limits *limits,
                             struct oribi_head *head, struct head_facts *facts, struct oribi_fault *fault);

#endif
