/* Conditional requests (RFC 9110 13, conditions.c) and ranges (RFC 9110 14, ranges.c). */
#ifndef ORIBI_HTTP_CONDITIONS_H
#define ORIBI_HTTP_CONDITIONS_H

#include "oribi/base/buf.h"
#include "oribi/http/head.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- conditions ---- */

/* Conditional requests (RFC 9110 13): what an answer says about its representation, and whether a request wants it.
 * Pure: nothing is allocated, the time is given.
 *
 * The order of RFC 9110 13.2.2:
 *
 *     1  If-Match             true: 3     false: 412                          absent: 2
 *     2  If-Unmodified-Since  true: 3     false: 412                          absent or ignored: 3
 *     3  If-None-Match        true: 5     false: 304 (GET, HEAD), else 412    absent: 4
 *     4  If-Modified-Since    true: 5     false: 304                          absent or ignored: 5
 *     5  If-Range             true: 6     false: the whole, Range is ignored  absent: 6
 *     6  the method
 *
 * Others differ, and the RFC is followed instead:
 * - nginx 1.22 and Apache 2.4 look at If-Unmodified-Since also where If-Match is there and holds, and at
 *   If-Modified-Since beside an If-None-Match: 304 only where both say that nothing has changed.
 * - nginx compares If-Modified-Since for equality (its default), so that a later date gets the whole, and answers an
 *   If-Unmodified-Since that is no date with 412. Apache ignores an If-Modified-Since in the future.
 * - In a list that is not the grammar nginx looks on behind the next comma; Apache keeps what it found up to there, and
 *   takes a list that begins with `*` for `*`.
 */

enum {
    ORIBI_ETAG_CODING_BYTES_MAX = 8, /* of the name of a content coding in an entity tag */
    /* W/"hHASH-SIZE-CODING-new" */
    ORIBI_ETAG_BYTES_MAX = 2 + 2 + 1 + 16 + 1 + 16 + 1 + ORIBI_ETAG_CODING_BYTES_MAX + 4,
    /* A file as young as this may change again without a change of its time in whole seconds. */
    ORIBI_VALIDATOR_YOUNG_S = 2,
    /* Times up to this one say nothing: Nix and reproducible images give it, or 0, to every file and every state of
     * it. */
    ORIBI_MTIME_UNKNOWN_S = 1,
};

/* Validators of the representation that a GET would be answered with. All-zero: none exists. */
struct oribi_validators {
    struct oribi_slice etag; /* the answer's ETag, with quotes and perhaps W/; n is 0 where the answer has none */
    int64_t last_modified_s; /* the answer's Last-Modified; write it with oribi_date_format() */
    bool has_last_modified;
    bool last_modified_strong; /* the representation cannot have changed twice in that second (RFC 9110 8.8.2.2) */
    bool exists;
};

/* Fills the validators of a file of `size` bytes that was last changed at `mtime_s`, as of `now_s` (both seconds since
 * the epoch, now_s not negative).
 * - ETag: mtime and size in hexadecimal, then the content coding where `coding` names one (n is 0: none; at most
 *   ORIBI_ETAG_CODING_BYTES_MAX characters of a token): a file and its precompressed file may have the same size and
 *   time. Fractions of a second are left out, so that copies of one deployment agree.
 * - A file younger than two seconds has a weak tag with an opaque part of its own: the later strong tag does not match
 *   it even by weak comparison. A client that has read the file between two changes in one second would otherwise be
 *   told for ever that nothing has changed.
 * - Last-Modified is never later than now_s (RFC 9110 8.8.2.1), and strong for files of two seconds or more.
 * - A file of a time that says nothing (ORIBI_MTIME_UNKNOWN_S or before) has neither: its next state would have both of
 *   this one.
 * A time ahead of the clock counts as young. The tag is written into `dst`; validators->etag points there. */
void oribi_validators_of_file(int64_t size, int64_t mtime_s, int64_t now_s, struct oribi_slice coding,
                              char dst[ORIBI_ETAG_BYTES_MAX], struct oribi_validators *validators);

/* Puts a tag of the content in the place of the tag that oribi_validators_of_file() has made of the same file: its hash
 * and size, so that it is the same for equal bytes whatever their time. Strong, unless `may_change`: the bytes may not
 * be any more what was hashed. */
void oribi_validators_take_hash(uint64_t hash, int64_t size, bool may_change, struct oribi_slice coding,
                                char dst[ORIBI_ETAG_BYTES_MAX], struct oribi_validators *validators);

/* The values of a request's fields, repeats joined with ", " and without white space around them; p is NULL where the
 * request does not have the field. */
struct oribi_conditions {
    struct oribi_slice method;
    struct oribi_slice if_match;
    struct oribi_slice if_none_match;
    struct oribi_slice if_modified_since;
    struct oribi_slice if_unmodified_since;
    struct oribi_slice if_range;
    struct oribi_slice range;
};

/* Collects the conditions of a request. The slices point to where the head's do and live as long. */
void oribi_conditions_of_head(const struct oribi_head *head, struct oribi_conditions *conditions);

enum oribi_condition_result {
    ORIBI_CONDITION_GO_ON = 0,          /* perform the method */
    ORIBI_CONDITION_NOT_MODIFIED = 304, /* only for GET and HEAD */
    ORIBI_CONDITION_FAILED = 412,
};

/* Decides in the order above; `now_s` is the time of the request. Borrows everything. To be asked when the method
 * without conditions would be answered with 2xx (RFC 9110 13.2.1). Sets *ranges: the Range field counts; it is true
 * only for GO_ON to a GET with a Range field whose If-Range, if there is one, holds.
 * - Without a representation GET and HEAD go on (to a 404), whatever they ask for; of other methods If-Match fails,
 *   and If-None-Match holds.
 * - CONNECT, OPTIONS and TRACE go on: they select no representation.
 * - If-Match and If-Range compare strongly, If-None-Match weakly (RFC 9110 8.8.3.2). A validators->etag that is no
 *   entity-tag matches nothing; `*` asks only whether there is a representation.
 * - A field with a date is ignored when that is no HTTP-date, and where the representation has no Last-Modified. As
 *   If-Range such a date is false, as are lists and `*`. A date in the future is a date like others.
 * - A list of entity-tags that is not the grammar has no entity-tags: If-Match fails, and If-None-Match lets GET and
 *   HEAD have the whole. If-None-Match of another method fails then, since the method might destroy what the client
 *   wanted to keep. Empty elements of a list are no fault (RFC 9110 5.6.1.2). */
enum oribi_condition_result oribi_conditions_decide(const struct oribi_conditions *conditions,
                                                    const struct oribi_validators *validators, int64_t now_s,
                                                    bool *ranges);

/* ---- ranges ---- */

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
