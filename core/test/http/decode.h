/* The decoders of the libraries that this build has (CODINGS in core/Makefile), for tests of what compresses. */
#ifndef ORIBI_TEST_HTTP_DECODE_H
#define ORIBI_TEST_HTTP_DECODE_H

#include "oribi/http/compress.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef ORIBI_CODING_WITH_GZIP
#include <zlib.h>
#endif
#ifdef ORIBI_CODING_WITH_ZSTD
#include <zstd.h>
#endif
#ifdef ORIBI_CODING_WITH_BR
#include <brotli/decode.h>
#endif

enum { DECODED_MAX = 4 * 1024 * 1024 };

static char decoded[DECODED_MAX];

#ifdef ORIBI_CODING_WITH_GZIP
static ssize_t decode_gzip(const char *p, size_t n, bool *ends)
{
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)p,
                       .avail_in = (uInt)n,
                       .next_out = (Bytef *)decoded,
                       .avail_out = sizeof(decoded)};
    if (inflateInit2(&stream, 15 + 16) != Z_OK)
        return -1;
    int result = inflate(&stream, Z_SYNC_FLUSH);
    ssize_t got = (ssize_t)(sizeof(decoded) - stream.avail_out);
    *ends = result == Z_STREAM_END && stream.avail_in == 0;
    (void)inflateEnd(&stream);
    return result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR ? got : -1;
}
#else
#define decode_gzip NULL
#endif

#ifdef ORIBI_CODING_WITH_ZSTD
static ssize_t decode_zstd(const char *p, size_t n, bool *ends)
{
    ZSTD_DCtx *context = ZSTD_createDCtx();
    ZSTD_inBuffer in = {p, n, 0};
    ZSTD_outBuffer out = {decoded, sizeof(decoded), 0};
    size_t result = 1;
    while (in.pos < in.size && !ZSTD_isError(result))
        result = ZSTD_decompressStream(context, &out, &in);
    *ends = result == 0;
    (void)ZSTD_freeDCtx(context);
    return ZSTD_isError(result) ? -1 : (ssize_t)out.pos;
}
#else
#define decode_zstd NULL
#endif

#ifdef ORIBI_CODING_WITH_BR
static ssize_t decode_br(const char *p, size_t n, bool *ends)
{
    BrotliDecoderState *state = BrotliDecoderCreateInstance(NULL, NULL, NULL);
    const uint8_t *next = (const uint8_t *)p;
    uint8_t *to = (uint8_t *)decoded;
    size_t room = sizeof(decoded);
    BrotliDecoderResult result = BrotliDecoderDecompressStream(state, &n, &next, &room, &to, NULL);
    *ends = result == BROTLI_DECODER_RESULT_SUCCESS && n == 0;
    BrotliDecoderDestroyInstance(state);
    return result == BROTLI_DECODER_RESULT_ERROR ? -1 : (ssize_t)(sizeof(decoded) - room);
}
#else
#define decode_br NULL
#endif

/* How many bytes [p, p+n) gives in `decoded`; -1: it is no such stream. *ends: it is a whole one. */
__attribute__((unused)) static ssize_t decode(enum oribi_coding coding, const char *p, size_t n, bool *ends)
{
    static ssize_t (*const decoders[ORIBI_CODING_COUNT])(const char *, size_t, bool *) = {
        [ORIBI_CODING_GZIP] = decode_gzip, [ORIBI_CODING_ZSTD] = decode_zstd, [ORIBI_CODING_BR] = decode_br};
    *ends = false;
    return decoders[coding](p, n, ends);
}

#endif
