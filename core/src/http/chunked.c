/* Chunked decoder: one state per place in the grammar, so that no cut of the input can fall between two of them.
 *
 *     SIZE_FIRST ─hex─► SIZE ─;─► EXT_… ─CR─► SIZE_LF ─► DATA ─► DATA_CR ─► DATA_LF ─► SIZE_FIRST
 *                         └──────CR───────────►┘  └ size 0 ─► TRAILER_FIRST ─CR─► END_LF ─► done
 *
 *     TRAILER_FIRST ─tchar─► TRAILER_NAME ─:─► TRAILER_VALUE ─CR─► TRAILER_LF ─► TRAILER_FIRST
 *
 * White space is refused next to the size (RFC 9112 7.1 has none there before `;`, and parsers that strip it
 * differ) and at the end of its line, allowed elsewhere in extensions. */
#include "oribi/http/chunked.h"
#include "oribi/base/error.h"
#include "oribi/http/scan.h"
#include "oribi/http/syntax.h"
#include "http/scan_private.h"

#include <string.h>

enum {
    SIZE_FIRST, /* zero, as the struct starts */
    SIZE,
    EXT_NAME_FIRST,
    EXT_NAME,
    EXT_NAME_END,
    EXT_VALUE_FIRST,
    EXT_TOKEN,
    EXT_QUOTED,
    EXT_ESCAPED,
    EXT_VALUE_END, /* behind a quoted string */
    EXT_BLANK,     /* behind a value, for another extension only */
    SIZE_LF,
    DATA,
    DATA_CR,
    DATA_LF,
    TRAILER_FIRST,
    TRAILER_NAME,
    TRAILER_VALUE,
    TRAILER_LF,
    END_LF,
};

/* Limits of framing: beyond OVERHEAD_FREE bytes, OVERHEAD_RATIO bytes per byte of body. One-byte chunks cost five. */
enum { OVERHEAD_FREE = 64 * 1024, OVERHEAD_RATIO = 8, ZEROS_FREE = 16 };

static int refuse(struct oribi_chunked *body, int error, const char *reason)
{
    body->reason = reason;
    return error;
}

static bool is_class(char c, uint8_t class)
{
    return (oribi__scan_class[(uint8_t)c] & class) != 0;
}

static int bad_size(struct oribi_chunked *body)
{
    return refuse(body, ORIBI_EBAD, "malformed chunk size");
}

static int add_digit(struct oribi_chunked *body, int digit)
{
    if (digit == 0 && body->digits == 0) {
        /* Some clients pad sizes to a fixed width; more than that is charged like an extension. */
        if (body->zeros < ZEROS_FREE)
            body->zeros++;
        else if (++body->ext_len > ORIBI_CHUNK_EXT_BYTES_MAX)
            return bad_size(body);
        return 0;
    }
    if (body->digits == ORIBI_CHUNK_SIZE_DIGITS_MAX)
        return bad_size(body);
    body->digits++;
    body->chunk_left = body->chunk_left << 4 | (uint64_t)digit;
    return 0;
}

/* One byte of a size line, its LF excepted. */
static int on_size(struct oribi_chunked *body, char c)
{
    int digit = hex_value(c);
    if (digit >= 0) {
        body->state = SIZE;
        return add_digit(body, digit);
    }
    if (body->state == SIZE && c == '\r')
        body->state = SIZE_LF;
    else if (body->state == SIZE && c == ';')
        body->state = EXT_NAME_FIRST;
    else
        return bad_size(body);
    return 0;
}

/* Where an extension goes on after byte c, or -1. chunk-ext = *( BWS ";" BWS token [ BWS "=" BWS ( token /
 * quoted-string ) ] ) */
