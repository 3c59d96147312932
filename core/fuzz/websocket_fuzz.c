/* Frames of WebSocket: every cut of any bytes tells the same, no message is over the maximum, text is UTF-8, and the
 * events, written as frames, are read as these events again. The first byte chooses role, maximum and level of scan,
 * the second the cuts. Where the third is odd the rest are frames in short, which are written first, so that most of
 * them are right. */
#include "oribi/base/escape.h"
#include "oribi/http/scan.h"

#include "http/websocket_told.h"
#include "ours.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BYTES_MAX = 64 * 1024, INPUT_MAX = 2 * BYTES_MAX };

static const uint8_t mask[4] = {0xa5, 0x01, 0xff, 0x3c};

/* The bytes of a text, judged by another way than the parser's. */
static bool is_text(const char *p, size_t n)
{
    size_t len;
    for (size_t i = 0; i < n; i += len) {
        len = (uint8_t)p[i] < 0x80 ? 1 : oribi_utf8_len(p + i, n - i);
        if (len == 0)
            return false;
    }
    return true;
}

/* Frames in short: a byte with FIN and the opcode as a head has them, whose other three bits together stand for a
 * reserved one; a byte with the length; the payload. */
static size_t write_frames(struct bytes in, enum oribi_websocket_role role, char *dst)
{
    size_t len = 0;
    while (in.n > 0) {
        uint8_t first = next_byte(&in);
        uint8_t n = next_byte(&in);
        struct bytes payload = next_bytes(&in, n);
        bool control = (first & 0x0f) >= ORIBI_WEBSOCKET_CLOSE;
        const uint8_t *masked = role == ORIBI_WEBSOCKET_SERVER ? mask : NULL;
        size_t short_n =
            control && payload.n > ORIBI_WEBSOCKET_CONTROL_BYTES_MAX ? ORIBI_WEBSOCKET_CONTROL_BYTES_MAX : payload.n;
        size_t head = oribi_websocket_write_head(dst + len, (enum oribi_websocket_opcode)(first & 0x0f),
                                                 control || (first & 0x80), short_n, masked);
        if ((first & 0x70) == 0x70)
            dst[len] = (char)((uint8_t)dst[len] | 0x40);
        len += head;
        if (short_n > 0)
            memcpy(dst + len, payload.p, short_n);
        if (masked)
            oribi_websocket_mask(dst + len, short_n, mask, 0);
        len += short_n;
    }
    return len;
}

/* ---- the events, written again ---- */

static void add_frame(struct oribi_buf *out, enum oribi_websocket_opcode opcode, bool fin, struct oribi_slice payload,
                      enum oribi_websocket_role role)
{
    char head[ORIBI_WEBSOCKET_HEAD_CAP];
    const uint8_t *masked = role == ORIBI_WEBSOCKET_SERVER ? mask : NULL;
    oribi_buf_append(out, head, oribi_websocket_write_head(head, opcode, fin, payload.n, masked));
    oribi_buf_append(out, payload.p, payload.n);
    if (masked)
        oribi_websocket_mask(out->p + out->len - payload.n, payload.n, mask, 0);
}

/* A frame for each piece, Close frames by oribi_websocket_write_close(). */
static void write_event(struct oribi_buf *out, const struct oribi_websocket_event *event, bool *within,
                        enum oribi_websocket_role role)
{
    char close[ORIBI_WEBSOCKET_CONTROL_BYTES_MAX];
    ssize_t n;
    switch (event->type) {
    case ORIBI_WEBSOCKET_EVENT_PIECE:
        add_frame(out,
                  *within         ? ORIBI_WEBSOCKET_CONTINUATION
                  : event->binary ? ORIBI_WEBSOCKET_BINARY
                                  : ORIBI_WEBSOCKET_TEXT,
                  event->ends, event->payload, role);
        *within = !event->ends;
        break;
    case ORIBI_WEBSOCKET_EVENT_PING:
        add_frame(out, ORIBI_WEBSOCKET_PING, true, event->payload, role);
        break;
    case ORIBI_WEBSOCKET_EVENT_PONG:
        add_frame(out, ORIBI_WEBSOCKET_PONG, true, event->payload, role);
        break;
    case ORIBI_WEBSOCKET_EVENT_CLOSE:
        n = oribi_websocket_write_close(close, event->code, event->payload);
        expect(n >= 0);
        add_frame(out, ORIBI_WEBSOCKET_CLOSE, true, oribi_slice(close, (size_t)n), role);
        break;
    default:
        break;
    }
}

