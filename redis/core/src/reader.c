/* Bytes of replies become events. Reading order: line, integer_of, close_frames, leaf, text_line, string, open, typed,
 * oribi_redis_next. */
#include "oribi/redis/reader.h"

#include <assert.h>
#include <string.h>

enum {
    KEEP_BYTES = 256 * 1024, /* a larger buffer is given back when a connection ends */
    FORMAT_BYTES = 4,        /* "txt:" before a verbatim string */
    LIKELY_BYTES = 3,        /* the shortest element: "_ CR LF" */
    LIKELY_MORE = 16,
    SHORT_LINE = 8,   /* bytes of a line looked at one by one */
    SAFE_DIGITS = 18, /* fit a uint64_t whatever they are */
};

void oribi_redis_reader_init(struct oribi_redis_reader *reader, uint64_t string_max, uint64_t count_max)
{
    assert(string_max <= ORIBI_REDIS_STRING_MAX && count_max <= ORIBI_REDIS_COUNT_MAX);
    reader->string_max = string_max ? string_max : ORIBI_REDIS_STRING_MAX;
    reader->count_max = count_max ? count_max : ORIBI_REDIS_COUNT_MAX;
    oribi_redis_reader_reset(reader);
}

void oribi_redis_reader_deinit(struct oribi_redis_reader *reader)
{
    oribi_buf_deinit(&reader->in);
}

void oribi_redis_reader_reset(struct oribi_redis_reader *reader)
{
    if (reader->in.cap > KEEP_BYTES)
        oribi_buf_deinit(&reader->in);
    reader->in.len = reader->at = reader->scanned = 0;
    reader->body = reader->awaited = 0;
    reader->in_body = reader->broken = false;
    reader->depth = 0;
    reader->why = NULL;
}

char *oribi_redis_room(struct oribi_redis_reader *reader, size_t least, size_t *room)
{
    struct oribi_buf *in = &reader->in;
    if (reader->at == in->len) {
        in->len = reader->at = 0;
    } else if (in->cap - in->len < least && reader->at > 0) {
        oribi_buf_consume(in, reader->at);
        reader->at = 0;
    }
    char *p = oribi_buf_try_reserve(in, least);
    *room = p ? in->cap - in->len : 0;
    return p;
}

void oribi_redis_got(struct oribi_redis_reader *reader, size_t n)
{
    assert(n <= reader->in.cap - reader->in.len);
    reader->in.len += n;
}

static int wrong(struct oribi_redis_reader *reader, int error, const char *why)
{
    reader->broken = true;
    reader->why = why;
    return error;
}

/* The first CR in p[from, n), or NULL. Most lines are lengths of few digits, for which a call costs more than they. */
static const char *find_cr(const char *p, size_t from, size_t n)
{
    size_t near = from + SHORT_LINE < n ? from + SHORT_LINE : n;
    for (; from < near; from++)
        if (p[from] == '\r')
            return p + from;
    return from < n ? memchr(p + from, '\r', n - from) : NULL;
}

/* The line at `at`, without its type and CR LF; *behind is where the next begins. */
static int line(struct oribi_redis_reader *reader, struct oribi_slice *text, size_t *behind)
{
    const char *p = reader->in.p + reader->at;
    size_t n = reader->in.len - reader->at;
    const char *cr = find_cr(p, reader->scanned, n);
    if (!cr || (size_t)(cr - p) + 1 == n) {
        reader->scanned = cr ? (size_t)(cr - p) : n;
        if (reader->scanned > ORIBI_REDIS_LINE_MAX + 1)
            return wrong(reader, ORIBI_ELIMIT, "a line is too long");
        return ORIBI_AGAIN;
    }
    size_t length = (size_t)(cr - p) - 1;
    if (length > ORIBI_REDIS_LINE_MAX)
        return wrong(reader, ORIBI_ELIMIT, "a line is too long");
    if (cr[1] != '\n')
        return wrong(reader, ORIBI_EBAD, "a CR without LF");
    *text = oribi_slice(p + 1, length);
    *behind = reader->at + length + 3;
    return 0;
}

