/* Runs spec/ against the core: requests and chunked bodies cut in every way and, for requests, on every SIMD level. */
#include "http/case_file.h"
#include "http/chunk_cuts.h"
#include "http/parse_cuts.h"
#include "oribi/base/error.h"
#include "oribi/http/response.h"
#include "oribi/http/status.h"
#include "oribi/http/head.h"
#include "oribi/http/chunked.h"
#include "tap.h"

#include <glob.h>

enum { BYTES_MAX = 256 * 1024 };

static struct guard arena;
static struct guard other;
static char input[BYTES_MAX];
static char expected[BYTES_MAX];
static char output[BYTES_MAX];
static char spare[BYTES_MAX];
static struct oribi_head head;
static struct case_file file;
static bool good; /* of the case at hand */

static void complain(const char *key)
{
    diag("%s differs", key);
    good = false;
}

static void check_number(const char *key, long long got)
{
    if (case_has(&file, key) && case_number(&file, key, 0) != got) {
        complain(key);
        diag("got %lld", got);
    }
}

static void check_bytes(const char *key, struct oribi_slice got)
{
    if (!case_has(&file, key))
        return;
    size_t n = case_bytes(&file, key, expected, sizeof(expected));
    if (!oribi_slice_equal(got, oribi_slice(expected, n))) {
        complain(key);
        tap_print_bytes_("got ", got.p, got.n);
        tap_print_bytes_("want", expected, n);
    }
}

static void read_limits(struct oribi_limits *limits)
{
    oribi_limits_init(limits);
    for (size_t i = 0; i < file.count; i++) {
        char name[32];
        char value[32];
        char text[80];
        if (strcmp(file.lines[i].key, "limit") != 0)
            continue;
        snprintf(text, sizeof(text), "%.*s", (int)file.lines[i].raw.n, file.lines[i].raw.p);
        if (sscanf(text, "%31s %31s", name, value) != 2)
            name[0] = 0;
        long long number = strtoll(value, NULL, 10);
        bool yes = strcmp(value, "yes") == 0;
        if (strcmp(name, "target_bytes_max") == 0)
            limits->target_bytes_max = (uint32_t)number;
        else if (strcmp(name, "head_bytes_max") == 0)
            limits->head_bytes_max = (uint32_t)number;
        else if (strcmp(name, "fields_max") == 0)
            limits->fields_max = (uint32_t)number;
        else if (strcmp(name, "body_bytes_max") == 0)
            limits->body_bytes_max = number;
        else if (strcmp(name, "underscores_allow") == 0)
            limits->underscores_allow = yes;
        else if (strcmp(name, "strict_target") == 0)
            limits->strict_target = yes;
        else if (strcmp(name, "connect_allow") == 0)
            limits->connect_allow = yes;
        else
            complain("unknown limit");
    }
}

static void check_status(long long result)
{
    char got[32] = "ok";
    if (result == ORIBI_AGAIN)
        snprintf(got, sizeof(got), "again");
    else if (result < 0)
        snprintf(got, sizeof(got), "%d", oribi_error_status((int)result));
    if (!case_is(&file, "status", got)) {
        complain("status");
        diag("got %s", got);
    }
}

/* ---- request ---- */

static void check_fields(void)
{
    uint32_t index = 0;
    check_number("fields", head.field_count);
    for (size_t i = 0; i < file.count; i++) {
        struct oribi_slice name;
        struct oribi_slice value;
        if (strcmp(file.lines[i].key, "field") != 0)
            continue;
        case_pair(file.lines[i].raw, expected, sizeof(expected), &name, &value);
        const struct oribi_field *field = &head.fields[index++];
        if (index > head.field_count || !oribi_slice_equal(oribi_slice(field->name, field->name_len), name) ||
            !oribi_slice_equal(oribi_slice(field->value, field->value_len), value) ||
            field->id != oribi_field_find(name.p, name.n)) {
            complain("field");
            diag("field %u: %.*s", index, (int)name.n, name.p);
        }
    }
}

static void check_framing(void)
{
    char got[40] = "none";
    if (head.chunked)
        snprintf(got, sizeof(got), "chunked");
    else if (head.has_body)
        snprintf(got, sizeof(got), "length %lld", (long long)head.content_length);
    if (head.content_length != (head.chunked ? -1 : head.has_body ? head.content_length : 0))
        complain("content_length");
    if (case_has(&file, "framing") && !case_is(&file, "framing", got)) {
        complain("framing");
        diag("got %s", got);
    }
}

