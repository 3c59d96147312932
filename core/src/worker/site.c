/* Mounts of a worker and their answers. Reading order: oribi__site_answer, answer_from, look_up, send_file. */
#include "worker/site.h"

#include "worker/exchange.h"
#include "worker/refused.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/files/cache.h"
#include "oribi/files/mount.h"
#include "oribi/files/path.h"
#include "oribi/files/root.h"
#include "oribi/files/types.h"
#include "oribi/http/accept_encoding.h"
#include "oribi/http/conditions.h"
#include "oribi/http/date.h"
#include "oribi/http/ranges.h"
#include "oribi/http/response.h"

#include <stdio.h>
#include <string.h>

enum {
    REFRESH_MS = 1000,
    OWN_HEADERS_MAX = 12, /* of an answer, beside those of its mount */
};

struct mount {
    struct oribi_mount spec;
    struct oribi_root *root;
};

struct oribi__site {
    struct oribi_types *types;
    struct oribi_cache *cache;
    int64_t refreshed_ms;
    uint32_t count;
    struct oribi_slice prefixes[ORIBI_MOUNTS_MAX];
    struct oribi_path path;               /* of the request at hand */
    char tried[ORIBI_PATH_BYTES_MAX + 1]; /* a path made of it */
    struct mount mounts[];
};

/* One answer being made. */
struct answering {
    struct oribi_worker *w;
    struct oribi__site *site;
    struct oribi_conn *c;
    const struct mount *mount;
    struct oribi_cache_now now;
    uint32_t header_count;
    struct oribi_header headers[OWN_HEADERS_MAX + ORIBI_MOUNT_HEADERS_MAX];
};

/* --- the answer's bytes --- */

static void add(struct answering *a, const char *name, const char *value, size_t n)
{
    a->headers[a->header_count++] = (struct oribi_header){name, value, (uint32_t)strlen(name), (uint32_t)n};
}

static void add_text(struct answering *a, const char *name, const char *value)
{
    add(a, name, value, strlen(value));
}

static void add_mount_headers(struct answering *a)
{
    for (uint32_t i = 0; i < a->mount->spec.header_count; i++)
        add_text(a, a->mount->spec.headers[i].name, a->mount->spec.headers[i].value);
    if (a->mount->spec.nosniff)
        add_text(a, "X-Content-Type-Options", "nosniff");
}

static bool keeps(const struct answering *a)
{
    uint32_t max = a->w->options->keepalive_requests_max;
    return a->c->exchange->head.keep_alive && !a->w->stopping && (max == 0 || a->c->request_count < max);
}

static void note(struct answering *a, int status, int64_t body_bytes)
{
    struct oribi_worker *w = a->w;
    oribi__count(&w->slot->status_class[status / 100], 1);
    if (!w->setup.access_log)
        return;
    int64_t now_us = oribi_clock_us();
    struct oribi_access_entry entry = {
        .head = &a->c->exchange->head,
        .remote_addr = oribi_slice(a->c->addr, a->c->addr_len),
        .status = status,
        .cut = a->c->broken,
        .body_bytes = body_bytes,
        .total_us = now_us - a->c->exchange->complete_us,
        .wall_ms = oribi_clock_wall_ms(),
    };
    oribi_access_log_add(w->setup.access_log, &entry);
}

/* Sends the head and the body, one of memory and file or none of them, and ends the exchange. */
static void send_answer(struct answering *a, int status, struct oribi_slice memory, int fd, int64_t offset, int64_t len)
{
    struct oribi_reactor *r = &a->w->reactor;
    struct oribi_response res = {
        .status = status,
        .headers = a->headers,
        .header_count = a->header_count,
        .minor = a->c->exchange->head.minor,
        .is_head = a->c->exchange->head.is_head,
        .keep_alive = keeps(a),
        .body_len = len,
        .date = oribi_reactor_date(r),
        .server = r->config.server,
        .reason_index = UINT32_MAX,
    };
    ssize_t n = oribi_response_head(&res, r->scratch, ORIBI_SCRATCH_BYTES); /* heads of ours fit */
    bool bodyless = res.framing == ORIBI_FRAMING_NONE;
    struct iovec vec[2] = {{r->scratch, n > 0 ? (size_t)n : 0}, {(void *)memory.p, memory.n}};
    bool from_file = !bodyless && fd >= 0 && len > 0;
    int result = oribi_conn_send(r, a->c, vec, !bodyless && memory.n ? 2 : 1, from_file);
    if (result == 0 && from_file)
        result = oribi_conn_send_file(r, a->c, fd, offset, len);
    note(a, status, bodyless ? 0 : len);
    oribi_conn_finish(r, a->c, res.closes || n <= 0);
}

