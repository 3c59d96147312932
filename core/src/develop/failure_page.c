/* An error as a page: the facts sorted out, the choice of the form, plain text and JSON. failure_html.c is the third.
 * Reading order: oribi_failure_page, sort_out, put_text, put_json. */
#include "develop/failure_private.h"

#include "oribi/base/escape.h"
#include "oribi/base/limits.h"
#include "oribi/base/os/os.h"
#include "oribi/form/urlencoded.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static void append(struct oribi_buf *out, struct oribi_slice text)
{
    (void)oribi_buf_try_append(out, text.p, text.n);
}

static void put(struct oribi_buf *out, const char *text)
{
    append(out, oribi_slice(text, strlen(text)));
}

static struct oribi_slice cut(struct oribi_slice text, size_t max)
{
    return text.n <= max ? text : oribi_slice(text.p, max);
}

static bool is_text(struct oribi_slice slice, const char *text)
{
    return slice.n == strlen(text) && memcmp(slice.p, text, slice.n) == 0;
}

static const char *find(struct oribi_slice text, const char *part)
{
    return text.n > 0 ? oribi_os_memmem(text.p, text.n, part, strlen(part)) : NULL;
}

/* --- facts --- */

/* Is the file in one of the application's folders, and not in one of libraries inside it? `shown` loses the folder. */
static bool is_own(const struct oribi__failure *failure, struct oribi_slice path, struct oribi_slice *shown)
{
    static const char *const libraries[] = {"/gems/", "/vendor/bundle/", "/lib/perl5/", "/share/perl5/",
                                            "/node_modules/"};
    if (path.n == 0 || path.p[0] == '<' || path.p[0] == '(')
        return false;
    if (path.p[0] != '/')
        return true;
    for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++)
        if (find(path, libraries[i]))
            return false;
    for (size_t i = 0; i < failure->count; i++) {
        struct oribi_slice root = failure->facts[i].value;
        if (!is_text(failure->facts[i].kind, "root") || root.n < 2 || path.n <= root.n + 1 || path.p[root.n] != '/' ||
            memcmp(path.p, root.p, root.n) != 0)
            continue;
        *shown = oribi_slice(path.p + root.n + 1, path.n - root.n - 1);
        return true;
    }
    return false;
}

bool oribi__failure_frame(const struct oribi__failure *failure, size_t index, struct oribi__failure_frame *frame)
{
    const struct oribi_failure_fact *fact = &failure->facts[index];
    if (!is_text(fact->kind, "frame"))
        return false;
    struct oribi_slice at = cut(fact->value, ORIBI_FAILURE_VALUE_BYTES_MAX);
    const char *colon = at.n ? oribi_os_memrchr(at.p, ':', at.n) : NULL;
    *frame = (struct oribi__failure_frame){.path = at, .name = cut(fact->name, ORIBI_FAILURE_VALUE_BYTES_MAX)};
    if (colon) {
        frame->path.n = (size_t)(colon - at.p);
        for (const char *p = colon + 1; p < at.p + at.n && *p >= '0' && *p <= '9' && frame->line < 100000000; p++)
            frame->line = frame->line * 10 + (uint32_t)(*p - '0');
    }
    frame->shown = frame->path;
    frame->own = is_own(failure, frame->path, &frame->shown);
    return true;
}

static enum oribi__failure_section section_of(const struct oribi_failure_fact *fact)
{
    static const char *const request[] = {"REQUEST_METHOD", "SCRIPT_NAME",     "PATH_INFO",
                                          "QUERY_STRING",   "SERVER_PROTOCOL", "REMOTE_ADDR"};
    struct oribi_slice name = fact->name;
    if (is_text(fact->kind, "param"))
        return ORIBI__SECTION_PARAMETERS;
    if (!is_text(fact->kind, "env"))
        return ORIBI__SECTION_NONE;
    for (size_t i = 0; i < sizeof(request) / sizeof(request[0]); i++)
        if (is_text(name, request[i]))
            return ORIBI__SECTION_REQUEST;
    if ((name.n > 5 && memcmp(name.p, "HTTP_", 5) == 0) || is_text(name, "CONTENT_TYPE") ||
        is_text(name, "CONTENT_LENGTH"))
        return ORIBI__SECTION_HEADERS;
    return ORIBI__SECTION_ENVIRONMENT;
}

const char *oribi__failure_section_title(enum oribi__failure_section section)
{
    static const char *const titles[ORIBI__SECTIONS] = {"", "Request", "Parameters", "Headers", "Environment"};
    return titles[section];
}

