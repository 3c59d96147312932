/* Reads the cases of spec/websocket: the words of `send`, `event` and `open` lines become bytes. See spec/README.md. */
#ifndef ORIBI_TEST_WEBSOCKET_CASE_H
#define ORIBI_TEST_WEBSOCKET_CASE_H

#include "case_file.h"
#include "oribi/http/websocket.h"
#include "websocket_told.h"

struct websocket_frame {
    uint8_t first; /* FIN, reserved bits, opcode */
    bool masked;
    bool lies;       /* `length` is what the head says, whatever the payload is */
    int length_bits; /* 7, 16, 64; 0: as few as it needs */
    uint64_t length;
    uint8_t mask[4];
    struct oribi_buf payload;
};

__attribute__((noreturn)) static void websocket_bad_word(struct oribi_slice word)
{
    (void)fprintf(stderr, "unknown word in a case of spec/websocket: %.*s\n", (int)word.n, word.p);
    exit(2);
}

static bool websocket_next_word(struct oribi_slice *line, struct oribi_slice *word)
{
    const char *space = line->n ? memchr(line->p, ' ', line->n) : NULL;
    size_t n = space ? (size_t)(space - line->p) : line->n;
    *word = oribi_slice(line->p, n);
    *line = oribi_slice(line->p + n + (space ? 1 : 0), line->n - n - (space ? 1 : 0));
    return n > 0;
}

/* The rest of a word behind `prefix`; .p is NULL where it begins otherwise. */
static struct oribi_slice websocket_behind(struct oribi_slice word, const char *prefix)
{
    size_t n = strlen(prefix);
    bool begins = word.n >= n && memcmp(word.p, prefix, n) == 0;
    return begins ? oribi_slice(word.p + n, word.n - n) : oribi_slice(NULL, 0);
}

static bool websocket_number(struct oribi_slice word, const char *prefix, uint64_t *number)
{
    struct oribi_slice value = websocket_behind(word, prefix);
    if (value.p)
        *number = strtoull(value.p, NULL, 0);
    return value.p != NULL;
}

static void websocket_add_hex(struct oribi_buf *buf, struct oribi_slice digits)
{
    for (size_t i = 0; i + 1 < digits.n; i += 2) {
        char byte = (char)(case_hex(digits.p[i]) << 4 | case_hex(digits.p[i + 1]));
        oribi_buf_append(buf, &byte, 1);
    }
}

/* letters:N is N letters, letters:N*M the same M times. */
static void websocket_add_letters(struct oribi_buf *buf, struct oribi_slice value)
{
    static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz";
    char *star;
    size_t n = strtoull(value.p, &star, 10);
    size_t times = *star == '*' ? strtoull(star + 1, NULL, 10) : 1;
    char *dst = oribi_buf_reserve(buf, n * times);
    for (size_t i = 0; i < n * times; i++)
        dst[i] = alphabet[i % n % 26];
    buf->len += n * times;
}

/* Adds the payload that the word stands for; false: it is another word. */
static bool websocket_payload(struct oribi_buf *buf, struct oribi_slice word)
{
    static char text[70000];
    uint64_t code;
    struct oribi_slice value = websocket_behind(word, "text:");
    if (value.p) {
        oribi_buf_append(buf, text, case_unescape(value, text, sizeof(text)));
        return true;
    }
    if ((value = websocket_behind(word, "hex:")).p) {
        websocket_add_hex(buf, value);
        return true;
    }
    if ((value = websocket_behind(word, "letters:")).p) {
        websocket_add_letters(buf, value);
        return true;
    }
    if (websocket_number(word, "code:", &code)) {
        char bytes[2] = {(char)(code >> 8), (char)code};
        oribi_buf_append(buf, bytes, sizeof(bytes));
        return true;
    }
    return false;
}