/* --- files --- */

/* A field of the request, empty where there is none. */
static struct oribi_slice field_of(const struct oribi_head *head, uint16_t id)
{
    for (uint32_t i = 0; i < head->field_count; i++)
        if (head->fields[i].id == id)
            return oribi_slice(head->fields[i].value, head->fields[i].value_len);
    return oribi_slice(NULL, 0);
}

/* The whole, or the ranges that are asked for: one of them. TODO several as multipart/byteranges. */
static void send_content(struct answering *a, const struct oribi_file_content *content, struct oribi_slice range)
{
    struct oribi_ranges ranges = {0};
    char text[ORIBI_CONTENT_RANGE_CAP];
    int64_t first = 0;
    int64_t len = content->info.size;
    int status = range.p ? (int)oribi_ranges_read(range, content->info.size, &ranges) : 200;
    if (status == ORIBI_RANGES_NONE) {
        a->header_count = 0;
        add(a, "Content-Range", text, oribi_content_range_none(content->info.size, text));
        send_answer(a, 416, oribi_slice(NULL, 0), -1, 0, 0);
        return;
    }
    if (status == ORIBI_RANGES_PART && ranges.count == 1) {
        first = ranges.at[0].first;
        len = ranges.at[0].last - first + 1;
        add(a, "Content-Range", text, oribi_content_range(ranges.at[0], content->info.size, text));
    } else {
        status = 200;
    }
    struct oribi_slice body = content->body ? oribi_slice(content->body + first, (size_t)len) : oribi_slice(NULL, 0);
    send_answer(a, status, body, content->body ? -1 : content->fd, first, len);
}

static enum oribi_coding choose(const struct answering *a, const struct oribi_file *file)
{
    static const enum oribi_coding order[] = {ORIBI_CODING_ZSTD, ORIBI_CODING_BR, ORIBI_CODING_GZIP,
                                              ORIBI_CODING_IDENTITY};
    enum oribi_coding offered[ORIBI_CODING_COUNT];
    size_t count = 0;
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
        if (file->contents[order[i]].is_there)
            offered[count++] = order[i];
    if (count == 1)
        return ORIBI_CODING_IDENTITY;
    enum oribi_coding coding =
        oribi_accept_encoding_choose(field_of(&a->c->exchange->head, ORIBI_FIELD_ACCEPT_ENCODING), offered, count);
    return coding == ORIBI_CODING_NONE ? ORIBI_CODING_IDENTITY : coding;
}

static void send_file(struct answering *a, const struct oribi_file *file)
{
    char etag[ORIBI_ETAG_BYTES_MAX];
    char modified[ORIBI_DATE_LEN];
    struct oribi_validators validators;
    struct oribi_conditions conditions;
    bool has_ranges;
    enum oribi_coding coding = choose(a, file);
    const struct oribi_file_content *content = &file->contents[coding];
    struct oribi_slice coding_name = coding == ORIBI_CODING_IDENTITY ? oribi_slice(NULL, 0) : oribi_coding_name(coding);
    oribi_validators_of_file(content->info.size, content->info.mtime_s, a->now.wall_s, coding_name, etag, &validators);
    oribi_conditions_of_head(&a->c->exchange->head, &conditions);
    enum oribi_condition_result result = oribi_conditions_decide(&conditions, &validators, a->now.wall_s, &has_ranges);
    if (result == ORIBI_CONDITION_FAILED) {
        send_answer(a, 412, oribi_slice(NULL, 0), -1, 0, 0);
        return;
    }
    add(a, "ETag", validators.etag.p, validators.etag.n);
    oribi_date_format(validators.last_modified_s, modified);
    add(a, "Last-Modified", modified, sizeof(modified));
    bool has_twins = file->contents[ORIBI_CODING_GZIP].is_there || file->contents[ORIBI_CODING_BR].is_there ||
                     file->contents[ORIBI_CODING_ZSTD].is_there;
    if (has_twins)
        add_text(a, "Vary", "Accept-Encoding");
    add_mount_headers(a);
    if (result == ORIBI_CONDITION_NOT_MODIFIED) {
        send_answer(a, 304, oribi_slice(NULL, 0), -1, 0, 0);
        return;
    }
    add(a, "Content-Type", file->type.p, file->type.n);
    add_text(a, "Accept-Ranges", "bytes");
    if (coding != ORIBI_CODING_IDENTITY)
        add(a, "Content-Encoding", coding_name.p, coding_name.n);
    send_content(a, content, has_ranges ? conditions.range : oribi_slice(NULL, 0));
}

