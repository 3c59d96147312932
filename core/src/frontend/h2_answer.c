/* Frames that we send, and answers as such. */
#include "frontend/h2_private.h"
#include "oribi/http/syntax.h"
#include "oribi/http/scan.h"

#include <assert.h>

char *oribi__h2_put_frame(struct oribi_h2 *h2, uint8_t type, uint8_t flags, uint32_t id, size_t len)
{
    char *p = oribi_buf_reserve(&h2->out, H2_FRAME_HEAD + len);
    h2_write32(p, (uint32_t)len << 8 | type);
    p[4] = (char)flags;
    h2_write32(p + 5, id);
    h2->out.len += H2_FRAME_HEAD + len;
    return p + H2_FRAME_HEAD;
}

char *oribi__h2_put_ack(struct oribi_h2 *h2, uint8_t type, size_t len)
{
    if (h2_unsent(h2) > ORIBI_H2_CONTROL_BYTES_MAX) {
        oribi__h2_fail(h2, ORIBI_H2_ENHANCE_YOUR_CALM, "acknowledgements that the client does not read");
        return NULL;
    }
    return oribi__h2_put_frame(h2, type, H2_ACK, 0, len);
}

void oribi__h2_put_settings(struct oribi_h2 *h2)
{
    const struct {
        uint16_t id;
        uint32_t value;
    } settings[] = {
        {NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, h2->limits->table_bytes},
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, h2->limits->streams_max},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, h2->limits->stream_window},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, h2->limits->http.head_bytes_max},
        {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
        {NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1}, /* the last: left out where no sockets are offered */
    };
    size_t count = sizeof(settings) / sizeof(settings[0]) - (h2->limits->connects_sockets ? 0 : 1);
    char *p = oribi__h2_put_frame(h2, H2_SETTINGS, 0, 0, 6 * count);
    for (size_t i = 0; i < count; i++, p += 6) {
        p[0] = (char)(settings[i].id >> 8);
        p[1] = (char)settings[i].id;
        h2_write32(p + 2, settings[i].value);
    }
    h2->settings_due++;
}

void oribi__h2_put_reset(struct oribi_h2 *h2, uint32_t id, uint32_t code)
{
    if (h2->over)
        return;
    h2_write32(oribi__h2_put_frame(h2, H2_RST_STREAM, 0, id, 4), code);
    oribi__h2_note_reset(h2, id);
}

void oribi__h2_put_window_update(struct oribi_h2 *h2, uint32_t id, uint32_t increment)
{
    h2_write32(oribi__h2_put_frame(h2, H2_WINDOW_UPDATE, 0, id, 4), increment);
}

void oribi__h2_put_goaway(struct oribi_h2 *h2, uint32_t last_id, uint32_t code)
{
    char *p = oribi__h2_put_frame(h2, H2_GOAWAY, 0, 0, 8);
    h2_write32(p, last_id);
    h2_write32(p + 4, code);
}

/* ---- field blocks ---- */

static int make_encoder(struct oribi_h2 *h2)
{
    size_t table = h2->limits->sleeps ? 0 : ORIBI_H2_TABLE_BYTES_MAX;
    if (h2->deflater)
        return 0;
    if (nghttp2_hd_deflate_new2(&h2->deflater, table, oribi__h2_mem()) != 0)
        return ORIBI_ENOMEM;
    if (h2->peer_table >= table || nghttp2_hd_deflate_change_table_size(h2->deflater, h2->peer_table) == 0)
        return 0;
    nghttp2_hd_deflate_del(h2->deflater);
    h2->deflater = NULL;
    return ORIBI_ENOMEM;
}

/* Encodes the fields as HEADERS, and as CONTINUATION where they are longer than a frame. What is encoded changes the
 * client's table, so it must be sent. */
static int put_block(struct h2_stream *stream, const nghttp2_nv *fields, size_t count, bool last)
{
    struct oribi_h2 *h2 = stream->to.h2;
    size_t bound = nghttp2_hd_deflate_bound(h2->deflater, fields, count);
    size_t heads = bound / H2_FRAME_MAX + 1;
    char *start = oribi_buf_try_reserve(&h2->out, bound + heads * H2_FRAME_HEAD);
    if (!start)
        return ORIBI_ENOMEM;
    char *block = start + H2_FRAME_HEAD;
    ssize_t len = nghttp2_hd_deflate_hd(h2->deflater, (uint8_t *)block, bound, fields, count);
    if (len < 0) { /* the encoder's state is lost */
        oribi__h2_fail(h2, ORIBI_H2_INTERNAL_ERROR, "fields cannot be encoded");
        return ORIBI_ECLOSED;
    }
    size_t pieces = len ? ((size_t)len + H2_FRAME_MAX - 1) / H2_FRAME_MAX : 1;
    for (size_t i = pieces; i-- > 1;) { /* room for the heads between them, from the last on */
        size_t at = i * H2_FRAME_MAX;
        size_t n = (size_t)len - at < H2_FRAME_MAX ? (size_t)len - at : H2_FRAME_MAX;
        memmove(block + at + i * H2_FRAME_HEAD, block + at, n);
    }
    for (size_t i = 0; i < pieces; i++) {
        size_t at = i * H2_FRAME_MAX;
        size_t n = (size_t)len - at < H2_FRAME_MAX ? (size_t)len - at : H2_FRAME_MAX;
        uint8_t flags = (uint8_t)((i + 1 == pieces ? H2_END_HEADERS : 0) | (i == 0 && last ? H2_END_STREAM : 0));
        (void)oribi__h2_put_frame(h2, i ? H2_CONTINUATION : H2_HEADERS, flags, stream->to.id, n);
    }
    h2->free_frames += H2_FREE_FRAMES;
    return 0;
}

