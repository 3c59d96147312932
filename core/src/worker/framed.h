/* framed - answers whose body the application has framed itself (http/chunked.h): whole ones are decoded before their
 * head is written, which then has a length; streams piece by piece. */
#ifndef ORIBI_WORKER_FRAMED_H
#define ORIBI_WORKER_FRAMED_H

#include "oribi/http/chunked.h"

#include <stddef.h>
#include <sys/uio.h>

struct oribi__exchange;

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

#endif
