/* Round trips through each library's own decoder: whole, at every split, with every kind of flush, with padding; what a
 * stream allocates; what happens without memory. A coding that the build lacks is said and passed over. */
#include "http/compress.c"

#include "base/mem_counted.h"

#include "guard.h"
#include "http/decode.h"
#include "tap.h"

enum { JSON_BYTES = 30 * 1024 };

static const enum oribi_coding codings[] = {ORIBI_CODING_GZIP, ORIBI_CODING_ZSTD, ORIBI_CODING_BR};
enum { CODINGS = 3 };

/* ---- the heap that libraries use by themselves ---- */

static uint64_t library_allocations;

#ifndef __SANITIZE_ADDRESS__
extern void *__libc_malloc(size_t size);
void *malloc(size_t size);

void *malloc(size_t size)
{
    library_allocations++;
    return __libc_malloc(size);
}
#endif

/* The stream is whole and gives [p, p+n). */
static bool gives(enum oribi_coding coding, const struct oribi_buf *buf, const char *p, size_t n)
{
    bool ends;
    return decode(coding, buf->p, buf->len, &ends) == (ssize_t)n && ends && memcmp(decoded, p, n) == 0;
}

/* ---- helpers ---- */

static char *make_json(size_t n)
{
    static const char *const words[] = {"name", "total", "created_at", "status", "owner", "open", "closed", "urgent"};
    char *text = oribi_mem_alloc(n + 128, 1);
    size_t at = 0;
    for (uint32_t i = 0, x = 7; at < n; i++) {
        x = x * 1103515245 + 12345;
        at += (size_t)snprintf(text + at, 128, "{\"id\":%u,\"%s\":\"%s\",\"%s\":%u},", i, words[x >> 16 & 7],
                               words[x >> 20 & 7], words[x >> 24 & 7], x >> 8);
    }
    return text;
}

static struct oribi_compressor *create(enum oribi_coding coding, uint32_t level)
{
    struct oribi_compressor *compressor = NULL;
    ok_eq(oribi_compressor_create(coding, level, &compressor), 0);
    ok_eq(oribi_compressor_coding(compressor), coding);
    return compressor;
}

static int write_all(struct oribi_compressor *compressor, const char *p, size_t n, enum oribi_compress_then then,
                     struct oribi_buf *out)
{
    int result;
    do {
        size_t piece = n < ORIBI_COMPRESS_PIECE_BYTES ? n : ORIBI_COMPRESS_PIECE_BYTES;
        n -= piece;
        result = oribi_compressor_write(compressor, p, piece, n > 0 ? ORIBI_COMPRESS_GO_ON : then, out);
        p += piece;
    } while (n > 0 && result == 0);
    return result;
}

static int make_stream(struct oribi_compressor *compressor, const char *p, size_t n, size_t padding,
                       struct oribi_buf *out)
{
    out->len = 0;
    int result = oribi_compressor_begin(compressor, padding);
    return result < 0 ? result : write_all(compressor, p, n, ORIBI_COMPRESS_END, out);
}

static void each_coding(void (*test)(enum oribi_coding))
{
    for (int i = 0; i < CODINGS; i++) {
        if (oribi_compress_has(codings[i]))
            test(codings[i]);
        else
            diag("skipped: this build has no %s", oribi_coding_name(codings[i]).p);
    }
}

/* ---- tests ---- */

static void test_every_level_and_size(enum oribi_coding coding)
{
    static const size_t sizes[] = {
        0, 1, 100, JSON_BYTES, ORIBI_COMPRESS_PIECE_BYTES, ORIBI_COMPRESS_PIECE_BYTES + 1, 1000 * 1000};
    char *text = make_json(1000 * 1000);
    struct oribi_buf out = {0};
    for (uint32_t level = 0; level <= ORIBI_COMPRESS_LEVEL_MAX; level++) {
        struct oribi_compressor *compressor = create(coding, level);
        bool right = true;
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) /* one after the other, with one compressor */
            right = right && make_stream(compressor, text, sizes[i], 0, &out) == 0 &&
                    gives(coding, &out, text, sizes[i]) && (sizes[i] < 1000 || out.len < sizes[i] / 2);
        ok_named(right, "%s level %u: every size comes back", oribi_coding_name(coding).p, level);
        oribi_compressor_destroy(compressor);
    }
    oribi_buf_deinit(&out);
    oribi_mem_free(text);
}

