/* burst - the pieces that a streamed answer is written in, gathered while they come fast.
 *
 *   silent ──piece: sent at once──► running ──pieces: appended to `held`──► running
 *      ▲                               │  sent as one: the next does not fit into ORIBI__BURST_BYTES, the answer ends
 *      │                               │  or is complete, a flush, a wait for the client, ORIBI__BURST_US have passed
 *      └──no piece for ORIBI__GAP_US───┘
 *
 * So a lone piece leaves at once, as each does whose predecessor is older than ORIBI__GAP_US, and none that was
 * gathered waits longer than a millisecond: the helper sends what lies there, while the application goes on, sleeps or
 * computes. It needs neither the application nor its language for that.
 *
 * - Each piece is a chunk of its own, only that several leave in one sendmsg(2). (Chunks carry no meaning, RFC 9112
 *   7.1, and one chunk for a burst would be allowed; but it would save eight bytes of a piece and nothing else.)
 * - One buffer for each stream, `held` of the exchange, where the head was before; at most ORIBI__BURST_BYTES. A piece
 *   that does not fit, or is longer than ORIBI__BURST_PIECE_BYTES, goes out behind what lies there, in the same vector
 *   and without a copy.
 * - Of a compressed stream the pieces are gathered as they are, in a buffer of the coder, and compressed and flushed
 *   together: one chunk for a burst (compress.h).
 * - The clock is read once for a piece, by oribi_reply_write(), which leaves the time in `now_us`.
 * - The sender has the reactor, the thread of the call by oribi__enter(), the helper by the owner's word; so there is
 *   one writer at a time, and the order of bytes is that of writing. What a full socket does not take goes the way of
 *   all output (conn_out.c), and counts for back-pressure then; what lies here does not.
 * - A client that has left breaks the connection when the helper sends, and the application's next write says so.
 * - The helper looks every ORIBI__TICK_US while there have been bursts (and QUIET_TICKS longer). The first burst after
 *   a time without any wakes it, and no other does: a burst costs no system call of its own, and no timer.
 * - Every piece leaves by itself where the helper is off or cannot be had; where it waits for an idle sibling, deaf to
 *   wake-ups, for at most 10 ms; in server-sent events (text/event-stream), whose pieces are messages; and where
 *   the application has a handle for the socket (oribi_req_lend_fd()), by which it may write between two pieces.
 * - A process that dies within the millisecond, of a signal or by _exit(), takes with it what lies here. */
#ifndef ORIBI_WORKER_BURST_H
#define ORIBI_WORKER_BURST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct iovec;
struct oribi_header;
struct oribi_worker;
struct oribi__exchange;

enum {
    /* Gathered, framing included: 100 KiB in sends of so many bytes take 30 % less processor time than in sends of
     * 16 KiB, of which each wakes the client. */
    ORIBI__BURST_BYTES = 64 * 1024,
    /* Gathered of a compressed stream, before compression: half a millisecond of gzip. */
    ORIBI__BURST_CODED_BYTES = 32 * 1024,
    ORIBI__BURST_PIECE_BYTES = 16 * 1024, /* longer pieces leave at once: a copy would cost as much as their send */
    ORIBI__GAP_US = 250,   /* a piece that comes this late after another has a burst of its own: sending it */
                           /* costs 10 to 20 us, which is little beside that */
    ORIBI__BURST_US = 800, /* from the first gathered piece on; the rest of the millisecond is for waking up */
    ORIBI__TICK_US = 800,
};

/* The helper's watch over bursts. */
enum oribi__burst_watch {
    ORIBI__BURST_UNWATCHED, /* it sleeps until something else wakes it, or does not exist */
    ORIBI__BURST_WATCHED,   /* it looks within ORIBI__TICK_US, or is being woken */
    ORIBI__BURST_DEAF,      /* it sleeps for some ms, and cannot be woken */
};

/* A member of struct oribi_worker. */
struct oribi__bursts {
    _Atomic uint32_t watch; /* enum oribi__burst_watch; partner: `burst_us` of the threads, in the other order */
    _Atomic uint32_t begun; /* bursts, by the reactor's owner; read by the helper */
    uint32_t seen;          /* of them, by the helper; it alone uses this and the next */
    uint32_t quiet;         /* looks without a new one */
};

/* --- of the thread of the call, with the reactor --- */

/* A stream begins, with these headers. */
void oribi__burst_begin(struct oribi__exchange *exchange, const struct oribi_header *headers, uint32_t header_count);

/* A piece of so many bytes, framing included, is written behind the first one. True: append it to `held`, or to
 * oribi__compress_pieces(), where there is room for it, and call oribi__burst_gathered(); false: send it now, behind
 * what was gathered. */
bool oribi__burst_takes(struct oribi__exchange *exchange, size_t bytes);

/* It is there. 0; ORIBI_ECLOSED as oribi__burst_send(), where the helper cannot see to it. */
int oribi__burst_gathered(struct oribi__exchange *exchange);

/* The bytes in `held` are sent, together with what else the caller sends. */
void oribi__burst_sent(struct oribi__exchange *exchange);

/* Sends what has been gathered, if there is something. 0, or what oribi_conn_send() gives. By any thread that has the
 * reactor. */
int oribi__burst_send(struct oribi__exchange *exchange);

/* --- of the helper, without the reactor --- */

/* Before each sleep: sends what has waited long enough. Returns for how many us it may sleep, `sleep_us` at most.
 * `deaf`: nothing could end the sleep, so it must not begin when this returns less than sleep_us. */
int64_t oribi__bursts_look(struct oribi_worker *worker, int64_t sleep_us, bool deaf);

#endif
