/* gzip by zlib. Padding is a subfield of the header's extra field, which every decoder passes over. */
#include "http/compress_private.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"

#include <stdio.h>
#include <zlib.h>

enum {
    WINDOW_BITS = 15 + 16, /* 32 KiB; 16: with the head and the end of gzip */
    MEMORY_LEVEL = 8,      /* zlib's default: with the window 256 KiB */
    LEVEL_DEFAULT = 5,
    SUBFIELD_HEAD_BYTES = 4, /* two letters and the length */
};

struct gzip {
    struct oribi_compressor base;
    z_stream stream;
    gz_header header;
    Bytef extra[SUBFIELD_HEAD_BYTES + ORIBI_COMPRESS_PADDING_BYTES_MAX];
};

static voidpf take_memory(voidpf nothing, uInt count, uInt size)
{
    return oribi_mem_try_alloc(count, size);
}

static void give_memory(voidpf nothing, voidpf p)
{
    oribi_mem_free(p);
}

static void describe(char *dst, size_t cap)
{
    (void)snprintf(dst, cap, "gzip (zlib %s)", zlibVersion());
}

static struct oribi_compressor *create(uint32_t level)
{
    struct gzip *gzip = oribi_mem_try_alloc(1, sizeof(*gzip));
    if (!gzip)
        return NULL;
    gzip->stream.zalloc = take_memory;
    gzip->stream.zfree = give_memory;
    if (deflateInit2(&gzip->stream, (int)level, Z_DEFLATED, WINDOW_BITS, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK) {
        oribi_mem_free(gzip);
        return NULL;
    }
    gzip->header.os = 255; /* unknown, RFC 1952 2.3.1 */
    gzip->header.extra = gzip->extra;
    gzip->extra[0] = 'o';
    gzip->extra[1] = 'r';
    return &gzip->base;
}

static void destroy(struct oribi_compressor *compressor)
{
    struct gzip *gzip = (struct gzip *)compressor;
    (void)deflateEnd(&gzip->stream); /* Z_DATA_ERROR says only that a stream was not ended */
    oribi_mem_free(gzip);
}

static int begin(struct oribi_compressor *compressor, size_t padding)
{
    struct gzip *gzip = (struct gzip *)compressor;
    if (deflateReset(&gzip->stream) != Z_OK)
        return ORIBI_ESYS;
    gzip->extra[2] = (Bytef)(padding & 0xff);
    gzip->extra[3] = (Bytef)(padding >> 8);
    gzip->header.extra_len = (uInt)(SUBFIELD_HEAD_BYTES + padding);
    return deflateSetHeader(&gzip->stream, padding > 0 ? &gzip->header : Z_NULL) == Z_OK ? 0 : ORIBI_ESYS;
}

static int write_bytes(struct oribi_compressor *compressor, const void *p, size_t n, enum oribi_compress_then then,
                       struct oribi_buf *out)
{
    static const int flushes[] = {
        [ORIBI_COMPRESS_GO_ON] = Z_NO_FLUSH, [ORIBI_COMPRESS_FLUSH] = Z_SYNC_FLUSH, [ORIBI_COMPRESS_END] = Z_FINISH};
    z_stream *stream = &((struct gzip *)compressor)->stream;
    stream->next_in = (Bytef *)(uintptr_t)p; /* zlib reads it only, but its type may not say so */
    stream->avail_in = (uInt)n;
    for (;;) {
        char *room = oribi_buf_try_reserve(out, ORIBI__COMPRESS_ROOM_BYTES);
        if (!room)
            return ORIBI_ENOMEM;
        size_t cap = out->cap - out->len < UINT32_MAX ? out->cap - out->len : UINT32_MAX;
        stream->next_out = (Bytef *)room;
        stream->avail_out = (uInt)cap;
        int result = deflate(stream, flushes[then]);
        out->len += cap - stream->avail_out;
        if (result == Z_STREAM_END)
            return 0;
        if (result != Z_OK && result != Z_BUF_ERROR) /* the latter: there was nothing to do, zlib.h */
            return ORIBI_ESYS;
        if (stream->avail_out > 0 && then != ORIBI_COMPRESS_END)
            return 0;
        if (result == Z_BUF_ERROR && stream->avail_out > 0)
            return ORIBI_ESYS; /* it would never end */
    }
}

const struct oribi__compress_library oribi__compress_zlib = {
    .level_default = LEVEL_DEFAULT,
    .describe = describe,
    .create = create,
    .destroy = destroy,
    .begin = begin,
    .write = write_bytes,
};
