/* Runs the chunked decoder over one input in every way it can be cut into two, and byte by byte. */
#ifndef ORIBI_TEST_CHUNK_CUTS_H
#define ORIBI_TEST_CHUNK_CUTS_H

#include "guard.h"
#include "oribi/base/error.h"
#include "oribi/http/chunked.h"

#include <stdbool.h>
#include <stdio.h>

struct chunk_result {
    int error; /* 0, ORIBI_AGAIN when the input ended before the body, or the decoder's error */
    size_t used;
    size_t body_len;
    const char *reason;
    struct oribi_buf trailers; /* given */
};

/* Feeds `cut` bytes, then `step` at a time, each piece against a guard page; the decoded body goes to dst, which
 * holds n bytes. */
static struct chunk_result chunk_feed(const struct oribi_limits *limits, const char *text, size_t n, size_t cut,
                                      size_t step, struct guard *arena, char *dst)
{
    struct oribi_chunked body = {0};
    struct chunk_result result = {0};
    size_t piece = cut;
    while (result.used < n && !body.done && !result.error) {
        piece = n - result.used < piece ? n - result.used : piece;
        size_t len = piece;
        size_t used = 0;
        char *in = guard_place(arena, text + result.used, piece);
        result.error = oribi_chunked_decode(&body, limits, in, &len, &used);
        if (memcmp(in + used, text + result.used + used, piece - used) != 0 || len > used)
            result.error = ORIBI_EINVAL; /* what follows the body was touched */
        memcpy(dst + result.body_len, in, len);
        result.body_len += len;
        result.used += used;
        piece = step;
    }
    if (!result.error && !body.done)
        result.error = ORIBI_AGAIN;
    if (!result.error && body.body_len != (int64_t)result.body_len)
        result.error = ORIBI_EINVAL;
    result.reason = body.reason;
    result.trailers = body.trailers;
    return result;
}

__attribute__((unused)) static struct chunk_result chunk_decode(const struct oribi_limits *limits, const char *text,
                                                                size_t n, struct guard *arena, char *dst, char *other,
                                                                bool *agreed)
{
    size_t whole = n ? n : 1;
    struct chunk_result want = chunk_feed(limits, text, n, whole, whole, arena, dst);
    size_t stride = n > 2000 ? n / 100 : 1;
    *agreed = true;
    for (size_t cut = 1; cut <= n && *agreed; cut += stride)
        for (size_t step = 1; step <= whole && *agreed; step += whole > 1 && step == 1 ? whole - 1 : whole) {
            struct chunk_result got = chunk_feed(limits, text, n, cut, step, arena, other);
            *agreed = got.error == want.error && got.used == want.used && got.body_len == want.body_len &&
                      memcmp(dst, other, got.body_len) == 0 &&
                      oribi_slice_equal(oribi_slice(got.trailers.p, got.trailers.len),
                                        oribi_slice(want.trailers.p, want.trailers.len));
            oribi_buf_deinit(&got.trailers);
            if (!*agreed)
                fprintf(stderr, "# cut at %zu, then %zu: %d after %zu, whole: %d after %zu\n", cut, step, got.error,
                        got.used, want.error, want.used);
        }
    return want;
}

#endif
