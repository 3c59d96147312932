/* HTTP-date from a request (RFC 9110 5.6.7). The other direction is http/date.h. */
#ifndef ORIBI_HTTP_DATE_READ_H
#define ORIBI_HTTP_DATE_READ_H

#include "oribi/base/slice.h"

#include <stdint.h>

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
