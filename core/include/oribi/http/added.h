/* Headers that an operator adds to every answer, one line each:
 *
 *     X-Frame-Options:DENY          NAME:TEXT, with or without spaces behind the colon
 *
 * An answer that has a header of the name already keeps its own. Pure. */
#ifndef ORIBI_HTTP_ADDED_H
#define ORIBI_HTTP_ADDED_H

#include "oribi/http/response.h"

#include <stddef.h>

enum {
    ORIBI_ADDED_MAX = 64,             /* headers */
    ORIBI_ADDED_NAME_MAX = 128,       /* bytes of a name */
    ORIBI_ADDED_VALUE_MAX = 4096,     /* bytes of a value */
    ORIBI_ADDED_BYTES_MAX = 8 * 1024, /* all of them as lines */
};

/* Reads a line; the header's texts are parts of it. 0, or ORIBI_EINVAL with one line in `error`
 * (ORIBI_ERROR_TEXT_CAP): no token, a value that no answer may have, a name that frames or describes single answers. */
int oribi_added_read(const char *line, struct oribi_header *header, char *error);

/* Reads all of them. Gives NULL when there are none; end it with oribi_mem_free(). It borrows the lines while it is
 * used. 0, or ORIBI_EINVAL with one line in `error`: also a name that comes twice, and too many bytes. */
int oribi_added_create(char *const *lines, size_t count, struct oribi_added **added, char *error);

/* True if one of the headers has a value and the name of `wanted`, in any case. */
bool oribi_added_is_among(const struct oribi_header *wanted, const struct oribi_header *headers, uint32_t count);

/* Writes those that are neither among the headers of `res` nor its extra one to `out`, which has room for all. Returns
 * where they end. */
char *oribi_added_put(char *out, const struct oribi_response *res);

#endif
