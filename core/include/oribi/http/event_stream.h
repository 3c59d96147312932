/* Server-sent events (WHATWG HTML, "Server-sent events"): events as bytes, the ids that name where a stream stands, and
 * the record by which a worker tells a frontend of a stream. Pure: bytes in, slices out. */
#ifndef ORIBI_HTTP_EVENT_STREAM_H
#define ORIBI_HTTP_EVENT_STREAM_H

#include "oribi/base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    ORIBI_EVENT_CHANNELS_MAX = 256,              /* of a stream */
    ORIBI_EVENT_RECORD_BYTES_MAX = 32 * 1024,    /* the value of a header field */
    ORIBI_EVENT_SINCE_BYTES_MAX = 8 * 1024,      /* as a client or an application gives it */
    ORIBI_EVENT_RETRY_MS_MAX = 24 * 3600 * 1000, /* beyond it a client would not come back on the same day */
};

/* ---- events ---- */

/* Appends `event:`, unless the name is empty, a `data:` for each line, and the empty line that ends the event. Lines
 * end with CRLF, LF or CR, as a client's parser has it; a client joins them with LF. The name has no line end. 0 or
 * ORIBI_ENOMEM. */
int oribi_event_write(struct oribi_buf *out, struct oribi_slice name, struct oribi_slice data);

/* ---- ids ---- */

/* Where a stream stands in a channel. Epoch 0: the channel has no history. */
struct oribi_event_position {
    uint64_t epoch;
    uint64_t offset;
};

/* Continues a hash over the names of a stream's channels, in their order; begins with 0. Ids of other channels are
 * found by it, so that no position is taken for that of another channel. */
uint32_t oribi_event_hash(uint32_t hash, struct oribi_slice name);

/* Appends an id, HASH.POSITION,POSITION…: the hash as 8 hexadecimal digits, and in the order of the channels
 * EPOCH-OFFSET, OFFSET alone where the epoch is that of the position before, or nothing where the channel has no
 * history. 0 or ORIBI_ENOMEM. */
int oribi_event_id_write(struct oribi_buf *out, uint32_t hash, const struct oribi_event_position *positions,
                         uint32_t count);

/* Reads such an id of the channels with this hash; for one channel EPOCH-OFFSET alone is an id, too. 0, or ORIBI_EBAD:
 * malformed, or of other channels; positions are untouched then. */
int oribi_event_id_read(struct oribi_slice text, uint32_t hash, struct oribi_event_position *positions, uint32_t count);

/* ---- the record ----
 *
 *   RETRY SINCE NAME NAME …        printable characters alone; others, the space and % as %XX
 *
 * RETRY in milliseconds, SINCE as the client or the application has given it; "-" each where there is none. */

struct oribi_event_record {
    int64_t retry_ms;         /* -1: none */
    struct oribi_slice since; /* as it stands in the record */
    struct oribi_slice names;
};

/* Appends the begin of a record, and a channel to it. 0, ORIBI_ENOMEM; or ORIBI_ELIMIT, and nothing is appended: a
 * value out of its range, more bytes than a record may have. */
int oribi_event_record_begin(struct oribi_buf *out, int64_t retry_ms, struct oribi_slice since);
int oribi_event_record_add(struct oribi_buf *out, struct oribi_slice name);

/* Reads one that fills `text`; slices point into it. 0 or ORIBI_EBAD. */
int oribi_event_record_read(struct oribi_slice text, struct oribi_event_record *record);

/* Takes the first name off, and decodes it to `dst`, which has room for as many bytes as `names` has. Its length; 0:
 * there is none; ORIBI_EBAD. */
ssize_t oribi_event_record_next(struct oribi_slice *names, char *dst);

/* Decodes a text of the record, as the one above. Its length or ORIBI_EBAD. */
ssize_t oribi_event_record_decode(struct oribi_slice text, char *dst);

/* ---- requests ---- */

/* Does the value of an Accept field name text/event-stream? */
bool oribi_event_stream_is_accepted(struct oribi_slice accept);

#endif
