/* A borrowed run of bytes. Never NUL-terminated; the function that gives one says how long it lives. */
#ifndef ORIBI_BASE_SLICE_H
#define ORIBI_BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct oribi_slice {
    const char *p;
    size_t n;
};

/* Slice of a string literal. */
#define ORIBI_SLICE(literal) ((struct oribi_slice){(literal), sizeof(literal) - 1})

static inline struct oribi_slice oribi_slice(const char *p, size_t n)
{
    return (struct oribi_slice){p, n};
}

static inline bool oribi_slice_equal(struct oribi_slice a, struct oribi_slice b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

/* Of ASCII alone. */
static inline char oribi_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

/* ASCII-only case folding, as field names and codings need (RFC 9110 5.1); `lower` must already be lower case. */
static inline bool oribi_slice_equal_fold(struct oribi_slice a, struct oribi_slice lower)
{
    if (a.n != lower.n)
        return false;
    for (size_t i = 0; i < a.n; i++)
        if (oribi_lower(a.p[i]) != lower.p[i])
            return false;
    return true;
}

#endif