static void test_every_split_against_a_guard_page(enum oribi_coding coding)
{
    enum { BYTES = 300 };
    char *text = make_json(BYTES);
    struct guard arena = guard_alloc(BYTES);
    struct oribi_compressor *compressor = create(coding, 0);
    struct oribi_buf out = {0};
    bool right = true;
    for (size_t cut = 0; cut <= BYTES; cut++) {
        out.len = 0;
        right = right && oribi_compressor_begin(compressor, cut % 3) == 0 &&
                oribi_compressor_write(compressor, guard_place(&arena, text, cut), cut, cut % 2, &out) == 0 &&
                oribi_compressor_write(compressor, guard_place(&arena, text + cut, BYTES - cut), BYTES - cut,
                                       ORIBI_COMPRESS_END, &out) == 0 &&
                gives(coding, &out, text, BYTES);
    }
    ok_named(right, "%s: every split comes back", oribi_coding_name(coding).p);
    oribi_buf_deinit(&out);
    oribi_compressor_destroy(compressor);
    guard_free(&arena);
    oribi_mem_free(text);
}

static void test_a_flush_gives_all_so_far(enum oribi_coding coding)
{
    char *text = make_json(JSON_BYTES);
    struct oribi_compressor *compressor = create(coding, 0);
    struct oribi_buf out = {0};
    bool right = oribi_compressor_begin(compressor, 0) == 0;
    bool ends;
    for (size_t at = 0; at < JSON_BYTES && right; at += 1024) {
        right = oribi_compressor_write(compressor, text + at, 1024, ORIBI_COMPRESS_FLUSH, &out) == 0 &&
                decode(coding, out.p, out.len, &ends) == (ssize_t)at + 1024 && !ends &&
                memcmp(decoded, text, at + 1024) == 0;
        size_t before = out.len;
        right = right && oribi_compressor_write(compressor, NULL, 0, ORIBI_COMPRESS_FLUSH, &out) == 0 &&
                out.len < before + 16; /* and a second one hardly anything */
    }
    right = right && oribi_compressor_write(compressor, NULL, 0, ORIBI_COMPRESS_END, &out) == 0;
    ok_named(right && gives(coding, &out, text, JSON_BYTES), "%s: each flush", oribi_coding_name(coding).p);
    oribi_buf_deinit(&out);
    oribi_compressor_destroy(compressor);
    oribi_mem_free(text);
}

static void test_padding_makes_it_longer_and_changes_nothing(enum oribi_coding coding)
{
    char *text = make_json(2000);
    struct oribi_compressor *compressor = create(coding, 0);
    struct oribi_buf out = {0};
    bool right = make_stream(compressor, text, 2000, 0, &out) == 0;
    size_t bare = out.len;
    size_t before = bare;
    for (size_t padding = 1; padding <= ORIBI_COMPRESS_PADDING_BYTES_MAX && right; padding++) {
        right = make_stream(compressor, text, 2000, padding, &out) == 0 && gives(coding, &out, text, 2000) &&
                out.len >= bare + padding && out.len <= bare + padding + 16 && out.len > before;
        before = out.len;
    }
    right = right && make_stream(compressor, text, 2000, 0, &out) == 0 && out.len == bare;
    ok_named(right, "%s: every padding", oribi_coding_name(coding).p);
    oribi_buf_deinit(&out);
    oribi_compressor_destroy(compressor);
    oribi_mem_free(text);
}

static void test_a_stream_that_was_not_ended_is_forgotten(enum oribi_coding coding)
{
    char *text = make_json(JSON_BYTES);
    struct oribi_compressor *compressor = create(coding, 0);
    struct oribi_buf out = {0};
    ok_eq(oribi_compressor_begin(compressor, 9), 0);
    ok_eq(oribi_compressor_write(compressor, text, 5000, ORIBI_COMPRESS_GO_ON, &out), 0);
    ok_eq(make_stream(compressor, text, JSON_BYTES, 0, &out), 0);
    ok(gives(coding, &out, text, JSON_BYTES));
    oribi_buf_deinit(&out);
    oribi_compressor_destroy(compressor);
    oribi_mem_free(text);
}

