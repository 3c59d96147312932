/* HTTP/2: no bytes of a client may crash a session, make it forget memory, break its limits, or make it send what is no
 * frame. A stream gets one answer, or its begin and a reset, and nothing behind either; a GOAWAY names no higher stream
 * than the one before it. The first byte chooses limits and the way, the second the cuts and what the application does;
 * the rest is what a client sends behind preface and SETTINGS, or instead of them.
 *
 * Two ways: cut in two ways, with equal events and frames; or with an application that answers, resets, stores, sleeps
 * and ends the connection as it comes. */
#include "frontend/h2_lab.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char begin[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0\0\0\0\4\1\0\0\0\0";

enum { RAW = 1, ACTS = 2, SMALL = 4, SLEEPS = 8, KEEPS = 16, CALM = 32, NO_TABLE = 64, TRUSTED = 128 };

static void set_up(struct lab *lab, uint8_t options)
{
    lab_init(lab);
    lab->limits.sleeps = options & SLEEPS;
    lab->limits.trusted = options & TRUSTED;
    lab->limits.connects_sockets = true;
    if (options & NO_TABLE)
        lab->limits.table_bytes = 0;
    lab->stores = !(options & KEEPS);
    if (options & SMALL) {
        lab->limits.streams_max = 2;
        lab->limits.left_max = 1;
        lab->limits.http.head_bytes_max = 300;
        lab->limits.http.body_bytes_max = 40;
        lab->limits.http.fields_max = 5;
    }
    if (options & CALM) {
        lab->limits.resets_max = 2;
        lab->limits.frames_max = 5;
    }
    lab_begin(lab);
}

static void feed(struct lab *lab, const char *p, size_t n)
{
    char *copy = oribi_mem_alloc(1, n ? n : 1);
    memcpy(copy, p, n);
    int result = lab_feed(lab, copy, n);
    oribi_mem_free(copy);
    if ((result == ORIBI_ECLOSED) != oribi_h2_is_over(lab->h2) ||
        oribi_h2_streams(lab->h2) > lab->limits.streams_max + lab->limits.left_max)
        abort();
}

/* ---- what was sent ---- */

struct seen {
    uint32_t id;
    bool answered; /* its final head was sent */
    bool ended;
    bool reset;
};

static struct seen *seen_stream(struct seen *seen, size_t *count, uint32_t id)
{
    for (size_t i = *count; i-- > 0;)
        if (seen[i].id == id)
            return &seen[i];
    seen[*count] = (struct seen){.id = id};
    return &seen[(*count)++];
}

static bool begins(const char *line, const char *word)
{
    return strncmp(line, word, strlen(word)) == 0;
}

/* Interim answers, the answer, its body, trailers. Heads here are no longer than a frame. */
static void check_stream(struct seen *stream, const char *line, const char *rest)
{
    bool last = begins(rest, " END_STREAM");
    const char *status = strstr(rest, " :status=");
    if (stream->reset || (stream->ended && !begins(line, "RST_STREAM")))
        abort();
    if (begins(line, "RST_STREAM")) {
        stream->reset = true;
    } else if (begins(line, "DATA")) {
        if (!stream->answered)
            abort();
        stream->ended = last;
    } else if (status && status[9] == '1') {
        if (stream->answered || last)
            abort();
    } else {
        if (stream->answered == (status != NULL) || (!status && !last))
            abort();
        stream->answered = true;
        stream->ended = last;
    }
}

static void check_order(const struct lab *lab)
{
    static struct seen seen[4096]; /* more than frames of an input */
    size_t count = 0;
    unsigned long last_id = UINT32_MAX;
    char *text = strndup(lab->frames.p ? lab->frames.p : "", lab->frames.len);
    char *left = NULL;
    for (char *line = strtok_r(text, "\n", &left); line; line = strtok_r(NULL, "\n", &left)) {
        char *rest = strchr(line, ' ');
        char *behind = NULL;
        unsigned long id = rest ? strtoul(rest, &behind, 10) : 0;
        if (begins(line, "GOAWAY")) {
            if (id > last_id)
                abort();
            last_id = id;
        } else if (begins(line, "HEADERS") || begins(line, "DATA") || begins(line, "RST_STREAM")) {
            check_stream(seen_stream(seen, &count, (uint32_t)id), line, behind);
        }
    }
    free(text);
}