/* --- which file --- */

static enum oribi_file_verdict get(struct answering *a, const char *path, const struct oribi_file **file)
{
    return oribi_cache_get(a->site->cache, a->mount->root, path, a->now, file);
}

/* Path, index and .html; with `redirect` set, a folder without its slash. */
static enum oribi_file_verdict look_up(struct answering *a, const char *rest, const struct oribi_file **file,
                                       bool *redirect)
{
    const struct oribi_mount *spec = &a->mount->spec;
    size_t n = strlen(rest);
    bool is_folder_path = n == 0 || rest[n - 1] == '/';
    char *tried = a->site->tried;
    enum oribi_file_verdict verdict = ORIBI_FILE_MISSING;
    if (!is_folder_path) {
        verdict = get(a, rest, file);
        if (verdict == ORIBI_FILE_OK)
            return verdict;
        if (spec->html && (size_t)snprintf(tried, sizeof(a->site->tried), "%s.html", rest) < sizeof(a->site->tried) &&
            get(a, tried, file) == ORIBI_FILE_OK)
            return ORIBI_FILE_OK;
        *redirect = verdict == ORIBI_FILE_FOLDER && spec->index;
        return verdict;
    }
    if (spec->index &&
        (size_t)snprintf(tried, sizeof(a->site->tried), "%s%s", rest, spec->index) < sizeof(a->site->tried))
        verdict = get(a, tried, file);
    return verdict;
}

static void send_error(struct answering *a, int status)
{
    char body[64];
    a->header_count = 0;
    int n = snprintf(body, sizeof(body), "%d %s\n", status, status == 400 ? "Bad Request" : "Not Found");
    add_text(a, "Content-Type", "text/plain");
    send_answer(a, status, oribi_slice(body, (size_t)n), -1, 0, n);
}

/* The path as it came, so that nothing is decoded into a field; the query stays. */
static void send_slash(struct answering *a)
{
    const struct oribi_head *head = &a->c->exchange->head;
    char *location = a->site->tried;
    int n = snprintf(location, sizeof(a->site->tried), "%.*s/%s%.*s", (int)head->path.n, head->path.p,
                     head->query.n ? "?" : "", (int)head->query.n, head->query.p);
    if (n < 0 || (size_t)n >= sizeof(a->site->tried)) {
        send_error(a, 404);
        return;
    }
    a->header_count = 0;
    add(a, "Location", location, (size_t)n);
    send_answer(a, 301, oribi_slice(NULL, 0), -1, 0, 0);
}

/* True when this mount has answered. */
static bool answer_from(struct answering *a)
{
    const struct oribi_file *file;
    bool redirect = false;
    const char *rest =
        oribi_mount_rest(oribi_slice(a->mount->spec.prefix, strlen(a->mount->spec.prefix)), &a->site->path);
    if (look_up(a, rest, &file, &redirect) == ORIBI_FILE_OK) {
        send_file(a, file);
        oribi_cache_release(a->site->cache, file);
        return true;
    }
    if (redirect)
        send_slash(a);
    else if (a->mount->spec.fallthrough)
        return false;
    else
        send_error(a, 404);
    return true;
}

