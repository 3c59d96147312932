/* channel_ring - the shared memory of a channel between a frontend and a worker: requests and answers travel there
 * instead of through the channel's socket, without a system call as long as the other side is awake.
 *
 *   frontend  ── ring of requests ──►  worker        each record: bytes of the stream (BYTES), how many bytes of it
 *             ◄── ring of answers ──                 follow by the socket at this place (SOCKET), or that the rest of
 *             ◄──────  socket  ─────►                the answer is in a file, whose descriptor is next there (FILE)
 *
 * The socket stays what it was for everything else: its end is the end of the channel, its descriptor is what an
 * application gets, and what is long (or a file) travels through it, as SOCKET records say. An answer that has begun to
 * use the socket stays there until its end, which both sides know.
 *
 * A file that ends an answer is not read by the worker. It sends the descriptor with a note of 16 bytes by the socket,
 * and then the record; the note begins with a byte that begins no answer and is no wake-up. The frontend takes the note
 * where it finds the record, behind the wake-ups that were sent before. So the descriptor is there whenever the record
 * is, and a worker that dies between both has sent an answer without its end. The record ends the worker's part: what
 * happens to the file or to the worker afterwards is the frontend's to tell the client.
 *
 *   worker hands over                            frontend
 *   a file that is cut, or replaced by writing   as with any file that is sent: the connection breaks where bytes are
 *                                                missing; what is written meanwhile is sent
 *   no file: pipe, socket, device, directory     the answer breaks off, the descriptor is closed
 *   no descriptor, or another note               the channel ends as for any nonsense; others that come with it are
 *                                                closed by the kernel
 *   an offset or a length out of the world       likewise
 *   a length that is not the answer's rest       the answer breaks off
 *   a file that cannot be read without waiting   likewise: the frontend never waits for a disk, and an honest worker
 *                                                sends such a file itself
 *   a file that the system does not let in       the channel ends, a safe request without an answer is made again, and
 *   (limit of descriptors, security module)      for a second workers send their files themselves
 *
 * A side sleeps only after it said so: a word of its own in the scoreboard is odd while it does. Who has written to a
 * ring looks at the other side's word behind a fence, and wakes it by a byte on the socket (a wake-up), once for each
 * sleep. The sleeper looks at all its rings between its word and its sleep, behind a fence too; so one of both sees the
 * other. `woken` counts the wake-ups that were sent: the reader takes so many bytes from the socket for wake-ups, and
 * no byte of the stream is ever taken for one.
 *
 *   frontend                                    worker
 *   writes the record (release)                 word odd
 *   fence                                       fence
 *   reads the worker's word: odd? wake-up       looks at its rings: empty? sleeps
 *
 * Both sides are of different users, and each may be dying or hostile: bytes are copied and then looked at, counts are
 * bounded, and nonsense ends the channel alone. The memory is sealed against shrinking (memfd_create(2)): where the
 * system has no seals, channels are sockets alone. A channel has memory of its own, so that a worker whose channel has
 * been given up writes to memory that nobody reads. */
#ifndef ORIBI_WORKER_CHANNEL_RING_H
#define ORIBI_WORKER_CHANNEL_RING_H

#include "oribi/base/ring.h"
#include "oribi/event/out.h"
#include "oribi/worker/placement/scoreboard.h"

enum oribi_channel_record {
    ORIBI_CHANNEL_BYTES = 1,
    ORIBI_CHANNEL_SOCKET = 2, /* `length` bytes, ORIBI_CHANNEL_ALL: all that come, and of an answer those to its end */
    ORIBI_CHANNEL_FILE = 3,   /* `length` bytes of a file; of an answer, its last ones */
};

/* A part of a file. */
struct oribi_channel_file {
    int fd; /* owned */
    int64_t offset;
    int64_t length; /* more than 0; offset + length is no overflow */
};

/* In the place of a code. */
enum {
    ORIBI_CHANNEL_HAS_FILE = -1000,  /* the next bytes of the stream are those of ring->file */
    ORIBI_CHANNEL_LOST_FILE = -1001, /* of a file that the system does not let in: the channel is of no use */
};

#define ORIBI_CHANNEL_ALL UINT64_MAX

/* A direction. */
struct oribi_channel_way {
    struct oribi_ring ring;
    _Alignas(64) _Atomic uint32_t woken;   /* by the writer: wake-ups that it has sent */
    _Atomic uint32_t waking;               /* by the writer: odd while it looks whether it has to send one */
    _Alignas(64) _Atomic uint32_t cleared; /* by the reader: wake-ups that it has taken from the socket */
    _Atomic uint64_t by_socket;            /* by the reader: bytes of the stream that come by the socket first */
    _Atomic uint32_t closed;               /* by the reader: it reads no more */
    _Atomic uint32_t takes_files;          /* by the reader: FILE records may come */
};

struct oribi_channel_memory {
    struct oribi_channel_way requests;
    struct oribi_channel_way answers;
};

