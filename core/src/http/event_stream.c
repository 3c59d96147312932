/* Server-sent events; see the header. */
#include "oribi/http/event_stream.h"

#include "oribi/base/error.h"
#include "oribi/http/syntax.h"

#include <string.h>

enum { NUMBER_CAP = 20, HASH_DIGITS = 8, POSITION_CAP = 2 * NUMBER_CAP + 2 };

static char *put(char *at, struct oribi_slice text)
{
    if (text.n)
        memcpy(at, text.p, text.n);
    return at + text.n;
}

/* --- events --- */

/* Takes the first line off; false: that was the last one. *lf is the next line feed, so that none is looked for twice,
 * however many lines end with CR. */
static bool next_line(struct oribi_slice *rest, const char **lf, struct oribi_slice *line)
{
    const char *end = rest->p + rest->n;
    if (*lf && *lf < rest->p)
        *lf = rest->n ? memchr(rest->p, '\n', rest->n) : NULL;
    const char *stop = *lf ? *lf : end;
    const char *cr = stop > rest->p ? memchr(rest->p, '\r', (size_t)(stop - rest->p)) : NULL;
    const char *at = cr ? cr : stop;
    *line = oribi_slice(rest->p, (size_t)(at - rest->p));
    if (at == end)
        return false;
    at += *at == '\r' && end - at > 1 && at[1] == '\n' ? 2 : 1;
    *rest = oribi_slice(at, (size_t)(end - at));
    return true;
}

static const char *first_lf(struct oribi_slice data)
{
    return data.n ? memchr(data.p, '\n', data.n) : NULL;
}

static size_t count_lines(struct oribi_slice data)
{
    struct oribi_slice line;
    const char *lf = first_lf(data);
    size_t count = 1;
    while (next_line(&data, &lf, &line))
        count++;
    return count;
}

int oribi_event_write(struct oribi_buf *out, struct oribi_slice name, struct oribi_slice data)
{
    static const struct oribi_slice event_field = {"event: ", 7};
    static const struct oribi_slice data_field = {"data: ", 6};
    static const char nothing[] = "";
    if (!data.p)
        data = oribi_slice(nothing, 0);
    size_t room = event_field.n + name.n + 2 + data.n + count_lines(data) * (data_field.n + 1);
    char *at = oribi_buf_try_reserve(out, room);
    if (!at)
        return ORIBI_ENOMEM;
    char *begin = at;
    if (name.n) {
        at = put(put(at, event_field), name);
        *at++ = '\n';
    }
    const char *lf = first_lf(data);
    for (bool more = true; more;) {
        struct oribi_slice line;
        more = next_line(&data, &lf, &line);
        at = put(put(at, data_field), line);
        *at++ = '\n';
    }
    *at++ = '\n';
    out->len += (size_t)(at - begin);
    return 0;
}

/* --- ids --- */

uint32_t oribi_event_hash(uint32_t hash, struct oribi_slice name)
{
    hash = hash ? hash : 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < name.n; i++)
        hash = (hash ^ (uint8_t)name.p[i]) * 16777619u;
    return hash * 16777619u; /* a name's end, as a byte 0 */
}

static char *put_number(char *at, uint64_t number)
{
    char digits[NUMBER_CAP];
    size_t n = 0;
    do
        digits[n++] = (char)('0' + number % 10);
    while (number /= 10);
    while (n)
        *at++ = digits[--n];
    return at;
}

static char *put_position(char *at, struct oribi_event_position position, uint64_t epoch)
{
    if (position.epoch == 0)
        return at;
    if (position.epoch != epoch) {
        at = put_number(at, position.epoch);
        *at++ = '-';
    }
    return put_number(at, position.offset);
}

int oribi_event_id_write(struct oribi_buf *out, uint32_t hash, const struct oribi_event_position *positions,
                         uint32_t count)
{
    static const char digits[] = "0123456789abcdef";
    uint64_t epoch = 0;
    char *at = oribi_buf_try_reserve(out, HASH_DIGITS + 1 + (size_t)count * POSITION_CAP);
    if (!at)
        return ORIBI_ENOMEM;
    char *begin = at;
    for (int shift = 28; shift >= 0; shift -= 4)
        *at++ = digits[hash >> shift & 15];
    for (uint32_t i = 0; i < count; i++) {
        *at++ = i ? ',' : '.';
        at = put_position(at, positions[i], epoch);
        if (positions[i].epoch)
            epoch = positions[i].epoch;
    }
    out->len += (size_t)(at - begin);
    return 0;
}

