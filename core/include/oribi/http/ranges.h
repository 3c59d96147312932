/* Range requests (RFC 9110 14): which bytes an answer has, and what is written around them. Pure: nothing is allocated,
 * all texts go into the caller's buffers.
 *
 * Others differ, and the RFC is followed instead:
 * - nginx 1.22 and Apache 2.4 answer HEAD with 206, and a representation without bytes with 200 where a position is
 *   asked for (nginx: 416 from position 1 on).
 * - nginx answers 416 to most fields that are not the grammar, and also to empty elements and to ends beyond 2^63,
 *   which are. It keeps ranges in front of one that ends before it begins, and accepts a space behind the equals sign.
 * - nginx sends overlapping ranges as often as they are asked for, or the whole where they are longer than that. Apache
 *   joins ranges, but gives the whole where too many overlap or run backwards, and for "bytes=-0".
 */
#ifndef ORIBI_HTTP_RANGES_H
#define ORIBI_HTTP_RANGES_H

#include "oribi/base/slice.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    ORIBI_RANGES_MAX = 16,         /* in an answer; more make it the whole */
    ORIBI_RANGES_PENDING_MAX = 64, /* apart from each other while a field is read: later ones may join them */
    ORIBI_BOUNDARY_BYTES_MAX = 70, /* RFC 2046 5.1.1 */
    ORIBI_CONTENT_RANGE_CAP = 65,  /* "bytes FIRST-LAST/SIZE", 19 digits each */
    ORIBI_MULTIPART_TYPE_CAP = 31 + ORIBI_BOUNDARY_BYTES_MAX, /* "multipart/byteranges; boundary=…" */
};

/* Bytes first … last of a representation, both counted from 0 and both included. */
struct oribi_byte_range {
    int64_t first;
    int64_t last;
};

struct oribi_ranges {
    uint32_t count;
    struct oribi_byte_range at[ORIBI_RANGES_MAX]; /* neither overlapping nor adjacent, each within the representation */
};

enum oribi_ranges_result {
    ORIBI_RANGES_WHOLE = 200, /* as if there were no Range field; ranges->count is 0 */
    ORIBI_RANGES_PART = 206,  /* the ranges: one is sent alone, several as multipart/byteranges */
    ORIBI_RANGES_NONE = 416,  /* none of them lies within the representation; ranges->count is 0 */
};

/* Reads the value of a Range field (without white space around it) for a representation of `size` bytes (>= 0). To be
 * asked only where oribi_conditions_decide() says that ranges count: HEAD has none.
 * - Overlapping and adjacent ranges become one, in the place of the first of them; else the order is the client's
 *   (RFC 9110 15.3.7.2). Ranges that are not satisfiable are left out.
 * - The whole is the answer to another unit than bytes, to a field that is not exactly the grammar (RFC 9110 14.1.1;
 *   empty elements of the list are no fault), to more than ORIBI_RANGES_MAX ranges that do not join, or to more than
 *   ORIBI_RANGES_PENDING_MAX at any time.
 * - Numbers may have any number of digits.
 * - Of a representation without bytes no position can be satisfied (416), but its last N bytes are the whole of it.
 * Borrows the value. */
enum oribi_ranges_result oribi_ranges_read(struct oribi_slice value, int64_t size, struct oribi_ranges *ranges);

/* Write the value of Content-Range: "bytes FIRST-LAST/SIZE" for a 206 with one range, and the same with a star in place
 * of the range for a 416. Both return the length; no NUL. */
size_t oribi_content_range(struct oribi_byte_range range, int64_t size, char dst[ORIBI_CONTENT_RANGE_CAP]);
size_t oribi_content_range_none(int64_t size, char dst[ORIBI_CONTENT_RANGE_CAP]);

/* The body of a 206 with several ranges (RFC 9110 14.6, RFC 2046 5.1):
 *
 *     --BOUNDARY CRLF Content-Type: TYPE CRLF Content-Range: bytes … CRLF CRLF  the first range's bytes
 *     CRLF --BOUNDARY CRLF …                                                    the next range's bytes
 *     CRLF --BOUNDARY-- CRLF
 *
 * The caller writes oribi_multipart_head() for each range, its bytes behind it, and oribi_multipart_end(). */
struct oribi_multipart {
    struct oribi_slice boundary; /* 1 … ORIBI_BOUNDARY_BYTES_MAX letters and digits that the bytes do not hold */
    struct oribi_slice type;     /* Content-Type of the representation; n is 0: unknown, and the parts have none */
    int64_t size;                /* of the representation */
};

/* Writes what stands before the bytes of range `index`. Returns the length, or ORIBI_ELIMIT when that is more than cap;
 * dst is then unspecified. */
ssize_t oribi_multipart_head(const struct oribi_multipart *multipart, const struct oribi_ranges *ranges, uint32_t index,
                             char *dst, size_t cap);

/* Writes the end behind the last range's bytes, as oribi_multipart_head() writes the head before a range's. */
ssize_t oribi_multipart_end(const struct oribi_multipart *multipart, char *dst, size_t cap);

/* The length of the whole body, for Content-Length; ORIBI_ELIMIT when it is beyond 2^63 - 1. */
int64_t oribi_multipart_len(const struct oribi_multipart *multipart, const struct oribi_ranges *ranges);

/* Writes the answer's Content-Type, "multipart/byteranges; boundary=BOUNDARY". Returns the length; no NUL. */
size_t oribi_multipart_type(const struct oribi_multipart *multipart, char dst[ORIBI_MULTIPART_TYPE_CAP]);

#endif
