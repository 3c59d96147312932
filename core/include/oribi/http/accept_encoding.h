/* Accept-Encoding (RFC 9110 12.5.3): which of the codings at hand an answer gets. Pure.
 *
 * Others differ, and the RFC is followed instead:
 * - nginx 1.22 and Apache 2.4 (mod_deflate) ask only whether gzip is refused: no q value makes them prefer identity or
 *   another coding, and `*`, `x-gzip` and `identity;q=0` mean nothing to them.
 * - Apache takes gzip with a weight or parameter that is not the grammar; nginx does not.
 */
#ifndef ORIBI_HTTP_ACCEPT_ENCODING_H
#define ORIBI_HTTP_ACCEPT_ENCODING_H

#include "oribi/base/slice.h"

#include <stddef.h>

enum { ORIBI_ACCEPT_ENCODING_BYTES_MAX = 8 * 1024 }; /* a longer value is read as an empty one */

enum oribi_coding {
    ORIBI_CODING_NONE, /* nothing acceptable */
    ORIBI_CODING_IDENTITY,
    ORIBI_CODING_GZIP,
    ORIBI_CODING_BR,
    ORIBI_CODING_ZSTD,
    ORIBI_CODING_COUNT,
};

/* The name for Content-Encoding, "identity" for that one; ORIBI_CODING_NONE has none. Static storage. */
struct oribi_slice oribi_coding_name(enum oribi_coding coding);

/* Chooses among offered[0 … count), which stand in the server's order, by the value of Accept-Encoding, repeats joined
 * with ", " (p is NULL: no such field). The highest q is taken, and of several the one that is offered first.
 * - A coding that is not named has the q of `*`. Without `*` only identity is then acceptable, after all others.
 * - Without the field everything is acceptable, but nothing is known of the client: identity is taken where it is
 *   offered, else the first.
 * - An empty value makes identity alone acceptable.
 * - x-gzip is gzip (RFC 9110 8.4.1.3), names are compared in any case, and other codings are passed over.
 * - A coding that is named twice has the lower q.
 * - An element with a weight that is not the grammar never makes a coding acceptable and never makes identity
 *   unacceptable: it counts as q=0, but is passed over for identity and `*`. An element without a token at its front is
 *   passed over.
 * Returns ORIBI_CODING_NONE when no offered coding is acceptable, as with `identity;q=0`: the answer is then 406, or a
 * coding that the client does not want (RFC 9110 12.4.1 lets the server choose). Borrows everything. */
enum oribi_coding oribi_accept_encoding_choose(struct oribi_slice value, const enum oribi_coding *offered,
                                               size_t count);

#endif
