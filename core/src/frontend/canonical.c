/* Writing heads anew; see the header. */
#include "frontend/canonical.h"

#include "oribi/base/error.h"
#include "oribi/http/syntax.h"

#include <string.h>

static char *put(char *at, const char *p, size_t n)
{
    memcpy(at, p, n);
    return at + n;
}

#define PUT(at, literal) put((at), (literal), sizeof(literal) - 1)

static bool is_named(const struct oribi_field *field, struct oribi_slice lower)
{
    return oribi_slice_equal_fold(oribi_slice(field->name, field->name_len), lower);
}

/* Fields of the client's connection, and those that are written anew. */
static bool is_dropped(const struct oribi_field *field)
{
    switch (field->name_len) {
    case 2:
        return is_named(field, ORIBI_SLICE("te"));
    case 6:
        return is_named(field, ORIBI_SLICE("expect"));
    case 7:
        return is_named(field, ORIBI_SLICE("upgrade"));
    case 10:
        return is_named(field, ORIBI_SLICE("connection")) || is_named(field, ORIBI_SLICE("keep-alive"));
    case 14:
        return is_named(field, ORIBI_SLICE("content-length"));
    case 16:
        return is_named(field, ORIBI_SLICE("proxy-connection"));
    case 17:
        return is_named(field, ORIBI_SLICE("transfer-encoding"));
    default:
        return false;
    }
}

static char *put_field(char *at, const struct oribi_field *field)
{
    at = put(at, field->name, field->name_len);
    at = PUT(at, ": ");
    at = put(at, field->value, field->value_len);
    return PUT(at, "\r\n");
}

int oribi_canonical_framing(struct oribi_buf *dst, int64_t body_len, bool chunked)
{
    char text[64];
    char *at = text;
    if (chunked) {
        at = PUT(at, "Transfer-Encoding: chunked\r\n");
    } else if (body_len >= 0) {
        at = PUT(at, "Content-Length: ");
        at += put_decimal(at, (uint64_t)body_len);
        at = PUT(at, "\r\n");
    }
    at = PUT(at, "\r\n");
    return oribi_buf_try_append(dst, text, (size_t)(at - text));
}

int oribi_canonical_head(struct oribi_buf *dst, const struct oribi_head *head, int64_t body_len, bool chunked)
{
    const struct oribi_field *upgrade = NULL;
    size_t room = head->method.n + head->target.n + 64;
    for (uint32_t i = 0; i < head->field_count; i++)
        room += head->fields[i].name_len + (size_t)head->fields[i].value_len + 4;
    char *start = oribi_buf_try_reserve(dst, room);
    if (!start)
        return ORIBI_ENOMEM;
    char *at = put(start, head->method.p, head->method.n);
    at = PUT(at, " ");
    at = put(at, head->target.p, head->target.n);
    if (head->minor == 0)
        at = PUT(at, " HTTP/1.0\r\nConnection: keep-alive\r\n");
    else
        at = PUT(at, " HTTP/1.1\r\n");
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct oribi_field *field = &head->fields[i];
        if (!is_dropped(field))
            at = put_field(at, field);
        else if (head->upgrade && is_named(field, ORIBI_SLICE("upgrade")))
            upgrade = field;
    }
    if (upgrade) {
        at = PUT(at, "Connection: upgrade\r\n");
        at = put_field(at, upgrade);
    }
    dst->len += (size_t)(at - start);
    return oribi_canonical_framing(dst, body_len, chunked);
}

bool oribi_canonical_is_safe(struct oribi_slice method)
{
    static const struct oribi_slice safe[] = {{"GET", 3}, {"HEAD", 4}, {"OPTIONS", 7}, {"TRACE", 5}};
    for (size_t i = 0; i < sizeof(safe) / sizeof(safe[0]); i++)
        if (oribi_slice_equal(method, safe[i]))
            return true;
    return false;
}
