/* reply - an application's answers: whole ones (reply.c), streams (stream.c), files (reply_file.c), files that the
 * application has only named (sendfile.c), and their bytes on the way to the connection. All with the reactor. */
#ifndef ORIBI_WORKER_REPLY_H
#define ORIBI_WORKER_REPLY_H

#include "oribi/base/buf.h"
#include "oribi/config/options.h"
#include "oribi/event/conn.h"
#include "oribi/event/reactor.h"
#include "oribi/http/chunked.h"
#include "oribi/http/conditions.h"
#include "oribi/http/response.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct oribi__exchange;
struct oribi__sendfile;
struct oribi_wake;
struct oribi_worker;

/* --- reply.c, stream.c: the head, and the end of a call --- */

/* A serialised head, in the reactor's scratch buffer or, when that is too small, on the heap. */
struct oribi__head_text {
    char *p;
    size_t n;
    bool on_heap;
};

/* Serialises the head and notes framing and persistence in `exchange`. *content_length is what the head promises
 * (-1: nothing). 0, or ORIBI_EAPP after logging what is wrong. Free with oribi__head_text_free(). */
int oribi__reply_head(struct oribi__exchange *exchange, int status, const struct oribi_header *headers,
                      uint32_t header_count, int64_t body_len, struct oribi__head_text *head, int64_t *content_length);
void oribi__head_text_free(struct oribi__head_text *head);

/* oribi_reply() without compression, from outside the reactor. body_len: what Content-Length says where the application
 * does not; -1: nothing, for answers without a body. */
int oribi__reply_whole(struct oribi__exchange *exchange, int status, const struct oribi_header *headers,
                       uint32_t header_count, const struct iovec *body, size_t body_count, int64_t body_len);

/* Answers a handshake of a WebSocket that was accepted, towards the frontend with the status 200 and the record as the
 * body; logged and counted as 101. As oribi_reply(). */
int oribi__reply_accept(struct oribi__exchange *exchange, const struct oribi_header *headers, uint32_t header_count,
                        const struct iovec *record);

/* oribi_reply_begin() and oribi_reply_write() without compression, with the reactor. total: bytes of the vector, more
 * than 0. */
int oribi__stream_begin(struct oribi__exchange *exchange, int status, const struct oribi_header *headers,
                        uint32_t header_count, int64_t body_len);
int oribi__stream_write(struct oribi__exchange *exchange, const struct iovec *vec, size_t count, int64_t total);

/* The outcome for the application of a write whose send gave `result`: 0; 1 when it should wait; ORIBI_ECLOSED. With
 * the reactor. */
int oribi__stream_outcome(const struct oribi__exchange *exchange, int result);

