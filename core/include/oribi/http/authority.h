/* Host and port of a Host field or of an absolute-form target: uri-host [ ":" *DIGIT ], RFC 9110 7.2 and RFC 3986
 * 3.2. */
#ifndef ORIBI_HTTP_AUTHORITY_H
#define ORIBI_HTTP_AUTHORITY_H

#include "oribi/base/slice.h"

#include <stdbool.h>

/* Splits `text`, of which `readable` >= text.n bytes may be read: more lets short names be checked in one step.
 * *host keeps the brackets of an IP literal and may be empty, *port holds the digits behind the colon and may be
 * empty; both point into text. Strict: percent-encoding must be whole, an IPv6 address must be one, userinfo and
 * zone identifiers are refused. Returns 0 or ORIBI_EBAD. */
int oribi_authority_parse(struct oribi_slice text, size_t readable, struct oribi_slice *host, struct oribi_slice *port);

#endif
