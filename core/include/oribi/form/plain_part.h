/* The most frequent part of a multipart/form-data body: a text field, whole in memory, whose head is one line as
 * browsers write it. For readers that have a parser of their own for all other parts, such as Rack's: what is not this
 * shape to the byte is left to them. Pure.
 *
 *     Content-Disposition: form-data; name="a" CRLF CRLF body CRLF --boundary (CRLF | --) */
#ifndef ORIBI_FORM_PLAIN_PART_H
#define ORIBI_FORM_PLAIN_PART_H

#include "oribi/base/slice.h"

#include <stdbool.h>
#include <stddef.h>

enum { ORIBI_PLAIN_NAME_MAX = 1024 };

/* Where a body ends. */
struct oribi_plain_delimiter {
    struct oribi_slice text; /* CR LF - - boundary */
    /* A delimiter that does not begin a line is one too, as in Rack 2.2, and nothing but a line end or the end of the
     * bytes follows the last one. */
    bool anywhere;
};

/* Where the delimiter stands in `in`, with CRLF or two dashes behind it: the offset of its CRLF; in.n: nowhere. Sets
 * *bare: it begins no line, and the offset is that of its first dash; only at offset 0 unless delimiter->anywhere. */
size_t oribi_plain_find(struct oribi_slice in, const struct oribi_plain_delimiter *delimiter, bool *bare);

struct oribi_plain_part {
    struct oribi_slice name; /* not empty; none of `" \ : ;`, no control byte; ORIBI_PLAIN_NAME_MAX bytes at most */
    struct oribi_slice body;
    size_t head_len; /* with the CRLF of its line, without the empty one */
    size_t len;      /* of all, up to the next part's head, or behind the dashes of the last delimiter */
    bool is_last;
};

/* Reads the part whose head begins `in`. Returns false when it is not of this shape, or not whole, and leaves *part as
 * it is. The slices lie in `in`. */
bool oribi_plain_part(struct oribi_slice in, const struct oribi_plain_delimiter *delimiter,
                      struct oribi_plain_part *part);

#endif
