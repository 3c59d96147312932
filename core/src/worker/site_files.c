/* Files of mounts. Reading order: oribi__site_answer_file, answer_from, look_up, send_file. */
#include "worker/site_private.h"

#include "oribi/http/accept_encoding.h"
#include "oribi/http/conditions.h"
#include "oribi/http/date.h"
#include "oribi/http/ranges.h"

#include <stdio.h>
#include <string.h>

enum { REFRESH_MS = 1000 };

static void add_mount_headers(struct oribi__site_answer *a)
{
    for (uint32_t i = 0; i < a->mount->spec.header_count; i++)
        oribi__site_add_text(a, a->mount->spec.headers[i].name, a->mount->spec.headers[i].value);
    if (a->mount->spec.nosniff)
        oribi__site_add_text(a, "X-Content-Type-Options", "nosniff");
}

/* The whole, or the ranges that are asked for: one of them. TODO several as multipart/byteranges. */
static void send_content(struct oribi__site_answer *a, const struct oribi_file_content *content,
                         struct oribi_slice range)
{
    struct oribi_ranges ranges = {0};
    char text[ORIBI_CONTENT_RANGE_CAP];
    int64_t first = 0;
    int64_t len = content->info.size;
    int status = range.p ? (int)oribi_ranges_read(range, content->info.size, &ranges) : 200;
    if (status == ORIBI_RANGES_NONE) {
        a->header_count = 0;
        oribi__site_add(a, "Content-Range", text, oribi_content_range_none(content->info.size, text));
        oribi__site_send(a, 416, oribi_slice(NULL, 0), -1, 0, 0);
        return;
    }
    if (status == ORIBI_RANGES_PART && ranges.count == 1) {
        first = ranges.at[0].first;
        len = ranges.at[0].last - first + 1;
        oribi__site_add(a, "Content-Range", text, oribi_content_range(ranges.at[0], content->info.size, text));
    } else {
        status = 200;
    }
    struct oribi_slice body = content->body ? oribi_slice(content->body + first, (size_t)len) : oribi_slice(NULL, 0);
    oribi__site_send(a, status, body, content->body ? -1 : content->fd, first, len);
}

static enum oribi_coding choose(const struct oribi__site_answer *a, const struct oribi_file *file)
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
        oribi_accept_encoding_choose(oribi__site_field(a, ORIBI_FIELD_ACCEPT_ENCODING), offered, count);
    return coding == ORIBI_CODING_NONE ? ORIBI_CODING_IDENTITY : coding;
}

static void send_file(struct oribi__site_answer *a, const struct oribi_file *file)
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
        oribi__site_send(a, 412, oribi_slice(NULL, 0), -1, 0, 0);
        return;
    }
    oribi__site_add(a, "ETag", validators.etag.p, validators.etag.n);
    oribi_date_format(validators.last_modified_s, modified);
    oribi__site_add(a, "Last-Modified", modified, sizeof(modified));
    bool has_twins = file->contents[ORIBI_CODING_GZIP].is_there || file->contents[ORIBI_CODING_BR].is_there ||
                     file->contents[ORIBI_CODING_ZSTD].is_there;
    if (has_twins)
        oribi__site_add_text(a, "Vary", "Accept-Encoding");
    add_mount_headers(a);
    if (result == ORIBI_CONDITION_NOT_MODIFIED) {
        oribi__site_send(a, 304, oribi_slice(NULL, 0), -1, 0, 0);
        return;
    }
    oribi__site_add(a, "Content-Type", file->type.p, file->type.n);
    oribi__site_add_text(a, "Accept-Ranges", "bytes");
    if (coding != ORIBI_CODING_IDENTITY)
        oribi__site_add(a, "Content-Encoding", coding_name.p, coding_name.n);
    send_content(a, content, has_ranges ? conditions.range : oribi_slice(NULL, 0));
}

/* --- which file --- */

static enum oribi_file_verdict get(struct oribi__site_answer *a, const char *path, const struct oribi_file **file)
{
    return oribi_cache_get(a->site->cache, a->mount->root, path, a->now, file);
}

/* Path, index and .html; with `redirect` set, a folder without its slash. */
static enum oribi_file_verdict look_up(struct oribi__site_answer *a, const char *rest, const struct oribi_file **file,
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

/* The path as it came, so that nothing is decoded into a field; the query stays. */
static void send_slash(struct oribi__site_answer *a)
{
    const struct oribi_head *head = &a->c->exchange->head;
    char *location = a->site->tried;
    int n = snprintf(location, sizeof(a->site->tried), "%.*s/%s%.*s", (int)head->path.n, head->path.p,
                     head->query.n ? "?" : "", (int)head->query.n, head->query.p);
    if (n < 0 || (size_t)n >= sizeof(a->site->tried)) {
        oribi__site_send_error(a, 404);
        return;
    }
    a->header_count = 0;
    oribi__site_add(a, "Location", location, (size_t)n);
    oribi__site_send(a, 301, oribi_slice(NULL, 0), -1, 0, 0);
}

/* True when this mount has answered. */
static bool answer_from(struct oribi__site_answer *a)
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
        oribi__site_send_error(a, 404);
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

bool oribi__site_answer_file(struct oribi__site_answer *a)
{
    struct oribi__site *site = a->site;
    refresh(site, a->now.ms);
    for (ssize_t i = -1; (i = oribi_mount_find(site->prefixes, site->count, &site->path, i)) >= 0;) {
        a->mount = &site->mounts[i];
        if (answer_from(a))
            return true;
    }
    return false;
}

/* Does the path as it came begin with the prefix? */
static bool begins_with(struct oribi_slice path, struct oribi_slice prefix)
{
    return path.n >= prefix.n && memcmp(path.p, prefix.p, prefix.n) == 0 &&
           (path.n == prefix.n || path.p[prefix.n] == '/');
}

bool oribi__site_refuse_path(struct oribi__site_answer *a, enum oribi_path_verdict verdict)
{
    struct oribi_slice path = a->c->exchange->head.path;
    for (uint32_t i = 0; i < a->site->count; i++) {
        if (a->site->mounts[i].spec.fallthrough || !begins_with(path, a->site->prefixes[i]))
            continue;
        oribi__site_send_error(a, verdict == ORIBI_PATH_ESCAPE || verdict == ORIBI_PATH_NUL ? 400 : 404);
        return true;
    }
    return false;
}
