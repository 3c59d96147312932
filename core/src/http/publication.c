/* Records of publications; see the header. */
#include "oribi/http/publication.h"

#include "oribi/base/error.h"
#include "oribi/http/scan.h"

#include <assert.h>

enum {
    BINARY = 1,
    APART = 2,
    AT_CHANNEL = 2, /* offsets of the lengths */
    AT_EVENT = 4,
    AT_DATA = 5,
    AT_EPOCH = 9,
    AT_OFFSET = 17,
};

static void put(char *out, uint64_t number, size_t bytes)
{
    while (bytes-- > 0) {
        out[bytes] = (char)(number & 0xff);
        number >>= 8;
    }
}

static uint64_t get(const char *p, size_t bytes)
{
    uint64_t number = 0;
    for (size_t i = 0; i < bytes; i++)
        number = number << 8 | (unsigned char)p[i];
    return number;
}

/* --- what may be published --- */

static bool has_control(struct oribi_slice text)
{
    for (size_t i = 0; i < text.n; i++)
        if ((unsigned char)text.p[i] < 0x20 || text.p[i] == 0x7f)
            return true;
    return false;
}

static bool names_channel(struct oribi_slice channel)
{
    return channel.n > 0 && channel.n <= ORIBI_PUBLICATION_CHANNEL_BYTES_MAX && !has_control(channel) &&
           oribi_scan_active->utf8(channel.p, channel.n);
}

static bool names_event(struct oribi_slice event)
{
    return event.n <= ORIBI_PUBLICATION_EVENT_BYTES_MAX && !has_control(event) &&
           (event.n == 0 || oribi_scan_active->utf8(event.p, event.n));
}

int oribi_publication_check(const struct oribi_publication *publication)
{
    struct oribi_slice data = publication->data;
    if (!names_channel(publication->channel) || !names_event(publication->event))
        return ORIBI_EINVAL;
    if (data.n > ORIBI_PUBLICATION_DATA_BYTES_MAX)
        return ORIBI_ELIMIT;
    assert(data.p || data.n == 0);
    return publication->binary || data.n == 0 || oribi_scan_active->utf8(data.p, data.n) ? 0 : ORIBI_EBAD;
}

const char *oribi_publication_mistake(const struct oribi_publication *publication, int code)
{
    if (code == ORIBI_ELIMIT)
        return "a message has at most 1048576 bytes";
    if (code == ORIBI_EBAD)
        return "a text that is not valid UTF-8; anything else is published as binary";
    if (!names_channel(publication->channel))
        return "the name of a channel has 1 to 256 bytes of UTF-8, and no control character";
    return "the name of an event has at most 64 bytes of UTF-8, and no control character";
}

/* --- publications --- */

bool oribi_publication_goes_apart(const struct oribi_publication *publication)
{
    return publication->data.n > ORIBI_PUBLICATION_INLINE_BYTES_MAX;
}

static size_t inline_bytes(size_t data)
{
    return data < ORIBI_PUBLICATION_INLINE_BYTES_MAX ? data : ORIBI_PUBLICATION_INLINE_BYTES_MAX;
}

struct oribi_slice oribi_publication_body(const struct oribi_publication *publication)
{
    return oribi_slice(publication->data.p, inline_bytes(publication->data.n));
}

size_t oribi_publication_head(const struct oribi_publication *publication, char *out)
{
    size_t channel = publication->channel.n;
    size_t event = publication->event.n;
    out[0] = 'P';
    out[1] = (char)((publication->binary ? BINARY : 0) | (oribi_publication_goes_apart(publication) ? APART : 0));
    put(out + AT_CHANNEL, channel, 2);
    put(out + AT_EVENT, event, 1);
    put(out + AT_DATA, publication->data.n, 4);
    put(out + AT_EPOCH, publication->epoch, 8);
    put(out + AT_OFFSET, publication->offset, 8);
    memcpy(out + ORIBI_PUBLICATION_FIXED_BYTES, publication->channel.p, channel);
    if (event)
        memcpy(out + ORIBI_PUBLICATION_FIXED_BYTES + channel, publication->event.p, event);
    return ORIBI_PUBLICATION_FIXED_BYTES + channel + event;
}

int oribi_publication_read(struct oribi_slice record, struct oribi_publication *publication)
{
    if (record.n < ORIBI_PUBLICATION_FIXED_BYTES || record.p[0] != 'P')
        return ORIBI_EBAD;
    unsigned flags = (unsigned char)record.p[1];
    size_t channel = (size_t)get(record.p + AT_CHANNEL, 2);
    size_t event = (size_t)get(record.p + AT_EVENT, 1);
    size_t data = (size_t)get(record.p + AT_DATA, 4);
    uint64_t epoch = get(record.p + AT_EPOCH, 8);
    uint64_t offset = get(record.p + AT_OFFSET, 8);
    bool apart = flags & APART;
    const char *p = record.p + ORIBI_PUBLICATION_FIXED_BYTES;
    if ((flags & ~(unsigned)(BINARY | APART)) || channel == 0 || channel > ORIBI_PUBLICATION_CHANNEL_BYTES_MAX ||
        event > ORIBI_PUBLICATION_EVENT_BYTES_MAX || data > ORIBI_PUBLICATION_DATA_BYTES_MAX ||
        apart != (data > ORIBI_PUBLICATION_INLINE_BYTES_MAX) || (epoch == 0) != (offset == 0) ||
        record.n != ORIBI_PUBLICATION_FIXED_BYTES + channel + event + inline_bytes(data))
        return ORIBI_EBAD;
    *publication = (struct oribi_publication){
        .channel = {p, channel},
        .event = {p + channel, event},
        .data = {apart ? NULL : p + channel + event, data},
        .binary = flags & BINARY,
        .epoch = epoch,
        .offset = offset,
    };
    return 0;
}

/* --- snapshots --- */

void oribi_snapshot_write(const struct oribi_snapshot *snapshot, char out[ORIBI_SNAPSHOT_BYTES])
{
    out[0] = 'S';
    put(out + 1, snapshot->epoch, 8);
    put(out + 9, snapshot->text_bytes, 4);
}

int oribi_snapshot_read(struct oribi_slice record, struct oribi_snapshot *snapshot)
{
    if (record.n != ORIBI_SNAPSHOT_BYTES || record.p[0] != 'S')
        return ORIBI_EBAD;
    uint64_t epoch = get(record.p + 1, 8);
    uint32_t bytes = (uint32_t)get(record.p + 9, 4);
    if (epoch == 0 || bytes > ORIBI_SNAPSHOT_TEXT_BYTES_MAX)
        return ORIBI_EBAD;
    *snapshot = (struct oribi_snapshot){epoch, bytes};
    return 0;
}
