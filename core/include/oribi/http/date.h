/* Dates of HTTP (RFC 9110 5.6.7), written and read. */
#ifndef ORIBI_HTTP_DATE_H
#define ORIBI_HTTP_DATE_H

#include "oribi/base/buf.h"

#include <stdint.h>

/* ---- date ---- */

/* IMF-fixdate (RFC 9110 5.6.7), formatted at most once a second. */

enum { ORIBI_DATE_LEN = 29 };

/* Writes "Sun, 06 Nov 1994 08:49:37 GMT" (29 bytes, no NUL) for seconds since the epoch. */
void oribi_date_format(int64_t seconds, char dst[ORIBI_DATE_LEN]);

/* All-zero is empty. Not shared between threads. */
struct oribi_date_cache {
    int64_t second;
    char text[ORIBI_DATE_LEN];
};

/* The text for `second`, kept until asked for another one. */
const char *oribi_date_cached(struct oribi_date_cache *cache, int64_t second);

/* ---- date_read ---- */

/* HTTP-date from a request (RFC 9110 5.6.7). The other direction is http/date.h. */

enum {
    ORIBI_DATE_BYTES_MAX = 33,    /* "Wednesday, 09-Nov-94 08:49:37 GMT"; longer texts are no dates */
    ORIBI_DATE_FUTURE_YEARS = 50, /* a two-digit year is never read as one further ahead */
};

/* Reads an HTTP-date in one of its three forms:
 *
 *     Sun, 06 Nov 1994 08:49:37 GMT      IMF-fixdate
 *     Sunday, 06-Nov-94 08:49:37 GMT     RFC 850
 *     Sun Nov  6 08:49:37 1994           asctime()
 *
 * The grammar is case-sensitive and has no other white space. The name of the day must be one, but which one is not
 * compared with the date. Days that a month does not have are refused; second 60 is read at 23:59 alone, as the second
 * behind it. A two-digit year is the latest one with these digits that is at most 50 years ahead of `now_s` (seconds
 * since the epoch, 0 … 253402300799). Borrows text. Returns 0 and sets *seconds, which is negative before 1970, or
 * returns ORIBI_EBAD and leaves *seconds alone.
 *
 * nginx 1.22 reads two-digit years from 70 on as 19xx and others as 20xx, whatever the year is now, and asks neither
 * for GMT nor for the whole name of a month. */
int oribi_date_read(struct oribi_slice text, int64_t now_s, int64_t *seconds);

#endif
