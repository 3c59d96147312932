/* Entity-tags (RFC 9110 8.8.3), as conditions and compression read them; private to these. */
#ifndef ORIBI_SRC_HTTP_ETAG_H
#define ORIBI_SRC_HTTP_ETAG_H

#include "oribi/http/syntax.h"

#include <stdint.h>

struct etag {
    struct oribi_slice opaque; /* with its quotes */
    bool weak;
};

/* etagc: %x21 / %x23-7E / obs-text; a backslash is one like others (RFC 9110 8.8.3). */
static inline bool is_etag_char(char c)
{
    uint8_t byte = (uint8_t)c;
    return byte == 0x21 || (byte >= 0x23 && byte != 0x7f);
}

/* Takes an entity-tag off the front of the text; on false the text is unspecified. */
static inline bool take_etag(struct oribi_slice *text, struct etag *tag)
{
    tag->weak = text->n > 2 && text->p[0] == 'W' && text->p[1] == '/';
    const char *start = text->p + (tag->weak ? 2 : 0);
    const char *end = text->p + text->n;
    if (start == end || *start != '"')
        return false;
    const char *p = start + 1;
    while (p < end && is_etag_char(*p))
        p++;
    if (p == end || *p != '"')
        return false;
    p++;
    tag->opaque = oribi_slice(start, (size_t)(p - start));
    *text = oribi_slice(p, (size_t)(end - p));
    return true;
}

/* True where the text is one entity-tag and nothing else. */
static inline bool read_etag(struct oribi_slice text, struct etag *tag)
{
    return text.n && take_etag(&text, tag) && text.n == 0;
}

enum etag_next { ETAG_END, ETAG_ONE, ETAG_BAD /* not the grammar */ };

/* Takes the next entity-tag off a list of them; empty elements are passed over (RFC 9110 5.6.1.2). */
static inline enum etag_next next_etag(struct oribi_slice *list, struct etag *tag)
{
    while (list->n && (is_ows(*list->p) || *list->p == ','))
        *list = oribi_slice(list->p + 1, list->n - 1);
    if (list->n == 0)
        return ETAG_END;
    if (!take_etag(list, tag))
        return ETAG_BAD;
    while (list->n && is_ows(*list->p))
        *list = oribi_slice(list->p + 1, list->n - 1);
    return list->n == 0 || *list->p == ',' ? ETAG_ONE : ETAG_BAD;
}

#endif