static void refresh(struct oribi__site *site, int64_t now_ms)
{
    if (now_ms - site->refreshed_ms < REFRESH_MS)
        return;
    site->refreshed_ms = now_ms;
    for (uint32_t i = 0; i < site->count; i++)
        (void)oribi_root_refresh(site->mounts[i].root); /* one that is gone stays what it was */
}

/* Does the path as it came begin with the prefix? */
static bool begins_with(struct oribi_slice path, struct oribi_slice prefix)
{
    return path.n >= prefix.n && memcmp(path.p, prefix.p, prefix.n) == 0 &&
           (path.n == prefix.n || path.p[prefix.n] == '/');
}

/* A path that no file can have: a mount that does not fall through answers it, else it is the application's. */
static bool refuse_path(struct answering *a, enum oribi_path_verdict verdict)
{
    struct oribi_slice path = a->c->exchange->head.path;
    for (uint32_t i = 0; i < a->site->count; i++) {
        if (a->site->mounts[i].spec.fallthrough || !begins_with(path, a->site->prefixes[i]))
            continue;
        send_error(a, verdict == ORIBI_PATH_ESCAPE || verdict == ORIBI_PATH_NUL ? 400 : 404);
        return true;
    }
    return false;
}

bool oribi__site_claims(void *self, struct oribi_conn *c)
{
    const struct oribi_head *head = &c->exchange->head;
    return head->is_head || oribi_slice_equal(head->method, ORIBI_SLICE("GET"));
}

bool oribi__site_answer(void *self, struct oribi_conn *c)
{
    struct oribi_worker *w = self;
    struct oribi__site *site = w->site;
    struct answering a = {
        .w = w, .site = site, .c = c, .now = {.ms = w->reactor.now_ms, .wall_s = oribi_clock_wall_s()}};
    enum oribi_path_verdict verdict = oribi_path_read(c->exchange->head.path, &site->path);
    if (verdict != ORIBI_PATH_OK)
        return refuse_path(&a, verdict);
    refresh(site, a.now.ms);
    for (ssize_t i = -1; (i = oribi_mount_find(site->prefixes, site->count, &site->path, i)) >= 0;) {
        a.mount = &site->mounts[i];
        if (answer_from(&a))
            return true;
    }
    return false;
}

/* --- life --- */

static int open_mount(struct mount *mount, const char *text, char *error)
{
    int bad = -1;
    int code = oribi_mount_read(text, &mount->spec, error);
    if (code < 0)
        return code;
    code = oribi_root_create(&mount->root, mount->spec.folder, mount->spec.links, mount->spec.link_count, &bad);
    if (code < 0)
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "static %.80s: %.100s: %s", text,
                       bad < 0 ? mount->spec.folder : mount->spec.links[bad], oribi_os_error_text());
    return code;
}

int oribi__site_create(const struct oribi_options *options, struct oribi__site **out, char *error)
{
    static const struct oribi_cache_limits limits = {ORIBI_CACHE_OPEN_DEFAULT, ORIBI_CACHE_MISSING_DEFAULT,
                                                     ORIBI_CACHE_MEMORY_DEFAULT};
    uint32_t count = (uint32_t)options->mounts.count;
    *out = NULL;
    if (count == 0)
        return 0;
    struct oribi__site *site = oribi_mem_alloc(1, sizeof(*site) + count * sizeof(site->mounts[0]));
    site->types = oribi_types_create("utf-8");
    (void)oribi_types_read_file(site->types, ORIBI_TYPES_SYSTEM_FILE); /* where there is one */
    site->cache = oribi_cache_create(&limits, site->types);
    for (uint32_t i = 0; i < count; i++) {
        int code = open_mount(&site->mounts[i], options->mounts.items[i], error);
        if (code < 0) {
            oribi__site_destroy(site);
            return code;
        }
        site->prefixes[i] = oribi_slice(site->mounts[i].spec.prefix, strlen(site->mounts[i].spec.prefix));
        site->count++;
    }
    *out = site;
    return 0;
}

void oribi__site_destroy(struct oribi__site *site)
{
    if (!site)
        return;
    oribi_cache_destroy(site->cache);
    oribi_types_destroy(site->types);
    for (uint32_t i = 0; i < site->count; i++)
        oribi_root_destroy(site->mounts[i].root);
    oribi_mem_free(site);
}
