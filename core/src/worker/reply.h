/* reply - what whole answers (reply.c) and streams (stream.c) have in common: the head, and the end of a call. All
 * with the reactor. */
#ifndef ORIBI_WORKER_REPLY_H
#define ORIBI_WORKER_REPLY_H

#include "oribi/http/response.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct iovec;
struct oribi__exchange;

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

#endif
