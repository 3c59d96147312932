/* Files of mounts. Reading order: oribi__local_answer_file, answer_from, look_up, send_file. */
#include "worker/local/local_private.h"
#include "worker/reply.h"

#include "oribi/base/escape.h"
#include "oribi/http/compress.h"
#include "oribi/http/conditions.h"
#include "oribi/http/date.h"

#include <stdio.h>
#include <string.h>

enum {
    REFRESH_MS = 1000,
    SHOWN_MAX = 200,  /* of a path in a log line */
    ATTEMPTS_MAX = 3, /* at a file that is written to */
};

static void add_mount_headers(struct oribi__local_answer *a)
{
    for (uint32_t i = 0; i < a->mount->spec.header_count; i++)
        oribi__local_add_text(a, a->mount->spec.headers[i].name, a->mount->spec.headers[i].value);
    if (a->mount->spec.nosniff)
        oribi__local_add_text(a, "X-Content-Type-Options", "nosniff");
}

/* One run of bytes: the whole, or a range. */
static void send_run(struct oribi__local_answer *a, int status, const struct oribi_file *file,
                     const struct oribi_file_content *content, struct oribi_byte_range range)
{
    struct oribi_source source;
    int64_t len = range.last - range.first + 1;
    if (content->body) {
        oribi__local_send(a, status, oribi_slice(content->body + range.first, (size_t)len));
        return;
    }
    oribi_file_source(file, content, &source);
    const struct oribi_piece piece = {.offset = range.first, .len = len};
    oribi__local_send_body(
        a, status, &(struct oribi__local_body){.len = len, .source = &source, .pieces = &piece, .piece_count = 1});
}

static void send_ranges(struct oribi__local_answer *a, const struct oribi_file *file,
                        const struct oribi_file_content *content, const struct oribi_ranges *ranges)
{
    struct oribi__byteranges parts;
    struct oribi_source source;
    struct iovec vec[ORIBI__LOCAL_VECS_MAX];
    struct oribi__local_body body = {.vec = vec};
    (void)oribi__byteranges_make(&parts, ranges, file->type, 0, content->info.size); /* no file is that long */
    oribi__local_add(a, "Content-Type", parts.type.p, parts.type.n);
    body.len = parts.len;
    if (content->body) {
        for (size_t i = 0; i < parts.count; i++) {
            vec[body.vec_count++] = parts.pieces[i].text;
            vec[body.vec_count++] =
                (struct iovec){(char *)content->body + parts.pieces[i].offset, (size_t)parts.pieces[i].len};
        }
    } else {
        oribi_file_source(file, content, &source);
        body.source = &source;
        body.pieces = parts.pieces;
        body.piece_count = parts.count;
    }
    oribi__local_send_body(a, 206, &body);
}

/* The whole, or the ranges that are asked for. */
static void send_content(struct oribi__local_answer *a, const struct oribi_file *file,
                         const struct oribi_file_content *content, struct oribi_slice range)
{
    struct oribi_ranges ranges = {0};
    char text[ORIBI_CONTENT_RANGE_CAP];
    int64_t size = content->info.size;
    enum oribi_ranges_result result = range.p ? oribi_ranges_read(range, size, &ranges) : ORIBI_RANGES_WHOLE;
    if (result == ORIBI_RANGES_NONE) {
        a->header_count = 0;
        oribi__local_add(a, "Content-Range", text, oribi_content_range_none(size, text));
        oribi__local_send_body(a, 416, NULL);
        return;
    }
    if (result == ORIBI_RANGES_PART && ranges.count > 1) {
        send_ranges(a, file, content, &ranges);
        return;
    }
    oribi__local_add(a, "Content-Type", file->type.p, file->type.n);
    if (result == ORIBI_RANGES_WHOLE) {
        send_run(a, 200, file, content, (struct oribi_byte_range){0, size - 1});
        return;
    }
    oribi__local_add(a, "Content-Range", text, oribi_content_range(ranges.at[0], size, text));
    send_run(a, 206, file, content, ranges.at[0]);
}

/* Only a weight makes identity unacceptable. */
static bool refuses(struct oribi_slice accepted)
{
    return accepted.n > 0 && memchr(accepted.p, ';', accepted.n) != NULL;
}

/* ORIBI_CODING_NONE: the client has refused all that there is, as with `identity;q=0`, and gets 406 (RFC 9110
 * 12.4.1). */
static enum oribi_coding choose(const struct oribi__local_answer *a, const struct oribi_file *file)
{
    static const enum oribi_coding order[] = {ORIBI_CODING_ZSTD, ORIBI_CODING_BR, ORIBI_CODING_GZIP,
                                              ORIBI_CODING_IDENTITY};
    enum oribi_coding offered[ORIBI_CODING_COUNT];
    size_t count = 0;
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
        if (file->contents[order[i]].is_there)
            offered[count++] = order[i];
    struct oribi_slice accepted = oribi__local_field(a, ORIBI_FIELD_ACCEPT_ENCODING);
    if (count == 1 && !refuses(accepted))
        return ORIBI_CODING_IDENTITY;
    return oribi_accept_encoding_choose(accepted, offered, count);
}

