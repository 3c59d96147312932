/* Runs the head parser over one input in every way it can be cut, on every level this CPU has, and compares. */
#ifndef ORIBI_TEST_PARSE_CUTS_H
#define ORIBI_TEST_PARSE_CUTS_H

#include "guard.h"
#include "oribi/base/error.h"
#include "oribi/http/fields.h"
#include "oribi/http/head.h"
#include "oribi/http/scan.h"

#include <stdbool.h>
#include <stdio.h>

/* Where the fault of a refused head is: the byte's offset, -1 when it is no single one. Must be the same in every
 * cut. */
static ssize_t cuts_fault_at;

/* Feeds the first `cut` bytes, then everything from `step` more at a time. Moves the bytes between calls, as a
 * growing buffer would. */
static ssize_t cuts_feed(const struct oribi_limits *limits, const char *text, size_t n, size_t cut, size_t step,
                         struct guard *arena, struct oribi_head *head, const char **reason)
{
    struct oribi_parser parser = {0};
    size_t have = cut < n ? cut : n;
    for (;;) {
        const char *in = guard_place(arena, text, have);
        ssize_t result = oribi_parser_head(&parser, limits, in, have, head);
        *reason = parser.fault.reason;
        cuts_fault_at = result < 0 && result != ORIBI_AGAIN && parser.fault.at ? parser.fault.at - in : -1;
        if (result != ORIBI_AGAIN || have == n)
            return result;
        have = n - have < step ? n : have + step;
    }
}

static bool cuts_slices_equal(struct oribi_slice a, struct oribi_slice b)
{
    return oribi_slice_equal(a, b);
}

/* Everything a caller can see, slices compared by content. */
__attribute__((unused)) static bool cuts_heads_equal(const struct oribi_head *a, const struct oribi_head *b)
{
    if (!cuts_slices_equal(a->method, b->method) || !cuts_slices_equal(a->target, b->target) ||
        !cuts_slices_equal(a->path, b->path) || !cuts_slices_equal(a->query, b->query) ||
        !cuts_slices_equal(a->host, b->host) || !cuts_slices_equal(a->port, b->port))
        return false;
    if (a->minor != b->minor || a->is_head != b->is_head || a->chunked != b->chunked ||
        a->keep_alive != b->keep_alive || a->expect_continue != b->expect_continue || a->upgrade != b->upgrade ||
        a->has_body != b->has_body || a->content_length != b->content_length || a->dropped_count != b->dropped_count ||
        a->field_count != b->field_count)
        return false;
    for (uint32_t i = 0; i < a->field_count; i++) {
        const struct oribi_field *x = &a->fields[i];
        const struct oribi_field *y = &b->fields[i];
        if (x->id != y->id ||
            !cuts_slices_equal(oribi_slice(x->name, x->name_len), oribi_slice(y->name, y->name_len)) ||
            !cuts_slices_equal(oribi_slice(x->value, x->value_len), oribi_slice(y->value, y->value_len)))
            return false;
    }
    return true;
}

/* The result of the whole input on the active level, after checking that every cut on every level gives the same;
 * `head` (in `arena`) is the whole input's. Sets *agreed. Inputs over a few kilobytes are cut at fewer places. */
__attribute__((unused)) static ssize_t cuts_parse(const struct oribi_limits *limits, const char *text, size_t n,
                                                  struct guard *arena, struct guard *other, struct oribi_head *head,
                                                  const char **reason, bool *agreed)
{
    static struct oribi_head again;
    const struct oribi_scan *chosen = oribi_scan_active;
    const char *why;
    ssize_t want = cuts_feed(limits, text, n, n, n, arena, head, reason);
    ssize_t want_at = cuts_fault_at;
    size_t stride = n > 3000 ? n / 300 : 1;
    *agreed = true;
    for (int level = 0; level < ORIBI_SCAN_LEVELS && *agreed; level++) {
        if (oribi_scan_level_set((enum oribi_scan_level)level) != 0)
            continue;
        /* cut == 0 is byte by byte (or a few at a time), cut == n is whole */
        for (size_t cut = 0; cut <= n && *agreed; cut += cut < 100 || n - cut < 100 ? 1 : stride) {
            ssize_t got = cuts_feed(limits, text, n, cut, cut ? n : stride, other, &again, &why);
            bool same = got == want && (got < 0 || cuts_heads_equal(head, &again));
            /* The head after an error may grow with the bytes, but not its fields: they stand in front of the error. */
            if (same && got < 0 && got != ORIBI_AGAIN)
                same = again.field_count == head->field_count && again.joined == NULL && why && *reason &&
                       cuts_fault_at == want_at;
            if (!same) {
                fprintf(stderr, "# %s, cut at %zu: %zd (%s), whole: %zd (%s)\n", oribi_scan_active->name, cut, got,
                        why ? why : "", want, *reason ? *reason : "");
                *agreed = false;
            }
            oribi_head_release(&again);
        }
    }
    oribi_scan_active = chosen;
    cuts_fault_at = want_at;
    return want;
}

#endif
