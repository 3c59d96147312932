/* The ring; see the header. A position is an index modulo the size, so that records may lie across the end. */
#include "oribi/base/ring.h"

#include "oribi/base/error.h"

#include <string.h>

_Static_assert((ORIBI_RING_BYTES & (ORIBI_RING_BYTES - 1)) == 0, "positions wrap around at a multiple of the size");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "an atomic with a lock inside cannot be shared between processes");
_Static_assert(sizeof(struct oribi_ring_record) == ORIBI_RING_HEAD_BYTES, "the head as it lies in memory");

static uint32_t padded(uint64_t n)
{
    return (uint32_t)((n + ORIBI_RING_HEAD_BYTES - 1) & ~(uint64_t)(ORIBI_RING_HEAD_BYTES - 1));
}

static void copy_in(struct oribi_ring *ring, uint32_t at, const void *src, size_t n)
{
    uint32_t index = at & (ORIBI_RING_BYTES - 1);
    size_t before = ORIBI_RING_BYTES - index;
    if (n <= before) {
        memcpy(ring->bytes + index, src, n);
        return;
    }
    memcpy(ring->bytes + index, src, before);
    memcpy(ring->bytes, (const char *)src + before, n - before);
}

static void copy_out(const struct oribi_ring *ring, uint32_t at, void *dst, size_t n)
{
    uint32_t index = at & (ORIBI_RING_BYTES - 1);
    size_t before = ORIBI_RING_BYTES - index;
    if (n <= before) {
        memcpy(dst, ring->bytes + index, n);
        return;
    }
    memcpy(dst, ring->bytes + index, before);
    memcpy((char *)dst + before, ring->bytes, n - before);
}

/* --- writing --- */

void oribi_ring_writer_init(struct oribi_ring_writer *writer, struct oribi_ring *ring)
{
    uint64_t written = atomic_load_explicit(&ring->written, memory_order_acquire);
    *writer = (struct oribi_ring_writer){.ring = ring, .end = (uint32_t)written, .start = (uint32_t)(written >> 32)};
}

/* Is there room for `need` bytes at *end? Where all is read, *end goes to the front of the memory, and *start with it:
 * where a reader goes on that is behind it. */
static bool have_room(const struct oribi_ring_writer *writer, uint64_t need, uint32_t *start, uint32_t *end)
{
    /* acquire: what the reader has copied is overwritten from here on */
    uint32_t read = (uint32_t)atomic_load_explicit(&writer->ring->taken, memory_order_acquire);
    *end = writer->end;
    *start = (int32_t)(read - writer->start) > 0 ? read : writer->start;
    uint32_t used = *end - *start;
    if (used == 0)
        *start = *end = (*end + ORIBI_RING_BYTES - 1) & ~(uint32_t)(ORIBI_RING_BYTES - 1);
    return used <= ORIBI_RING_BYTES && need <= ORIBI_RING_BYTES - used;
}

/* Release: the reader that sees the end sees the bytes before it. */
static void publish(struct oribi_ring_writer *writer, uint32_t start, uint32_t at, uint32_t end)
{
    writer->start = start;
    writer->last = at;
    writer->end = end;
    atomic_store_explicit(&writer->ring->written, (uint64_t)start << 32 | end, memory_order_release);
}

bool oribi_ring_write(struct oribi_ring_writer *writer, uint32_t kind, const struct iovec *vec, size_t count,
                      size_t total)
{
    uint32_t start;
    uint32_t at;
    const struct oribi_ring_record head = {.length = total, .kind = kind};
    if (total > ORIBI_RING_RECORD_MAX)
        return false;
    uint32_t length = ORIBI_RING_HEAD_BYTES + padded(total);
    if (!have_room(writer, length + ORIBI_RING_RESERVE_BYTES, &start, &at))
        return false;
    const uint32_t first = at;
    copy_in(writer->ring, at, &head, sizeof(head));
    at += ORIBI_RING_HEAD_BYTES;
    for (size_t i = 0; i < count; i++) {
        if (vec[i].iov_len == 0)
            continue;
        copy_in(writer->ring, at, vec[i].iov_base, vec[i].iov_len);
        at += (uint32_t)vec[i].iov_len;
    }
    publish(writer, start, first, first + length);
    return true;
}

bool oribi_ring_write_head(struct oribi_ring_writer *writer, const struct oribi_ring_record *record)
{
    uint32_t start;
    uint32_t at;
    if (!have_room(writer, ORIBI_RING_HEAD_BYTES, &start, &at))
        return false;
    copy_in(writer->ring, at, record, sizeof(*record));
    publish(writer, start, at, at + ORIBI_RING_HEAD_BYTES);
    return true;
}

/* In the place of what is left: no record has as much. */
static const uint64_t taken_back = (uint64_t)UINT32_MAX << 32;

