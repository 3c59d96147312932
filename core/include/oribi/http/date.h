/* IMF-fixdate (RFC 9110 5.6.7), formatted at most once a second. */
#ifndef ORIBI_HTTP_DATE_H
#define ORIBI_HTTP_DATE_H

#include <stdint.h>

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

#endif
