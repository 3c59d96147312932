/* Strict reader of response heads (RFC 9112 4, 5), for programs that are clients. Pure: bytes in, slices out. */
#ifndef ORIBI_HTTP_RESPONSE_HEAD_H
#define ORIBI_HTTP_RESPONSE_HEAD_H

#include "oribi/base/limits.h"
#include "oribi/http/head.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

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

#endif
