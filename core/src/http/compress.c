/* Compressors by coding. Which libraries there are is decided when the core is built: CODINGS in core/Makefile. */
#include "http/compress_private.h"

#include "oribi/base/error.h"

#include <assert.h>
#include <stdio.h>

#ifdef ORIBI_CODING_WITH_GZIP
#define GZIP (&oribi__compress_zlib)
#else
#define GZIP NULL
#endif
#ifdef ORIBI_CODING_WITH_ZSTD
#define ZSTD (&oribi__compress_zstd)
#else
#define ZSTD NULL
#endif
#ifdef ORIBI_CODING_WITH_BR
#define BR (&oribi__compress_brotli)
#else
#define BR NULL
#endif

static const struct oribi__compress_library *const libraries[ORIBI_CODING_COUNT] = {
    [ORIBI_CODING_GZIP] = GZIP,
    [ORIBI_CODING_ZSTD] = ZSTD,
    [ORIBI_CODING_BR] = BR,
};

bool oribi_compress_has(enum oribi_coding coding)
{
    return coding < ORIBI_CODING_COUNT && libraries[coding] != NULL;
}

void oribi_compress_describe(char *dst, size_t cap)
{
    static const enum oribi_coding order[] = {ORIBI_CODING_GZIP, ORIBI_CODING_ZSTD, ORIBI_CODING_BR};
    size_t at = 0;
    assert(cap > 0);
    dst[0] = '\0';
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        char text[64];
        if (libraries[order[i]])
            libraries[order[i]]->describe(text, sizeof(text));
        else
            (void)snprintf(text, sizeof(text), "no %s", oribi_coding_name(order[i]).p); /* names end in NUL */
        int n = snprintf(dst + at, cap - at, "%s%s", i > 0 ? ", " : "", text);
        at = n < 0 || (size_t)n >= cap - at ? cap - 1 : at + (size_t)n;
    }
}

int oribi_compressor_create(enum oribi_coding coding, uint32_t level, struct oribi_compressor **out)
{
    assert(oribi_compress_has(coding) && level <= ORIBI_COMPRESS_LEVEL_MAX);
    const struct oribi__compress_library *library = libraries[coding];
    struct oribi_compressor *compressor = library->create(level > 0 ? level : library->level_default);
    if (!compressor)
        return ORIBI_ENOMEM;
    compressor->library = library;
    compressor->coding = coding;
    *out = compressor;
    return 0;
}

void oribi_compressor_destroy(struct oribi_compressor *compressor)
{
    if (compressor)
        compressor->library->destroy(compressor);
}

enum oribi_coding oribi_compressor_coding(const struct oribi_compressor *compressor)
{
    return compressor->coding;
}

int oribi_compressor_begin(struct oribi_compressor *compressor, size_t padding)
{
    assert(padding <= ORIBI_COMPRESS_PADDING_BYTES_MAX);
    return compressor->library->begin(compressor, padding);
}

int oribi_compressor_write(struct oribi_compressor *compressor, const void *p, size_t n, enum oribi_compress_then then,
                           struct oribi_buf *out)
{
    assert(n <= ORIBI_COMPRESS_PIECE_BYTES);
    return compressor->library->write(compressor, p, n, then, out);
}
