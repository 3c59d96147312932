/* Output that the socket did not take: copied out of application memory, so that the application can free its objects
 * and the worker is free while a slow client reads. Bytes go to memory first, then to an unlinked file; parts of files
 * may stand before, between and behind them. All leave in the order in which they were given.
 *
 * With a temporary file (base/writer.h) the bytes for the file are copied, and its writer writes them: they can be sent
 * when they are stored, which oribi_out_stored() is called for. Without one they are written at once. */
#ifndef ORIBI_EVENT_OUT_H
#define ORIBI_EVENT_OUT_H

#include "oribi/base/buf.h"
#include "oribi/base/os/os.h"
#include "oribi/base/writer.h"
#include "oribi/event/budget.h"
#include "oribi/event/transport.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

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
