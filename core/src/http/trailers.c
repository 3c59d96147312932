/* Trailer fields. One allocation holds the fields and, behind them, their names and joined values, which take no more
 * room than the section itself: a repeat spends at least a name, a colon and CRLF on the two bytes between values. */
#include "oribi/http/head.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/http/fields.h"

#include "oribi/http/syntax.h"

#include <assert.h>
#include <string.h>

/* Beside the core's table, which holds what requests are decided by. Fields with a meaning for the content stay out
 * as well, but for digests, which are made for trailers (RFC 9530 6.2). */
static const char *const forbidden[] = {
    "age",
    "allow",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-location",
    "content-range",
    "date",
    "expires",
    "location",
    "max-forwards",
    "prefer",
    "proxy",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "retry-after",
    "set-cookie",
    "sec-purpose",
    "trailer",
    "vary",
    "warning",
    "www-authenticate",
    "x-http-method-override",
};

struct line {
    struct oribi_slice name;
    struct oribi_slice value;
};

/* Takes the first line off the section. */
static struct line next_line(struct oribi_slice *text)
{
    const char *end = memchr(text->p, '\r', text->n);
    const char *colon = memchr(text->p, ':', text->n);
    assert(colon && end && colon < end); /* the decoder saw to it */
    struct line line = {oribi_slice(text->p, (size_t)(colon - text->p)), {NULL, 0}};
    line.value = strip_ows(colon + 1, end);
    *text = oribi_slice(end + 2, text->n - (size_t)(end + 2 - text->p));
    return line;
}

static bool is_kept(struct oribi_slice name)
{
    if (name.n > ORIBI_FIELD_NAME_BYTES_MAX || memchr(name.p, '_', name.n) ||
        oribi_field_find(name.p, name.n) != ORIBI_FIELD_OTHER)
        return false;
    for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++)
        if (oribi_slice_equal_fold(name, oribi_slice(forbidden[i], strlen(forbidden[i]))))
            return false;
    return true;
}

static char *put(char *out, struct oribi_slice text)
{
    if (text.n)
        memcpy(out, text.p, text.n);
    return out + text.n;
}

static char *put_lower(char *out, struct oribi_slice text)
{
    for (size_t i = 0; i < text.n; i++)
        *out++ = text.p[i] >= 'A' && text.p[i] <= 'Z' ? (char)(text.p[i] | 0x20) : text.p[i];
    return out;
}

/* Eight bytes at a time, whatever the C library's memcmp() does. */
static bool is_same(struct oribi_slice a, struct oribi_slice b)
{
    uint64_t word[2];
    size_t i = 0;
    if (a.n != b.n)
        return false;
    for (; a.n - i >= sizeof(word[0]); i += sizeof(word[0])) {
        memcpy(&word[0], a.p + i, sizeof(word[0]));
        memcpy(&word[1], b.p + i, sizeof(word[1]));
        if (word[0] != word[1])
            return false;
    }
    while (i < a.n && a.p[i] == b.p[i])
        i++;
    return i == a.n;
}

/* Whether a line before this one has its name. Names are in lower case by now: a section of many long names that differ
 * in their last byte costs a multiple of any other one, but a small one. */
static bool is_repeat(const struct line *lines, uint32_t at)
{
    for (uint32_t i = 0; i < at; i++)
        if (is_same(lines[i].name, lines[at].name))
            return true;
    return false;
}

/* Writes the field of the line at `at` with the values of all later lines of its name; returns the end of what it
 * wrote. */
static char *put_field(struct oribi_field *field, const struct line *lines, uint32_t at, uint32_t count, char *out)
{
    struct oribi_slice name = lines[at].name;
    *field = (struct oribi_field){.name = name.p, .name_len = (uint16_t)name.n, .value = out};
    out = put(out, lines[at].value);
    for (uint32_t i = at + 1; i < count; i++) {
        if (!is_same(lines[i].name, name))
            continue;
        out = put(out, ORIBI_SLICE(", "));
        out = put(out, lines[i].value);
    }
    field->value_len = (uint32_t)(out - field->value);
    return out;
}

static uint32_t count_lines(struct oribi_slice text)
{
    uint32_t count = 0;
    for (size_t i = 0; i < text.n; i++)
        count += text.p[i] == '\n';
    return count;
}

int oribi_trailers_read(struct oribi_slice text, struct oribi_trailers *trailers)
{
    *trailers = (struct oribi_trailers){0};
    if (text.n == 0)
        return 0;
    uint32_t line_count = count_lines(text);
    assert(line_count <= ORIBI_FIELDS_CAP); /* likewise the decoder */
    size_t fields_bytes = line_count * sizeof(struct oribi_field);
    char *block = oribi_mem_try_alloc(1, fields_bytes + text.n);
    if (!block)
        return ORIBI_ENOMEM;
    trailers->fields = (struct oribi_field *)block;
    char *out = block + fields_bytes;
    struct line lines[ORIBI_FIELDS_CAP];
    uint32_t count = 0;
    while (text.n > 0) {
        struct line line = next_line(&text);
        if (!is_kept(line.name)) {
            trailers->dropped_count++;
            continue;
        }
        lines[count++] = (struct line){oribi_slice(out, line.name.n), line.value};
        out = put_lower(out, line.name);
    }
    for (uint32_t i = 0; i < count; i++)
        if (!is_repeat(lines, i)) /* else it was joined with the first of its name */
            out = put_field(&trailers->fields[trailers->count++], lines, i, count, out);
    if (trailers->count == 0) {
        oribi_mem_free(block);
        trailers->fields = NULL;
    }
    return 0;
}

void oribi_trailers_release(struct oribi_trailers *trailers)
{
    oribi_mem_free(trailers->fields);
    trailers->fields = NULL;
    trailers->count = 0;
}
