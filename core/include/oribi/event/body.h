/* A request body while it arrives: in memory up to a limit, then in an unlinked file. Pieces are collected
 * and written in whole batches: each write(2) may have to wait for the file system, and aligned ones cost it less.
 *
 * With a temporary file the writer's thread writes (base/writer.h): the caller takes no more input while
 * oribi_body_busy(), and the file is there when the body is settled. Without one every function writes by itself. */
#ifndef ORIBI_EVENT_BODY_H
#define ORIBI_EVENT_BODY_H

#include "oribi/base/buf.h"
#include "oribi/base/writer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ORIBI_BODY_BATCH_BYTES = 64 * 1024 }; /* bytes collected for one write */

/* Start with oribi_body_init(). */
struct oribi_body {
    struct oribi_buf memory; /* the whole body while fd < 0, afterwards its end that is still to be written */
    int fd;                  /* the unlinked file, or -1: none, or it is the temporary file's still */
    int64_t len;
    struct oribi_temp_file *temp_file; /* what is to be in the file, `memory` is empty then; NULL: none. Owned */
};

/* Does it go to a file, or is it in one? */
static inline bool oribi_body_in_file(const struct oribi_body *body)
{
    return body->fd >= 0 || body->temp_file;
}

/* Is a body of `len` bytes so far slower than rate_min (bytes per second, 0: none), once timeout_ms (0: never) has
 * passed since its begin? A slow sender may hold a connection or a stream, but not for ever. */
static inline bool oribi_body_too_slow(int64_t len, int64_t elapsed_ms, int64_t timeout_ms, uint32_t rate_min)
{
    return rate_min && timeout_ms && elapsed_ms > timeout_ms && len * 1000 / elapsed_ms < (int64_t)rate_min;
}

void oribi_body_init(struct oribi_body *body);
void oribi_body_deinit(struct oribi_body *body);

/* Appends a copy. A body of more than memory_max bytes moves to the file, and from then on up to batch_max bytes are
 * collected for each write (0: none are). 0, ORIBI_ENOMEM, or ORIBI_EFULL or ORIBI_ESTORE when the file cannot be made
 * or written: without a temporary file the body is then what it was before, and can be read, but takes no more. */
int oribi_body_append(struct oribi_body *body, const char *p, size_t n, uint32_t memory_max, uint32_t batch_max);

/* From here on the body goes to a temporary file, which it takes; no byte is written yet. It was in memory. */
void oribi_body_divert(struct oribi_body *body, struct oribi_temp_file *temp_file);

/* Is a write under way? */
static inline bool oribi_body_busy(const struct oribi_body *body)
{
    return body->temp_file && body->temp_file->busy;
}

/* Its write has ended, or there was none. 0, or the error of that write: ORIBI_EFULL or ORIBI_ESTORE, whose words
 * oribi_os_error_text() has then. */
int oribi_body_stored(const struct oribi_body *body);

/* True when every byte is where it stays: in memory, or in fd. After oribi_body_finish() that is so when no write is
 * under way; a body with a temporary file wants another oribi_body_finish() as long as it is not. */
bool oribi_body_settled(struct oribi_body *body);

/* Moves a body from memory to a file that is in memory too, and can be given to another process: no disk is waited for.
 * 0, or ORIBI_EFULL or ORIBI_ESTORE: nothing has changed. */
int oribi_body_spool(struct oribi_body *body);

/* The body is complete: writes the collected bytes, or has the writer begin with them. 0, ORIBI_EFULL or
 * ORIBI_ESTORE. */
int oribi_body_finish(struct oribi_body *body);

/* Room for `n` bytes at the end of a body in memory, or NULL when it is in a file, would outgrow memory_max or
 * memory is out. After writing there, tell the number of bytes with oribi_body_grown(). */
char *oribi_body_try_room(struct oribi_body *body, size_t n, uint32_t memory_max);
void oribi_body_grown(struct oribi_body *body, size_t n);

/* Room in a body with a temporary file, for as many bytes as its batch of batch_max still takes, *n at most. NULL when
 * less than batch_min was collected of it. */
char *oribi_body_try_batch(struct oribi_body *body, size_t *n, uint32_t batch_min, uint32_t batch_max);
int oribi_body_batched(struct oribi_body *body, size_t n, uint32_t batch_max); /* results as oribi_body_append() */

/* Bytes of memory held. */
size_t oribi_body_memory(const struct oribi_body *body);

#endif