static int ext_next(uint8_t state, char c)
{
    bool blank = c == ' ' || c == '\t';
    bool token = is_class(c, SCAN_TOKEN);
    bool may_end = state == EXT_NAME || state == EXT_NAME_END || state == EXT_TOKEN || state == EXT_VALUE_END ||
                   state == EXT_BLANK;
    if (state == EXT_ESCAPED || state == EXT_QUOTED) {
        if (!is_class(c, SCAN_TEXT))
            return -1;
        if (state == EXT_ESCAPED)
            return EXT_QUOTED;
        return c == '"' ? EXT_VALUE_END : c == '\\' ? EXT_ESCAPED : EXT_QUOTED;
    }
    if (may_end && c == '\r')
        return state == EXT_NAME || state == EXT_TOKEN || state == EXT_VALUE_END ? SIZE_LF : -1;
    if (may_end && c == ';')
        return EXT_NAME_FIRST;
    switch (state) {
    case EXT_NAME_FIRST:
        return blank ? EXT_NAME_FIRST : token ? EXT_NAME : -1;
    case EXT_NAME:
        return token ? EXT_NAME : blank ? EXT_NAME_END : c == '=' ? EXT_VALUE_FIRST : -1;
    case EXT_NAME_END:
        return blank ? EXT_NAME_END : c == '=' ? EXT_VALUE_FIRST : -1;
    case EXT_VALUE_FIRST:
        return blank ? EXT_VALUE_FIRST : token ? EXT_TOKEN : c == '"' ? EXT_QUOTED : -1;
    case EXT_TOKEN:
        return token ? EXT_TOKEN : blank ? EXT_BLANK : -1;
    default:
        return blank ? EXT_BLANK : -1; /* EXT_VALUE_END, EXT_BLANK */
    }
}

static int on_extension(struct oribi_chunked *body, char c)
{
    int next = ext_next(body->state, c);
    if (next < 0)
        return refuse(body, ORIBI_EBAD, "malformed chunk extension");
    if (++body->ext_len > ORIBI_CHUNK_EXT_BYTES_MAX)
        return refuse(body, ORIBI_EBAD, "chunk extensions over the limit");
    body->state = (uint8_t)next;
    return 0;
}

static int on_size_lf(struct oribi_chunked *body, const struct oribi_limits *limits, char c)
{
    if (c != '\n')
        return refuse(body, ORIBI_EBAD, "chunk size line does not end in CRLF");
    if (body->chunk_left > (uint64_t)(limits->body_bytes_max - body->body_len))
        return refuse(body, ORIBI_EBODY, "body over body_bytes_max");
    body->state = body->chunk_left ? DATA : TRAILER_FIRST;
    body->digits = 0;
    body->zeros = 0;
    return 0;
}

/* Byte by byte: trailers are short and rare, and the buffer grows by half. */
static int keep_trailer(struct oribi_chunked *body, char c)
{
    if (oribi_buf_try_append(&body->trailers, &c, 1) < 0)
        return refuse(body, ORIBI_ENOMEM, "out of memory");
    return 0;
}

static int on_trailer(struct oribi_chunked *body, const struct oribi_limits *limits, char c)
{
    uint32_t count_max = limits->fields_max < ORIBI_FIELDS_CAP ? limits->fields_max : ORIBI_FIELDS_CAP;
    if (++body->trailer_len > ORIBI_TRAILER_BYTES_MAX)
        return refuse(body, ORIBI_EHEAD, "trailer section over the limit");
    switch (body->state) {
    case TRAILER_FIRST:
        if (c == '\r') {
            body->state = END_LF;
            return 0;
        }
        if (!is_class(c, SCAN_TOKEN))
            break;
        if (body->trailer_count == count_max)
            return refuse(body, ORIBI_EHEAD, "too many trailer fields");
        body->trailer_count++;
        body->state = TRAILER_NAME;
        return keep_trailer(body, c);
    case TRAILER_NAME:
        if (c == ':')
            body->state = TRAILER_VALUE;
        else if (!is_class(c, SCAN_TOKEN))
            break;
        return keep_trailer(body, c);
    case TRAILER_VALUE:
        if (c == '\r')
            body->state = TRAILER_LF;
        else if (!is_class(c, SCAN_TEXT))
            break;
        return keep_trailer(body, c);
    default: /* TRAILER_LF */
        if (c != '\n')
            break;
        body->state = TRAILER_FIRST;
        return keep_trailer(body, c);
    }
    return refuse(body, ORIBI_EBAD, "malformed trailer field");
}

