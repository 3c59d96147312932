/* Replies of a server: however they are cut, the same events, texts and error come out of them, and the reader keeps
 * no more memory than what came asks for. The first byte chooses the cuts. */
#include "oribi/base/mem.h"
#include "oribi/redis/reader.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    STRING_MAX = 128 * 1024,
    COUNT_MAX = 1000,
    ROOM = 64,          /* elements that likely() may add */
    SPARE_BYTES = 8192, /* what a buffer may have beyond twice its input */
};

/* The events that the reader told, in bytes that can be compared. */
struct told {
    struct oribi_buf text;
    int error;
};

static void put(struct told *told, const void *p, size_t n)
{
    oribi_buf_append(&told->text, p, n);
}

static void tell(struct told *told, const struct oribi_redis_event *event, struct oribi_slice text)
{
    char head[2] = {(char)(event->kind == ORIBI_REDIS_LONG
                               ? event->format[0] ? ORIBI_REDIS_VERBATIM : ORIBI_REDIS_STRING
                               : event->kind),
                    (char)event->ends};
    uint64_t count = event->kind == ORIBI_REDIS_LONG ? 0 : event->count;
    uint64_t n = text.n;
    put(told, head, sizeof(head));
    put(told, event->format, sizeof(event->format));
    put(told, &event->integer, sizeof(event->integer));
    put(told, &count, sizeof(count));
    put(told, &n, sizeof(n));
    put(told, text.p, text.n);
}

/* Takes what has come of a LONG string. True: all of it. */
static bool take(struct oribi_redis_reader *reader, struct oribi_buf *body)
{
    size_t left = (size_t)oribi_redis_body_left(reader);
    char *p = oribi_buf_reserve(body, left + 1);
    body->len += oribi_redis_take(reader, p, left);
    return oribi_redis_body_left(reader) == 0;
}

static size_t step_of(uint8_t cuts, size_t left, uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    size_t step = cuts == 0 ? left : cuts < 64 ? cuts : 1 + (*state >> 16) % (cuts * 16u);
    return step < left ? step : left;
}

static void read_all(const char *input, size_t n, uint8_t cuts, struct told *told)
{
    struct oribi_redis_reader reader = {0};
    oribi_redis_reader_init(&reader, STRING_MAX, COUNT_MAX);
    struct oribi_redis_event pending = {0};
    struct oribi_buf body = {0};
    bool in_long = false;
    uint32_t state = cuts;
    for (size_t used = 0;;) {
        struct oribi_redis_event event;
        int found = ORIBI_AGAIN;
        if (!in_long) {
            found = oribi_redis_next(&reader, &event);
        } else if (take(&reader, &body)) {
            found = oribi_redis_body_end(&reader);
            if (found == 0) {
                tell(told, &pending, oribi_slice(body.p, body.len));
                body.len = 0;
                in_long = false;
                continue;
            }
        }
        if (found == 0 && event.kind == ORIBI_REDIS_LONG) {
            pending = event;
            in_long = true;
            continue;
        }
        if (found == 0) {
            if (reader.depth > ORIBI_REDIS_DEPTH_MAX || event.ends != (reader.depth == 0))
                abort();
            if (oribi_redis_likely(&reader, event.count) > n + ROOM)
                abort();
            tell(told, &event, event.text);
            continue;
        }
        told->error = found;
        if (found != ORIBI_AGAIN) {
            if (!reader.why || oribi_redis_next(&reader, &event) != ORIBI_EBAD)
                abort();
            break;
        }
        if (used == n)
            break;
        size_t room;
        size_t step = step_of(cuts, n - used, &state);
        char *p = oribi_redis_room(&reader, step, &room);
        if (!p || room < step || reader.in.cap > 2 * n + SPARE_BYTES)
            abort();
        memcpy(p, input + used, step);
        oribi_redis_got(&reader, step);
        used += step;
    }
    oribi_buf_deinit(&body);
    oribi_redis_reader_deinit(&reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    int64_t before = oribi_mem_blocks();
    struct told whole = {.error = 0};
    struct told cut = {.error = 0};
    /* Of its own size: a byte beyond it is seen. */
    char *input = oribi_mem_alloc(1, size);
    memcpy(input, data + 1, size - 1);
    read_all(input, size - 1, 0, &whole);
    read_all(input, size - 1, data[0] ? data[0] : 1, &cut);
    if (whole.error != cut.error || whole.text.len != cut.text.len ||
        (whole.text.len && memcmp(whole.text.p, cut.text.p, whole.text.len) != 0))
        abort();
    oribi_mem_free(input);
    oribi_buf_deinit(&whole.text);
    oribi_buf_deinit(&cut.text);
    if (oribi_mem_blocks() != before)
        abort();
    return 0;
}
