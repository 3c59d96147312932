/* byteranges - the body of a 206 with several ranges of one file, as pieces for oribi_conn_send_pieces(). */
#ifndef ORIBI_WORKER_BYTERANGES_H
#define ORIBI_WORKER_BYTERANGES_H

#include "oribi/event/conn.h"
#include "oribi/http/conditions.h"

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

#endif