/* An end. */
struct oribi_channel_ring {
    struct oribi_transport transport; /* first: of the worker's end, which is its connection's transport */
    struct oribi_channel_memory *memory;
    struct oribi_channel_way *way_in;
    struct oribi_channel_way *way_out;
    struct oribi_ring_reader in;
    struct oribi_ring_writer out;
    int memory_fd; /* owned; of a frontend's end -1 once it is sent */
    int fd;        /* the channel's socket, borrowed */
    uint32_t cleared;
    uint64_t by_socket;
    bool sends_by_socket; /* this answer's rest */
    bool takes_files;     /* of the frontend's end: as the memory says */
    bool lends;           /* bytes in the memory, see oribi_channel_ring_borrow() */
    bool has_ended;       /* meanwhile: it goes with their return */
    /* of the frontend's end: what ORIBI_CHANNEL_HAS_FILE was given for; who takes it sets fd to -1 */
    struct oribi_channel_file file;
    uint32_t request_at; /* of the frontend's end: where the last request's record begins */
    /* of the worker's end: its frontend's word, and what that was at the last wake-up (one for each frontend) */
    const _Atomic uint32_t *asleep;
    uint32_t *last_woken;
};

/* --- the frontend's end --- */

/* Gives new memory with its descriptor, to be sent to the worker with the socket. NULL: none here, the channel is its
 * socket alone. */
struct oribi_channel_ring *oribi_channel_ring_try_create(int fd);

/* The worker has the memory's descriptor: ours is closed. */
void oribi_channel_ring_sent(struct oribi_channel_ring *ring);

/* Sends a whole request through the ring; oribi_channel_ring_wake() is to follow. False: it is too long; then its
 * `total` bytes are to be sent by the socket, as the ring says now, or where not even that has room, *broken is set. */
bool oribi_channel_ring_request(struct oribi_channel_ring *ring, const struct iovec *vec, size_t count, size_t total,
                                bool *broken);

/* Wakes the worker that has the channel, if it sleeps. `place` is the channel's in the scoreboard; last_woken[slot + 1]
 * is what the worker's word was when this frontend woke it last. */
void oribi_channel_ring_wake(struct oribi_channel_ring *ring, const struct oribi_scoreboard *board,
                             const _Atomic uint16_t *place, uint32_t *last_woken);

/* True if oribi_channel_ring_read() would say ORIBI_CHANNEL_HAS_FILE, of an honest worker. */
bool oribi_channel_ring_file_waits(struct oribi_channel_ring *ring);

/* The answer is at its end: the next one begins in the ring. */
void oribi_channel_ring_next_answer(struct oribi_channel_ring *ring);

/* From now on the worker may hand over files, or no longer. */
void oribi_channel_ring_take_files(struct oribi_channel_ring *ring, bool takes);

/* True while the worker has not begun to read the last request: one that has ended since has not seen it. */
bool oribi_channel_ring_unread(const struct oribi_channel_ring *ring);

/* Takes the last request back, which then no worker reads: the channel is to be closed. False: a worker has begun to
 * read it, or it did not travel by the ring. */
bool oribi_channel_ring_take_back(struct oribi_channel_ring *ring);

/* Answers are not read any more: who writes one finds the channel closed. */
void oribi_channel_ring_close(struct oribi_channel_ring *ring);

/* True while all that comes does so by the socket. */
static inline bool oribi_channel_ring_left(const struct oribi_channel_ring *ring)
{
    return ring->by_socket == ORIBI_CHANNEL_ALL;
}

/* --- the worker's end --- */

/* Maps the memory of a frontend (takes memory_fd). NULL: it is not what a frontend makes, or memory is out; memory_fd
 * is closed. */
struct oribi_channel_ring *oribi_channel_ring_try_attach(int memory_fd, int fd, const _Atomic uint32_t *asleep,
                                                         uint32_t *last_woken);

/* From here on all bytes go by the socket, and no wake-up is left there to be read: before an application gets the
 * descriptor, and before bytes are sent past the transport. */
void oribi_channel_ring_leave(struct oribi_channel_ring *ring);

/* --- both --- */

/* Reads what the stream has next, as oribi_os_read() does; of the frontend's end also ORIBI_CHANNEL_HAS_FILE and
 * ORIBI_CHANNEL_LOST_FILE. `told`: the loop has told of the socket since it gave ORIBI_AGAIN last. */
ssize_t oribi_channel_ring_read(struct oribi_channel_ring *ring, void *dst, size_t n, bool told);

/* As oribi_channel_ring_read() with *p for dst, but a long record is lent where it lies (oribi_ring_borrow()): then *p
 * is there and ring->lends is true, until oribi_channel_ring_return(). Where the end is destroyed meanwhile, its memory
 * goes with the return. */
ssize_t oribi_channel_ring_borrow(struct oribi_channel_ring *ring, char **p, size_t n, bool told);
void oribi_channel_ring_return(struct oribi_channel_ring *ring);

/* True while oribi_channel_ring_read() would give bytes that the loop does not tell of. */
static inline bool oribi_channel_ring_waits(const struct oribi_channel_ring *ring)
{
    return ring->by_socket == 0 && oribi_ring_waits(&ring->in);
}

void oribi_channel_ring_destroy(struct oribi_channel_ring *ring);

#endif
