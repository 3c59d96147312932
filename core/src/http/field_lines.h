/* Field lines, RFC 9112 5, one after the other: the one place where their grammar is decided for requests and responses
 * alike. Private to the readers of heads. */
#ifndef ORIBI_HTTP_FIELD_LINES_H
#define ORIBI_HTTP_FIELD_LINES_H

#include "http/fields_private.h"
#include "oribi/http/ows.h"
#include "oribi/base/limits.h"
#include "oribi/http/head.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* How far a head's field lines are known to be good. */
struct field_lines {
    uint32_t pos;     /* of the first line that is not yet accepted */
    uint32_t scanned; /* bytes of that line already searched */
    uint32_t count;   /* lines accepted */
};

/* Accepts the lines of [buf, buf+n) from lines->pos on, up to the empty one. Stores them at fields[count …], as they
 * came, unless `fields` is NULL. Returns the head's length with the empty line, ORIBI_AGAIN, or ORIBI_EBAD or _EHEAD
 * with `fault` set. A fault is found at the same byte however the input is cut. */
ssize_t oribi__field_lines_accept(struct field_lines *lines, const struct oribi_limits *limits, const char *buf,
                                  size_t n, struct oribi_field *fields, struct oribi_fault *fault);

static inline uint32_t oribi__fields_max(const struct oribi_limits *limits)
{
    return limits->fields_max < ORIBI_FIELDS_CAP ? limits->fields_max : ORIBI_FIELDS_CAP;
}

/* Not inline: nearly all values have one space in front and none behind. */
struct oribi_slice oribi__field_strip(const char *p, const char *end);

/* Fills `field` from the line [line, end); `readable` says that FIELD_READ_BYTES may be read from its start. Returns
 * its id. */
static inline uint32_t oribi__field_take(struct oribi_field *field, const char *line, const char *colon,
                                         const char *end, bool readable)
{
    size_t name_len = (size_t)(colon - line);
    uint32_t id = readable ? field_find_readable(line, name_len) : oribi_field_find(line, name_len);
    field->name = line;
    field->value = colon + 2;
    field->value_len = (uint32_t)(end - colon - 2);
    field->name_len = (uint16_t)name_len;
    field->id = (uint16_t)id;
    /* Controls are out of the question, so what is not above SP is white space, or the CR of an empty value. */
    if (colon[1] != ' ' || (uint8_t)colon[2] <= ' ' || (uint8_t)end[-1] <= ' ') {
        struct oribi_slice value = oribi__field_strip(colon + 1, end);
        field->value = value.p;
        field->value_len = (uint32_t)value.n;
    }
    return id;
}

#endif
