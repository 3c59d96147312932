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
#ifndef ORIBI_EVENT_PARTS_H
#define ORIBI_EVENT_PARTS_H

#include "oribi/event/body.h"
#include "oribi/form/multipart.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