/* Where the mount asks for it and the file is small enough, the tag is that of the bytes. False: they cannot be read,
 * or are not those of the entry any more. */
static bool tag_content(const struct oribi__local_answer *a, const struct oribi_file *file,
                        const struct oribi_file_content *content, struct oribi_slice coding_name, char *etag,
                        struct oribi_validators *validators)
{
    uint64_t hash;
    if (!a->mount->spec.etag_content || content->info.size > ORIBI_CACHE_HASHED_BYTES_MAX)
        return true;
    if (!oribi_file_hash(content, &hash))
        return false;
    oribi_validators_take_hash(hash, content->info.size, file->young && !content->body, coding_name, etag, validators);
    return true;
}

/* False: the file is not what the cache says; nothing was sent. */
static bool send_file(struct oribi__local_answer *a, const struct oribi_file *file)
{
    char etag[ORIBI_ETAG_BYTES_MAX];
    char modified[ORIBI_DATE_LEN];
    struct oribi_validators validators;
    struct oribi_conditions conditions;
    bool has_ranges;
    enum oribi_coding coding = choose(a, file);
    if (coding == ORIBI_CODING_NONE) {
        oribi__local_send_error(a, 406);
        return true;
    }
    const struct oribi_file_content *content = &file->contents[coding];
    if (!oribi_file_unchanged(content))
        return false;
    struct oribi_slice coding_name = coding == ORIBI_CODING_IDENTITY ? oribi_slice(NULL, 0) : oribi_coding_name(coding);
    oribi_validators_of_file(content->info.size, content->info.mtime_s, a->now.wall_s, coding_name, etag, &validators);
    if (!tag_content(a, file, content, coding_name, etag, &validators))
        return false;
    oribi_conditions_of_head(&a->c->exchange->head, &conditions);
    enum oribi_condition_result result = oribi_conditions_decide(&conditions, &validators, a->now.wall_s, &has_ranges);
    if (result == ORIBI_CONDITION_FAILED) {
        oribi__local_send_body(a, 412, NULL);
        return true;
    }
    if (validators.etag.n)
        oribi__local_add(a, "ETag", validators.etag.p, validators.etag.n);
    if (validators.has_last_modified) {
        oribi_date_format(validators.last_modified_s, modified);
        oribi__local_add(a, "Last-Modified", modified, sizeof(modified));
    }
    bool has_precompressed = file->contents[ORIBI_CODING_GZIP].is_there || file->contents[ORIBI_CODING_BR].is_there ||
                             file->contents[ORIBI_CODING_ZSTD].is_there;
    if (has_precompressed)
        oribi__local_add_text(a, "Vary", "Accept-Encoding");
    add_mount_headers(a);
    if (result == ORIBI_CONDITION_NOT_MODIFIED) {
        oribi__local_send_body(a, 304, NULL);
        return true;
    }
    oribi__local_add_text(a, "Accept-Ranges", "bytes");
    if (coding != ORIBI_CODING_IDENTITY)
        oribi__local_add(a, "Content-Encoding", coding_name.p, coding_name.n);
    send_content(a, file, content, has_ranges ? conditions.range : oribi_slice(NULL, 0));
    return true;
}

/* --- which file --- */

/* Where the system fails, the application may have closed the root's descriptor: it is opened again. */
static enum oribi_file_verdict get(struct oribi__local_answer *a, const char *path, const struct oribi_file **file)
{
    enum oribi_file_verdict verdict = oribi_cache_get(a->local->cache, a->mount->root, path, a->now, file);
    if (__builtin_expect(verdict == ORIBI_FILE_FAILED, 0) && oribi_root_refresh(a->mount->root) == 1)
        verdict = oribi_cache_get(a->local->cache, a->mount->root, path, a->now, file);
    return verdict;
}

/* True when there is such a file, or it cannot be told whether there is one. */
static bool try_html(struct oribi__local_answer *a, const char *rest, const struct oribi_file **file,
                     enum oribi_file_verdict *verdict)
{
    char *tried = a->local->tried;
    if ((size_t)snprintf(tried, sizeof(a->local->tried), "%s.html", rest) >= sizeof(a->local->tried))
        return false;
    enum oribi_file_verdict got = get(a, tried, file);
    if (got != ORIBI_FILE_OK && got < ORIBI_FILE_CHANGING)
        return false;
    *verdict = got;
    return true;
}

/* Path, index and .html; with `redirect` set, a folder without its slash. A folder's path that leads to no file is
 * missing, unless its index is there and cannot be had. */
static enum oribi_file_verdict look_up(struct oribi__local_answer *a, const char *rest, const struct oribi_file **file,
                                       bool *redirect)
{
    const struct oribi_mount *spec = &a->mount->spec;
    bool is_folder_path = a->local->path.text[a->local->path.n - 1] == '/';
    char *tried = a->local->tried;
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
        (size_t)snprintf(tried, sizeof(a->local->tried), "%s%s", rest, spec->index) < sizeof(a->local->tried))
        verdict = get(a, tried, file);
    return verdict;
}

