/* Bodies of requests: in memory or in a file (body.c), and in parts, as forms come (parts.c). */
#ifndef ORIBI_EVENT_BODY_H
#define ORIBI_EVENT_BODY_H

#include "oribi/base/buf.h"
#include "oribi/base/writer.h"
#include "oribi/form/multipart.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- body ---- */

/* A request body while it arrives: in memory up to a limit, then in an unlinked file. Pieces are collected
 * and written in whole batches: each write(2) may have to wait for the file system, and aligned ones cost it less.
 *
 * With a temporary file the writer's thread writes (base/writer.h): the caller takes no more input while
 * oribi_body_busy(), and the file is there when the body is settled. Without one every function writes by itself. */

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

/* ---- parts ---- */

/* A body of multipart/form-data that is taken apart while it arrives (option multipart_stream), so that uploads are
 * written to the disk once: the data of each large file goes to an unlinked file of its own. All other bytes are the
 * frame (delimiters, heads, fields, small files) and go to the body's store.
 *
 *   body   ───── frame ─────┬─ data of file 0 ─┬── frame ──┬─ data of file 1 ─┬── frame ──
 *   frame  0 ──────────► at of file 0 ───────────────► at of file 1 ───────────────► its length
 *
 * The frame with the data put in at its places is the body, byte for byte. No data has the delimiter in it, whichever
 * of the parser's rules reads it: what could be a delimiter to one of them and none to another is refused.
 *
 * The frame belongs to the caller, the files to the struct: oribi_parts_give() gives one for longer. Memory: the
 * struct, ORIBI_PARTS_FILE_BYTES of the file at hand, and one part's head. */

enum {
    ORIBI_PARTS_FILE_BYTES = 64 * 1024, /* a file of more has a file of its own; of fewer is in the frame */
    ORIBI_PARTS_FILES_MAX = 16,         /* descriptors that a body may take; further files are in the frame */
};

struct oribi_parts_file {
    struct oribi_body body; /* its file's offset is 0 when it is settled; private but for fd and len */
    int64_t at;             /* offset in the frame where the data belong */
    bool given;             /* private: by its own descriptor, whose offset is another's now */
};

struct oribi_parts {
    uint32_t file_count;
    int64_t len;                 /* of the body so far */
    int64_t file_bytes;          /* on the disk, beside the frame */
    const char *reason;          /* after ORIBI_EBAD or ORIBI_EBODY; static text */
    struct oribi_form_data form; /* private from here on */
    struct oribi_body part;      /* data of the file at hand */
    bool in_file;
    struct oribi_parts_file files[ORIBI_PARTS_FILES_MAX];
};

/* Where bytes may go: see oribi_body_append(). */
struct oribi_parts_room {
    uint32_t frame_memory_max;
    uint32_t part_memory_max;
    uint32_t batch_max;
    struct oribi_temp_file *(*temp_file)(
        void *self); /* a new one for a file, NULL: no memory; NULL: files are written at once */
    void *self;
};

/* Is a value of Content-Type (borrowed) that of a form with parts? */
bool oribi_parts_wanted(struct oribi_slice content_type);

/* Gives a struct for a body of that type: end it with oribi_parts_destroy(). 0, ORIBI_ENOMEM, or ORIBI_EBAD with a
 * reason: the type has no boundary that can be one. */
int oribi_parts_create(struct oribi_slice content_type, struct oribi_parts **out, const char **reason);

/* Closes the files that are still there. NULL: nothing. */
void oribi_parts_destroy(struct oribi_parts *parts);

/* The next bytes of the body, borrowed. 0, or
 *   ORIBI_EBAD   it is no body of that type; with a reason
 *   ORIBI_EBODY  more parts, files, or bytes of a head or of all fields than limits.h allows; with a reason
 *   ORIBI_ENOMEM, ORIBI_EFULL, ORIBI_ESTORE as oribi_body_append(). */
int oribi_parts_append(struct oribi_parts *parts, struct oribi_body *frame, const struct oribi_parts_room *room,
                       const char *p, size_t n);

/* After the last byte: the same results; ORIBI_EBAD when the body is cut. Without temporary files everything is in its
 * place then. */
int oribi_parts_finish(struct oribi_parts *parts, struct oribi_body *frame);

/* With temporary files: is a write under way? When one has ended, well or not: begins the next where there is more. 0,
 * ORIBI_EFULL or ORIBI_ESTORE. */
bool oribi_parts_busy(const struct oribi_parts *parts, const struct oribi_body *frame);
int oribi_parts_stored(struct oribi_parts *parts, struct oribi_body *frame);

/* After oribi_parts_finish(), while none is under way: true when everything is in its place, else writes are begun. */
bool oribi_parts_settled(struct oribi_parts *parts, struct oribi_body *frame);

/* Capacity that was taken from the heap. */
size_t oribi_parts_memory(const struct oribi_parts *parts);

/* --- reading --- */

/* A stretch of a body: bytes in memory, or [offset, offset + len) of a file. */
struct oribi_body_piece {
    struct oribi_slice bytes; /* while fd < 0 */
    int fd;                   /* borrowed, or -1 */
    int64_t offset;
    int64_t len;
    bool is_part; /* the data of one part, all of it, and all of its file */
};

/* The piece of this number, from 0 on, of a complete body; they are never empty. False: there are no more. */
bool oribi_parts_piece(const struct oribi_parts *parts, const struct oribi_body *frame, uint32_t index,
                       struct oribi_body_piece *piece);

/* Gives a descriptor, for reading and writing, of the file of a piece that is a part: at its beginning, with an offset
 * that no other one shares. Where the system opens no file again that has no name, all but the first given are copies.
 * A descriptor, ORIBI_ESYS, ORIBI_EFULL or ORIBI_ESTORE. */
int oribi_parts_give(struct oribi_parts *parts, uint32_t index);

/* Writes the whole body to a new unlinked file, which stands at 0; gives its descriptor. 0, ORIBI_EFULL or
 * ORIBI_ESTORE. */
int oribi_parts_join(const struct oribi_parts *parts, const struct oribi_body *frame, int *fd);

/* Joins as oribi_parts_join() does, to a file in memory where the system has such: no disk is waited for. */
int oribi_parts_spool(const struct oribi_parts *parts, const struct oribi_body *frame, int *fd);

#endif