static void give_pair(struct oribi_slice name, struct oribi_slice value, oribi__failure_pair_fn *function, void *arg)
{
    struct oribi_buf shown = {0};
    oribi__failure_show(name, value, &shown);
    function(arg, name, cut(oribi_slice(shown.p, shown.len), ORIBI_FAILURE_VALUE_BYTES_MAX));
    oribi_buf_deinit(&shown);
}

/* Of the query string, with the rules of neither framework: this is for eyes. */
static void give_query(struct oribi_slice query, oribi__failure_pair_fn *function, void *arg)
{
    struct oribi_buf room = {0};
    struct oribi_form form;
    struct oribi_form_pair pair;
    struct oribi_form_limits limits;
    oribi_form_limits_init(&limits);
    limits.pairs_max = ORIBI_FAILURE_FACTS_MAX;
    char *decoded = query.n ? oribi_buf_try_reserve(&room, query.n) : NULL;
    if (decoded && oribi_form_begin(&form, query, decoded, ORIBI_FORM_SKIP_EMPTY, &limits) == 0)
        while (oribi_form_next(&form, &pair) > 0)
            give_pair(pair.key, pair.value, function, arg);
    oribi_buf_deinit(&room);
}

void oribi__failure_pairs(const struct oribi__failure *failure, enum oribi__failure_section section,
                          oribi__failure_pair_fn *function, void *arg)
{
    if (section == ORIBI__SECTION_PARAMETERS)
        give_query(failure->query, function, arg);
    for (size_t i = 0; i < failure->count; i++) {
        const struct oribi_failure_fact *fact = &failure->facts[i];
        if (section_of(fact) == section)
            give_pair(cut(fact->name, ORIBI_FAILURE_VALUE_BYTES_MAX), cut(fact->value, ORIBI_FAILURE_MESSAGE_BYTES_MAX),
                      function, arg);
    }
}

static void sort_out(struct oribi__failure *failure)
{
    const struct {
        const char *kind;
        const char *name; /* NULL: any */
        struct oribi_slice *to;
    } wanted[] = {
        {"program", NULL, &failure->program},
        {"title", NULL, &failure->title},
        {"class", NULL, &failure->class_name},
        {"message", NULL, &failure->message},
        {"note", NULL, &failure->note},
        {"ask", "HTTP_ACCEPT", &failure->accept},
        {"ask", "HTTP_X_REQUESTED_WITH", &failure->requested_with},
        {"env", "HTTP_ACCEPT", &failure->accept},
        {"env", "HTTP_X_REQUESTED_WITH", &failure->requested_with},
        {"env", "QUERY_STRING", &failure->query},
    };
    for (size_t i = 0; i < failure->count; i++) {
        const struct oribi_failure_fact *fact = &failure->facts[i];
        struct oribi__failure_frame frame;
        for (size_t k = 0; k < sizeof(wanted) / sizeof(wanted[0]); k++)
            if (is_text(fact->kind, wanted[k].kind) && (!wanted[k].name || is_text(fact->name, wanted[k].name)))
                *wanted[k].to = cut(fact->value, ORIBI_FAILURE_MESSAGE_BYTES_MAX);
        if (!oribi__failure_frame(failure, i, &frame))
            continue;
        if (!failure->has_place || (frame.own && !failure->place.own))
            failure->place = frame;
        failure->has_place = true;
        failure->own_count += frame.own;
        failure->other_count += !frame.own;
    }
}

/* --- plain text --- */

/* A terminal shows this: no control character of a peer's may reach it but the line feed, and `indent` follows that. */
static void put_plain(struct oribi_buf *out, struct oribi_slice text, const char *indent)
{
    for (size_t i = 0; i < text.n;) {
        unsigned char c = (unsigned char)text.p[i];
        size_t n = c < 0x80 ? 1 : oribi_utf8_len(text.p + i, text.n - i);
        bool hidden = oribi_hidden_character(text.p + i, n) != 0;
        if (n > 0 && !hidden && ((c >= 0x20 && c != 0x7f) || c == '\t' || (c == '\n' && indent)))
            append(out, oribi_slice(text.p + i, n));
        else
            oribi_buf_print(out, "\\x%02x", c);
        if (c == '\n' && indent)
            put(out, indent);
        i += n && !hidden ? n : 1;
    }
}

static void put_plain_pair(void *arg, struct oribi_slice name, struct oribi_slice value)
{
    struct oribi_buf *out = arg;
    put(out, "  ");
    put_plain(out, name, NULL);
    put(out, ": ");
    put_plain(out, value, NULL);
    put(out, "\n");
}

