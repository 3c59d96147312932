/* Output of a connection: what the socket does not take is kept (out.c), within a budget, and goes through a
 * transport. */
#ifndef ORIBI_EVENT_OUT_H
#define ORIBI_EVENT_OUT_H

#include "oribi/base/os/os.h"
#include "oribi/base/buf.h"
#include "oribi/base/writer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/* ---- budget ---- */

/* How many bytes all connections of a worker together may keep: in memory, and in unlinked files. A connection's own
 * limits come first; the budget bounds many connections at a time. */

struct oribi_budget {
    int64_t memory_max; /* 0: no maximum; beyond it bytes go to a file instead of memory */
    int64_t file_max;   /* 0: no maximum; beyond it no byte is kept */
    int64_t memory_used;
    int64_t file_used;
    uint32_t temp_file_open;          /* holders that use files now */
    uint64_t temp_file_count;         /* holders that have begun to use files since the start */
    uint64_t temp_file_written_bytes; /* bytes that went to files since the start */
};

/* The part of the budget that one body or one output queue (a holder) uses. All-zero: none. */
struct oribi_charge {
    int64_t memory;
    int64_t file;
};

/* Sets what the holder uses now. */
static inline void oribi_budget_set(struct oribi_budget *budget, struct oribi_charge *charge, int64_t memory,
                                    int64_t file)
{
    budget->memory_used += memory - charge->memory;
    budget->file_used += file - charge->file;
    if (file != charge->file) {
        budget->temp_file_open = budget->temp_file_open + (file > 0) - (charge->file > 0);
        budget->temp_file_count += charge->file == 0;
        budget->temp_file_written_bytes += file > charge->file ? (uint64_t)(file - charge->file) : 0;
    }
    *charge = (struct oribi_charge){memory, file};
}

/* How much a holder that keeps `own` bytes in memory, and may keep own_max, may have there in all. */
static inline int64_t oribi_budget_memory(const struct oribi_budget *budget, int64_t own, int64_t own_max)
{
    int64_t left = budget->memory_max - budget->memory_used;
    if (budget->memory_max == 0 || left >= own_max)
        return own_max;
    int64_t all = own + (left > 0 ? left : 0);
    return all < own_max ? all : own_max;
}

/* How much a holder that may become large may have in memory: as oribi_budget_memory(), but beyond small_max it leaves
 * a quarter of the budget to small ones. */
static inline int64_t oribi_budget_large(const struct oribi_budget *budget, int64_t own, int64_t own_max,
                                         int64_t small_max)
{
    if (own_max <= small_max || budget->memory_max == 0)
        return oribi_budget_memory(budget, own, own_max);
    int64_t small = oribi_budget_memory(budget, own, small_max);
    int64_t left = budget->memory_max - budget->memory_max / 4 - budget->memory_used;
    int64_t all = own + (left > 0 ? left : 0);
    if (left < 0 || all < small)
        return small;
    return all < own_max ? all : own_max;
}

/* True if n more bytes may go to files. */
static inline bool oribi_budget_file(const struct oribi_budget *budget, int64_t n)
{
    return budget->file_max == 0 || budget->file_used + n <= budget->file_max;
}

/* ---- transport ---- */

/* The layer between a connection and its socket: none as a rule; TLS in the frontend. Each function behaves as the
 * function of base/os/os.h that it stands in for, so a connection need not know which it has.
 *
 * A transport is owned by its connection (struct oribi_conn: transport, set between oribi_conn_open() and
 * oribi_conn_start(); NULL: the socket itself) and does not own the descriptor. Where it holds bytes back that the
 * socket has not taken (records), it has accepted at least one byte less than it was given, so that whoever writes
 * comes again. Where it holds bytes that it has read and not given, its last read filled all the room it had. */

struct oribi_transport {
    ssize_t (*read)(struct oribi_transport *self, void *dst, size_t n); /* oribi_os_read() */
    ssize_t (*send_vec)(struct oribi_transport *self, const struct iovec *vec, size_t count, bool more);
    ssize_t (*send_file)(struct oribi_transport *self, int in_fd, int64_t *offset, int64_t n);
    /* Gives the other side [offset, offset+n) of a regular file, which is read there and ends an answer. False: it is
     * to be sent. NULL: always. */
    bool (*give_file)(struct oribi_transport *self, int in_fd, int64_t offset, int64_t n);
    void (*shut)(struct oribi_transport *self);    /* says that no more is sent (close_notify), before shutdown(2) */
    void (*release)(struct oribi_transport *self); /* frees it; the descriptor is closed afterwards by its owner */
    /* True while something is to be read that the loop does not tell of. NULL: never. Of a channel's transport, which
     * the reactor asks in each turn and before each sleep (oribi_conn_be_channel()). */
    bool (*waits)(const struct oribi_transport *self);
    /* Has the other side said that it reads no more? A hint before its socket tells of it. NULL: unknown. */
    bool (*left)(const struct oribi_transport *self);
    /* In a child that the application forked: closes descriptors of its own, and nothing else. NULL: it has none. */
    void (*abandon)(struct oribi_transport *self);
};

/* The system's way where there is no transport. */
static inline ssize_t oribi_transport_read(struct oribi_transport *transport, int fd, void *dst, size_t n)
{
    return __builtin_expect(transport != NULL, 0) ? transport->read(transport, dst, n) : oribi_os_read(fd, dst, n);
}

