/* Shared by the sources of the compressors: compress.c (the choice of a library), compress_zlib.c, compress_zstd.c,
 * compress_brotli.c (one library each). */
#ifndef ORIBI_SRC_HTTP_COMPRESS_PRIVATE_H
#define ORIBI_SRC_HTTP_COMPRESS_PRIVATE_H

#include "oribi/http/compress.h"

/* The least room that a library is given for what it writes. */
enum { ORIBI__COMPRESS_ROOM_BYTES = 4 * 1024 };

/* The functions of oribi/http/compress.h for one library. create() gives a struct that begins with struct
 * oribi_compressor, all zero but for what it needs, or NULL without memory. */
struct oribi__compress_library {
    uint32_t level_default;
    void (*describe)(char *dst, size_t cap);
    struct oribi_compressor *(*create)(uint32_t level);
    void (*destroy)(struct oribi_compressor *compressor);
    int (*begin)(struct oribi_compressor *compressor, size_t padding);
    int (*write)(struct oribi_compressor *compressor, const void *p, size_t n, enum oribi_compress_then then,
                 struct oribi_buf *out);
};

struct oribi_compressor {
    const struct oribi__compress_library *library;
    enum oribi_coding coding;
};

extern const struct oribi__compress_library oribi__compress_zlib;
extern const struct oribi__compress_library oribi__compress_zstd;
extern const struct oribi__compress_library oribi__compress_brotli;

#endif