static void run_request(void)
{
    struct oribi_limits limits;
    const char *reason = NULL;
    bool agreed;
    size_t n = case_bytes(&file, "input", input, sizeof(input));
    read_limits(&limits);
    ssize_t result = cuts_parse(&limits, input, n, &arena, &other, &head, &reason, &agreed);
    good &= agreed;
    check_status(result);
    if (result < 0 && result != ORIBI_AGAIN && !reason)
        complain("reason");
    if (result > 0) {
        check_bytes("method", head.method);
        check_bytes("target", head.target);
        check_bytes("path", head.path);
        check_bytes("query", head.query);
        check_bytes("host", head.host);
        check_bytes("port", head.port);
        check_number("minor", head.minor);
        check_number("keep_alive", head.keep_alive);
        check_number("expect_continue", head.expect_continue);
        check_number("upgrade", head.upgrade);
        check_number("dropped", head.dropped_count);
        check_bytes("rest", oribi_slice(input + result, n - (size_t)result));
        check_fields();
        check_framing();
        if (head.is_head != oribi_slice_equal(head.method, ORIBI_SLICE("HEAD")))
            complain("is_head");
    }
    oribi_head_release(&head);
}

/* ---- chunked ---- */

static void check_trailers(struct oribi_slice text)
{
    struct oribi_trailers trailers;
    uint32_t index = 0;
    if (oribi_trailers_read(text, &trailers) != 0)
        complain("memory");
    check_number("trailers", trailers.count);
    check_number("dropped", trailers.dropped_count);
    for (size_t i = 0; i < file.count; i++) {
        struct oribi_slice name;
        struct oribi_slice value;
        if (strcmp(file.lines[i].key, "trailer") != 0)
            continue;
        case_pair(file.lines[i].raw, expected, sizeof(expected), &name, &value);
        const struct oribi_field *field = &trailers.fields[index++];
        if (index > trailers.count || !oribi_slice_equal(oribi_slice(field->name, field->name_len), name) ||
            !oribi_slice_equal(oribi_slice(field->value, field->value_len), value))
            complain("trailer");
    }
    oribi_trailers_release(&trailers);
}

static void run_chunked(void)
{
    struct oribi_limits limits;
    bool agreed;
    size_t n = case_bytes(&file, "input", input, sizeof(input));
    read_limits(&limits);
    struct chunk_result result = chunk_decode(&limits, input, n, &arena, output, spare, &agreed);
    good &= agreed;
    check_status(result.error);
    if (result.error && result.error != ORIBI_AGAIN && !result.reason)
        complain("reason");
    check_bytes("body", oribi_slice(output, result.body_len));
    check_bytes("rest", oribi_slice(input + result.used, n - result.used));
    if (!result.error)
        check_trailers(oribi_slice(result.trailers.p, result.trailers.len));
    oribi_buf_deinit(&result.trailers);
}

/* ---- response ---- */

static uint32_t read_headers(struct oribi_header *headers, uint32_t max)
{
    uint32_t count = 0;
    size_t used = 0;
    for (size_t i = 0; i < file.count && count < max; i++) {
        struct oribi_slice name;
        struct oribi_slice value = {NULL, 0};
        bool undefined = strcmp(file.lines[i].key, "undefined") == 0;
        if (!undefined && strcmp(file.lines[i].key, "header") != 0)
            continue;
        if (undefined)
            name = file.lines[i].raw;
        else
            case_pair(file.lines[i].raw, input + used, sizeof(input) - used, &name, &value);
        used += undefined ? 0 : name.n + value.n;
        headers[count++] = (struct oribi_header){name.p, value.p, (uint32_t)name.n, (uint32_t)value.n};
    }
    return count;
}

/* A number that is three digits, as applications give it; else as text, which may be more than that. */
static int read_status(void)
{
    static char text[64];
    size_t n = case_bytes(&file, "code", text, sizeof(text));
    int status = oribi_status_read(oribi_slice(text, n));
    long long number = case_number(&file, "code", 0);
    snprintf(expected, sizeof(expected), "%lld", number);
    return status < 0 && case_is(&file, "code", expected) ? (int)number : status;
}

static void check_mended(const struct oribi_response *res)
{
    static const char *const kinds[] = {"undefined", "trimmed", "folded", "length"};
    char got[64] = "";
    for (int kind = 0; kind < ORIBI_MENDED_KINDS; kind++) {
        if (!(res->mended & 1U << kind))
            continue;
        snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%s", got[0] ? " " : "", kinds[kind]);
        if (res->mended_index[kind] >= res->header_count)
            complain("mended_index");
    }
    if (!case_is(&file, "mended", got[0] ? got : "nothing") && (got[0] || case_has(&file, "mended"))) {
        complain("mended");
        diag("got %s", got);
    }
}

/* Takes the application's framing off in pieces of `piece` bytes. Returns the length of the content in `output`, or
 * -1. */
