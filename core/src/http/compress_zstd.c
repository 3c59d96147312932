/* zstd by libzstd, with the functions of its stable interface alone. The window is fixed, so that the state grows no
 * more after the first streams. Padding is a skippable frame behind the content: a decoder that stops at the end of
 * the first frame has all of the content then. */
#include "http/compress_private.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"

#include <stdio.h>
#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

enum {
    LEVEL_DEFAULT = 3,
    WINDOW_BITS = 17,     /* 128 KiB, and tables to match: a high level alone would take 13 MiB and more */
    FRAME_HEAD_BYTES = 8, /* of a skippable frame: magic number and length, little-endian */
};

struct zstd {
    struct oribi_compressor base;
    ZSTD_CCtx *context;
    size_t padding;
};

static void describe(char *dst, size_t cap)
{
    (void)snprintf(dst, cap, "zstd %s", ZSTD_versionString());
}

static void destroy(struct oribi_compressor *compressor)
{
    struct zstd *zstd = (struct zstd *)compressor;
    (void)ZSTD_freeCCtx(zstd->context); /* NULL is allowed; always 0 */
    oribi_mem_free(zstd);
}

static bool set(struct zstd *zstd, ZSTD_cParameter parameter, int value)
{
    return !ZSTD_isError(ZSTD_CCtx_setParameter(zstd->context, parameter, value));
}

static struct oribi_compressor *create(uint32_t level)
{
    struct zstd *zstd = oribi_mem_try_alloc(1, sizeof(*zstd));
    if (!zstd)
        return NULL;
    zstd->context = ZSTD_createCCtx();
    if (!zstd->context || !set(zstd, ZSTD_c_compressionLevel, (int)level) ||
        !set(zstd, ZSTD_c_windowLog, WINDOW_BITS) || !set(zstd, ZSTD_c_hashLog, WINDOW_BITS) ||
        !set(zstd, ZSTD_c_chainLog, WINDOW_BITS)) {
        destroy(&zstd->base);
        return NULL;
    }
    return &zstd->base;
}

static int error_of(size_t result)
{
    return ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation ? ORIBI_ENOMEM : ORIBI_ESYS;
}

static int begin(struct oribi_compressor *compressor, size_t padding)
{
    struct zstd *zstd = (struct zstd *)compressor;
    size_t result = ZSTD_CCtx_reset(zstd->context, ZSTD_reset_session_only);
    zstd->padding = padding;
    return ZSTD_isError(result) ? error_of(result) : 0;
}

static int append_padding(size_t padding, struct oribi_buf *out)
{
    unsigned char head[FRAME_HEAD_BYTES] = {
        0x50, 0x2a, 0x4d, 0x18, (unsigned char)(padding & 0xff), (unsigned char)(padding >> 8)};
    char *room = oribi_buf_try_reserve(out, sizeof(head) + padding);
    if (!room)
        return ORIBI_ENOMEM;
    memcpy(room, head, sizeof(head));
    memset(room + sizeof(head), 0, padding);
    out->len += sizeof(head) + padding;
    return 0;
}

static int write_bytes(struct oribi_compressor *compressor, const void *p, size_t n, enum oribi_compress_then then,
                       struct oribi_buf *out)
{
    static const ZSTD_EndDirective directives[] = {[ORIBI_COMPRESS_GO_ON] = ZSTD_e_continue,
                                                   [ORIBI_COMPRESS_FLUSH] = ZSTD_e_flush,
                                                   [ORIBI_COMPRESS_END] = ZSTD_e_end};
    struct zstd *zstd = (struct zstd *)compressor;
    ZSTD_inBuffer in = {p, n, 0};
    size_t left;
    do {
        char *room = oribi_buf_try_reserve(out, ORIBI__COMPRESS_ROOM_BYTES);
        if (!room)
            return ORIBI_ENOMEM;
        ZSTD_outBuffer to = {room, out->cap - out->len, 0};
        left = ZSTD_compressStream2(zstd->context, &to, &in, directives[then]);
        if (ZSTD_isError(left))
            return error_of(left);
        out->len += to.pos;
    } while (in.pos < n || (then != ORIBI_COMPRESS_GO_ON && left > 0));
    return then == ORIBI_COMPRESS_END && zstd->padding > 0 ? append_padding(zstd->padding, out) : 0;
}

const struct oribi__compress_library oribi__compress_zstd = {
    .level_default = LEVEL_DEFAULT,
    .describe = describe,
    .create = create,
    .destroy = destroy,
    .begin = begin,
    .write = write_bytes,
};