/* Logs a mistake of the application, with the request it concerns, at a limited rate. */
void oribi__log_app(struct oribi__exchange *exchange, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Ends the call and its connection so that the peer sees that the answer is not complete. */
void oribi__cut(struct oribi__exchange *exchange);

/* After an answer that was given to the connection as a whole: books the end of the call and goes on with the
 * connection, unless it broke meanwhile. */
void oribi__finish(struct oribi__exchange *exchange);

/* --- gather.c ---
 *
 * The pieces of an answer on their way into as few sendmsg(2) as there can be.
 *
 * Small pieces are copied one behind the other into the reactor's scratch buffer: each piece that the kernel takes
 * by itself costs it more than such a copy costs us. Large ones go as they are. A gathering is full after
 * ORIBI__VEC_MAX of what is left then, or when the scratch buffer is; it is sent and begins anew, and so any number
 * of pieces is taken. Lives within one function that has the reactor. */

enum {
    ORIBI__VEC_MAX = 256,
    ORIBI__GATHERED_BYTES = 512, /* the largest piece that is copied */
};

struct oribi__gathering {
    struct oribi_reactor *reactor; /* borrowed */
    struct oribi_conn *conn;       /* borrowed */
    size_t n;
    char *room;
    char *end;
    struct iovec vec[ORIBI__VEC_MAX];
};

/* Begins one in which the first `used` bytes of the scratch buffer are taken: they are the first piece, if there are
 * any. */
void oribi__gather_begin(struct oribi__gathering *g, struct oribi_reactor *reactor, struct oribi_conn *conn,
                         size_t used);

/* Adds pieces (borrowed until they are sent), sending what is there as often as it is full. 0 or what
 * oribi_conn_send() gives. */
int oribi__gather(struct oribi__gathering *g, const struct iovec *vec, size_t count);

/* Sends what has been gathered; `more`: something else follows at once. Nothing gathered, nothing sent. 0 or what
 * oribi_conn_send() gives. */
int oribi__gather_send(struct oribi__gathering *g, bool more);

/* --- framed.c ---
 *
 * Answers whose body the application has framed itself (http/chunked.h): whole ones are decoded before their head is
 * written, which then has a length; streams piece by piece. */

enum { ORIBI__FRAMED_PIECE_BYTES = 64 * 1024 };

/* A stream's. */
struct oribi__framed {
    struct oribi_unframe unframe;
    char piece[ORIBI__FRAMED_PIECE_BYTES];
};

/* The content of a whole body. Borrows `body`; gives *content, on the heap. 0, or ORIBI_EAPP after logging what is
 * wrong. */
int oribi__framed_whole(struct oribi__exchange *exchange, const struct iovec *body, size_t count,
                        struct iovec *content);

/* Begins a stream whose framing is to be taken off. 0, or ORIBI_EAPP (no memory, logged). */
int oribi__framed_begin(struct oribi__exchange *exchange);

/* Takes up to ORIBI__FRAMED_PIECE_BYTES from *p on, moves *p behind them, and gives their content (perhaps none), which
 * lives until the next call. 0, or ORIBI_EAPP; logged once. */
int oribi__framed_next(struct oribi__exchange *exchange, const char **p, const char *end, struct iovec *content);

/* The stream's end. 0, or ORIBI_EAPP; logged once. */
int oribi__framed_end(struct oribi__exchange *exchange);

/* With the end of the call; does nothing for others. */
void oribi__framed_free(struct oribi__exchange *exchange);

/* --- unstored.c: output of calls that is on its way to a file (event/conn_store.c) --- */

/* Hooks of the reactor: gives it away until less output waits for the writer than may, where an application's thread
 * has it; and what has become of an answer that was finished before. `self` is the worker. */
void oribi__await_writer(void *self, struct oribi_conn *conn);
void oribi__on_stored(void *self, struct oribi_conn *conn);

/* For a call that waits with the reactor: the writer's turn instead of the socket's, until something is written, the
 * thread is woken (true), or timeout_ms have passed. The reactor is not the caller's meanwhile. */
bool oribi__wait_stored(struct oribi_worker *worker, const struct oribi_wake *wake, int timeout_ms);

/* --- reply_file.c ---
 *
 * Answers whose body is a file: conditions and ranges (http/conditions.h) of what the application would
 * send with 200.
 *
 * An answer is left as it is, bytes and headers, where the application has decided otherwise: another status or method,
 * Content-Encoding, a Content-Length that is not the file's. Else:
 * - Conditions are compared with the ETag and the Last-Modified of the application. None is made up: what the file is
 *   called, and for whom, is the application's to know, and Last-Modified alone would make clients keep the answer
 *   (RFC 9111 4.2.2). Without either only `*` can match. A 304 has no Content-Type and no Content-Length; 412 and 416
 *   have nothing that describes the file or lets it be cached.
 * - Ranges are sent where the application has no Accept-Ranges and no Content-Range of its own, and the file is not one
 *   that was made for this answer: it has the application's ETag or Last-Modified, or it was last changed two seconds
 *   ago or earlier. Such answers say `Accept-Ranges: bytes`. If-Range needs the application's validators.
 *
 * A file that the application has only named (sendfile.c) is `delegated`: type, ETag and Last-Modified are the
 * file's where the application has none, except, with `Cache-Control: no-store`, both validators. */

struct oribi__file {
    int fd; /* borrowed */
    int64_t offset;
    int64_t len; /* from there on */
    int64_t mtime_s;
    bool delegated;
    struct oribi_slice type; /* of a delegated file, and what its ETag ends in: see oribi_validators_of_file() */
    struct oribi_slice tag;
};

/* As oribi_reply_file(). Of a delegated file's headers those that name it have been taken out. */
int oribi__reply_file(struct oribi__exchange *exchange, int status, const struct oribi_header *headers,
                      uint32_t header_count, const struct oribi__file *file);

/* --- reply_file.c: the body of a 206 with several ranges of one file, as pieces for oribi_conn_send_pieces() --- */

enum {
    ORIBI__BOUNDARY_BYTES = 32,
    ORIBI__PART_TYPE_BYTES_MAX = 255, /* of a longer Content-Type the parts have none */
    /* CRLF--BOUNDARY, two fields with their names, the empty line */
    ORIBI__PART_HEAD_CAP = ORIBI__BOUNDARY_BYTES + ORIBI__PART_TYPE_BYTES_MAX + ORIBI_CONTENT_RANGE_CAP + 64,
};

/* Points into itself: never copied. */
struct oribi__byteranges {
    size_t count;
    int64_t len;                                     /* of the whole body */
    struct oribi_slice type;                         /* value of the answer's Content-Type */
    struct oribi_piece pieces[ORIBI_RANGES_MAX + 1]; /* the last one has only text */
    /* private */
    char boundary[ORIBI__BOUNDARY_BYTES];
    char type_text[ORIBI_MULTIPART_TYPE_CAP];
    char text[(ORIBI_RANGES_MAX + 1) * ORIBI__PART_HEAD_CAP];
};

/* Makes the pieces for `ranges` of a representation of `size` bytes and this Content-Type (n is 0: none), which begins
 * at `offset` of its file. False when the body is longer than a length can say. */
bool oribi__byteranges_make(struct oribi__byteranges *body, const struct oribi_ranges *ranges, struct oribi_slice type,
                            int64_t offset, int64_t size);

/* --- sendfile.c ---
 *
 * Files that the application names in a header of its answer, for the server to send: X-Sendfile (and
 * X-Lighttpd-Send-File) with the absolute path of a file in a folder of `sendfile_root`, X-Accel-Redirect with an
 * internal path that `sendfile_map` maps to one. All with the reactor. */

/* Gives what these options allow, NULL where they allow nothing. Opens the folders; one that is missing is logged, and
 * looked for once a second while files are named. Borrows the options. destroy: takes it, and NULL. */
struct oribi__sendfile *oribi__sendfile_create(const struct oribi_options *options);
void oribi__sendfile_destroy(struct oribi__sendfile *sendfile);

/* Closes the descriptors in a child that the application forked. NULL is allowed. */
void oribi__sendfile_abandon(struct oribi__sendfile *sendfile);

#endif
