/* Percent-decoding (RFC 3986 2.1) for bindings whose interface wants a decoded path. */
#ifndef ORIBI_HTTP_PERCENT_H
#define ORIBI_HTTP_PERCENT_H

#include "oribi/base/slice.h"

#include <sys/types.h>

/* Decodes `in` into dst, which must hold in.n bytes and may be in.p itself. `+` stays. Returns the decoded length,
 * or ORIBI_EBAD for a `%` not followed by two hex digits. */
ssize_t oribi_percent_decode(struct oribi_slice in, char *dst);

#endif