static inline ssize_t oribi_transport_send(struct oribi_transport *transport, int fd, const struct iovec *vec,
                                           size_t count, bool more)
{
    if (__builtin_expect(transport != NULL, 0))
        return transport->send_vec(transport, vec, count, more);
    return more ? oribi_os_send_vec_more(fd, vec, count) : oribi_os_send_vec(fd, vec, count);
}

static inline ssize_t oribi_transport_send_file(struct oribi_transport *transport, int fd, int in_fd, int64_t *offset,
                                                int64_t n)
{
    if (__builtin_expect(transport != NULL, 0))
        return transport->send_file(transport, in_fd, offset, n);
    return oribi_os_send_file(fd, in_fd, offset, n);
}

/* ---- out ---- */

/* Output that the socket did not take: copied out of application memory, so that the application can free its objects
 * and the worker is free while a slow client reads. Bytes go to memory first, then to an unlinked file; parts of files
 * may stand before, between and behind them. All leave in the order in which they were given.
 *
 * With a temporary file (base/writer.h) the bytes for the file are copied, and its writer writes them: they can be sent
 * when they are stored, which oribi_out_stored() is called for. Without one they are written at once. */

/* bytes of a file sent to one peer before other connections have their turn: about a millisecond of copying */
enum { ORIBI_OUT_TURN_BYTES = 2 * 1024 * 1024 };

/* A file that several answers send from at the same time, by one descriptor. Before each read the file is compared with
 * what it was; when it is not that any more, the connection breaks. So no answer looks whole that is none, and none
 * mixes two states; and what an application has opened under the number of a descriptor of ours that it has closed is
 * never sent. */
struct oribi_source {
    int fd;
    bool looked; /* the sender has just compared them, for the first read */
    struct oribi_file_state state;
    void *owner;
    void (*retain)(void *owner);  /* the descriptor is needed longer */
    void (*release)(void *owner); /* the descriptor is no longer needed */
};

struct oribi_out;

/* Gives an empty queue; NULL when out of memory: a slow reader then costs its own connection and no other. */
struct oribi_out *oribi_out_try_create(void);
void oribi_out_destroy(struct oribi_out *out);

/* Sends by this transport from now on; NULL: by the socket. Borrows it. */
void oribi_out_over(struct oribi_out *out, struct oribi_transport *transport);

/* Appends a copy of the vector without its first `skip` bytes. Up to memory_max bytes are kept in
 * memory, the rest in a file. 0, ORIBI_ENOMEM, ORIBI_EFULL or ORIBI_ESTORE: then a part of it may be queued, and the
 * queue is to be destroyed. */
int oribi_out_keep(struct oribi_out *out, const struct iovec *vec, size_t count, size_t skip, int64_t memory_max);

/* Takes the temporary file for bytes that go to a file; before the first of them. */
void oribi_out_divert(struct oribi_out *out, struct oribi_temp_file *temp_file);
struct oribi_temp_file *oribi_out_temp_file(struct oribi_out *out); /* borrowed; NULL: none */

/* A write of the temporary file has ended, well or not; begins the next one where there is more. 0, or the error of the
 * writing: ORIBI_EFULL or ORIBI_ESTORE, whose words oribi_os_error_text() has then. */
int oribi_out_stored(struct oribi_out *out);

/* Bytes of memory that wait for the writer. */
int64_t oribi_out_unstored(const struct oribi_out *out);

/* True if what is to be sent next waits for the writer. */
bool oribi_out_waits(const struct oribi_out *out);

/* How many more bytes would be kept in memory; 0 once the file has begun. */
int64_t oribi_out_room(const struct oribi_out *out, int64_t memory_max);

/* Appends [offset, offset+len) of a regular file. Takes fd; while a part of it is queued, the same fd may be given
 * again for another part of the file, and it is closed behind the last one. 0 or ORIBI_ENOMEM (fd closed). The memory
 * of the list grows with the parts: callers bound their number. */
int oribi_out_keep_file(struct oribi_out *out, int fd, int64_t offset, int64_t len);

/* Appends [offset, offset+len) of a source, which is retained until the last of its parts is sent. All sources of a
 * queue must be the same. 0 or ORIBI_ENOMEM. */
int oribi_out_keep_source(struct oribi_out *out, const struct oribi_source *source, int64_t offset, int64_t len);

/* Closes the descriptors alone, in a child of a process that goes on. */
void oribi_out_abandon(struct oribi_out *out);

/* Sends what the socket takes. 0: all is sent; 1: ORIBI_OUT_TURN_BYTES are, and the socket may take more; ORIBI_AGAIN
 * (also where oribi_out_waits());
 * ORIBI_ECLOSED; ORIBI_ESYS (a file came up short, or a source has changed). *sent is increased by the bytes. */
int oribi_out_flush(struct oribi_out *out, int socket_fd, int64_t *sent);

/* Bytes not yet sent. */
int64_t oribi_out_pending(const struct oribi_out *out);

/* Whether the peer has taken bytes since the last call; true the first time. A reader may be busy with the bytes that
 * the kernel holds for it long before the socket has room again. */
bool oribi_out_taken(struct oribi_out *out, int socket_fd);

/* Bytes in the file that overflowing output goes to, those already sent included: it shrinks only by running empty. */
int64_t oribi_out_in_temp_file(const struct oribi_out *out);

/* Bytes of memory held, sent or not. */
int64_t oribi_out_memory(const struct oribi_out *out);

/* The queue's charge on its worker's budget; the caller keeps it up to date. */
struct oribi_charge *oribi_out_charge(struct oribi_out *out);

/* Sum of a vector's lengths. */
int64_t oribi_vec_len(const struct iovec *vec, size_t count);

#endif
