/* A request body while it arrives: in memory up to a limit, then in an unlinked file. Pieces are collected
 * and written in whole batches: each write(2) may have to wait for the file system, and aligned ones cost it less. */
#ifndef ORIBI_EVENT_BODY_H
#define ORIBI_EVENT_BODY_H

#include "oribi/base/buf.h"

#include <stddef.h>
#include <stdint.h>

enum { ORIBI_BODY_BATCH_BYTES = 64 * 1024 }; /* bytes collected for one write */

/* Start with oribi_body_init(). */
struct oribi_body {
    struct oribi_buf memory; /* the whole body while fd < 0, afterwards its end that is still to be written */
    int fd;                  /* the unlinked file, or -1 */
    int64_t len;
};

void oribi_body_init(struct oribi_body *body);
void oribi_body_deinit(struct oribi_body *body);

/* Appends a copy. A body of more than memory_max bytes moves to the file, and from then on up to batch_max bytes are
 * collected for each write (0: none are). 0, ORIBI_ENOMEM, or ORIBI_EFULL or ORIBI_ESTORE when the
 * file cannot be made or written. */
int oribi_body_append(struct oribi_body *body, const char *p, size_t n, uint32_t memory_max, uint32_t batch_max);

/* Moves a body from memory to a file that is in memory too, and can be given to another process: no disk is waited for.
 * 0, or ORIBI_EFULL or ORIBI_ESTORE: nothing has changed. */
int oribi_body_spool(struct oribi_body *body);

/* The body is complete: writes the collected bytes. 0, ORIBI_EFULL or ORIBI_ESTORE. */
int oribi_body_finish(struct oribi_body *body);

/* Room for `n` bytes at the end of a body in memory, or NULL when it is in a file, would outgrow memory_max or
 * memory is out. After writing there, tell the number of bytes with oribi_body_grown(). */
char *oribi_body_try_room(struct oribi_body *body, size_t n, uint32_t memory_max);
void oribi_body_grown(struct oribi_body *body, size_t n);

#endif