/* The opcode that a frame's first word names. */
static uint8_t websocket_opcode(struct oribi_slice word)
{
    static const char *const names[] = {[ORIBI_WEBSOCKET_CONTINUATION] = "CONTINUATION",
                                        [ORIBI_WEBSOCKET_TEXT] = "TEXT",
                                        [ORIBI_WEBSOCKET_BINARY] = "BINARY",
                                        [ORIBI_WEBSOCKET_CLOSE] = "CLOSE",
                                        [ORIBI_WEBSOCKET_PING] = "PING",
                                        [ORIBI_WEBSOCKET_PONG] = "PONG"};
    uint64_t opcode;
    for (uint8_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (names[i] && oribi_slice_equal(word, oribi_slice(names[i], strlen(names[i]))))
            return i;
    if (!websocket_number(word, "opcode:", &opcode))
        websocket_bad_word(word);
    return (uint8_t)opcode;
}

static void websocket_frame_word(struct websocket_frame *frame, struct oribi_slice word)
{
    uint64_t number;
    struct oribi_slice mask = websocket_behind(word, "mask:");
    if (oribi_slice_equal(word, ORIBI_SLICE("more"))) {
        frame->first &= 0x7f;
    } else if (oribi_slice_equal(word, ORIBI_SLICE("masked"))) {
        frame->masked = true;
    } else if (oribi_slice_equal(word, ORIBI_SLICE("unmasked"))) {
        frame->masked = false;
    } else if (websocket_number(word, "rsv:", &number)) {
        frame->first = (uint8_t)(frame->first | number << 4);
    } else if (websocket_number(word, "as:", &number)) {
        frame->length_bits = (int)number;
    } else if (websocket_number(word, "length:", &number)) {
        frame->lies = true;
        frame->length = number;
    } else if (mask.n == 8) {
        struct oribi_buf bytes = {0};
        websocket_add_hex(&bytes, mask);
        memcpy(frame->mask, bytes.p, sizeof(frame->mask));
        oribi_buf_deinit(&bytes);
    } else if (!websocket_payload(&frame->payload, word)) {
        websocket_bad_word(word);
    }
}

static void websocket_add_frame(struct oribi_buf *buf, struct websocket_frame *frame)
{
    uint64_t n = frame->lies ? frame->length : frame->payload.len;
    int bits = frame->length_bits ? frame->length_bits : n < 126 ? 7 : n <= UINT16_MAX ? 16 : 64;
    uint8_t head[10] = {frame->first, (uint8_t)((frame->masked ? 0x80 : 0) | (bits == 7    ? (int)n
                                                                              : bits == 16 ? 126
                                                                                           : 127))};
    size_t len = 2;
    for (int shift = bits == 7 ? -8 : bits - 8; shift >= 0; shift -= 8)
        head[len++] = (uint8_t)(n >> shift);
    oribi_buf_append(buf, head, len);
    if (frame->masked)
        oribi_buf_append(buf, frame->mask, sizeof(frame->mask));
    for (size_t i = 0; frame->masked && i < frame->payload.len; i++)
        frame->payload.p[i] = (char)((uint8_t)frame->payload.p[i] ^ frame->mask[i % 4]);
    oribi_buf_append(buf, frame->payload.p, frame->payload.len);
}

/* Adds what a `send` line says: a frame, or `bytes` and what they are. */
static void websocket_send(struct oribi_buf *buf, struct oribi_slice line, enum oribi_websocket_role role)
{
    struct websocket_frame frame = {.masked = role == ORIBI_WEBSOCKET_SERVER, .mask = {0x37, 0xfa, 0x21, 0x3d}};
    struct oribi_slice word;
    if (!websocket_next_word(&line, &word))
        websocket_bad_word(word);
    if (oribi_slice_equal(word, ORIBI_SLICE("bytes"))) {
        while (websocket_next_word(&line, &word))
            if (!websocket_payload(buf, word))
                websocket_bad_word(word);
        return;
    }
    frame.first = (uint8_t)(0x80 | websocket_opcode(word));
    while (websocket_next_word(&line, &word))
        websocket_frame_word(&frame, word);
    websocket_add_frame(buf, &frame);
    oribi_buf_deinit(&frame.payload);
}

/* Adds what an `event` line says, as struct told has it. */
static void websocket_event(struct oribi_buf *buf, struct oribi_slice line)
{
    struct oribi_buf payload = {0};
    struct oribi_slice kind;
    struct oribi_slice word;
    uint64_t code;
    char label[32];
    (void)websocket_next_word(&line, &kind);
    (void)snprintf(label, sizeof(label), "%.*s", (int)kind.n, kind.p);
    while (websocket_next_word(&line, &word)) {
        if (websocket_number(word, "code:", &code))
            (void)snprintf(label, sizeof(label), "%.*s %u", (int)kind.n, kind.p, (unsigned)code);
        else if (!websocket_payload(&payload, word))
            websocket_bad_word(word);
    }
    told_line(buf, label, payload.p, payload.len);
    oribi_buf_deinit(&payload);
}

/* Adds all lines of a key, each as often as a `times` line right behind it says. */
__attribute__((unused)) static void websocket_lines(const struct case_file *cases, const char *key,
                                                    struct oribi_buf *buf, enum oribi_websocket_role role)
{
    for (size_t i = 0; i < cases->count; i++) {
        if (strcmp(cases->lines[i].key, key) != 0)
            continue;
        unsigned long times = 1;
        if (i + 1 < cases->count && strcmp(cases->lines[i + 1].key, "times") == 0)
            times = strtoul(cases->lines[i + 1].raw.p, NULL, 10);
        for (unsigned long k = 0; k < times; k++) {
            if (strcmp(key, "send") == 0)
                websocket_send(buf, cases->lines[i].raw, role);
            else
                websocket_event(buf, cases->lines[i].raw);
        }
    }
}

#endif