/* Whether a Connection field names it. */
static bool is_named(const struct oribi_field *fields, uint32_t count, struct oribi_slice name)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!oribi_slice_equal_fold(oribi_slice(fields[i].name, fields[i].name_len), ORIBI_SLICE("connection")))
            continue;
        const char *p = fields[i].value;
        const char *end = p + fields[i].value_len;
        while (p < end) {
            const char *comma = memchr(p, ',', (size_t)(end - p));
            const char *stop = comma ? comma : end;
            if (oribi_slice_equal_fold(strip_ows(p, stop), name))
                return true;
            p = comma ? comma + 1 : end;
        }
    }
    return false;
}

/* `has_no_length`: a Content-Length would say what cannot be (RFC 9110 8.6). */
static bool is_left_out(const struct oribi_field *fields, uint32_t count, struct oribi_slice name, bool has_connection,
                        bool has_no_length)
{
    return oribi__h2_is_connection_field(name) || oribi_slice_equal(name, ORIBI_SLICE("te")) ||
           (has_no_length && oribi_slice_equal(name, ORIBI_SLICE("content-length"))) ||
           (has_connection && is_named(fields, count, name));
}

/* Fills h2->names with the fields as nghttp2 wants them, names in lower case behind them; *used is their number. */
static int gather(struct oribi_h2 *h2, int status, const struct oribi_field *fields, uint32_t count, size_t *used)
{
    size_t bytes = ((size_t)count + 1) * sizeof(nghttp2_nv) + 3;
    bool has_connection = false;
    bool has_no_length = status < 200 || status == 204;
    if (count > ORIBI_RESPONSE_FIELDS_MAX)
        return ORIBI_EAPP;
    for (uint32_t i = 0; i < count; i++) {
        struct oribi_slice name = oribi_slice(fields[i].name, fields[i].name_len);
        bytes += name.n;
        has_connection = has_connection || oribi_slice_equal_fold(name, ORIBI_SLICE("connection"));
    }
    h2->names.len = 0;
    char *room = oribi_buf_try_reserve(&h2->names, bytes);
    if (!room)
        return ORIBI_ENOMEM;
    nghttp2_nv *nv = (nghttp2_nv *)(void *)room;
    char *out = room + ((size_t)count + 1) * sizeof(*nv);
    *used = 0;
    if (status) {
        for (int i = 2, rest = status; i >= 0; i--, rest /= 10)
            out[i] = (char)('0' + rest % 10);
        nv[(*used)++] = (nghttp2_nv){(uint8_t *)(uintptr_t) ":status", (uint8_t *)out, 7, 3, 0};
        out += 3;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct oribi_slice value = strip_ows(fields[i].value, fields[i].value + fields[i].value_len);
        struct oribi_slice name = oribi_slice(out, fields[i].name_len);
        if (!oribi_scan_is_token(fields[i].name, name.n) ||
            (value.n && oribi_scan_active->text(value.p, value.n) != value.n))
            return ORIBI_EAPP;
        for (size_t k = 0; k < name.n; k++)
            out[k] = oribi_lower(fields[i].name[k]);
        if (is_left_out(fields, count, name, has_connection, has_no_length))
            continue;
        nv[(*used)++] = (nghttp2_nv){(uint8_t *)out, (uint8_t *)(uintptr_t)value.p, name.n, value.n, 0};
        out += name.n;
    }
    return 0;
}

static int put_fields(struct h2_stream *stream, int status, const struct oribi_field *fields, uint32_t count, bool last)
{
    struct oribi_h2 *h2 = stream->to.h2;
    size_t used;
    int error = gather(h2, status, fields, count, &used);
    if (!error)
        error = make_encoder(h2);
    if (!error)
        error = put_block(stream, (const nghttp2_nv *)(const void *)h2->names.p, used, last);
    if (h2->names.cap > 4 * H2_BUFFER_KEPT)
        oribi_buf_deinit(&h2->names);
    return error;
}

/* ---- answers ---- */

