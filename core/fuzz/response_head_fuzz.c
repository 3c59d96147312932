/* Response heads: no input may crash the reader, every level must give one verdict, and a part of the input is
 * incomplete until its verdict is that of the whole. The first byte chooses limits and a cut. Inputs live at the end
 * of their own allocation, so that the address sanitizer sees reads behind them. */
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/http/response_head.h"
#include "oribi/http/scan.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct oribi_response_head head;

static void check_head(ssize_t len, size_t size, const struct oribi_limits *limits)
{
    bool well = (size_t)len <= size && len <= (ssize_t)limits->head_bytes_max && head.status >= 100 &&
                head.status <= 999 && head.minor <= 1 && head.field_count <= limits->fields_max;
    for (uint32_t i = 0; well && i < head.field_count; i++) {
        const struct oribi_field *field = &head.fields[i];
        well = oribi_scan_is_token(field->name, field->name_len) &&
               oribi_scan_active->text(field->value, field->value_len) == field->value_len;
    }
    if (!well)
        abort();
}

/* A digest of all that was read, to compare. */
static uint64_t read_part(const struct oribi_limits *limits, const char *data, size_t n, ssize_t *result)
{
    struct oribi_fault fault = {0};
    uint64_t digest = 0;
    char *text = oribi_mem_alloc(1, n ? n : 1);
    memcpy(text, data, n);
    *result = oribi_response_head_read(limits, text, n, &head, &fault);
    if (*result < 0 && *result != ORIBI_AGAIN && !fault.reason)
        abort();
    if (*result > 0) {
        check_head(*result, n, limits);
        digest = head.status + 1000U * head.minor + (uint64_t)(head.reason.p - text) * 7 + head.reason.n * 11;
        for (uint32_t i = 0; i < head.field_count; i++)
            digest = digest * 31 + (uint64_t)(head.fields[i].name - text) + head.fields[i].name_len * 3U +
                     (uint64_t)(head.fields[i].value - text) * 5 + head.fields[i].value_len * 13U + head.fields[i].id;
    }
    oribi_mem_free(text);
    return digest;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct oribi_limits limits;
    ssize_t whole;
    ssize_t part;
    if (size < 1 || size > 8192)
        return 0;
    const char *bytes = (const char *)data + 1;
    size_t n = size - 1;
    oribi_limits_init(&limits);
    if (data[0] & 1)
        limits.head_bytes_max = 200;
    if (data[0] & 2)
        limits.fields_max = 4;
    oribi_scan_level_set(ORIBI_SCAN_SCALAR);
    uint64_t digest = read_part(&limits, bytes, n, &whole);
    for (int level = 0; level < ORIBI_SCAN_LEVELS; level++) {
        if (oribi_scan_level_set((enum oribi_scan_level)level) != 0)
            continue;
        if (read_part(&limits, bytes, n, &part) != digest || part != whole)
            abort();
        (void)read_part(&limits, bytes, (data[0] >> 2) * n / 64, &part);
        if (part != ORIBI_AGAIN && part != whole)
            abort();
    }
    return 0;
}