/* The path as it came, so that nothing is decoded into a field; the query stays. */
static void send_slash(struct oribi__local_answer *a)
{
    const struct oribi_head *head = &a->c->exchange->head;
    char *location = a->local->tried;
    int n = snprintf(location, sizeof(a->local->tried), "%.*s/%s%.*s", (int)head->path.n, head->path.p,
                     head->query.n ? "?" : "", (int)head->query.n, head->query.p);
    if (n < 0 || (size_t)n >= sizeof(a->local->tried)) {
        oribi__local_send_error(a, 404);
        return;
    }
    a->header_count = 0;
    oribi__local_add(a, "Location", location, (size_t)n);
    oribi__local_send_body(a, 301, NULL);
}

/* Logs what went wrong with a file that may well be there, at a limited rate. */
static void log_failure(struct oribi__local_answer *a, enum oribi_file_verdict verdict)
{
    struct oribi_worker *w = a->w;
    const char *why = verdict == ORIBI_FILE_FAILED ? oribi_os_error_text() : oribi_file_verdict_text(verdict);
    char shown[ORIBI_ESCAPE_TEXT_GROWTH * SHOWN_MAX + 1];
    struct oribi_slice path = a->c->exchange->head.path;
    if (!oribi_log_limit_allows(&w->app_log_limit, w->reactor.now_ms))
        return;
    *oribi_escape_text(shown, oribi_slice(path.p, path.n < SHOWN_MAX ? path.n : SHOWN_MAX)) = '\0';
    oribi__log_about((struct oribi__exchange *)a->c->exchange);
    oribi_log(ORIBI_LOG_WARN, "%s: the file beneath %s is not sent: %s", shown, a->mount->spec.folder, why);
    oribi__log_about(NULL);
}

/* Without a file: 0 is for the application, or for the next mount. A file that may not be read is 403, as elsewhere.
 * One that cannot be had for the moment is 503, also where the mount falls through: the application would say 404, and
 * caches might believe it. */
static int status_of(const struct oribi__local_answer *a, enum oribi_file_verdict verdict)
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
static bool answer_from(struct oribi__local_answer *a)
{
    const struct oribi_file *file;
    bool redirect = false;
    const char *rest =
        oribi_mount_rest(oribi_slice(a->mount->spec.prefix, strlen(a->mount->spec.prefix)), &a->local->path);
    enum oribi_file_verdict verdict = look_up(a, rest, &file, &redirect);
    for (int attempt = 1; verdict == ORIBI_FILE_OK; attempt++) {
        bool sent = send_file(a, file);
        if (!sent)
            oribi_cache_doubt(file);
        oribi_cache_release(file);
        if (sent)
            return true;
        verdict = attempt < ATTEMPTS_MAX ? look_up(a, rest, &file, &redirect) : ORIBI_FILE_CHANGING;
    }
    if (redirect) {
        send_slash(a);
        return true;
    }
    a->passes = verdict >= ORIBI_FILE_DENIED && a->w->setup.workers;
    if (a->passes) /* workers have other rights and descriptors than a frontend */
        return false;
    if (verdict >= ORIBI_FILE_DENIED)
        log_failure(a, verdict);
    int status = status_of(a, verdict);
    if (status)
        oribi__local_send_error(a, status);
    return status != 0;
}

static void refresh(struct oribi__local *local, int64_t now_ms)
{
    if (now_ms - local->refreshed_ms < REFRESH_MS)
        return;
    local->refreshed_ms = now_ms;
    for (uint32_t i = 0; i < local->count; i++)
        (void)oribi_root_refresh(local->mounts[i].root); /* one that is gone stays what it was */
}

bool oribi__local_answer_file(struct oribi__local_answer *a)
{
    struct oribi__local *local = a->local;
    refresh(local, a->now.ms);
    for (ssize_t i = -1; (i = oribi_mount_find(local->prefixes, local->count, &local->path, i)) >= 0;) {
        a->mount = &local->mounts[i];
        if (answer_from(a))
            return true;
        if (a->passes)
            return false;
    }
    return false;
}

/* Does the path as it came begin with the prefix? */
static bool begins_with(struct oribi_slice path, struct oribi_slice prefix)
{
    return path.n >= prefix.n && memcmp(path.p, prefix.p, prefix.n) == 0 &&
           (path.n == prefix.n || path.p[prefix.n] == '/');
}

bool oribi__local_refuse_path(struct oribi__local_answer *a, enum oribi_path_verdict verdict)
{
    struct oribi_slice path = a->c->exchange->head.path;
    for (uint32_t i = 0; i < a->local->count; i++) {
        if (a->local->mounts[i].spec.fallthrough || !begins_with(path, a->local->prefixes[i]))
            continue;
        oribi__local_send_error(a, verdict == ORIBI_PATH_ESCAPE || verdict == ORIBI_PATH_NUL ? 400 : 404);
        return true;
    }
    return false;
}