static void put_plain_frames(const struct oribi__failure *failure, bool own, struct oribi_buf *out)
{
    struct oribi__failure_frame frame;
    for (size_t i = 0; i < failure->count; i++) {
        if (!oribi__failure_frame(failure, i, &frame) || frame.own != own)
            continue;
        put(out, "  ");
        put_plain(out, frame.shown, NULL);
        oribi_buf_print(out, ":%u", frame.line);
        put(out, frame.name.n ? " in " : "");
        put_plain(out, frame.name, NULL);
        put(out, "\n");
    }
}

static void put_plain_source(const struct oribi__failure *failure, struct oribi_buf *out)
{
    struct oribi__failure_source source;
    oribi__failure_source(&failure->place, &source);
    put(out, "\n");
    put_plain(out, failure->place.shown, NULL);
    oribi_buf_print(out, ":%u\n", failure->place.line);
    for (uint32_t i = 0; i < source.count; i++) {
        uint32_t number = source.first + i;
        oribi_buf_print(out, "%s%5u | ", number == failure->place.line ? "> " : "  ", number);
        put_plain(out, source.lines[i], NULL);
        put(out, "\n");
    }
    oribi_buf_deinit(&source.text);
}

static void put_text(const struct oribi__failure *failure, struct oribi_buf *out)
{
    put_plain(out, failure->class_name, NULL);
    put(out, failure->class_name.n ? ": " : "");
    put_plain(out, failure->message, "  ");
    put(out, "\n");
    put_plain(out, failure->title, NULL);
    put(out, "\n");
    if (failure->note.n) {
        put_plain(out, failure->note, NULL);
        put(out, "\n");
    }
    if (failure->has_place)
        put_plain_source(failure, out);
    if (failure->own_count) {
        put(out, "\nTrace, the application's frames\n");
        put_plain_frames(failure, true, out);
    }
    if (failure->other_count) {
        put(out, "\nTrace, all other frames\n");
        put_plain_frames(failure, false, out);
    }
    for (size_t i = 0; i < failure->count; i++) {
        if (!is_text(failure->facts[i].kind, "cause"))
            continue;
        put(out, "\nCaused by ");
        put_plain(out, cut(failure->facts[i].value, ORIBI_FAILURE_MESSAGE_BYTES_MAX), "  ");
        put(out, "\n");
    }
    for (int section = ORIBI__SECTION_REQUEST; section < ORIBI__SECTIONS; section++) {
        size_t before = out->len;
        oribi_buf_print(out, "\n%s\n", oribi__failure_section_title((enum oribi__failure_section)section));
        size_t empty = out->len;
        oribi__failure_pairs(failure, (enum oribi__failure_section)section, put_plain_pair, out);
        if (out->len == empty)
            out->len = before;
    }
    put(out, "\n");
    put_plain(out, failure->program, NULL);
    put(out, "\n");
}

/* --- JSON --- */

static void put_member(struct oribi_buf *out, const char *name, struct oribi_slice value)
{
    oribi_buf_print(out, "\"%s\":", name);
    oribi_escape_append_json(out, value);
    put(out, ",");
}

static void end_list(struct oribi_buf *out, const char *end)
{
    if (out->len && out->p[out->len - 1] == ',')
        out->len--;
    put(out, end);
}

static void put_json_pair(void *arg, struct oribi_slice name, struct oribi_slice value)
{
    struct oribi_buf *out = arg;
    oribi_escape_append_json(out, name);
    put(out, ":");
    oribi_escape_append_json(out, value);
    put(out, ",");
}

static void put_json_frames(const struct oribi__failure *failure, bool own, struct oribi_buf *out)
{
    struct oribi__failure_frame frame;
    for (size_t i = 0; i < failure->count; i++) {
        if (!oribi__failure_frame(failure, i, &frame) || frame.own != own)
            continue;
        put(out, "{");
        put_member(out, "file", frame.shown);
        oribi_buf_print(out, "\"line\":%u,", frame.line);
        put_member(out, "name", frame.name);
        oribi_buf_print(out, "\"application\":%s},", own ? "true" : "false");
    }
}

static void put_json_place(const struct oribi__failure *failure, struct oribi_buf *out)
{
    struct oribi__failure_source source;
    oribi__failure_source(&failure->place, &source);
    put_member(out, "file", failure->place.shown);
    oribi_buf_print(out, "\"line\":%u,\"source\":[", failure->place.line);
    for (uint32_t i = 0; i < source.count; i++) {
        oribi_buf_print(out, "{\"line\":%u,", source.first + i);
        put_member(out, "text", source.lines[i]);
        end_list(out, "},");
    }
    end_list(out, "],");
    oribi_buf_deinit(&source.text);
}

