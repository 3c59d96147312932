/* br by libbrotlienc. Its encoder cannot be begun anew, only made anew: the blocks that it gives back are kept and
 * serve the next, which asks for the same sizes. Padding is a metadata block in front of the content.
 *
 * As it is built everywhere, the library calls exit(3) when it is given no memory. So it is left by longjmp(3) then: it
 * holds nothing but the blocks that it has of us, and those are known. */
#include "http/compress_private.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"

#include <brotli/encode.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdio.h>

enum {
    LEVEL_DEFAULT = 5,
    /* 64 KiB. With more, qualities 8 and 9 clear megabytes of tables for each stream: 5 ms for 30 KiB, not 0.6. */
    WINDOW_BITS = 16,
    BLOCK_BYTES_MIN = 64,
    KEPT_MAX = 64,                     /* blocks that are kept; more are given back to the heap */
    KEPT_BYTES_MAX = 16 * 1024 * 1024, /* all of them together */
};

/* In front of each block; a multiple of the strictest alignment. */
union block {
    struct {
        size_t cap;
        union block *next; /* of those that the encoder has */
        union block *before;
    };
    max_align_t align[2];
};

/* Qualities that take about the time of zlib at that level: for 30 KiB of JSON 50 µs at level 1, 0.6 ms at 9. */
static const uint32_t qualities[ORIBI_COMPRESS_LEVEL_MAX + 1] = {0, 1, 1, 2, 3, 4, 4, 5, 7, 8};

struct brotli {
    struct oribi_compressor base;
    BrotliEncoderState *encoder; /* NULL between streams */
    size_t padding;              /* still to be written */
    jmp_buf no_memory;
    union block *lent; /* to the encoder */
    uint32_t level;
    uint32_t kept_count;
    size_t kept_bytes;
    union block *kept[KEPT_MAX];
};

/* Sizes are powers of two: what a shorter or longer stream has left behind fits as well. 0: too large. */
static size_t class_of(size_t size)
{
    size_t cap = BLOCK_BYTES_MIN;
    while (cap < size && cap <= SIZE_MAX / 4)
        cap *= 2;
    return cap >= size ? cap : 0;
}

static union block *find_kept(struct brotli *brotli, size_t cap)
{
    for (uint32_t i = brotli->kept_count; i-- > 0;) {
        union block *block = brotli->kept[i];
        if (block->cap != cap)
            continue;
        brotli->kept[i] = brotli->kept[--brotli->kept_count];
        brotli->kept_bytes -= cap;
        return block;
    }
    return NULL;
}

static void *take_memory(void *self, size_t size)
{
    struct brotli *brotli = self;
    size_t cap = class_of(size);
    union block *block = cap ? find_kept(brotli, cap) : NULL;
    if (!block && cap && (block = oribi_mem_try_alloc(1, sizeof(*block) + cap)))
        block->cap = cap;
    if (!block)
        longjmp(brotli->no_memory, 1);
    block->before = NULL;
    block->next = brotli->lent;
    if (block->next)
        block->next->before = block;
    brotli->lent = block;
    return block + 1;
}

static void give_memory(void *self, void *p)
{
    struct brotli *brotli = self;
    if (!p)
        return;
    union block *block = (union block *)p - 1;
    if (block->before)
        block->before->next = block->next;
    else
        brotli->lent = block->next;
    if (block->next)
        block->next->before = block->before;
    if (brotli->kept_count == KEPT_MAX || block->cap > KEPT_BYTES_MAX - brotli->kept_bytes) {
        oribi_mem_free(block);
        return;
    }
    brotli->kept[brotli->kept_count++] = block;
    brotli->kept_bytes += block->cap;
}

static void describe(char *dst, size_t cap)
{
    uint32_t version = BrotliEncoderVersion();
    (void)snprintf(dst, cap, "br (brotli %u.%u.%u)", version >> 24, version >> 12 & 0xfff, version & 0xfff);
}

static struct oribi_compressor *create(uint32_t level)
{
    struct brotli *brotli = oribi_mem_try_alloc(1, sizeof(*brotli));
    if (!brotli)
        return NULL;
    brotli->level = level;
    return &brotli->base;
}

