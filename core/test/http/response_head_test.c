/* Results of heads are in spec/response_head; each head is read whole and cut at every place, on every level, against a
 * guard page. */
#include "http/response_head.c"

#include "guard.h"
#include "http/case_folder.h"

enum { HEAD_MAX = 256 * 1024 };

static struct guard arena;
static struct oribi_limits limits;
static struct oribi_response_head head;
static char input[HEAD_MAX];

static const char *status_of(ssize_t result)
{
    return result > 0                 ? "ok"
           : result == ORIBI_AGAIN    ? "again"
           : result == ORIBI_EHEAD    ? "head"
           : result == ORIBI_EVERSION ? "version"
           : result == ORIBI_EBAD     ? "bad"
                                      : "another";
}

/* At the end of its own pages, and a fault that must lie within. */
static ssize_t read_guarded(size_t n)
{
    struct oribi_fault fault = {0};
    const char *in = guard_place(&arena, input, n);
    ssize_t result = oribi_response_head_read(&limits, in, n, &head, &fault);
    if (result < 0 && result != ORIBI_AGAIN && !fault.reason)
        complain("fault");
    if (result < 0 && fault.at && (fault.at < in || fault.at >= in + n))
        complain("fault.at");
    return result;
}

/* A part of the input is incomplete until its verdict is that of the whole. */
static void check_cuts(size_t n, ssize_t whole)
{
    const struct oribi_scan *chosen = oribi_scan_active;
    size_t stride = n > 3000 ? 37 : 1;
    for (int level = 0; level < ORIBI_SCAN_LEVELS; level++) {
        if (oribi_scan_level_set((enum oribi_scan_level)level) != 0)
            continue;
        bool decided = false;
        for (size_t cut = 0; cut < n && good; cut += stride) {
            ssize_t result = read_guarded(cut);
            decided |= result != ORIBI_AGAIN;
            if (result != (decided ? whole : ORIBI_AGAIN) || (whole > 0 && (ssize_t)cut < whole && decided)) {
                complain("cut");
                diag("%s, cut at %zu: %zd, whole: %zd", oribi_scan_active->name, cut, result, whole);
            }
        }
        if (read_guarded(n) != whole)
            complain("level");
    }
    oribi_scan_active = chosen;
}

static void check_fields(void)
{
    static char text[8192];
    uint32_t index = 0;
    check_number("fields", head.field_count);
    for (size_t i = 0; i < file.count; i++) {
        struct oribi_slice name;
        struct oribi_slice value;
        if (strcmp(file.lines[i].key, "field") != 0)
            continue;
        case_pair(file.lines[i].raw, text, sizeof(text), &name, &value);
        const struct oribi_field *field = &head.fields[index++];
        if (index > head.field_count || !oribi_slice_equal(oribi_slice(field->name, field->name_len), name) ||
            !oribi_slice_equal(field_value(field), value) || field->id != oribi_field_find(name.p, name.n))
            complain("field");
    }
}

static void run_case(void)
{
    char limit[64];
    unsigned number;
    oribi_limits_init(&limits);
    struct oribi_slice raw = case_raw(&file, "limit");
    snprintf(limit, sizeof(limit), "%.*s", (int)raw.n, raw.p ? raw.p : "");
    if (sscanf(limit, "fields_max %u", &number) == 1)
        limits.fields_max = number;
    else if (sscanf(limit, "head_bytes_max %u", &number) == 1)
        limits.head_bytes_max = number;
    else if (raw.p)
        complain("limit");

    size_t n = case_bytes(&file, "input", input, sizeof(input));
    ssize_t result = read_guarded(n);
    if (!case_is(&file, "status", status_of(result))) {
        complain("status");
        diag("got %s", status_of(result));
    }
    if (result > 0) {
        check_number("code", head.status);
        check_number("minor", head.minor);
        check_bytes("reason", head.reason);
        check_bytes("rest", oribi_slice(input + result, n - (size_t)result));
        check_fields();
    }
    check_cuts(n, result);
}

int main(void)
{
    arena = guard_alloc(HEAD_MAX);
    run_case_folder("response_head", run_case);
    return done_testing();
}
