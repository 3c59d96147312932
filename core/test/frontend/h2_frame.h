/* Frames of a client from readable text (spec/README.md, http2/): "HEADERS 1 END_STREAM END_HEADERS get". */
#ifndef ORIBI_TEST_FRONTEND_H2_FRAME_H
#define ORIBI_TEST_FRONTEND_H2_FRAME_H

#include "http/case_file.h"
#include "oribi/base/buf.h"

static const char frame_preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/* An integer of RFC 7541 5.1. */
static void frame_put_int(struct oribi_buf *out, uint8_t first, int bits, size_t value)
{
    size_t max = ((size_t)1 << bits) - 1;
    uint8_t byte = (uint8_t)(first | (value < max ? value : max));
    oribi_buf_append(out, &byte, 1);
    if (value < max)
        return;
    for (value -= max; value >= 128; value >>= 7) {
        byte = (uint8_t)(value | 128);
        oribi_buf_append(out, &byte, 1);
    }
    byte = (uint8_t)value;
    oribi_buf_append(out, &byte, 1);
}

/* "name=value" as a literal field with a new name, RFC 7541 6.2; `first` says how it is indexed. */
static void frame_put_field(struct oribi_buf *out, uint8_t first, struct oribi_slice raw)
{
    static char text[300 * 1024];
    size_t n = case_unescape(raw, text, sizeof(text));
    char *equals = memchr(text + 1, '=', n - 1);
    size_t name_len = equals ? (size_t)(equals - text) : n;
    size_t value_len = equals ? n - name_len - 1 : 0;
    oribi_buf_append(out, &first, 1);
    frame_put_int(out, 0, 7, name_len);
    oribi_buf_append(out, text, name_len);
    frame_put_int(out, 0, 7, value_len);
    oribi_buf_append(out, equals ? equals + 1 : text, value_len);
}

static void frame_put_number(struct oribi_buf *out, uint64_t value, int bytes)
{
    while (bytes-- > 0) {
        char byte = (char)(value >> 8 * bytes);
        oribi_buf_append(out, &byte, 1);
    }
}

static bool frame_is(struct oribi_slice word, const char *text)
{
    return oribi_slice_equal(word, oribi_slice(text, strlen(text)));
}

static bool frame_takes(struct oribi_slice *word, const char *start)
{
    size_t n = strlen(start);
    if (word->n < n || memcmp(word->p, start, n) != 0)
        return false;
    *word = oribi_slice(word->p + n, word->n - n);
    return true;
}

static uint64_t frame_number(struct oribi_slice word)
{
    char text[32] = "";
    memcpy(text, word.p, word.n < sizeof(text) ? word.n : sizeof(text) - 1);
    return strtoull(text, NULL, 0);
}

struct frame_parts {
    uint8_t type;
    uint8_t flags;
    uint32_t id;
    int64_t length; /* declared; -1: what it is */
    size_t padding;
    struct oribi_buf payload;
};

static bool frame_take_flag(struct frame_parts *frame, struct oribi_slice word)
{
    static const struct {
        const char *name;
        uint8_t bit;
    } flags[] = {{"END_STREAM", 1}, {"ACK", 1}, {"END_HEADERS", 4}, {"PADDED", 8}, {"PRIORITY", 0x20}};
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
        if (frame_is(word, flags[i].name)) {
            frame->flags |= flags[i].bit;
            return true;
        }
    return false;
}

