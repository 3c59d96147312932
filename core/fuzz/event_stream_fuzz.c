/* Server-sent events. The first byte says what the rest is: data of an event, an id, a record, a field Accept.
 *
 * Holds for every input: an event has a field in each line, and its data are found again; an id that is read is written
 * as the same id, unless it is a position alone; names of a record are written and read again. */
#include "oribi/base/error.h"
#include "oribi/http/event_stream.h"

#include "ours.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_at_event(struct oribi_slice data)
{
    struct oribi_buf out = {0};
    size_t at = 0;
    expect(oribi_event_write(&out, oribi_slice(NULL, 0), data) == 0);
    for (size_t i = 0; i < out.len; i++) {
        const char *end = memchr(out.p + i, '\n', out.len - i);
        size_t n = end ? (size_t)(end - out.p) - i : 0;
        expect(end && !memchr(out.p + i, '\r', n));
        if (n == 0) {
            expect(i + 1 == out.len);
            break;
        }
        expect(n >= 6 && memcmp(out.p + i, "data: ", 6) == 0);
        expect(n - 6 <= data.n - at && (n == 6 || memcmp(data.p + at, out.p + i + 6, n - 6) == 0));
        at += n - 6;
        if (at < data.n)
            at += data.n - at > 1 && data.p[at] == '\r' && data.p[at + 1] == '\n' ? 2 : 1;
        i += n;
    }
    expect(at == data.n);
    oribi_buf_deinit(&out);
}

static void look_at_id(struct oribi_slice text, uint32_t count)
{
    struct oribi_event_position positions[ORIBI_EVENT_CHANNELS_MAX];
    struct oribi_buf out = {0};
    if (oribi_event_id_read(text, 0, positions, count) == 0 && memchr(text.p, '.', text.n)) {
        struct oribi_event_position again[ORIBI_EVENT_CHANNELS_MAX];
        expect(oribi_event_id_write(&out, 0, positions, count) == 0);
        expect(oribi_event_id_read(oribi_slice(out.p, out.len), 0, again, count) == 0);
        expect(memcmp(positions, again, count * sizeof(*again)) == 0);
        expect(out.len <= text.n);
    }
    oribi_buf_deinit(&out);
}

static void look_at_record(struct oribi_slice text)
{
    struct oribi_event_record record;
    struct oribi_event_record again;
    struct oribi_buf out = {0};
    static char name[ORIBI_EVENT_RECORD_BYTES_MAX];
    static char same[ORIBI_EVENT_RECORD_BYTES_MAX];
    ssize_t n;
    if (oribi_event_record_read(text, &record) < 0)
        return;
    struct oribi_slice names = record.names;
    expect(oribi_event_record_begin(&out, record.retry_ms, oribi_slice(NULL, 0)) == 0);
    while ((n = oribi_event_record_next(&names, name)) > 0)
        if (oribi_event_record_add(&out, oribi_slice(name, (size_t)n)) < 0)
            break;
    if (n == 0) {
        expect(oribi_event_record_read(oribi_slice(out.p, out.len), &again) == 0);
        expect(again.retry_ms == record.retry_ms);
        while ((n = oribi_event_record_next(&record.names, name)) > 0)
            expect(oribi_event_record_next(&again.names, same) == n && memcmp(name, same, (size_t)n) == 0);
        expect(oribi_event_record_next(&again.names, same) == 0);
    }
    oribi_buf_deinit(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct oribi_slice rest = oribi_slice((const char *)data + 1, size - 1);
    switch (data[0] & 3) {
    case 0:
        look_at_event(rest);
        break;
    case 1:
        look_at_id(rest, 1U + (data[0] >> 2) % 4);
        break;
    case 2:
        look_at_record(rest);
        break;
    default:
        (void)oribi_event_stream_is_accepted(rest);
    }
    return 0;
}
