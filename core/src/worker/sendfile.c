/* Files named in a header of the application's answer; see the header. Reading order: oribi_reply_named, answer,
 * open_named, describe. */
#include "worker/exchange.h"
#include "worker/placement/ownership.h"
#include "worker/reply.h"

#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/files/mount.h"
#include "oribi/files/root.h"
#include "oribi/files/types.h"
#include "oribi/http/conditions.h"
#include "oribi/http/status.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { REFRESH_MS = 1000, TAG_BYTES = 8, SHOWN_MAX = 200 };
static_assert((int)TAG_BYTES <= (int)ORIBI_ETAG_CODING_BYTES_MAX, "the tag stands in the place of a coding");

struct place {
    const char *option;      /* for the log */
    const char *folder;      /* the options' */
    struct oribi_root *root; /* NULL: missing */
};

struct oribi__sendfile {
    struct oribi_types *types;
    int64_t refreshed_ms;
    uint32_t root_count;
    uint32_t map_count;
    struct place *places;         /* those of sendfile_root, then those of sendfile_map */
    struct oribi_slice *prefixes; /* of sendfile_map */
    struct oribi_path path;       /* of the answer at hand */
};

/* The way in which an answer names its file. */
enum way {
    NONE,
    FILE_PATH,     /* X-Sendfile, X-Lighttpd-Send-File */
    INTERNAL_PATH, /* X-Accel-Redirect */
};

struct named {
    const struct oribi_header *header;
    enum way way;
    const char *path; /* NUL-terminated, where there is a file; the worker's, until another thread has the reactor */
    int fd;
    struct oribi_file_info info;
    const char *fault; /* why there is no file */
    char tag[TAG_BYTES];
    struct oribi__file file;
};

/* --- life --- */

/* False: missing, and logged when `loud`. */
static bool open_place(struct place *place, bool loud)
{
    if (oribi_root_create(&place->root, place->folder, NULL, 0, NULL) == 0)
        return true;
    place->root = NULL;
    if (loud)
        oribi_log(ORIBI_LOG_ERROR, "%s %.200s: %s; an answer that names a file there becomes a 500", place->option,
                  place->folder, oribi_os_error_text());
    return false;
}

struct oribi__sendfile *oribi__sendfile_create(const struct oribi_options *options)
{
    uint32_t root_count = (uint32_t)options->sendfile_root.count;
    uint32_t map_count = (uint32_t)options->sendfile_map.count;
    char ignored[ORIBI_ERROR_TEXT_CAP];
    if (root_count + map_count == 0)
        return NULL;
    struct oribi__sendfile *s = oribi_mem_alloc(1, sizeof(*s));
    s->places = oribi_mem_alloc(root_count + map_count, sizeof(*s->places));
    s->prefixes = oribi_mem_alloc(map_count + 1, sizeof(*s->prefixes));
    s->root_count = root_count;
    s->map_count = map_count;
    s->types = oribi_types_create("utf-8");
    (void)oribi_types_read_file(s->types, ORIBI_TYPES_SYSTEM_FILE); /* where there is one */
    for (uint32_t i = 0; i < root_count; i++)
        s->places[i] = (struct place){"sendfile_root", options->sendfile_root.items[i], NULL};
    for (uint32_t i = 0; i < map_count; i++) {
        struct place *place = &s->places[root_count + i];
        place->option = "sendfile_map";
        (void)oribi_mount_map_read(place->option, options->sendfile_map.items[i], &s->prefixes[i], &place->folder,
                                   ignored); /* the options were checked */
    }
    for (uint32_t i = 0; i < root_count + map_count; i++)
        (void)open_place(&s->places[i], true);
    return s;
}

void oribi__sendfile_abandon(struct oribi__sendfile *s)
{
    for (uint32_t i = 0; s && i < s->root_count + s->map_count; i++)
        if (s->places[i].root)
            oribi_root_abandon(s->places[i].root);
}

void oribi__sendfile_destroy(struct oribi__sendfile *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; i < s->root_count + s->map_count; i++)
        oribi_root_destroy(s->places[i].root);
    oribi_types_destroy(s->types);
    oribi_mem_free(s->places);
    oribi_mem_free(s->prefixes);
    oribi_mem_free(s);
}

/* A deployment may have changed the link on the way to a folder, and a folder that was missing may be there now. */
static void refresh(struct oribi__sendfile *s, int64_t now_ms)
{
    if (now_ms - s->refreshed_ms < REFRESH_MS)
        return;
    s->refreshed_ms = now_ms;
    for (uint32_t i = 0; i < s->root_count + s->map_count; i++) {
        if (s->places[i].root)
            (void)oribi_root_refresh(s->places[i].root); /* one that is gone stays what it was */
        else
            (void)open_place(&s->places[i], false);
    }
}

/* --- which file --- */

