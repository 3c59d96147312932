/* Files of mounts. Reading order: oribi__site_answer_file, answer_from, look_up, send_file. */
#include "worker/site_private.h"

#include "oribi/base/escape.h"
#include "oribi/http/accept_encoding.h"
#include "oribi/http/conditions.h"
#include "oribi/http/date.h"
#include "oribi/http/ranges.h"

#include <stdio.h>
#include <string.h>

enum {
    REFRESH_MS = 1000,
    SHOWN_MAX = 200, /* of a path in a log line */
};

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

/* Only a weight makes identity unacceptable. */
static bool refuses(struct oribi_slice accepted)
{
    return accepted.n > 0 && memchr(accepted.p, ';', accepted.n) != NULL;
}

/* ORIBI_CODING_NONE: the client has refused all that there is, as with `identity;q=0`, and gets 406 (RFC 9110
 * 12.4.1). */
static enum oribi_coding choose(const struct oribi__site_answer *a, const struct oribi_file *file)
{
    static const enum oribi_coding order[] = {ORIBI_CODING_ZSTD, ORIBI_CODING_BR, ORIBI_CODING_GZIP,
                                              ORIBI_CODING_IDENTITY};
    enum oribi_coding offered[ORIBI_CODING_COUNT];
    size_t count = 0;
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
        if (file->contents[order[i]].is_there)
            offered[count++] = order[i];
    struct oribi_slice accepted = oribi__site_field(a, ORIBI_FIELD_ACCEPT_ENCODING);
    if (count == 1 && !refuses(accepted))
        return ORIBI_CODING_IDENTITY;
    return oribi_accept_encoding_choose(accepted, offered, count);
}

static void send_file(struct oribi__site_answer *a, const struct oribi_file *file)
{
    char etag[ORIBI_ETAG_BYTES_MAX];
    char modified[ORIBI_DATE_LEN];
    struct oribi_validators validators;
    struct oribi_conditions conditions;
    bool has_ranges;
    enum oribi_coding coding = choose(a, file);
    if (coding == ORIBI_CODING_NONE) {
        oribi__site_send_error(a, 406);
        return;
    }
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

/* Where the system fails, the application may have closed the root's descriptor: it is opened again. */
static enum oribi_file_verdict get(struct oribi__site_answer *a, const char *path, const struct oribi_file **file)
{
    enum oribi_file_verdict verdict = oribi_cache_get(a->site->cache, a->mount->root, path, a->now, file);
    if (__builtin_expect(verdict == ORIBI_FILE_FAILED, 0) && oribi_root_refresh(a->mount->root) == 1)
        verdict = oribi_cache_get(a->site->cache, a->mount->root, path, a->now, file);
    return verdict;
}

/* True when there is such a file, or it cannot be told whether there is one. */
static bool try_html(struct oribi__site_answer *a, const char *rest, const struct oribi_file **file,
                     enum oribi_file_verdict *verdict)
{
    char *tried = a->site->tried;
    if ((size_t)snprintf(tried, sizeof(a->site->tried), "%s.html", rest) >= sizeof(a->site->tried))
        return false;
    enum oribi_file_verdict got = get(a, tried, file);
    if (got != ORIBI_FILE_OK && got < ORIBI_FILE_CHANGING)
        return false;
    *verdict = got;
    return true;
}

/* Path, index and .html; with `redirect` set, a folder without its slash. A folder's path that leads to no file is
 * missing, unless its index is there and cannot be had. */
static enum oribi_file_verdict look_up(struct oribi__site_answer *a, const char *rest, const struct oribi_file **file,
                                       bool *redirect)
{
    const struct oribi_mount *spec = &a->mount->spec;
    bool is_folder_path = a->site->path.text[a->site->path.n - 1] == '/';
    char *tried = a->site->tried;
    enum oribi_file_verdict verdict = ORIBI_FILE_MISSING;
    if (!is_folder_path) {
        verdict = get(a, rest, file);
        if (verdict == ORIBI_FILE_OK)
            return verdict;
        if (spec->html && rest[0] && try_html(a, rest, file, &verdict))
            return verdict;
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

/* What went wrong with a file that may well be there: the log says it at a limited rate. */
static void log_failure(struct oribi__site_answer *a, enum oribi_file_verdict verdict)
{
    struct oribi_worker *w = a->w;
    const char *why = verdict == ORIBI_FILE_FAILED ? oribi_os_error_text() : oribi_file_verdict_text(verdict);
    char shown[ORIBI_ESCAPE_TEXT_GROWTH * SHOWN_MAX + 1];
    struct oribi_slice path = a->c->exchange->head.path;
    if (!oribi_log_limit_allows(&w->app_log_limit, w->reactor.now_ms))
        return;
    *oribi_escape_text(shown, oribi_slice(path.p, path.n < SHOWN_MAX ? path.n : SHOWN_MAX)) = '\0';
    oribi_log(ORIBI_LOG_WARN, "%s: the file beneath %s is not sent: %s", shown, a->mount->spec.folder, why);
}

/* Without a file: 0 is for the application, or for the next mount. A file that may not be read is 403, as elsewhere; a
 * file
 * that cannot be had for the moment is 503, also where the mount falls through: the application would say 404, and
 * caches might believe it. */
static int status_of(const struct oribi__site_answer *a, enum oribi_file_verdict verdict)
{
    if (verdict == ORIBI_FILE_LIMIT || verdict == ORIBI_FILE_CHANGING)
        return 503;
    if (verdict == ORIBI_FILE_FAILED)
        return 500;
    if (a->mount->spec.fallthrough)
        return 0;
    return verdict == ORIBI_FILE_DENIED ? 403 : 404;
}

/* True when this mount has answered. */
static bool answer_from(struct oribi__site_answer *a)
{
    const struct oribi_file *file;
    bool redirect = false;
    const char *rest =
        oribi_mount_rest(oribi_slice(a->mount->spec.prefix, strlen(a->mount->spec.prefix)), &a->site->path);
    enum oribi_file_verdict verdict = look_up(a, rest, &file, &redirect);
    if (verdict == ORIBI_FILE_OK) {
        send_file(a, file);
        oribi_cache_release(a->site->cache, file);
        return true;
    }
    if (redirect) {
        send_slash(a);
        return true;
    }
    if (verdict >= ORIBI_FILE_DENIED)
        log_failure(a, verdict);
    int status = status_of(a, verdict);
    if (status)
        oribi__site_send_error(a, status);
    return status != 0;
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