bool oribi_ring_take_back(struct oribi_ring_writer *writer)
{
    uint64_t taken = atomic_load_explicit(&writer->ring->taken, memory_order_acquire);
    if (taken >> 32 || writer->end == writer->last || (int32_t)((uint32_t)taken - writer->last) > 0)
        return false;
    return atomic_compare_exchange_strong_explicit(&writer->ring->taken, &taken, taken_back | taken,
                                                   memory_order_acq_rel, memory_order_relaxed);
}

/* --- reading --- */

static uint64_t position(const struct oribi_ring_reader *reader)
{
    return (uint64_t)reader->left << 32 | reader->at;
}

/* Release: the writer may overwrite what is before the position. */
static void store_taken(struct oribi_ring_reader *reader)
{
    reader->taken = position(reader);
    atomic_store_explicit(&reader->ring->taken, reader->taken, memory_order_release);
}

/* Stores the position behind the head of a record that begins. False: the record was taken back. */
static bool claim(struct oribi_ring_reader *reader)
{
    uint64_t before = reader->taken;
    reader->taken = position(reader);
    return atomic_exchange_explicit(&reader->ring->taken, reader->taken, memory_order_acq_rel) == before;
}

void oribi_ring_reader_init(struct oribi_ring_reader *reader, struct oribi_ring *ring)
{
    uint64_t taken = atomic_load_explicit(&ring->taken, memory_order_acquire);
    *reader = (struct oribi_ring_reader){ring, (uint32_t)taken, (uint32_t)(taken >> 32), taken};
}

/* How many bytes lie at the position, which goes to where the writer has begun anew. */
static int64_t available(struct oribi_ring_reader *reader)
{
    uint64_t written = atomic_load_explicit(&reader->ring->written, memory_order_acquire);
    uint32_t end = (uint32_t)written;
    uint32_t start = (uint32_t)(written >> 32);
    if (reader->left == 0 && end != reader->at && (int32_t)(start - reader->at) > 0)
        reader->at = start;
    uint32_t n = end - reader->at;
    return n <= ORIBI_RING_BYTES ? (int64_t)n : ORIBI_EBAD;
}

int oribi_ring_next(struct oribi_ring_reader *reader, uint32_t inside, struct oribi_ring_record *record)
{
    int64_t n = available(reader);
    if (n <= 0)
        return (int)n;
    if (n < ORIBI_RING_HEAD_BYTES || reader->left > 0)
        return ORIBI_EBAD;
    copy_out(reader->ring, reader->at, record, sizeof(*record));
    bool is_inside = record->kind == inside;
    if (is_inside && record->length > (uint64_t)n - ORIBI_RING_HEAD_BYTES)
        return ORIBI_EBAD;
    reader->at += ORIBI_RING_HEAD_BYTES;
    reader->left = is_inside ? (uint32_t)record->length : 0;
    return claim(reader) ? 1 : ORIBI_ECLOSED;
}

uint32_t oribi_ring_next_kind(struct oribi_ring_reader *reader)
{
    struct oribi_ring_record record;
    if (reader->left > 0 || available(reader) < ORIBI_RING_HEAD_BYTES)
        return 0;
    copy_out(reader->ring, reader->at, &record, sizeof(record));
    return record.kind;
}

/* How many bytes of the record are left, all of which lie in the ring. 0: it is at its end; or a code. */
static int64_t rest(struct oribi_ring_reader *reader)
{
    if (reader->left == UINT32_MAX)
        return ORIBI_ECLOSED;
    return reader->left == 0 || available(reader) >= (int64_t)reader->left ? (int64_t)reader->left : ORIBI_EBAD;
}

/* Goes past so many bytes of the record; past its padding too, where they are the last. */
static void go_past(struct oribi_ring_reader *reader, uint32_t part)
{
    reader->at += part;
    reader->left -= part;
    if (reader->left == 0)
        reader->at = padded(reader->at);
}

int64_t oribi_ring_take(struct oribi_ring_reader *reader, void *dst, size_t n)
{
    int64_t left = rest(reader);
    if (left <= 0)
        return left;
    uint32_t part = n < reader->left ? (uint32_t)n : reader->left;
    copy_out(reader->ring, reader->at, dst, part);
    go_past(reader, part);
    store_taken(reader);
    return part;
}

int64_t oribi_ring_borrow(struct oribi_ring_reader *reader, char **p)
{
    int64_t left = rest(reader);
    if (left <= 0)
        return left;
    uint32_t index = reader->at & (ORIBI_RING_BYTES - 1);
    uint32_t part = reader->left < ORIBI_RING_BYTES - index ? reader->left : ORIBI_RING_BYTES - index;
    *p = reader->ring->bytes + index;
    go_past(reader, part);
    return part;
}

void oribi_ring_return(struct oribi_ring_reader *reader)
{
    store_taken(reader);
}
