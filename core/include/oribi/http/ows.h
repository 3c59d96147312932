/* Optional white space, RFC 9110 5.6.3; private to the parsers. */
#ifndef ORIBI_HTTP_OWS_H
#define ORIBI_HTTP_OWS_H

#include "oribi/base/slice.h"

#include <stdbool.h>

static inline bool is_ows(char c)
{
    return c == ' ' || c == '\t';
}

/* [p, end) without the white space at both ends. */
static inline struct oribi_slice strip_ows(const char *p, const char *end)
{
    while (p < end && is_ows(*p))
        p++;
    while (end > p && is_ows(end[-1]))
        end--;
    return oribi_slice(p, (size_t)(end - p));
}

#endif