/* An int64_t in decimal, with an optional sign; leading zeros are let pass. */
static bool integer_of(struct oribi_slice text, int64_t *value)
{
    bool minus = text.n && text.p[0] == '-';
    size_t i = minus || (text.n && text.p[0] == '+');
    uint64_t found = 0;
    if (i == text.n)
        return false;
    for (; i < text.n; i++) {
        unsigned digit = (unsigned)(unsigned char)text.p[i] - '0';
        if (digit > 9 || (i >= SAFE_DIGITS && found > (UINT64_MAX - digit) / 10))
            return false;
        found = found * 10 + digit;
    }
    if (found > (uint64_t)INT64_MAX + minus)
        return false;
    *value = minus ? (int64_t)(0 - found) : (int64_t)found;
    return true;
}

/* An element is complete: so are the aggregates whose last it was. True: the event belongs to a reply; false: to an
 * attribute, which is not told. */
static bool close_frames(struct oribi_redis_reader *reader, struct oribi_redis_event *event)
{
    bool told = true;
    if (reader->depth > 0)
        told = !reader->frames[reader->depth - 1].dropped;
    while (reader->depth > 0 && --reader->frames[reader->depth - 1].left == 0) {
        reader->depth--;
        if (reader->frames[reader->depth].attribute)
            return told;
    }
    event->ends = reader->depth == 0;
    return told;
}

/* Takes an element that is all there. Returns 1 when it is told, 0 when not. */
static int leaf(struct oribi_redis_reader *reader, struct oribi_redis_event *event, size_t behind)
{
    reader->at = behind;
    reader->scanned = 0;
    reader->awaited = 0;
    return close_frames(reader, event);
}

static bool is_double(struct oribi_slice text)
{
    size_t i = text.n && (text.p[0] == '-' || text.p[0] == '+');
    struct oribi_slice rest = oribi_slice(text.p + i, text.n - i);
    if (oribi_slice_equal(rest, ORIBI_SLICE("inf")) || oribi_slice_equal(rest, ORIBI_SLICE("nan")))
        return true;
    size_t digits = 0;
    for (; i < text.n && text.p[i] >= '0' && text.p[i] <= '9'; i++)
        digits++;
    if (i < text.n && text.p[i] == '.')
        for (i++; i < text.n && text.p[i] >= '0' && text.p[i] <= '9'; i++)
            digits++;
    if (digits == 0)
        return false;
    if (i < text.n && (text.p[i] == 'e' || text.p[i] == 'E')) {
        i++;
        i += i < text.n && (text.p[i] == '-' || text.p[i] == '+');
        size_t from = i;
        while (i < text.n && text.p[i] >= '0' && text.p[i] <= '9')
            i++;
        if (i == from)
            return false;
    }
    return i == text.n;
}

static bool is_big(struct oribi_slice text)
{
    size_t i = text.n && (text.p[0] == '-' || text.p[0] == '+');
    if (i == text.n)
        return false;
    for (; i < text.n; i++)
        if (text.p[i] < '0' || text.p[i] > '9')
            return false;
    return true;
}

/* An element that is its line. */
static int text_line(struct oribi_redis_reader *reader, char type, struct oribi_slice text, size_t behind,
                     struct oribi_redis_event *event)
{
    event->text = text;
    switch (type) {
    case '+':
        event->kind = ORIBI_REDIS_STATUS;
        break;
    case '-':
        event->kind = ORIBI_REDIS_ERROR;
        break;
    case ':':
        event->kind = ORIBI_REDIS_INTEGER;
        if (!integer_of(text, &event->integer))
            return wrong(reader, ORIBI_EBAD, "an integer is none");
        break;
    case ',':
        event->kind = ORIBI_REDIS_DOUBLE;
        if (!is_double(text))
            return wrong(reader, ORIBI_EBAD, "a double is none");
        break;
    case '(':
        event->kind = ORIBI_REDIS_BIG;
        if (!is_big(text))
            return wrong(reader, ORIBI_EBAD, "a big number is none");
        break;
    case '#':
        event->kind = ORIBI_REDIS_BOOLEAN;
        if (text.n != 1 || (text.p[0] != 't' && text.p[0] != 'f'))
            return wrong(reader, ORIBI_EBAD, "a boolean is neither t nor f");
        event->integer = text.p[0] == 't';
        break;
    default: /* _ */
        event->kind = ORIBI_REDIS_NULL;
        if (text.n != 0)
            return wrong(reader, ORIBI_EBAD, "a null has a value");
        break;
    }
    return leaf(reader, event, behind);
}

