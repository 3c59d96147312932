/* Parser of multipart/form-data: no input may crash it, every cut must tell the same, the bodies and what stands
 * between them must be all of the input. The first byte chooses limits and the boundary, the second the cut. */
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/form/multipart.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct told {
    int error;
    uint32_t parts;
    size_t body_bytes;
    uint64_t sum; /* of everything that was told, in its order */
};

static void add(struct told *told, struct oribi_slice text)
{
    for (size_t i = 0; i < text.n; i++)
        told->sum = told->sum * 31 + (unsigned char)text.p[i] + 1;
}

static void check_within(const struct oribi_part *part, struct oribi_slice inner)
{
    if (inner.p && (inner.p < part->head.p || inner.p + inner.n > part->head.p + part->head.n))
        abort();
}

static void add_part(struct told *told, const struct oribi_part *part)
{
    char text[16 * 1024];
    const struct oribi_slice all[] = {part->name.value, part->filename.value, part->filename_star.value,
                                      part->content_type, part->disposition};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        check_within(part, all[i]);
        add(told, all[i]);
        if (all[i].n <= sizeof(text) && oribi_form_data_unescape(all[i], text) > all[i].n)
            abort();
    }
    for (uint32_t i = 0; i < part->field_count; i++) {
        check_within(part, part->fields[i].name);
        check_within(part, part->fields[i].value);
        add(told, part->fields[i].value);
    }
    told->parts++;
}

static struct told feed(const struct oribi_form_data_limits *limits, struct oribi_slice boundary, const char *text,
                        size_t size, size_t piece)
{
    struct oribi_form_data form;
    struct told told = {0};
    int event = oribi_form_data_init(&form, limits, boundary);
    for (size_t used = 0; used < size && event >= 0; used += piece) {
        size_t n = size - used < piece ? size - used : piece;
        char *copy = oribi_mem_alloc(1, n);
        memcpy(copy, text + used, n);
        struct oribi_slice in = oribi_slice(copy, n);
        while ((event = oribi_form_data_next(&form, &in)) > ORIBI_FORM_DATA_MORE) {
            if (event == ORIBI_FORM_DATA_PART)
                add_part(&told, &form.part);
            if (event == ORIBI_FORM_DATA_DATA) {
                add(&told, form.data);
                told.body_bytes += form.data.n;
            }
        }
        oribi_mem_free(copy);
    }
    told.error = event < 0 ? event : oribi_form_data_finish(&form);
    if ((told.error != 0) != (form.reason != NULL) || told.body_bytes > size || told.parts != form.part_count)
        abort();
    oribi_form_data_deinit(&form);
    return told;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct oribi_form_data_limits limits;
    if (size < 2 || size > 65536)
        return 0;
    const char *text = (const char *)data + 2;
    struct oribi_slice boundary = data[0] & 4 ? ORIBI_SLICE("--b-") : ORIBI_SLICE("b");
    oribi_form_data_limits_init(&limits);
    limits.longer_is_data = data[0] & 1;
    if (data[0] & 2)
        limits = (struct oribi_form_data_limits){.parts_max = 2, .files_max = 1, .part_head_bytes_max = 40};
    size -= 2;
    struct told want = feed(&limits, boundary, text, size, size + 1);
    size_t pieces[] = {1, data[1] + 1u, size / 2 + 1};
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        struct told got = feed(&limits, boundary, text, size, pieces[i]);
        if (got.error != want.error || got.parts != want.parts || got.body_bytes != want.body_bytes ||
            got.sum != want.sum)
            abort();
    }
    (void)oribi_form_data_boundary(oribi_slice(text, size));
    return 0;
}