/* Every event keeps its promise; `message` is the payload of the message so far. */
static void check_event(const struct oribi_websocket_event *event, struct oribi_buf *message,
                        uint64_t message_bytes_max)
{
    if (event->type == ORIBI_WEBSOCKET_EVENT_CLOSE) {
        expect(is_text(event->payload.p, event->payload.n));
        expect(event->code == ORIBI_WEBSOCKET_CODE_ABSENT || oribi_websocket_code_is_valid(event->code));
    }
    if (event->type != ORIBI_WEBSOCKET_EVENT_PIECE)
        return;
    oribi_buf_append(message, event->payload.p, event->payload.n);
    expect(message->len <= message_bytes_max);
    if (!event->ends)
        return;
    expect(event->binary || is_text(message->p, message->len));
    message->len = 0;
}

/* Reads the input whole and writes what is told again, as the other side of it would. */
static struct oribi_buf write_again(enum oribi_websocket_role role, uint64_t message_bytes_max, const char *p, size_t n)
{
    struct oribi_websocket socket;
    struct oribi_websocket_event event = {.type = ORIBI_WEBSOCKET_EVENT_PIECE};
    struct oribi_buf out = {0};
    struct oribi_buf message = {0};
    bool within = false;
    size_t used = 0;
    char *copy = oribi_mem_alloc(1, n + 1);
    memcpy(copy, p, n);
    oribi_websocket_init(&socket, role, message_bytes_max);
    while (event.type != ORIBI_WEBSOCKET_EVENT_AGAIN && event.type != ORIBI_WEBSOCKET_EVENT_FAULT) {
        used += oribi_websocket_feed(&socket, copy + used, n - used, &event);
        check_event(&event, &message, message_bytes_max);
        write_event(&out, &event, &within, role);
    }
    oribi_buf_deinit(&message);
    oribi_mem_free(copy);
    return out;
}

/* All that was told but the fault comes again. */
static void check_again(const struct told *want, enum oribi_websocket_role role, uint64_t message_bytes_max,
                        const char *p, size_t n, struct guard *arena)
{
    struct oribi_buf again = write_again(role, message_bytes_max, p, n);
    size_t kept = want->events.len - (want->fault ? strlen("FAULT 1002 \n") : 0);
    if (again.len <= arena->n - ORIBI_WEBSOCKET_REST_MAX) {
        struct told got = told_all(role, message_bytes_max, again.p, again.len, again.len, 1, arena);
        expect(!got.broken && !got.fault && got.left == 0);
        expect(oribi_slice_equal(oribi_slice(got.events.p, got.events.len), oribi_slice(want->events.p, kept)));
        told_deinit(&got);
    }
    oribi_buf_deinit(&again);
}

/* ---- one input ---- */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint64_t maxima[] = {0, 10, 1000, UINT64_MAX};
    static struct guard arena;
    struct bytes in = {data, size};
    if (size < 3 || size > BYTES_MAX)
        return 0;
    if (!arena.p)
        arena = guard_alloc(INPUT_MAX * 4);
    uint8_t choice = next_byte(&in);
    uint8_t cut_at = next_byte(&in);
    uint8_t form = next_byte(&in);
    enum oribi_websocket_role role = choice & 1 ? ORIBI_WEBSOCKET_CLIENT : ORIBI_WEBSOCKET_SERVER;
    uint64_t maximum = maxima[choice >> 1 & 3];
    if (oribi_scan_level_set((enum oribi_scan_level)(choice >> 3 & 7)) != 0)
        (void)oribi_scan_level_set(ORIBI_SCAN_SCALAR);
    char *text = oribi_mem_alloc(4, in.n + 4); /* a frame of two bytes becomes six */
    size_t n = in.n;
    if (form & 1)
        n = write_frames(in, role, text);
    else
        memcpy(text, in.p, in.n);
    struct told want = told_all(role, maximum, text, n, n ? n : 1, 1, &arena);
    expect(!want.broken);
    size_t cuts[] = {n * cut_at / 256 + 1, 1, cut_at % 16 + 1};
    size_t steps[] = {n + 1, n / 4096 + 1, cut_at / 16 + 1};
    for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
        struct told got = told_all(role, maximum, text, n, cuts[i], steps[i], &arena);
        expect(told_equal(&got, &want));
        told_deinit(&got);
    }
    check_again(&want, role, maximum, text, n, &arena);
    told_deinit(&want);
    oribi_mem_free(text);
    return 0;
}