int oribi_h2_interim(struct oribi_h2_stream *to, int status, const struct oribi_field *fields, uint32_t count)
{
    struct h2_stream *stream = h2_of(to);
    if (stream->closed)
        return ORIBI_ECLOSED;
    if (stream->answered || status < 100 || status > 199 || status == 101)
        return ORIBI_EAPP;
    if (h2_unsent(stream->to.h2) > ORIBI_INTERIM_UNSENT_BYTES_MAX)
        return ORIBI_ELIMIT;
    return put_fields(stream, status, fields, count, false);
}

/* The answer's Content-Length; -1: it has none. */
static int read_length(const struct oribi_field *fields, uint32_t count, int64_t *length)
{
    *length = -1;
    for (uint32_t i = 0; i < count; i++) {
        const struct oribi_field *field = &fields[i];
        int64_t sum = 0;
        if (!oribi_slice_equal_fold(oribi_slice(field->name, field->name_len), ORIBI_SLICE("content-length")))
            continue;
        if (*length >= 0 || field->value_len == 0)
            return ORIBI_EAPP;
        for (uint32_t k = 0; k < field->value_len; k++) {
            uint8_t digit = (uint8_t)(field->value[k] - '0');
            if (digit > 9 || sum > (INT64_MAX - digit) / 10)
                return ORIBI_EAPP;
            sum = sum * 10 + digit;
        }
        *length = sum;
    }
    return 0;
}

int oribi_h2_answer(struct oribi_h2_stream *to, int status, const struct oribi_field *fields, uint32_t count, bool last)
{
    struct h2_stream *stream = h2_of(to);
    int64_t length;
    if (stream->closed)
        return ORIBI_ECLOSED;
    if (stream->answered || status < 200 || status > 999 || read_length(fields, count, &length) != 0)
        return ORIBI_EAPP;
    bool bodiless = stream->is_head || status == 204 || status == 304;
    if (last && !bodiless && length > 0)
        return ORIBI_EAPP;
    int error = put_fields(stream, status, fields, count, last || bodiless);
    if (error)
        return error;
    stream->answered = true;
    stream->answer_left = length;
    if (last || bodiless)
        oribi__h2_answer_ended(stream);
    return 0;
}

bool oribi_h2_is_answered(const struct oribi_h2_stream *stream)
{
    const struct h2_stream *own = (const struct h2_stream *)stream;
    return own->closed || own->answer_ended;
}

void oribi__h2_answer_ended(struct h2_stream *stream)
{
    stream->answer_ended = true;
    if (!stream
             ->request_ended) { /* the rest is not wanted; a reset at once would overtake the answer in some clients */
        stream->refused = true;
        stream->linger_ms = stream->to.h2->now_ms ? stream->to.h2->now_ms : 1;
    }
    oribi__h2_close_if_ended(stream);
}

/* ---- trailers: kept until the body has gone, as "name NUL value NUL" ---- */

int oribi_h2_trailers(struct oribi_h2_stream *to, const struct oribi_field *fields, uint32_t count)
{
    struct h2_stream *stream = h2_of(to);
    size_t bytes = 0;
    if (stream->closed || stream->answer_ended)
        return ORIBI_ECLOSED;
    if (stream->trailers.len || count > ORIBI_FIELDS_CAP)
        return ORIBI_EAPP;
    for (uint32_t i = 0; i < count; i++) {
        bytes += (size_t)fields[i].name_len + fields[i].value_len + 2;
        if (!oribi_scan_is_token(fields[i].name, fields[i].name_len) ||
            (fields[i].value_len &&
             oribi_scan_active->text(fields[i].value, fields[i].value_len) != fields[i].value_len))
            return ORIBI_EAPP;
    }
    if (bytes > ORIBI_TRAILER_BYTES_MAX)
        return ORIBI_EAPP;
    if (bytes && !oribi_buf_try_reserve(&stream->trailers, bytes))
        return ORIBI_ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        oribi_buf_append(&stream->trailers, fields[i].name, fields[i].name_len);
        oribi_buf_append(&stream->trailers, "", 1);
        oribi_buf_append(&stream->trailers, fields[i].value, fields[i].value_len);
        oribi_buf_append(&stream->trailers, "", 1);
    }
    return 0;
}

int oribi__h2_put_trailers(struct h2_stream *stream)
{
    struct oribi_field fields[ORIBI_FIELDS_CAP];
    uint32_t count = 0;
    const char *p = stream->trailers.p;
    const char *end = p + stream->trailers.len;
    while (p < end) {
        assert(count < ORIBI_FIELDS_CAP);
        struct oribi_field *field = &fields[count++];
        *field = (struct oribi_field){.name = p, .name_len = (uint16_t)strlen(p)};
        field->value = p + field->name_len + 1;
        field->value_len = (uint32_t)strlen(field->value);
        p = field->value + field->value_len + 1;
    }
    return put_fields(stream, 0, fields, count, true);
}