static void check_frames(const struct lab *lab)
{
    if (lab->bytes.len)
        abort(); /* part of a frame */
    check_order(lab);
    if (lab->frames.len &&
        (memmem(lab->frames.p, lab->frames.len, "undecodable", 11) || memmem(lab->frames.p, lab->frames.len, "?\n", 2)))
        abort();
}

static void run_cut(struct lab *lab, uint8_t options, const char *p, size_t n, size_t piece)
{
    set_up(lab, options);
    lab->manner = LAB_ANSWERS;
    if (!(options & RAW))
        feed(lab, begin, sizeof(begin) - 1);
    for (size_t at = 0; at < n; at += piece)
        feed(lab, p + at, n - at < piece ? n - at : piece);
    lab_drain(lab, 1 << 20);
    check_frames(lab);
}

static bool same(const struct oribi_buf *a, const struct oribi_buf *b)
{
    return a->len == b->len && (a->len == 0 || memcmp(a->p, b->p, a->len) == 0);
}

/* ---- an application that does anything ---- */

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

static struct lab_stream *any_stream(struct lab *lab, uint32_t random)
{
    struct lab_stream *mine = lab->stream_count ? &lab->streams[random % lab->stream_count] : NULL;
    return mine && mine->stream ? mine : NULL;
}

static void act(struct lab *lab, uint32_t *state)
{
    static const struct oribi_field fields[] = {{"X-A", "b", 1, 3, 0}, {"Connection", "close", 5, 10, 0}};
    uint32_t random = next_random(state);
    struct lab_stream *mine = any_stream(lab, next_random(state));
    switch (random % 12) {
    case 0:
        lab_drain(lab, 1 + random % 30000);
        break;
    case 1:
        lab->now_ms += random % 50000;
        oribi_h2_tick(lab->h2, lab->now_ms);
        if (oribi_h2_deadline(lab->h2) <= lab->now_ms)
            abort();
        break;
    case 2:
    case 3:
        if (mine)
            (void)lab_answer(lab, mine->id, 200, random % 3 ? random % 40000 : SIZE_MAX);
        break;
    case 4:
        if (mine)
            (void)oribi_h2_interim(mine->stream, 103, fields, 2);
        break;
    case 5:
        if (mine && random % 3 == 0)
            oribi_h2_reset(mine->stream, ORIBI_H2_CANCEL);
        break;
    case 6:
        if (mine)
            lab_release(lab, mine->id);
        break;
    case 7:
        if (mine) {
            size_t n = mine->unstored ? random % (mine->unstored + 1) : 0;
            mine->unstored -= n;
            oribi_h2_stored(mine->stream, n);
        }
        break;
    case 8:
        if (mine)
            (void)oribi_h2_trailers(mine->stream, fields, 1);
        break;
    case 9:
        (void)oribi_h2_sleep(lab->h2);
        break;
    case 10:
        if (random % 16 == 0)
            oribi_h2_shutdown(lab->h2, lab->now_ms);
        break;
    default:
        if (mine)
            oribi_h2_ready(mine->stream);
        break;
    }
}

static void run_acting(uint8_t options, const char *p, size_t n, uint32_t seed)
{
    static struct lab lab;
    size_t piece = 1 + seed % 40;
    set_up(&lab, options);
    lab.manner = LAB_HOLDS;
    if (!(options & RAW))
        feed(&lab, begin, sizeof(begin) - 1);
    for (size_t at = 0; at < n; at += piece) {
        feed(&lab, p + at, n - at < piece ? n - at : piece);
        act(&lab, &seed);
        act(&lab, &seed);
    }
    lab_drain(&lab, 1000);
    check_frames(&lab);
    lab_deinit(&lab);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct lab one;
    static struct lab other;
    if (size < 2 || size > 4096)
        return 0;
    const char *p = (const char *)data + 2;
    int64_t blocks = oribi_mem_blocks();
    if (data[0] & ACTS) {
        run_acting(data[0], p, size - 2, data[1]);
    } else {
        run_cut(&one, data[0], p, size - 2, size);
        run_cut(&other, data[0], p, size - 2, 1 + data[1] % 16);
        if (!same(&one.events, &other.events) || !same(&one.frames, &other.frames))
            abort();
        lab_deinit(&one);
        lab_deinit(&other);
    }
    if (oribi_mem_blocks() != blocks)
        abort();
    return 0;
}