static void frame_take_word(struct frame_parts *frame, struct oribi_slice word)
{
    struct oribi_buf *out = &frame->payload;
    if (frame_take_flag(frame, word))
        return;
    if (frame_takes(&word, "flags:"))
        frame->flags = (uint8_t)frame_number(word);
    else if (frame_takes(&word, "length:"))
        frame->length = (int64_t)frame_number(word);
    else if (frame_takes(&word, "pad:")) {
        frame->flags |= 8;
        frame->padding = frame_number(word);
        frame_put_number(out, frame->padding, 1);
    } else if (frame_takes(&word, "u8:"))
        frame_put_number(out, frame_number(word), 1);
    else if (frame_takes(&word, "u16:"))
        frame_put_number(out, frame_number(word), 2);
    else if (frame_takes(&word, "u32:"))
        frame_put_number(out, frame_number(word), 4);
    else if (frame_takes(&word, "hex:")) {
        for (size_t i = 0; i + 1 < word.n; i += 2)
            frame_put_number(out, (uint64_t)(case_hex(word.p[i]) << 4 | case_hex(word.p[i + 1])), 1);
    } else if (frame_takes(&word, "zero:")) {
        for (uint64_t i = frame_number(word); i > 0; i--)
            oribi_buf_append(out, "", 1);
    } else if (frame_takes(&word, "text:")) {
        static char text[300 * 1024];
        oribi_buf_append(out, text, case_unescape(word, text, sizeof(text)));
    } else if (frame_takes(&word, "field:"))
        frame_put_field(out, 0, word);
    else if (frame_takes(&word, "indexed:"))
        frame_put_field(out, 0x40, word);
    else if (frame_takes(&word, "never:"))
        frame_put_field(out, 0x10, word);
    else if (frame_is(word, "get")) /* GET / of host a by http */
        oribi_buf_append(out,
                         "\x82\x86\x84\x01\x01"
                         "a",
                         6);
    else if (frame_is(word, "post"))
        oribi_buf_append(out,
                         "\x83\x86\x84\x01\x01"
                         "a",
                         6);
    else {
        fprintf(stderr, "unknown word in a frame: %.*s\n", (int)word.n, word.p);
        exit(2);
    }
}

static struct oribi_slice frame_next_word(struct oribi_slice *rest)
{
    const char *end = memchr(rest->p, ' ', rest->n);
    size_t n = end ? (size_t)(end - rest->p) : rest->n;
    struct oribi_slice word = oribi_slice(rest->p, n);
    *rest = oribi_slice(rest->p + n + (n < rest->n), rest->n - n - (n < rest->n));
    return word;
}

/* Appends the bytes that a line describes. */
static void frame_put(struct oribi_buf *out, struct oribi_slice line)
{
    static const char *const types[] = {"DATA",         "HEADERS", "PRIORITY", "RST_STREAM",    "SETTINGS",
                                        "PUSH_PROMISE", "PING",    "GOAWAY",   "WINDOW_UPDATE", "CONTINUATION"};
    struct frame_parts frame = {.length = -1};
    struct oribi_slice word = frame_next_word(&line);
    if (frame_is(word, "preface")) {
        oribi_buf_append(out, frame_preface, sizeof(frame_preface) - 1);
        return;
    }
    if (frame_takes(&word, "bytes:")) {
        static char text[64 * 1024];
        oribi_buf_append(out, text, case_unescape(word, text, sizeof(text)));
        return;
    }
    frame.type = 0x10;
    for (uint8_t i = 0; i < 10; i++)
        if (frame_is(word, types[i]))
            frame.type = i;
    if (frame_takes(&word, "type:"))
        frame.type = (uint8_t)frame_number(word);
    word = frame_next_word(&line);
    frame.id = (uint32_t)frame_number(word);
    while (line.n)
        frame_take_word(&frame, frame_next_word(&line));
    for (size_t i = 0; i < frame.padding; i++)
        oribi_buf_append(&frame.payload, "", 1);
    frame_put_number(out, frame.length >= 0 ? (uint64_t)frame.length : frame.payload.len, 3);
    frame_put_number(out, frame.type, 1);
    frame_put_number(out, frame.flags, 1);
    frame_put_number(out, frame.id, 4);
    oribi_buf_append(out, frame.payload.p ? frame.payload.p : "", frame.payload.len);
    oribi_buf_deinit(&frame.payload);
}

__attribute__((unused)) static void frame_put_str(struct oribi_buf *out, const char *line)
{
    frame_put(out, oribi_slice(line, strlen(line)));
}

#endif
