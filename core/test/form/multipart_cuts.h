/* Runs the parser of multipart/form-data over one input, whole and in every way it can be cut, and writes down what it
 * tells as text: `name="a" filename="f" type="t" body="…"` and a line end for each part. */
#ifndef ORIBI_TEST_MULTIPART_CUTS_H
#define ORIBI_TEST_MULTIPART_CUTS_H

#include "guard.h"
#include "oribi/base/error.h"
#include "oribi/form/multipart.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct parts_result {
    int error; /* of the parser, or of its end */
    const char *reason;
    uint32_t part_count;
    uint32_t file_count;
    size_t len; /* of what was written down */
    bool events_in_order;
};

static void tell(struct parts_result *result, char *dst, struct oribi_slice text)
{
    memcpy(dst + result->len, text.p, text.n);
    result->len += text.n;
}

static void tell_value(struct parts_result *result, char *dst, struct oribi_slice label, struct oribi_slice value)
{
    if (!value.p)
        return;
    tell(result, dst, label);
    tell(result, dst, value);
    tell(result, dst, ORIBI_SLICE("\" "));
}

static void tell_part(struct parts_result *result, char *dst, const struct oribi_part *part)
{
    if (part->malformed)
        tell_value(result, dst, ORIBI_SLICE("malformed=\""), oribi_slice(part->malformed, strlen(part->malformed)));
    if (part->repeats)
        tell(result, dst, ORIBI_SLICE("repeats "));
    if (!part->is_form_data)
        tell(result, dst, ORIBI_SLICE("other "));
    tell_value(result, dst, ORIBI_SLICE("name=\""), part->name.value);
    tell_value(result, dst, ORIBI_SLICE("filename=\""), part->filename.value);
    tell_value(result, dst, ORIBI_SLICE("filename*=\""), part->filename_star.value);
    tell_value(result, dst, ORIBI_SLICE("type=\""), part->content_type);
    tell(result, dst, ORIBI_SLICE("body=\""));
}

/* Takes one piece; `in_part` tells what the last event was. */
static void feed_piece(struct oribi_form_data *form, struct oribi_slice in, struct parts_result *result, char *dst,
                       bool *in_part)
{
    int event;
    while ((event = oribi_form_data_next(form, &in)) > ORIBI_FORM_DATA_MORE) {
        bool begins = event == ORIBI_FORM_DATA_PART;
        result->events_in_order &= *in_part != begins;
        *in_part = event != ORIBI_FORM_DATA_PART_END;
        if (begins)
            tell_part(result, dst, &form->part);
        else if (event == ORIBI_FORM_DATA_DATA)
            result->events_in_order &= form->data.n > 0;
        if (event == ORIBI_FORM_DATA_DATA)
            tell(result, dst, form->data);
        else if (!begins)
            tell(result, dst, ORIBI_SLICE("\"\n"));
    }
    result->events_in_order &= event < 0 || in.n == 0;
    result->error = event;
}

/* Feeds `cut` bytes, then `step` at a time, each piece against a guard page. dst has room for 8 n + 4096 bytes. */
static struct parts_result parts_feed(const struct oribi_form_data_limits *limits, struct oribi_slice boundary,
                                      struct oribi_slice text, size_t cut, size_t step, struct guard *arena, char *dst)
{
    struct oribi_form_data form;
    struct parts_result result = {.events_in_order = true};
    bool in_part = false;
    size_t piece = cut;
    result.error = oribi_form_data_init(&form, limits, boundary);
    for (size_t used = 0; used < text.n && !result.error; used += piece, piece = step) {
        piece = text.n - used < piece ? text.n - used : piece;
        feed_piece(&form, oribi_slice(guard_place(arena, text.p + used, piece), piece), &result, dst, &in_part);
    }
    if (!result.error)
        result.error = oribi_form_data_finish(&form);
    result.reason = form.reason;
    result.part_count = form.part_count;
    result.file_count = form.file_count;
    oribi_form_data_deinit(&form);
    return result;
}

/* The whole, with *agreed telling whether every cut gives the same. `other` is as large as dst. */
__attribute__((unused)) static struct parts_result parts_read(const struct oribi_form_data_limits *limits,
                                                              struct oribi_slice boundary, struct oribi_slice text,
                                                              struct guard *arena, char *dst, char *other, bool *agreed)
{
    struct parts_result want = parts_feed(limits, boundary, text, text.n + 1, 1, arena, dst);
    size_t stride = text.n > 2000 ? text.n / 50 : 1;
    *agreed = want.events_in_order;
    for (size_t cut = 1; cut <= text.n && *agreed; cut += stride)
        for (int bytes = 0; bytes < 2 && *agreed; bytes++) {
            size_t step = bytes ? 1 : text.n;
            struct parts_result got = parts_feed(limits, boundary, text, cut, step, arena, other);
            *agreed = got.error == want.error && got.part_count == want.part_count && got.events_in_order &&
                      (got.reason == want.reason) && got.len == want.len && memcmp(dst, other, got.len) == 0;
        }
    return want;
}

#endif
