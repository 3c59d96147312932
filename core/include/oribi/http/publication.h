/* Records by which publications travel: from a publisher to the frontend that leads, from that to the other frontends,
 * and histories between frontends. doc/internals/publish.md has the ways. Pure: bytes in, slices out.
 *
 *   'P'  flags 1  channel 2  event 1  data 4  epoch 8  offset 8   then channel, event, and data, or their begin
 *   'S'  epoch 8  text 4                                          the text is apart, where it has a byte
 *
 * Numbers are big endian. What is apart lies in sealed memory, whose descriptor comes with the record. The begin of
 * data that is apart stands in the record for its weight alone: so a socket's buffer bounds what is apart too. */
#ifndef ORIBI_HTTP_PUBLICATION_H
#define ORIBI_HTTP_PUBLICATION_H

#include "oribi/base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ORIBI_PUBLICATION_CHANNEL_BYTES_MAX = 256, /* at least 1, of UTF-8, and no control character */
    ORIBI_PUBLICATION_EVENT_BYTES_MAX = 64,    /* of UTF-8, and no control character */
    ORIBI_PUBLICATION_DATA_BYTES_MAX = 1 << 20,
    ORIBI_PUBLICATION_INLINE_BYTES_MAX = 32 * 1024, /* longer data goes apart */
    ORIBI_PUBLICATION_FIXED_BYTES = 25,
    ORIBI_PUBLICATION_HEAD_CAP =
        ORIBI_PUBLICATION_FIXED_BYTES + ORIBI_PUBLICATION_CHANNEL_BYTES_MAX + ORIBI_PUBLICATION_EVENT_BYTES_MAX,
    ORIBI_PUBLICATION_RECORD_CAP = ORIBI_PUBLICATION_HEAD_CAP + ORIBI_PUBLICATION_INLINE_BYTES_MAX,
    ORIBI_SNAPSHOT_BYTES = 13,
    ORIBI_SNAPSHOT_TEXT_BYTES_MAX = 1 << 30,
};

struct oribi_publication {
    struct oribi_slice channel;
    struct oribi_slice event; /* n 0: none */
    struct oribi_slice data;  /* p NULL, n > 0: it is apart */
    bool binary;              /* else it is UTF-8 */
    uint64_t epoch;           /* as the leader has given it, with the offset; both 0: not yet, or none */
    uint64_t offset;
};

/* May it be published? 0; ORIBI_EINVAL: its channel or event; ORIBI_ELIMIT: its data is too long; ORIBI_EBAD: its data
 * is to be text and is not UTF-8. Data that is apart must be here (p not NULL). */
int oribi_publication_check(const struct oribi_publication *publication);

/* One line on what such a code stands for. Static storage. */
const char *oribi_publication_mistake(const struct oribi_publication *publication, int code);

/* Writes the record up to the data; `out` has ORIBI_PUBLICATION_HEAD_CAP bytes. Gives its length. The publication has
 * passed oribi_publication_check(). */
size_t oribi_publication_head(const struct oribi_publication *publication, char *out);

/* The bytes that belong behind it: the data, or the begin of data that goes apart. */
struct oribi_slice oribi_publication_body(const struct oribi_publication *publication);
bool oribi_publication_goes_apart(const struct oribi_publication *publication);

/* Reads a record that fills `record`; slices point into it. 0 or ORIBI_EBAD. Lengths are within their maxima then;
 * oribi_publication_check() looks at the rest. */
int oribi_publication_read(struct oribi_slice record, struct oribi_publication *publication);

/* The history of all topics, and the epoch of those that begin. */
struct oribi_snapshot {
    uint64_t epoch;
    uint32_t text_bytes; /* 0: no topic has a history */
};

void oribi_snapshot_write(const struct oribi_snapshot *snapshot, char out[ORIBI_SNAPSHOT_BYTES]);
int oribi_snapshot_read(struct oribi_slice record, struct oribi_snapshot *snapshot);

#endif
