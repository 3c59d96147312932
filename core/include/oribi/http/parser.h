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
    struct oribi_fault fault; /* after an error: what was wrong, for the log */
    uint32_t pos;             /* private: start of the first line not yet accepted */
    uint32_t scanned;         /* private: bytes of that line already searched */
    uint32_t line_count;      /* private: field lines accepted so far */
    uint8_t state;            /* private */
    uint8_t empty_lines;      /* private */
};

/* Feeds [buf, buf+len), which must start at the first byte of the request and, after ORIBI_AGAIN, hold the same
 * bytes plus more (it may have moved). Verdicts do not depend on how the bytes were cut into calls.
 *
 * Returns the length of the head with its final CRLF (> 0) and fills `head`, whose slices point into buf (or into
 * head->joined) and live as long as it; ORIBI_AGAIN; or ORIBI_EBAD, _ETARGET, _EHEAD, _EBODY, _EEXPECT, _ECODING,
 * _EMETHOD, _EVERSION, _ENOMEM with `fault` set and `head` holding what was known: method, target and minor when the
 * whole request line was well formed, is_head also when it was not. Bytes after the head are not looked at. */
ssize_t oribi_parser_head(struct oribi_parser *parser, const struct oribi_limits *limits, const char *buf, size_t len,
                          struct oribi_head *head);

/* The first line of [buf, buf+len) as it came, without its end; empty lines in front of it are passed over. It may be
 * no request line at all, and is empty when there is nothing. */
struct oribi_slice oribi_parser_first_line(const char *buf, size_t len);

#endif
