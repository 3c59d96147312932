/* compress - an application's answers compressed on their way out. A member of the worker; NULL where the option is
 * off, and then answers meet one comparison.
 *
 * A coder is a compressor with the buffer that it writes to. There are never more than calls at a time: a call takes
 * one when its answer is to be compressed, and its end gives it back to be kept. So a worker holds one for each coding
 * and thread at most, and in steady state an answer allocates nothing.
 *
 * Whole answers up to ORIBI__COMPRESS_WHOLE_BYTES_MAX are compressed before their head is written, and have a
 * Content-Length; longer ones become streams. Of a stream the compressor is flushed where plain pieces would be sent
 * (burst.h): behind each write that comes after a silence, and once for those that come fast, which are gathered as the
 * application has written them, so that the client has what was written at once, or within the millisecond. Compressing
 * is done without the reactor, but for a burst that the helper, a flush or a wait sends: at most
 * ORIBI__BURST_CODED_BYTES. */
#ifndef ORIBI_WORKER_COMPRESS_H
#define ORIBI_WORKER_COMPRESS_H

#include "oribi/config/options.h"
#include "oribi/http/compress.h"
#include "oribi/http/response.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

enum {
    ORIBI__COMPRESS_WHOLE_BYTES_MAX = 256 * 1024, /* of a body; its compressed form is in memory as a whole */
    ORIBI__COMPRESS_FILE_BYTES_MAX = 256 * 1024,  /* a larger file goes as it is, by sendfile(2) */
    ORIBI__COMPRESS_HEADERS_MAX = 128,            /* an answer with more of them goes as it is */
};

struct oribi__exchange;
struct oribi__compression;
struct oribi__coder;

/* Reads the options, which oribi_options_finish() has checked. Gives NULL where they compress nothing. */
struct oribi__compression *oribi__compression_create(const struct oribi_options *options);
void oribi__compression_destroy(struct oribi__compression *compression);

/* When a call begins, with the reactor: a weak tag in If-None-Match is followed by its strong form. */
void oribi__compress_request(struct oribi__exchange *exchange);

/* When a call ends, with the reactor: what it has taken is kept for the next. */
void oribi__compress_give_back(struct oribi__exchange *exchange);

/* oribi_reply() with a worker that compresses. */
int oribi__compress_reply(struct oribi__exchange *exchange, int status, const struct oribi_header *headers,
                          uint32_t header_count, const struct iovec *body, size_t body_count);

/* How an answer is sent that is a file and is not compressed. */
struct oribi__compress_plain {
    int (*send)(void *self, int status, const struct oribi_header *headers, uint32_t header_count);
    void *self;
};

/* An answer whose body is [offset, offset+len) of a file and the whole of its representation, or that has no body (len
 * 0), with a worker that compresses. len is at most ORIBI__COMPRESS_FILE_BYTES_MAX. */
int oribi__compress_reply_file(struct oribi__exchange *exchange, int status, const struct oribi_header *headers,
                               uint32_t header_count, int fd, int64_t offset, int64_t len,
                               struct oribi__compress_plain plain);

/* oribi_reply_begin() with a worker that compresses; where the answer is to be, `exchange` has a coder afterwards. With
 * the reactor. */
int oribi__compress_begin(struct oribi__exchange *exchange, int status, const struct oribi_header *headers,
                          uint32_t header_count, int64_t body_len);

/* oribi_reply_write() of a stream with a coder; `total` is more than 0. */
int oribi__compress_write(struct oribi__exchange *exchange, const struct iovec *vec, size_t count, int64_t total);

/* The gathered pieces of a stream with a coder, with the reactor. */
struct oribi_buf *oribi__compress_pieces(struct oribi__exchange *exchange);

/* Compresses, flushes and sends them, if there are any. 0, 1 as oribi_reply_write(), or ORIBI_ECLOSED. By any
 * thread that has the reactor. */
int oribi__compress_burst(struct oribi__exchange *exchange);

/* The last bytes of a stream with a coder, which live until the coder is given back. ORIBI_EAPP (logged): the stream is
 * shorter than its Content-Length, or cannot be ended. */
int oribi__compress_end(struct oribi__exchange *exchange, struct iovec *last);

#endif