static ssize_t unframe(const char *body, size_t n, size_t piece)
{
    struct oribi_unframe state = {.reason = NULL};
    size_t out = 0;
    int result = 0;
    for (size_t at = 0; at < n && result == 0; at += piece) {
        size_t len = n - at < piece ? n - at : piece;
        struct guard part = guard_copy(body + at, len);
        result = oribi_unframe(&state, part.p, &len);
        memcpy(output + out, part.p, len);
        out += len;
        guard_free(&part);
    }
    if (result == 0)
        result = oribi_unframe_end(&state);
    if (result < 0 && (!state.reason || oribi_unframe_end(&state) == 0))
        complain("reason");
    oribi_unframe_deinit(&state);
    return result < 0 ? -1 : (ssize_t)out;
}

/* The body that the application has framed, in pieces of every size. */
static ssize_t check_framed(const char *body, size_t n)
{
    ssize_t whole = unframe(body, n, n + 1);
    if (whole >= 0)
        check_bytes("content", oribi_slice(output, (size_t)whole));
    for (size_t piece = 1; piece <= n; piece++)
        if (unframe(body, n, piece) != whole)
            complain("pieces");
    return whole;
}

/* The head of an answer with a body: a framed one has a head once its content is known, a stream's before. */
static ssize_t run_body(struct oribi_response *res)
{
    bool streams = case_number(&file, "stream", 0);
    size_t n = case_bytes(&file, "body", spare, sizeof(spare));
    res->body_len = streams ? -1 : (int64_t)n;
    ssize_t result = oribi_response_head(res, output, sizeof(output));
    if (result < 0 || !res->framed)
        return result;
    ssize_t content = check_framed(spare, n);
    if (content < 0 || streams) {
        if (!case_is(&file, "status", content < 0 ? streams ? "cut" : "error" : "ok"))
            complain("status");
        return content < 0 ? -1 : oribi_response_head(res, output, sizeof(output));
    }
    res->unframed = true;
    res->body_len = content;
    return oribi_response_head(res, output, sizeof(output));
}

static void run_response(void)
{
    static const char *const framings[] = {"none", "length", "chunked", "close"};
    struct oribi_header headers[32];
    struct oribi_response res = {.status = read_status(),
                                 .headers = headers,
                                 .header_count = read_headers(headers, 32),
                                 .minor = (uint8_t)case_number(&file, "minor", 1),
                                 .is_head = case_number(&file, "head", 0),
                                 .keep_alive = case_number(&file, "keep_alive", 1),
                                 .detached = case_number(&file, "detached", 0),
                                 .body_len = case_number(&file, "body_len", -1),
                                 .date = "Sun, 06 Nov 1994 08:49:37 GMT",
                                 .server = case_raw(&file, "server")};
    bool interim = case_has(&file, "interim");
    bool has_body = case_has(&file, "body");
    ssize_t result;
    if (has_body)
        result = run_body(&res);
    else if (interim)
        result = oribi_response_interim((int)case_number(&file, "interim", 0), headers, res.header_count, output,
                                        sizeof(output), &res.reason);
    else
        result = oribi_response_head(&res, output, sizeof(output));
    if (has_body && result == -1)
        return;
    if (!case_is(&file, "status", result == ORIBI_EAPP ? "error" : "ok") || (result < 0 && result != ORIBI_EAPP))
        complain("status");
    if (result == ORIBI_EAPP && !res.reason)
        complain("reason");
    if (result < 0)
        return;
    check_bytes("output", oribi_slice(output, (size_t)result));
    if (interim)
        return;
    if (case_has(&file, "framing") && !case_is(&file, "framing", framings[res.framing]))
        complain("framing");
    check_number("length", res.content_length);
    check_number("closes", res.closes);
    check_number("dropped", res.dropped_count);
    check_mended(&res);
}

/* ---- files ---- */

static void run_file(const char *path, void (*run)(void))
{
    if (!case_file_open(&file, path)) {
        fail("%s cannot be read", path);
        return;
    }
    while (case_next(&file)) {
        struct oribi_slice label = case_raw(&file, "name");
        good = true;
        run();
        ok_named(good && label.n, "%s: %.*s", strrchr(path, '/') + 1, (int)label.n, label.p);
    }
    case_file_close(&file);
}

/* ORIBI_SPEC names the folder; the default fits tests run from core/. Returns how many files it ran. */
static size_t run_folder(const char *folder, void (*run)(void))
{
    char pattern[512];
    const char *spec = getenv("ORIBI_SPEC");
    glob_t found = {0};
    snprintf(pattern, sizeof(pattern), "%s/%s/*.case", spec ? spec : "../spec", folder);
    size_t count = glob(pattern, 0, NULL, &found) == 0 ? found.gl_pathc : 0;
    for (size_t i = 0; i < count; i++)
        run_file(found.gl_pathv[i], run);
    globfree(&found);
    return count;
}

int main(void)
{
    arena = guard_alloc(BYTES_MAX);
    other = guard_alloc(BYTES_MAX);
    ok(run_folder("request", run_request) > 0);
    ok(run_folder("chunked", run_chunked) > 0);
    ok(run_folder("response", run_response) > 0);
    return done_testing();
}