/* Splits the format off a verbatim string. */
static int verbatim(struct oribi_redis_reader *reader, struct oribi_redis_event *event)
{
    if (event->text.n < FORMAT_BYTES || event->text.p[FORMAT_BYTES - 1] != ':')
        return wrong(reader, ORIBI_EBAD, "a verbatim string without a format");
    memcpy(event->format, event->text.p, FORMAT_BYTES - 1);
    event->text = oribi_slice(event->text.p + FORMAT_BYTES, event->text.n - FORMAT_BYTES);
    return 0;
}

static bool in_attribute(const struct oribi_redis_reader *reader)
{
    return reader->depth > 0 && reader->frames[reader->depth - 1].dropped;
}

/* A long string of which only a part has come: its bytes are taken by themselves. */
static int long_string(struct oribi_redis_reader *reader, struct oribi_redis_event *event, size_t behind, uint64_t n)
{
    event->kind = ORIBI_REDIS_LONG;
    event->count = n;
    reader->at = behind;
    reader->scanned = 0;
    reader->awaited = 0;
    reader->body = n;
    reader->in_body = true;
    event->ends = true;
    for (uint32_t i = 0; i < reader->depth; i++)
        event->ends = event->ends && reader->frames[i].left == 1;
    return 1;
}

/* $, ! and =: a length, so many bytes, CR LF. */
static int string(struct oribi_redis_reader *reader, char type, struct oribi_slice text, size_t behind,
                  struct oribi_redis_event *event)
{
    int64_t n;
    if (!integer_of(text, &n) || (n < 0 && (n != -1 || type != '$')))
        return wrong(reader, ORIBI_EBAD, "the length of a string is none");
    if (n < 0) {
        event->kind = ORIBI_REDIS_NULL;
        return leaf(reader, event, behind);
    }
    if ((uint64_t)n > reader->string_max)
        return wrong(reader, ORIBI_ELIMIT, "a string is too long");
    /* Errors are told whole, and what nobody is told is not worth another way. */
    if (type == '!' && n > ORIBI_REDIS_LINE_MAX)
        return wrong(reader, ORIBI_ELIMIT, "an error is too long");
    size_t have = reader->in.len - behind;
    if (have < (uint64_t)n + 2) {
        bool whole = n <= ORIBI_REDIS_WHOLE_MAX || type == '!' || in_attribute(reader);
        if (whole || (type == '=' && have < FORMAT_BYTES)) {
            reader->awaited = behind - reader->at + (whole ? (uint64_t)n + 2 : FORMAT_BYTES);
            return ORIBI_AGAIN;
        }
        if (type == '=') {
            event->text = oribi_slice(reader->in.p + behind, FORMAT_BYTES);
            int failed = verbatim(reader, event);
            return failed ? failed : long_string(reader, event, behind + FORMAT_BYTES, (uint64_t)n - FORMAT_BYTES);
        }
        return long_string(reader, event, behind, (uint64_t)n);
    }
    const char *p = reader->in.p + behind;
    if (p[n] != '\r' || p[n + 1] != '\n')
        return wrong(reader, ORIBI_EBAD, "a string does not end where it should");
    event->text = oribi_slice(p, (size_t)n);
    event->kind = type == '$' ? ORIBI_REDIS_STRING : type == '!' ? ORIBI_REDIS_ERROR : ORIBI_REDIS_VERBATIM;
    if (type == '=') {
        int failed = verbatim(reader, event);
        if (failed)
            return failed;
    }
    return leaf(reader, event, behind + (size_t)n + 2);
}

