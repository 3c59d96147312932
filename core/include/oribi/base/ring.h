/* ring - a queue of records in memory that two processes share: one end writes, the other reads.
 *
 *   record: 16 bytes of head, then its bytes, then room up to the next multiple of 16
 *
 * Neither end trusts the other: positions are checked against the size before each use, bytes are copied, and an end
 * keeps its own position to itself. Nonsense in the memory gives ORIBI_EBAD or nonsense as bytes, never an access
 * beyond the ring. A process that takes an end over (oribi_ring_reader_init(), oribi_ring_writer_init()) goes on where
 * the last one stopped.
 *
 * A writer that finds all records read begins at the front of the memory again, so that an exchange of short messages
 * uses the same few cache lines each time.
 *
 * A writer may take its last record back, until the reader begins it: one of both has it.
 *
 * One thread at a time uses an end. Nothing here waits or wakes; worker/channel_ring.h does. */
#ifndef ORIBI_BASE_RING_H
#define ORIBI_BASE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum {
    ORIBI_RING_BYTES = 128 * 1024, /* a power of two */
    ORIBI_RING_HEAD_BYTES = 16,
    ORIBI_RING_RESERVE_BYTES = 64, /* kept free of records with bytes, for records without */
    /* longest record with bytes that an empty ring takes */
    ORIBI_RING_RECORD_MAX = ORIBI_RING_BYTES - ORIBI_RING_HEAD_BYTES - ORIBI_RING_RESERVE_BYTES,
};

/* The shared part, zeroed by whoever makes it. Positions count bytes and wrap around at 2^32. */
struct oribi_ring {
    /* by the writer: the end of what is written, and in the upper half where the reader goes on when it is behind */
    _Alignas(64) _Atomic uint64_t written;
    /* by the reader: the first byte that it has not taken, and in the upper half what is left of the record there */
    _Alignas(64) _Atomic uint64_t taken;
    _Alignas(64) char bytes[ORIBI_RING_BYTES];
};

struct oribi_ring_writer {
    struct oribi_ring *ring;
    uint32_t end;
    uint32_t last;  /* where the last record begins */
    uint32_t start; /* of what may be unread: nothing before it is, wherever the reader says that it is */
};

struct oribi_ring_reader {
    struct oribi_ring *ring;
    uint32_t at;
    uint32_t left;  /* bytes of the record that was begun, which oribi_ring_take() gives */
    uint64_t taken; /* as it was stored last: else a record was taken back */
};

struct oribi_ring_record {
    uint64_t length;
    uint32_t kind; /* the caller's */
    uint32_t mark; /* the caller's */
};

/* Takes an end over. Borrows ring. */
void oribi_ring_writer_init(struct oribi_ring_writer *writer, struct oribi_ring *ring);
void oribi_ring_reader_init(struct oribi_ring_reader *reader, struct oribi_ring *ring);

/* Writes a record with the `total` bytes of vec behind its head. False: there is no room, and nothing is written. */
bool oribi_ring_write(struct oribi_ring_writer *writer, uint32_t kind, const struct iovec *vec, size_t count,
                      size_t total);

/* Writes a record whose `length` bytes travel elsewhere. False: there is no room. */
bool oribi_ring_write_head(struct oribi_ring_writer *writer, const struct oribi_ring_record *record);

/* Takes the last record back, and with it all that the reader has not begun: it finds ORIBI_ECLOSED there, and so does
 * whoever takes its end over. False: the reader has begun the record, or there is none. */
bool oribi_ring_take_back(struct oribi_ring_writer *writer);

/* True while something is to be read: a record, or the rest of one. One load. */
static inline bool oribi_ring_waits(const struct oribi_ring_reader *reader)
{
    uint64_t written = atomic_load_explicit(&reader->ring->written, memory_order_acquire);
    return reader->left > 0 || (uint32_t)written != reader->at;
}

/* Begins the next record, once the last one is taken. `inside`: its bytes lie in the ring. 1: *record is its head; 0:
 * there is none; ORIBI_ECLOSED: it was taken back; ORIBI_EBAD: the memory holds no record. */
int oribi_ring_next(struct oribi_ring_reader *reader, uint32_t inside, struct oribi_ring_record *record);

/* The kind of the record that oribi_ring_next() would begin; 0: none is there. Neither begins it nor says that it is
 * sound. */
uint32_t oribi_ring_next_kind(struct oribi_ring_reader *reader);

/* Takes up to n bytes of the record. Returns how many, 0: it is at its end. ORIBI_EBAD: as above. */
int64_t oribi_ring_take(struct oribi_ring_reader *reader, void *dst, size_t n);

/* Lends what is left of the record where it lies, as far as that is in one piece: *p, good until oribi_ring_return().
 * Whoever writes to the memory may change the bytes meanwhile. Returns how many, or as oribi_ring_take(). */
int64_t oribi_ring_borrow(struct oribi_ring_reader *reader, char **p);
void oribi_ring_return(struct oribi_ring_reader *reader); /* the writer may overwrite them */

/* A sleeper's word, in shared memory too: odd while it sleeps, and another number with each sleep. Whoever writes to a
 * ring looks at the word behind a fence (atomic_thread_fence(memory_order_seq_cst)) and wakes the sleeper once for each
 * number. begin: the sleeper looks at its rings after it, and sleeps only where nothing waits there. end: it is awake;
 * also for the first time, whatever a process that died has left there. One thread at a time. */
static inline void oribi_asleep_begin(_Atomic uint32_t *word)
{
    uint32_t now = atomic_load_explicit(word, memory_order_relaxed);
    atomic_store_explicit(word, now + 1 + (now & 1), memory_order_release);
    atomic_thread_fence(memory_order_seq_cst); /* partner: the writers' fences */
}

static inline void oribi_asleep_end(_Atomic uint32_t *word)
{
    uint32_t now = atomic_load_explicit(word, memory_order_relaxed);
    if (now & 1)
        atomic_store_explicit(word, now + 1, memory_order_release);
}

#endif