static void put_json(const struct oribi__failure *failure, struct oribi_buf *out)
{
    static const char *const names[ORIBI__SECTIONS] = {"", "request", "parameters", "headers", "environment"};
    put(out, "{");
    put_member(out, "error", failure->message);
    put_member(out, "class", failure->class_name);
    put_member(out, "title", failure->title);
    if (failure->note.n)
        put_member(out, "note", failure->note);
    if (failure->has_place)
        put_json_place(failure, out);
    put(out, "\"trace\":[");
    put_json_frames(failure, true, out);
    put_json_frames(failure, false, out);
    end_list(out, "],\"causes\":[");
    for (size_t i = 0; i < failure->count; i++) {
        if (!is_text(failure->facts[i].kind, "cause"))
            continue;
        oribi_escape_append_json(out, cut(failure->facts[i].value, ORIBI_FAILURE_MESSAGE_BYTES_MAX));
        put(out, ",");
    }
    end_list(out, "],");
    for (int section = ORIBI__SECTION_REQUEST; section < ORIBI__SECTIONS; section++) {
        oribi_buf_print(out, "\"%s\":{", names[section]);
        oribi__failure_pairs(failure, (enum oribi__failure_section)section, put_json_pair, out);
        end_list(out, "},");
    }
    put_member(out, "server", failure->program);
    end_list(out, "}\n");
}

/* --- the choice --- */

/* In the form that Accept names first. X-Requested-With is what libraries send with a request of a page's script. */
const char *oribi_failure_page(const struct oribi_failure_fact *facts, size_t count, struct oribi_buf *out)
{
    struct oribi__failure failure = {.facts = facts, .count = count};
    if (failure.count > ORIBI_FAILURE_FACTS_MAX)
        failure.count = ORIBI_FAILURE_FACTS_MAX;
    sort_out(&failure);
    const char *html = find(failure.accept, "text/html");
    const char *json = find(failure.accept, "json"); /* application/json, and application/problem+json */
    if (json ? !html || json < html : !html && is_text(failure.requested_with, "XMLHttpRequest")) {
        put_json(&failure, out);
        return "application/json";
    }
    if (html) {
        oribi__failure_html(&failure, out);
        return "text/html; charset=utf-8";
    }
    put_text(&failure, out);
    return "text/plain; charset=utf-8";
}

enum { READ_BYTES = 64 * 1024 };

/* The whole file up to a limit; what lies behind it is not shown. Pipes and devices are no sources. */
static void read_file(const char *path, struct oribi_buf *text)
{
    int fd;
    int64_t size;
    if (oribi_os_open_read(path, &fd) < 0)
        return;
    if (oribi_os_is_file(fd, &size)) {
        while (text->len < ORIBI_FAILURE_SOURCE_BYTES_MAX) {
            char *dst = oribi_buf_try_reserve(text, READ_BYTES);
            ssize_t n = dst ? oribi_os_read(fd, dst, READ_BYTES) : 0;
            if (n <= 0)
                break;
            text->len += (size_t)n;
        }
    }
    oribi_os_close(fd);
}

static struct oribi_slice line_at(const struct oribi_buf *text, size_t pos)
{
    const char *newline = memchr(text->p + pos, '\n', text->len - pos);
    size_t end = newline ? (size_t)(newline - text->p) : text->len;
    if (end > pos && text->p[end - 1] == '\r')
        end--;
    size_t n = end - pos;
    return oribi_slice(text->p + pos, n < ORIBI_FAILURE_LINE_BYTES_MAX ? n : ORIBI_FAILURE_LINE_BYTES_MAX);
}

void oribi__failure_source(const struct oribi__failure_frame *frame, struct oribi__failure_source *source)
{
    char path[PATH_MAX];
    *source = (struct oribi__failure_source){.first = 1};
    if (frame->path.n == 0 || frame->path.n >= sizeof(path) || memchr(frame->path.p, '\0', frame->path.n))
        return;
    memcpy(path, frame->path.p, frame->path.n);
    path[frame->path.n] = '\0';
    read_file(path, &source->text);
    if (frame->line > ORIBI__SOURCE_AROUND)
        source->first = frame->line - ORIBI__SOURCE_AROUND;
    uint32_t number = 1;
    bool reached = false;
    for (size_t pos = 0; pos < source->text.len && number <= frame->line + ORIBI__SOURCE_AROUND; number++) {
        if (number >= source->first)
            source->lines[source->count++] = line_at(&source->text, pos);
        reached |= number == frame->line;
        const char *newline = memchr(source->text.p + pos, '\n', source->text.len - pos);
        pos = newline ? (size_t)(newline - source->text.p) + 1 : source->text.len;
    }
    if (!reached) /* the file has changed, or the mistake is its missing end */
        source->count = number == frame->line ? source->count : 0;
}
