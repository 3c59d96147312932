/* Head parser: no input may crash it, and every level and every cut must give one verdict.
 *
 * The first two bytes choose limits and where to cut; the rest is the request. Inputs live at the end of their own
 * allocation, so that the address sanitizer sees reads behind them, in vector code as well. */
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/http/head.h"
#include "oribi/http/scan.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool slices_equal(struct oribi_slice a, struct oribi_slice b)
{
    return oribi_slice_equal(a, b);
}

static bool heads_equal(const struct oribi_head *a, const struct oribi_head *b)
{
    bool same = slices_equal(a->method, b->method) && slices_equal(a->target, b->target) &&
                slices_equal(a->path, b->path) && slices_equal(a->query, b->query) && slices_equal(a->host, b->host) &&
                slices_equal(a->port, b->port) && a->minor == b->minor && a->is_head == b->is_head &&
                a->chunked == b->chunked && a->keep_alive == b->keep_alive &&
                a->expect_continue == b->expect_continue && a->upgrade == b->upgrade && a->has_body == b->has_body &&
                a->content_length == b->content_length && a->dropped_count == b->dropped_count &&
                a->field_count == b->field_count;
    for (uint32_t i = 0; same && i < a->field_count; i++) {
        const struct oribi_field *x = &a->fields[i];
        const struct oribi_field *y = &b->fields[i];
        same = x->id == y->id && slices_equal(oribi_slice(x->name, x->name_len), oribi_slice(y->name, y->name_len)) &&
               slices_equal(oribi_slice(x->value, x->value_len), oribi_slice(y->value, y->value_len));
    }
    return same;
}

/* Checks an accepted head: this must hold whatever was sent. */
static void check_head(const struct oribi_head *head, ssize_t len, size_t size, const struct oribi_limits *limits)
{
    bool good = (size_t)len <= size && len <= (ssize_t)limits->head_bytes_max && head->method.n > 0 &&
                head->method.n <= ORIBI_METHOD_BYTES_MAX && head->target.n <= limits->target_bytes_max &&
                head->field_count <= limits->fields_max && (head->minor == 0 || head->minor == 1) &&
                (head->chunked ? head->minor == 1 && head->content_length == -1
                               : head->content_length >= 0 && head->content_length <= limits->body_bytes_max);
    for (uint32_t i = 0; good && i < head->field_count; i++) {
        const struct oribi_field *field = &head->fields[i];
        good = field->name_len > 0 && !memchr(field->name, ':', field->name_len);
        for (uint32_t k = 0; good && k < field->value_len; k++)
            good = (uint8_t)field->value[k] >= ' ' ? field->value[k] != 0x7f : field->value[k] == '\t';
    }
    if (!good)
        abort();
}

/* The result of feeding `cut` bytes and then `step` at a time. *text is the last copy, which the head points into. */
static ssize_t feed(const struct oribi_limits *limits, const char *data, size_t size, size_t cut, size_t step,
                    struct oribi_head *head, char **text)
{
    struct oribi_parser parser = {0};
    size_t have = cut < size ? cut : size;
    for (;;) {
        *text = oribi_mem_alloc(1, have ? have : 1);
        memcpy(*text, data, have);
        ssize_t result = oribi_parser_head(&parser, limits, *text, have, head);
        if (result != ORIBI_AGAIN && result < 0 && (!parser.fault.reason || head->field_count || head->joined))
            abort();
        if (result != ORIBI_AGAIN || have == size)
            return result;
        oribi_mem_free(*text);
        have = size - have < step ? size : have + step;
    }
}

static void set_limits(struct oribi_limits *limits, uint8_t choice)
{
    oribi_limits_init(limits);
    if (choice & 1)
        limits->target_bytes_max = 40;
    if (choice & 2)
        limits->head_bytes_max = 200;
    if (choice & 4)
        limits->fields_max = 4;
    limits->underscores_allow = choice & 8;
    limits->strict_target = choice & 16;
    limits->connect_allow = choice & 32;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct oribi_head want;
    static struct oribi_head got;
    struct oribi_limits limits;
    char *want_text;
    char *got_text;
    if (size < 2 || size > 8192)
        return 0;
    const char *bytes = (const char *)data + 2;
    size -= 2;
    set_limits(&limits, data[0]);
    oribi_scan_level_set(ORIBI_SCAN_SCALAR);
    ssize_t result = feed(&limits, bytes, size, size, 1, &want, &want_text);
    if (result > 0)
        check_head(&want, result, size, &limits);
    for (int level = 0; level < ORIBI_SCAN_LEVELS; level++) {
        if (oribi_scan_level_set((enum oribi_scan_level)level) != 0)
            continue;
        size_t cuts[3] = {size, size ? data[1] * size / 256 : 0, 0};
        for (int i = 0; i < 3; i++) {
            size_t step = i == 2 ? size / 64 + 1 : size + 1;
            ssize_t again = feed(&limits, bytes, size, cuts[i], step, &got, &got_text);
            if (again != result || (result > 0 && !heads_equal(&want, &got)))
                abort();
            oribi_head_release(&got);
            oribi_mem_free(got_text);
        }
    }
    oribi_head_release(&want);
    oribi_mem_free(want_text);
    return 0;
}
