/* See page.h. */
#define _GNU_SOURCE
#include "page.h"
#include <stdio.h>
#include <string.h>

enum { PATTERN_BYTES = 160 };

struct entity {
    const char *text;
    char byte;
};

static const struct entity ENTITIES[] = {{"&#39;", '\''}, {"&#x27;", '\''}, {"&quot;", '"'},
                                         {"&lt;", '<'},   {"&gt;", '>'},    {"&amp;", '&'}};

/* Decodes one character; returns how many bytes it took. */
static size_t decode(const char *at, const char *end, char *byte)
{
    for (size_t i = 0; *at == '&' && i < sizeof(ENTITIES) / sizeof(ENTITIES[0]); i++) {
        size_t n = strlen(ENTITIES[i].text);
        if ((size_t)(end - at) >= n && memcmp(at, ENTITIES[i].text, n) == 0) {
            *byte = ENTITIES[i].byte;
            return n;
        }
    }
    *byte = *at;
    return 1;
}

static int copy_decoded(const char *from, const char *to, char *text, size_t text_bytes)
{
    size_t n = 0;
    while (from < to && n + 1 < text_bytes)
        from += decode(from, to, &text[n++]);
    text[n] = '\0';
    return (int)n;
}

/* Finds attribute="value" inside [tag, end). */
static const char *find_attribute(const char *tag, const char *end, const char *attribute, const char *value)
{
    char pattern[PATTERN_BYTES];
    int n = snprintf(pattern, sizeof(pattern), " %s=\"%s%s", attribute, value, *value ? "\"" : "");
    const char *at = memmem(tag, (size_t)(end - tag), pattern, (size_t)n);
    return at ? at + n : NULL;
}

/* The next tag of that name with that attribute; *end becomes its '>'. */
static const char *find_tag(const char *html, size_t len, const char *name, const char *attribute, const char *value,
                            const char **end)
{
    char pattern[PATTERN_BYTES];
    int n = snprintf(pattern, sizeof(pattern), "<%s", name);
    const char *stop = html + len;
    for (const char *at = html; (at = memmem(at, (size_t)(stop - at), pattern, (size_t)n)); at += n) {
        *end = memchr(at, '>', (size_t)(stop - at));
        if (*end && find_attribute(at, *end, attribute, value))
            return at;
    }
    return NULL;
}

bool page_has(const char *html, size_t len, const char *name, const char *attribute, const char *value)
{
    const char *end;
    return find_tag(html, len, name, attribute, value, &end) != NULL;
}

int page_text(const char *html, size_t len, const char *id, char *text, size_t text_bytes)
{
    const char *end = NULL;
    if (!find_tag(html, len, "", "id", id, &end))
        return -1;
    const char *to = memchr(end, '<', (size_t)(html + len - end));
    if (!to)
        return -1;
    const char *from = end + 1;
    while (from < to && strchr(" \r\n\t", *from))
        from++;
    while (to > from && strchr(" \r\n\t", to[-1]))
        to--;
    return copy_decoded(from, to, text, text_bytes);
}

int page_value(const char *html, size_t len, const char *name, const char *attribute, const char *value,
               const char *wanted, char *text, size_t text_bytes)
{
    const char *end;
    const char *tag = find_tag(html, len, name, attribute, value, &end);
    const char *from = tag ? find_attribute(tag, end, wanted, "") : NULL;
    const char *to = from ? memchr(from, '"', (size_t)(end - from)) : NULL;
    return to ? copy_decoded(from, to, text, text_bytes) : -1;
}
