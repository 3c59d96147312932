/* Bytes: slices, which are borrowed, and growing buffers. Pointers into a buffer die with the next call that may grow
 * it: keep offsets. */
#ifndef ORIBI_BASE_BUF_H
#define ORIBI_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* ---- slice ---- */

/* A borrowed run of bytes. Never NUL-terminated; the function that gives one says how long it lives. */

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

/* ---- buf ---- */

/* A growing byte buffer. Pointers into it die with the next call that may grow it: keep offsets. */

struct oribi_buf {
    char *p;
    size_t len;
    size_t cap;
};

/* All-zero is an empty buffer. Frees the memory and makes it empty again. */
void oribi_buf_deinit(struct oribi_buf *buf);

/* Makes room for `more` bytes after len; returns where they go, or NULL when memory is out (for sizes a peer
 * chooses). */
char *oribi_buf_try_reserve(struct oribi_buf *buf, size_t more);

/* As above for small sizes that are ours: ends the process when memory is out. */
char *oribi_buf_reserve(struct oribi_buf *buf, size_t more);

/* Appends a copy of [p, p+n). Returns 0 or ORIBI_ENOMEM. */
int oribi_buf_try_append(struct oribi_buf *buf, const void *p, size_t n);

/* As above for sizes that are ours, as oribi_buf_reserve(). */
void oribi_buf_append(struct oribi_buf *buf, const void *p, size_t n);

/* Appends a text as printf(3) writes it, without the NUL. For answers to people, of which a part is better than
 * nothing: where memory is out the whole text is missing. */
__attribute__((format(printf, 2, 3))) void oribi_buf_print(struct oribi_buf *buf, const char *format, ...);

/* Drops the first n bytes, moving the rest to the front. */
void oribi_buf_consume(struct oribi_buf *buf, size_t n);

#endif
