/* Incremental, strict request-head parser (RFC 9112 2-6, RFC 9110 5). Pure: bytes in, slices out. */
#ifndef ORIBI_HTTP_PARSER_H
#define ORIBI_HTTP_PARSER_H

#include "oribi/base/limits.h"
#include "oribi/http/head.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* All-zero at the start of each request. */
struct oribi_parser {
    uint32_t pos;        /* private: start of the first line not yet accepted */
    uint32_t scanned;    /* private: bytes of that line already searched */
    uint32_t line_count; /* private: field lines accepted so far */
    uint8_t state;       /* private */
    uint8_t empty_lines; /* private */
    const char *reason;  /* after an error: a few static words saying what was wrong, for the log */
};

/* Feeds [buf, buf+len), which must start at the first byte of the request and, after ORIBI_AGAIN, hold the same
 * bytes plus more (it may have moved). Verdicts do not depend on how the bytes were cut into calls.
 *
 * Returns the length of the head with its final CRLF (> 0) and fills `head`, whose slices point into buf (or into
 * head->joined) and live as long as it; ORIBI_AGAIN; or ORIBI_EBAD, _ETARGET, _EHEAD, _EBODY, _EEXPECT, _ECODING,
 * _EMETHOD, _EVERSION, _ENOMEM with `reason` set and `head` holding what was known (method, target, minor: zero if
 * not reached). Bytes after the head are not looked at. */
ssize_t oribi_parser_head(struct oribi_parser *parser, const struct oribi_limits *limits, const char *buf, size_t len,
                          struct oribi_head *head);

#endif