static void end_stream(struct brotli *brotli)
{
    if (brotli->encoder)
        BrotliEncoderDestroyInstance(brotli->encoder);
    brotli->encoder = NULL;
}

static void destroy(struct oribi_compressor *compressor)
{
    struct brotli *brotli = (struct brotli *)compressor;
    end_stream(brotli);
    for (uint32_t i = 0; i < brotli->kept_count; i++)
        oribi_mem_free(brotli->kept[i]);
    oribi_mem_free(brotli);
}

/* The encoder was left in the middle: what it has is taken from it. */
static int without_memory(struct brotli *brotli)
{
    while (brotli->lent)
        give_memory(brotli, brotli->lent + 1);
    brotli->encoder = NULL;
    return ORIBI_ENOMEM;
}

/* Feeds the encoder until it has taken everything and has nothing more to give. It fails only without memory. The room
 * holds a metadata block of any padding, which is then written in one go: an encoder that must stop inside one is not
 * through with it when all of its bytes are out. */
static int encode(struct brotli *brotli, BrotliEncoderOperation operation, const void *p, size_t n,
                  struct oribi_buf *out)
{
    const uint8_t *next = p;
    do {
        uint8_t *room = (uint8_t *)oribi_buf_try_reserve(out, ORIBI__COMPRESS_ROOM_BYTES);
        if (!room)
            return ORIBI_ENOMEM;
        size_t left = out->cap - out->len;
        if (!BrotliEncoderCompressStream(brotli->encoder, operation, &n, &next, &left, &room, NULL))
            return ORIBI_ENOMEM;
        out->len = out->cap - left;
    } while (n > 0 || BrotliEncoderHasMoreOutput(brotli->encoder));
    return 0;
}

static int begin(struct oribi_compressor *compressor, size_t padding)
{
    struct brotli *brotli = (struct brotli *)compressor;
    end_stream(brotli);
    if (setjmp(brotli->no_memory) != 0)
        return without_memory(brotli);
    brotli->encoder = BrotliEncoderCreateInstance(take_memory, give_memory, brotli);
    if (!brotli->encoder)
        return ORIBI_ENOMEM;
    if (!BrotliEncoderSetParameter(brotli->encoder, BROTLI_PARAM_QUALITY, qualities[brotli->level]) ||
        !BrotliEncoderSetParameter(brotli->encoder, BROTLI_PARAM_LGWIN, WINDOW_BITS))
        return ORIBI_ESYS;
    brotli->padding = padding;
    return 0;
}

static int encode_padded(struct brotli *brotli, BrotliEncoderOperation operation, const void *p, size_t n,
                         struct oribi_buf *out)
{
    /* libbrotlienc 1.0.9 writes a metadata block of one byte wrongly: there is always one more than asked for. */
    static const uint8_t zeros[ORIBI_COMPRESS_PADDING_BYTES_MAX + 1];
    int result = 0;
    if (brotli->padding > 0)
        result = encode(brotli, BROTLI_OPERATION_EMIT_METADATA, zeros, brotli->padding + 1, out);
    brotli->padding = 0;
    return result < 0 ? result : encode(brotli, operation, p, n, out);
}

static int write_bytes(struct oribi_compressor *compressor, const void *p, size_t n, enum oribi_compress_then then,
                       struct oribi_buf *out)
{
    static const BrotliEncoderOperation operations[] = {[ORIBI_COMPRESS_GO_ON] = BROTLI_OPERATION_PROCESS,
                                                        [ORIBI_COMPRESS_FLUSH] = BROTLI_OPERATION_FLUSH,
                                                        [ORIBI_COMPRESS_END] = BROTLI_OPERATION_FINISH};
    struct brotli *brotli = (struct brotli *)compressor;
    if (!brotli->encoder) /* the stream was lost before */
        return ORIBI_ESYS;
    if (setjmp(brotli->no_memory) != 0)
        return without_memory(brotli);
    int result = encode_padded(brotli, operations[then], p, n, out);
    if (result < 0 || then == ORIBI_COMPRESS_END)
        end_stream(brotli);
    return result;
}

const struct oribi__compress_library oribi__compress_brotli = {
    .level_default = LEVEL_DEFAULT,
    .describe = describe,
    .create = create,
    .destroy = destroy,
    .begin = begin,
    .write = write_bytes,
};