static enum way way_of(const struct oribi_header *header, const struct oribi__sendfile *s)
{
    struct oribi_slice name = oribi_slice(header->name, header->name_len);
    if (s->root_count > 0 && (oribi_slice_equal_fold(name, ORIBI_SLICE("x-sendfile")) ||
                              oribi_slice_equal_fold(name, ORIBI_SLICE("x-lighttpd-send-file"))))
        return FILE_PATH;
    if (s->map_count > 0 && oribi_slice_equal_fold(name, ORIBI_SLICE("x-accel-redirect")))
        return INTERNAL_PATH;
    return NONE;
}

static void take_verdict(struct named *named, enum oribi_file_verdict verdict)
{
    named->fault = verdict == ORIBI_FILE_OK ? NULL : oribi_file_verdict_text(verdict);
}

/* The rest of `path` behind this folder as the operator wrote it, or NULL. A shorter way than all of the path. */
static const char *rest_of(const char *path, const char *folder)
{
    size_t n = strlen(folder);
    while (n > 1 && folder[n - 1] == '/')
        n--;
    return strncmp(path, folder, n) == 0 && path[n] == '/' ? path + n + 1 : NULL;
}

/* An absolute path is opened beneath each root as a link of that text would be: what ends outside is not opened. */
static void open_path(struct oribi__sendfile *s, struct named *named)
{
    named->fault = "it is in no folder of sendfile_root";
    if (named->path[0] != '/') {
        named->fault = "X-Sendfile needs an absolute path";
        return;
    }
    for (uint32_t i = 0; i < s->root_count; i++) {
        if (!s->places[i].root)
            continue;
        const char *rest = rest_of(named->path, s->places[i].folder);
        enum oribi_file_verdict verdict =
            oribi_root_open(s->places[i].root, rest ? rest : named->path, &named->fd, &named->info);
        if (verdict == ORIBI_FILE_OUTSIDE)
            continue;
        take_verdict(named, verdict);
        if (!named->fault || rest)
            return;
    }
}

/* A path as in a URL; behind the mark of our own mapping, one that Plack's middleware has made of a file's name. */
static enum oribi_path_verdict read_internal(struct oribi_slice value, struct oribi_path *path)
{
    static const struct oribi_slice mark = {ORIBI_SENDFILE_AS_IS, sizeof(ORIBI_SENDFILE_AS_IS) - 1};
    if (value.n > mark.n && memcmp(value.p, mark.p, mark.n) == 0)
        return oribi_path_take(oribi_slice(value.p + mark.n, value.n - mark.n), path);
    const char *query = memchr(value.p, '?', value.n);
    return oribi_path_read(query ? oribi_slice(value.p, (size_t)(query - value.p)) : value, path);
}

static void open_internal(struct oribi__sendfile *s, struct named *named, struct oribi_slice value)
{
    enum oribi_path_verdict read = read_internal(value, &s->path);
    if (read != ORIBI_PATH_OK) {
        named->fault = oribi_path_verdict_text(read);
        return;
    }
    named->path = s->path.text;
    ssize_t at = oribi_mount_find(s->prefixes, s->map_count, &s->path, -1);
    if (at < 0) {
        named->fault = "no prefix of sendfile_map begins it";
        return;
    }
    struct oribi_root *root = s->places[s->root_count + (size_t)at].root;
    if (!root)
        named->fault = "the folder of its sendfile_map is missing";
    else
        take_verdict(named,
                     oribi_root_open(root, oribi_mount_rest(s->prefixes[at], &s->path), &named->fd, &named->info));
}

static void open_named(struct oribi__sendfile *s, struct named *named)
{
    struct oribi_slice value = oribi_slice(named->header->value, named->header->value ? named->header->value_len : 0);
    if (named->way == INTERNAL_PATH) {
        open_internal(s, named, value);
        return;
    }
    named->fault = "it is no path";
    if (value.n == 0 || value.n > ORIBI_PATH_BYTES_MAX || memchr(value.p, '\0', value.n))
        return;
    memcpy(s->path.text, value.p, value.n);
    s->path.text[value.n] = '\0';
    named->path = s->path.text;
    open_path(s, named);
}

/* --- the answer --- */

/* Two files of one size and second are told apart by their paths: which of them a URL stands for may depend on who
 * asks. */
static void make_tag(const char *path, char tag[TAG_BYTES])
{
    uint64_t hash = 0xcbf29ce484222325U; /* FNV-1a */
    for (; *path; path++)
        hash = (hash ^ (uint8_t)*path) * 0x100000001b3U;
    hash ^= hash >> 32;
    for (int i = 0; i < TAG_BYTES; i++)
        tag[i] = "0123456789abcdef"[hash >> 4 * i & 15];
}

static bool is_called(const struct oribi_header *header, struct oribi_slice name)
{
    return oribi_slice_equal_fold(oribi_slice(header->name, header->name_len), name);
}