static void test_later_streams_allocate_nothing(enum oribi_coding coding)
{
    char *text = make_json(2 * JSON_BYTES);
    struct oribi_compressor *compressor = create(coding, 0);
    struct oribi_buf out = {0};
    bool right = make_stream(compressor, text, 2 * JSON_BYTES, 1, &out) == 0;
    allocations = 0;
    library_allocations = 0;
    for (size_t i = 0; i < 200 && right; i++)
        right = make_stream(compressor, text + i, i % 2 ? JSON_BYTES : 2000 + 100 * i, i, &out) == 0;
    ok(right);
    uint64_t ours = allocations; /* checks allocate */
    uint64_t theirs = library_allocations;
    if (coding == ORIBI_CODING_BR) /* the size of some blocks follows that of the stream: all were met once */
        ok_named(ours < 32, "br: %llu allocations in 200 streams of 200 sizes", (unsigned long long)ours);
    else
        ok_eq(ours, 0);
    ok_eq(theirs, coding == ORIBI_CODING_BR ? theirs : 0);
    allocations = 0;
    library_allocations = 0;
    for (size_t i = 0; i < 50 && right; i++)
        right = make_stream(compressor, text, JSON_BYTES, i, &out) == 0;
    ours = allocations;
    theirs = library_allocations;
    ok_eq(ours, 0);
    ok_eq(theirs, 0);
    oribi_buf_deinit(&out);
    oribi_compressor_destroy(compressor);
    oribi_mem_free(text);
}

/* Every allocation that may fail does so once: the result says it, nothing is kept, and the next stream is whole. */
static void test_without_memory(enum oribi_coding coding)
{
    char *text = make_json(JSON_BYTES);
    int64_t before = memory_in_use;
    uint64_t failures = 0;
    bool right = true;
    for (bool went_well = false; !went_well && right && failures < 100; failures++) {
        struct oribi_compressor *compressor = NULL;
        struct oribi_buf out = {0};
        allocations_tried = 0;
        fail_at = failures + 1;
        int result = oribi_compressor_create(coding, 0, &compressor);
        if (result == 0)
            result = make_stream(compressor, text, JSON_BYTES, 5, &out);
        went_well = result == 0;
        fail_at = 0;
        right = went_well || result == ORIBI_ENOMEM;
        if (compressor)
            right = right && make_stream(compressor, text, JSON_BYTES, 5, &out) == 0 &&
                    gives(coding, &out, text, JSON_BYTES);
        oribi_buf_deinit(&out);
        oribi_compressor_destroy(compressor);
        right = right && memory_in_use == before;
    }
    ok_named(right && failures > 2, "%s: %llu failures", oribi_coding_name(coding).p, (unsigned long long)failures - 1);
    oribi_mem_free(text);
}

static void test_what_the_build_has(void)
{
    char text[256];
    char cut[8];
    oribi_compress_describe(text, sizeof(text));
    diag("%s", text);
    for (int i = 0; i < CODINGS; i++) {
        char none[16];
        snprintf(none, sizeof(none), "no %s", oribi_coding_name(codings[i]).p);
        ok_eq(strstr(text, none) == NULL, oribi_compress_has(codings[i]));
        ok(strstr(text, oribi_coding_name(codings[i]).p) != NULL);
    }
    oribi_compress_describe(cut, sizeof(cut));
    ok_eq(strlen(cut), sizeof(cut) - 1);
    ok(!oribi_compress_has(ORIBI_CODING_IDENTITY));
    ok(!oribi_compress_has(ORIBI_CODING_NONE));
}

int main(void)
{
    test_what_the_build_has();
    each_coding(test_every_level_and_size);
    each_coding(test_every_split_against_a_guard_page);
    each_coding(test_a_flush_gives_all_so_far);
    each_coding(test_padding_makes_it_longer_and_changes_nothing);
    each_coding(test_a_stream_that_was_not_ended_is_forgotten);
    each_coding(test_later_streams_allocate_nothing);
    each_coding(test_without_memory);
    return done_testing();
}
