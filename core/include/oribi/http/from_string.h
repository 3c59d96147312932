/* Heads that a program has as a string, in one call: what both bindings make HTTP::Parser::XS's interface of. The
 * results are its own, and so are two of the limits: ORIBI_STRING_FIELDS_MAX fields, ORIBI_FIELD_NAME_BYTES_MAX bytes
 * of a name. */
#ifndef ORIBI_HTTP_FROM_STRING_H
#define ORIBI_HTTP_FROM_STRING_H

#include "oribi/http/head.h"
#include "oribi/http/response_head.h"

#include <stddef.h>
#include <sys/types.h>

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
