/* Compressors of content codings (RFC 9110 8.4.1): bytes in, a gzip, br or zstd stream out. A compressor is made once
 * and begun anew for each stream, and takes no memory then: zlib and zstd keep their state, and what brotli gives back
 * at the end of a stream is kept for the next.
 *
 * Each library is optional at build time (CODINGS in core/Makefile); a coding without its library has no compressor.
 * One source each: compress_zlib.c, compress_zstd.c, compress_brotli.c. */
#ifndef ORIBI_HTTP_COMPRESS_H
#define ORIBI_HTTP_COMPRESS_H

#include "oribi/base/buf.h"
#include "oribi/http/accept_encoding.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ORIBI_COMPRESS_LEVEL_MAX = 9, /* a meaning that all three share; their slower ones are not for answers */
    /* At most so many bytes go into oribi_compressor_write() at a time. */
    ORIBI_COMPRESS_PIECE_BYTES = 64 * 1024,
    /* oribi_compressor_write() appends at most so many bytes beyond twice that: bytes held back, the library's own
     * framing, padding. */
    ORIBI_COMPRESS_HELD_BYTES_MAX = 512 * 1024,
    ORIBI_COMPRESS_PADDING_BYTES_MAX = 255,
};

struct oribi_compressor;

/* The compressor's step behind the bytes of a write. */
enum oribi_compress_then {
    ORIBI_COMPRESS_GO_ON, /* holds back what compresses better with what follows */
    ORIBI_COMPRESS_FLUSH, /* gives all bytes so far, so that a decoder has them */
    ORIBI_COMPRESS_END,   /* ends the stream; begin comes next */
};

/* True for a coding whose library was there at build time. */
bool oribi_compress_has(enum oribi_coding coding);

/* Writes what this build can do for --version: "gzip (zlib 1.2.13), zstd 1.5.4, no br". NUL-terminated, cut at
 * cap - 1. */
void oribi_compress_describe(char *dst, size_t cap);

/* Gives a compressor of a coding that oribi_compress_has(). level: 1 (fast) … ORIBI_COMPRESS_LEVEL_MAX (small), or 0
 * for the coding's own default: gzip 5, zstd 3, br 5. A level of gzip is zlib's, of zstd libzstd's; of br it is a
 * quality that takes about gzip's time. 0 or ORIBI_ENOMEM. */
int oribi_compressor_create(enum oribi_coding coding, uint32_t level, struct oribi_compressor **out);
void oribi_compressor_destroy(struct oribi_compressor *compressor); /* NULL is allowed */

enum oribi_coding oribi_compressor_coding(const struct oribi_compressor *compressor);

/* Begins a stream; one that was not ended is forgotten. `padding` (at most ORIBI_COMPRESS_PADDING_BYTES_MAX) bytes
 * that a decoder skips are added to it: in the extra field of gzip (RFC 1952 2.3.1.1), in a metadata block of brotli
 * (RFC 7932 9.2), in a skippable frame behind the content of zstd (RFC 8878 3.1.2). 0 adds nothing. 0, ORIBI_ENOMEM,
 * or ORIBI_ESYS when the library fails for another reason. */
int oribi_compressor_begin(struct oribi_compressor *compressor, size_t padding);

/* Compresses [p, p+n), which is borrowed and at most ORIBI_COMPRESS_PIECE_BYTES, and appends what comes out to `out`.
 * 0; ORIBI_ENOMEM, or ORIBI_ESYS when the library fails: the stream is lost then, and `out` has a part of it. */
int oribi_compressor_write(struct oribi_compressor *compressor, const void *p, size_t n, enum oribi_compress_then then,
                           struct oribi_buf *out);

#endif