/* *, ~, %, > and |: so many elements or pairs. */
static int open_aggregate(struct oribi_redis_reader *reader, char type, struct oribi_slice text, size_t behind,
                          struct oribi_redis_event *event)
{
    int64_t n;
    if (!integer_of(text, &n) || (n < 0 && (n != -1 || type != '*')))
        return wrong(reader, ORIBI_EBAD, "the length of an aggregate is none");
    if (n < 0) {
        event->kind = ORIBI_REDIS_NULL;
        return leaf(reader, event, behind);
    }
    if ((uint64_t)n > reader->count_max)
        return wrong(reader, ORIBI_ELIMIT, "an aggregate is too long");
    if (type == '>' && reader->depth > 0)
        return wrong(reader, ORIBI_EBAD, "a push within a reply");
    bool attribute = type == '|';
    event->count = (uint64_t)n;
    event->kind = type == '*'   ? ORIBI_REDIS_ARRAY
                  : type == '~' ? ORIBI_REDIS_SET
                  : type == '>' ? ORIBI_REDIS_PUSH
                                : ORIBI_REDIS_MAP;
    if (n == 0 && attribute) {
        reader->at = behind;
        reader->scanned = 0;
        return 0;
    }
    if (n == 0)
        return leaf(reader, event, behind);
    if (reader->depth == ORIBI_REDIS_DEPTH_MAX)
        return wrong(reader, ORIBI_ELIMIT, "aggregates are nested too deeply");
    bool dropped = attribute || in_attribute(reader);
    bool pairs = attribute || type == '%';
    reader->frames[reader->depth++] = (struct oribi_redis_frame){
        .left = pairs ? (uint64_t)n * 2 : (uint64_t)n, .dropped = dropped, .attribute = attribute};
    reader->at = behind;
    reader->scanned = 0;
    return !dropped;
}

/* One element: 1, told; 0, passed over; ORIBI_AGAIN and errors. */
static int typed(struct oribi_redis_reader *reader, struct oribi_redis_event *event)
{
    if (reader->at == reader->in.len || reader->in.len - reader->at < reader->awaited)
        return ORIBI_AGAIN;
    char type = reader->in.p[reader->at];
    if (!memchr("+-:,(#_$!=*~%>|", type, 15))
        return wrong(reader, ORIBI_EBAD, "no reply begins like this: is it a Redis?");
    struct oribi_slice text;
    size_t behind;
    int failed = line(reader, &text, &behind);
    if (failed)
        return failed;
    switch (type) {
    case '$':
    case '!':
    case '=':
        return string(reader, type, text, behind, event);
    case '*':
    case '~':
    case '%':
    case '>':
    case '|':
        return open_aggregate(reader, type, text, behind, event);
    default:
        return text_line(reader, type, text, behind, event);
    }
}

int oribi_redis_body_end(struct oribi_redis_reader *reader)
{
    assert(reader->in_body && reader->body == 0);
    if (reader->in.len - reader->at < 2)
        return ORIBI_AGAIN;
    if (memcmp(reader->in.p + reader->at, "\r\n", 2) != 0)
        return wrong(reader, ORIBI_EBAD, "a string does not end where it should");
    reader->in_body = false;
    struct oribi_redis_event nothing;
    leaf(reader, &nothing, reader->at + 2);
    return 0;
}

int oribi_redis_next(struct oribi_redis_reader *reader, struct oribi_redis_event *event)
{
    if (reader->broken)
        return ORIBI_EBAD;
    int unended = reader->in_body ? oribi_redis_body_end(reader) : 0;
    if (unended)
        return unended;
    for (;;) {
        memset(event, 0, sizeof(*event));
        int found = typed(reader, event);
        if (found != 0)
            return found == 1 ? 0 : found;
    }
}

size_t oribi_redis_take(struct oribi_redis_reader *reader, char *p, size_t n)
{
    size_t have = reader->in.len - reader->at;
    if (n > reader->body)
        n = (size_t)reader->body;
    if (n > have)
        n = have;
    if (n > 0)
        memcpy(p, reader->in.p + reader->at, n);
    reader->at += n;
    reader->body -= n;
    return n;
}

void oribi_redis_skip_body(struct oribi_redis_reader *reader, uint64_t n)
{
    assert(reader->in_body && n <= reader->body && reader->at == reader->in.len);
    reader->body -= n;
}

uint64_t oribi_redis_body_left(const struct oribi_redis_reader *reader)
{
    return reader->body;
}

size_t oribi_redis_likely(const struct oribi_redis_reader *reader, uint64_t count)
{
    size_t likely = (reader->in.len - reader->at) / LIKELY_BYTES + LIKELY_MORE;
    return count < likely ? (size_t)count : likely;
}