/* Without leading zeros, so that each number has one text. */
static bool read_number(struct oribi_slice text, uint64_t *number)
{
    uint64_t value = 0;
    if (text.n == 0 || (text.p[0] == '0' && text.n > 1))
        return false;
    for (size_t i = 0; i < text.n; i++) {
        unsigned digit = (unsigned)(uint8_t)text.p[i] - '0';
        if (digit > 9 || value > (UINT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *number = value;
    return true;
}

static struct oribi_slice cut(struct oribi_slice *text, char at)
{
    const char *found = text->n ? memchr(text->p, at, text->n) : NULL;
    size_t n = found ? (size_t)(found - text->p) : text->n;
    struct oribi_slice first = oribi_slice(text->p, n);
    *text = found ? oribi_slice(found + 1, text->n - n - 1) : oribi_slice(NULL, 0);
    return first;
}

static bool read_position(struct oribi_slice text, uint64_t *epoch, struct oribi_event_position *position)
{
    struct oribi_event_position read = {0, 0};
    struct oribi_slice offset = text;
    struct oribi_slice first = cut(&offset, '-');
    *position = read;
    if (text.n == 0)
        return true;
    if (offset.p) {
        if (!read_number(first, epoch) || *epoch == 0)
            return false;
    } else {
        offset = first;
    }
    if (*epoch == 0 || !read_number(offset, &read.offset))
        return false;
    read.epoch = *epoch;
    *position = read;
    return true;
}

static bool read_hash(struct oribi_slice text, uint32_t *hash)
{
    uint32_t value = 0;
    if (text.n != HASH_DIGITS)
        return false;
    for (size_t i = 0; i < text.n; i++) {
        const char c = text.p[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
            return false;
        value = value << 4 | (uint32_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    *hash = value;
    return true;
}

int oribi_event_id_read(struct oribi_slice text, uint32_t hash, struct oribi_event_position *positions, uint32_t count)
{
    struct oribi_event_position read[ORIBI_EVENT_CHANNELS_MAX];
    struct oribi_slice rest = text;
    uint64_t epoch = 0;
    uint32_t got;
    if (count == 0 || count > ORIBI_EVENT_CHANNELS_MAX)
        return ORIBI_EBAD;
    struct oribi_slice first = cut(&rest, '.');
    if (!rest.p) {
        if (count > 1 || first.n == 0 || !read_position(first, &epoch, &read[0]))
            return ORIBI_EBAD;
        positions[0] = read[0];
        return 0;
    }
    if (!read_hash(first, &got) || got != hash)
        return ORIBI_EBAD;
    for (uint32_t i = 0; i < count; i++) {
        if (!rest.p || !read_position(cut(&rest, ','), &epoch, &read[i]))
            return ORIBI_EBAD;
    }
    if (rest.p)
        return ORIBI_EBAD;
    memcpy(positions, read, count * sizeof(*read));
    return 0;
}

/* --- the record --- */

static bool is_plain(char c)
{
    return c > ' ' && c < 0x7f && c != '%';
}

static size_t encoded_len(struct oribi_slice text)
{
    size_t n = text.n;
    for (size_t i = 0; i < text.n; i++)
        n += is_plain(text.p[i]) ? 0 : 2;
    return n;
}

static char *encode(char *at, struct oribi_slice text)
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < text.n; i++) {
        if (is_plain(text.p[i])) {
            *at++ = text.p[i];
            continue;
        }
        *at++ = '%';
        *at++ = digits[(uint8_t)text.p[i] >> 4];
        *at++ = digits[(uint8_t)text.p[i] & 15];
    }
    return at;
}

int oribi_event_record_begin(struct oribi_buf *out, int64_t retry_ms, struct oribi_slice since)
{
    size_t n = NUMBER_CAP + 2 + encoded_len(since);
    if (retry_ms < -1 || retry_ms > ORIBI_EVENT_RETRY_MS_MAX || since.n > ORIBI_EVENT_SINCE_BYTES_MAX)
        return ORIBI_ELIMIT;
    char *at = oribi_buf_try_reserve(out, n);
    if (!at)
        return ORIBI_ENOMEM;
    char *begin = at;
    at = retry_ms < 0 ? put(at, ORIBI_SLICE("-")) : put_number(at, (uint64_t)retry_ms);
    *at++ = ' ';
    at = since.n ? encode(at, since) : put(at, ORIBI_SLICE("-"));
    out->len += (size_t)(at - begin);
    return 0;
}

int oribi_event_record_add(struct oribi_buf *out, struct oribi_slice name)
{
    size_t n = 1 + encoded_len(name);
    if (name.n == 0 || out->len + n > ORIBI_EVENT_RECORD_BYTES_MAX)
        return ORIBI_ELIMIT;
    char *at = oribi_buf_try_reserve(out, n);
    if (!at)
        return ORIBI_ENOMEM;
    *at++ = ' ';
    (void)encode(at, name);
    out->len += n;
    return 0;
}

int oribi_event_record_read(struct oribi_slice text, struct oribi_event_record *record)
{
    struct oribi_slice rest = text;
    struct oribi_slice retry = cut(&rest, ' ');
    struct oribi_slice since = cut(&rest, ' ');
    uint64_t retry_ms = 0;
    bool none = oribi_slice_equal(retry, ORIBI_SLICE("-"));
    if (text.n > ORIBI_EVENT_RECORD_BYTES_MAX || since.n == 0 || rest.n == 0)
        return ORIBI_EBAD;
    if (!none && (!read_number(retry, &retry_ms) || retry_ms > ORIBI_EVENT_RETRY_MS_MAX))
        return ORIBI_EBAD;
    record->retry_ms = none ? -1 : (int64_t)retry_ms;
    record->since = oribi_slice_equal(since, ORIBI_SLICE("-")) ? oribi_slice(NULL, 0) : since;
    record->names = rest;
    return 0;
}

ssize_t oribi_event_record_decode(struct oribi_slice text, char *dst)
{
    ssize_t n = oribi_percent_decode(text, dst);
    return n < 0 ? ORIBI_EBAD : n;
}

ssize_t oribi_event_record_next(struct oribi_slice *names, char *dst)
{
    if (!names->p)
        return 0;
    struct oribi_slice name = cut(names, ' ');
    return name.n ? oribi_event_record_decode(name, dst) : ORIBI_EBAD;
}

/* --- requests --- */

bool oribi_event_stream_is_accepted(struct oribi_slice accept)
{
    while (accept.p) {
        struct oribi_slice range = cut(&accept, ',');
        struct oribi_slice type = cut(&range, ';');
        while (type.n && (*type.p == ' ' || *type.p == '\t'))
            type = oribi_slice(type.p + 1, type.n - 1);
        while (type.n && (type.p[type.n - 1] == ' ' || type.p[type.n - 1] == '\t'))
            type.n--;
        if (oribi_slice_equal_fold(type, ORIBI_SLICE("text/event-stream")))
            return true;
    }
    return false;
}
