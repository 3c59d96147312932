/* Chunked decoder: no input may crash it or make it touch what follows the body, and every cut must give one
 * verdict. The first two bytes choose limits and the cut; the rest is the body. */
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/http/chunked.h"
#include "oribi/http/head.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct decoded {
    int error;
    bool done;
    size_t used;
    size_t len;
    struct oribi_buf trailers;
};

static struct decoded decode(const struct oribi_limits *limits, const char *data, size_t size, size_t cut, size_t step,
                             char *dst)
{
    struct oribi_chunked body = {0};
    struct decoded result = {0};
    size_t piece = cut ? cut : 1;
    while (result.used < size && !body.done && !result.error) {
        if (piece > size - result.used)
            piece = size - result.used;
        size_t len = piece;
        size_t used = 0;
        char *in = oribi_mem_alloc(1, piece);
        memcpy(in, data + result.used, piece);
        result.error = oribi_chunked_decode(&body, limits, in, &len, &used);
        if (len > used || used > piece || memcmp(in + used, data + result.used + used, piece - used) != 0 ||
            (used < piece && !body.done && !result.error) || (result.error && !body.reason))
            abort();
        memcpy(dst + result.len, in, len);
        result.len += len;
        result.used += used;
        oribi_mem_free(in);
        piece = step;
    }
    if (body.body_len != (int64_t)result.len || body.body_len > limits->body_bytes_max)
        abort();
    result.done = body.done;
    result.trailers = body.trailers;
    return result;
}

/* Checks every trailer field that an application gets to see. */
static void check_trailers(const struct decoded *decoded)
{
    struct oribi_trailers trailers;
    size_t total = 0;
    if (oribi_trailers_read(oribi_slice(decoded->trailers.p, decoded->trailers.len), &trailers) != 0)
        abort();
    for (uint32_t i = 0; i < trailers.count; i++) {
        const struct oribi_field *field = &trailers.fields[i];
        total += field->name_len + field->value_len;
        if (field->name_len == 0 || field->id != 0 || memchr(field->name, '_', field->name_len))
            abort();
        for (uint32_t k = 0; k < field->name_len; k++)
            if (field->name[k] <= ' ' || field->name[k] == ':' || (field->name[k] >= 'A' && field->name[k] <= 'Z'))
                abort();
        for (uint32_t k = 0; k < field->value_len; k++)
            if (((uint8_t)field->value[k] < ' ' && field->value[k] != '\t') || field->value[k] == 0x7f)
                abort();
    }
    if (total > decoded->trailers.len)
        abort();
    oribi_trailers_release(&trailers);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct oribi_limits limits;
    if (size < 2 || size > 65536)
        return 0;
    const char *bytes = (const char *)data + 2;
    size -= 2;
    oribi_limits_init(&limits);
    if (data[0] & 1)
        limits.body_bytes_max = 20;
    if (data[0] & 2)
        limits.fields_max = 2;
    if (data[0] & 4)
        limits.body_bytes_max = INT64_MAX;
    char *want_bytes = oribi_mem_alloc(1, size + 1);
    char *got_bytes = oribi_mem_alloc(1, size + 1);
    struct decoded want = decode(&limits, bytes, size, size, 1, want_bytes);
    size_t cuts[2] = {size * data[1] / 256, 1};
    for (int i = 0; i < 2; i++) {
        struct decoded got = decode(&limits, bytes, size, cuts[i], i ? size / 256 + 1 : size + 1, got_bytes);
        if (got.error != want.error || got.used != want.used || got.len != want.len || got.done != want.done ||
            memcmp(got_bytes, want_bytes, got.len) != 0 ||
            !oribi_slice_equal(oribi_slice(got.trailers.p, got.trailers.len),
                               oribi_slice(want.trailers.p, want.trailers.len)))
            abort();
        oribi_buf_deinit(&got.trailers);
    }
    if (want.done)
        check_trailers(&want);
    oribi_buf_deinit(&want.trailers);
    oribi_mem_free(want_bytes);
    oribi_mem_free(got_bytes);
    return 0;
}