/* Those that name a file, and what frames a body that is not sent. */
static uint32_t other_headers(const struct oribi__sendfile *s, const struct oribi_header *headers, uint32_t count,
                              struct oribi_header *dst)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++)
        if (way_of(&headers[i], s) == NONE && !is_called(&headers[i], ORIBI_SLICE("content-length")) &&
            !is_called(&headers[i], ORIBI_SLICE("transfer-encoding")))
            dst[kept++] = headers[i];
    return kept;
}

/* A middleware may have compressed the body that is not sent (Plack::Middleware::Deflater does, although that is
 * empty): Content-Encoding is believed of a file that is called so. */
static uint32_t without_coding(const char *path, struct oribi_header *headers, uint32_t count)
{
    const char *dot = strrchr(path, '.');
    uint32_t kept = 0;
    if (dot && (strcmp(dot, ".gz") == 0 || strcmp(dot, ".br") == 0 || strcmp(dot, ".zst") == 0))
        return count;
    for (uint32_t i = 0; i < count; i++)
        if (!is_called(&headers[i], ORIBI_SLICE("content-encoding")))
            headers[kept++] = headers[i];
    return kept;
}

/* Describes the file by its path, while that is still this answer's. */
static void describe(const struct oribi__sendfile *s, struct named *named)
{
    make_tag(named->path, named->tag);
    named->file = (struct oribi__file){
        .fd = named->fd,
        .len = named->info.size,
        .mtime_s = named->info.mtime_s,
        .delegated = true,
        .type = oribi_types_find(s->types, named->path),
        .tag = oribi_slice(named->tag, sizeof(named->tag)),
    };
}

static int answer(struct oribi__exchange *exchange, int status, struct oribi_header *headers, uint32_t header_count,
                  struct named *named)
{
    struct oribi_worker *w = exchange->worker;
    if (!oribi_status_has_body(status)) /* a middleware has made it a 304 */
        return oribi_reply(&exchange->req, status, headers, header_count, NULL, 0);
    oribi__enter(w);
    refresh(w->sendfile, w->reactor.now_ms);
    open_named(w->sendfile, named);
    int shown = named->header->value_len < SHOWN_MAX ? (int)named->header->value_len : SHOWN_MAX;
    if (named->fault) {
        oribi__log_app(exchange, "%.*s names %.*s: %s; answered with 500", (int)named->header->name_len,
                       named->header->name, shown, named->header->value, named->fault);
    } else {
        header_count = without_coding(named->path, headers, header_count);
        describe(w->sendfile, named);
    }
    oribi__leave(w);
    if (named->fault) {
        oribi_reply_error(&exchange->req, 500);
        return 0;
    }
    int result = oribi__reply_file(exchange, status, headers, header_count, &named->file);
    oribi_os_close(named->fd);
    return result;
}

int oribi_reply_named(struct oribi_req *req, int status, const struct oribi_header *headers, uint32_t header_count)
{
    struct oribi__exchange *exchange = oribi__exchange_of(req);
    const struct oribi__sendfile *s = exchange->worker->sendfile;
    struct named named = {.fd = -1};
    if (!s)
        return 1;
    if (oribi__call_is_abandoned(exchange))
        return ORIBI_ECLOSED;
    for (uint32_t i = 0; i < header_count && !named.way; i++) {
        if (!headers[i].value)
            continue;
        named.header = &headers[i];
        named.way = way_of(&headers[i], s);
    }
    if (!named.way)
        return 1;
    struct oribi_header *others = oribi_mem_try_alloc(header_count, sizeof(*others));
    if (!others) {
        oribi_reply_error(req, 500);
        return 0;
    }
    int result = answer(exchange, status, others, other_headers(s, headers, header_count, others), &named);
    oribi_mem_free(others);
    return result;
}

/* --- what the environment says --- */

bool oribi_sendfile_mapping(const struct oribi_options *options, bool several, char *dst, size_t cap)
{
    size_t used = 0;
    char folder[PATH_MAX];
    if (options->sendfile_map.count == 0 || (!several && options->sendfile_map.count > 1))
        return false;
    for (size_t i = 0; i < options->sendfile_map.count; i++) {
        struct oribi_slice prefix;
        const char *text;
        char ignored[ORIBI_ERROR_TEXT_CAP];
        if (oribi_mount_map_read("sendfile_map", options->sendfile_map.items[i], &prefix, &text, ignored) < 0 ||
            oribi_os_absolute_path(text, folder, sizeof(folder)) < 0 || strpbrk(folder, "=,") ||
            memchr(prefix.p, ',', prefix.n))
            continue;
        for (size_t n = strlen(folder); n > 0 && folder[n - 1] == '/'; n--)
            folder[n - 1] = '\0';
        int n = snprintf(dst + used, cap - used, "%s%s/=%s%.*s/", used ? "," : "", folder,
                         several ? "" : ORIBI_SENDFILE_AS_IS, (int)prefix.n, prefix.p);
        if (n < 0 || (size_t)n >= cap - used)
            return false;
        used += (size_t)n;
    }
    return used > 0;
}