/* Any byte that is not chunk data. */
static int on_byte(struct oribi_chunked *body, const struct oribi_limits *limits, char c)
{
    if (body->overhead_len < UINT32_MAX)
        body->overhead_len++;
    if (body->overhead_len > OVERHEAD_FREE && body->overhead_len / OVERHEAD_RATIO > body->body_len)
        return refuse(body, ORIBI_EBAD, "too little body in too many chunks");
    if (body->state <= SIZE)
        return on_size(body, c);
    if (body->state < SIZE_LF)
        return on_extension(body, c);
    switch (body->state) {
    case SIZE_LF:
        return on_size_lf(body, limits, c);
    case DATA_CR:
    case DATA_LF:
        if (c != (body->state == DATA_CR ? '\r' : '\n'))
            return refuse(body, ORIBI_EBAD, "chunk data does not end in CRLF");
        body->state = body->state == DATA_CR ? DATA_LF : SIZE_FIRST;
        return 0;
    case END_LF:
        if (c != '\n')
            return refuse(body, ORIBI_EBAD, "malformed trailer field");
        body->done = true;
        return 0;
    default:
        return on_trailer(body, limits, c);
    }
}

int oribi_chunked_decode(struct oribi_chunked *body, const struct oribi_limits *limits, char *buf, size_t *len,
                         size_t *used)
{
    size_t in = 0;
    size_t out = 0;
    int error = 0;
    while (in < *len && !body->done && !error) {
        if (body->state != DATA) {
            error = on_byte(body, limits, buf[in++]);
            continue;
        }
        size_t n = *len - in;
        if (n >= body->chunk_left) {
            n = (size_t)body->chunk_left;
            body->state = DATA_CR;
        }
        if (in != out)
            memmove(buf + out, buf + in, n);
        in += n;
        out += n;
        body->chunk_left -= n;
        body->body_len += (int64_t)n;
    }
    *len = out;
    *used = in;
    return error;
}

size_t oribi_chunk_head(char dst[ORIBI_CHUNK_HEAD_CAP], uint64_t size)
{
    static const char digits[] = "0123456789abcdef";
    int bits = 63 - __builtin_clzll(size | 1);
    size_t n = 0;
    for (int shift = bits / 4 * 4; shift >= 0; shift -= 4)
        dst[n++] = digits[size >> shift & 15];
    dst[n++] = '\r';
    dst[n++] = '\n';
    return n;
}

/* ---- unframe ---- */

/* Bodies that an application has framed itself, decoded. Sizes are the application's business, so only what the decoder
 * itself holds is limited: extensions, trailer fields, and how much framing there may be for how little content. */

static int refuse_framing(struct oribi_unframe *body, const char *reason)
{
    if (!body->reason)
        body->reason = reason;
    return ORIBI_EAPP;
}

int oribi_unframe(struct oribi_unframe *body, char *buf, size_t *len)
{
    struct oribi_limits limits;
    size_t given = *len;
    size_t used = 0;
    *len = 0;
    if (body->reason)
        return ORIBI_EAPP;
    oribi_limits_init(&limits);
    limits.body_bytes_max = INT64_MAX;
    size_t content = given;
    if (oribi_chunked_decode(&body->chunked, &limits, buf, &content, &used) < 0)
        return refuse_framing(body, body->chunked.reason);
    if (used < given)
        return refuse_framing(body, "bytes behind the last chunk");
    *len = content;
    return 0;
}

int oribi_unframe_end(struct oribi_unframe *body)
{
    return body->chunked.done && !body->reason ? 0 : refuse_framing(body, "it ends before its last chunk");
}

void oribi_unframe_deinit(struct oribi_unframe *body)
{
    oribi_buf_deinit(&body->chunked.trailers);
}
