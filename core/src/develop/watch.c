/* Which of an application's files have changed. Reading order: oribi__watch_turn, look; then adding files.
 * At the end a file whose touch is a reload: its path, and its watch. */
#include "oribi/develop/watch.h"

#include "oribi/base/buf.h"
#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"

#include <dirent.h>
#include <fnmatch.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char *copy_of(const char *text)
{
    size_t n = strlen(text) + 1;
    return memcpy(oribi_mem_alloc(n, 1), text, n);
}

/* State of the file that is there now; false, and all 0: there is none. Of folders only which one. */
static bool state_of(const char *path, struct oribi__watched_state *state)
{
    struct stat info;
    *state = (struct oribi__watched_state){0};
    if (stat(path, &info) < 0)
        return false;
    *state = (struct oribi__watched_state){
        .device = (uint64_t)info.st_dev,
        .inode = (uint64_t)info.st_ino,
        .size = S_ISDIR(info.st_mode) ? 0 : (int64_t)info.st_size,
        .mtime_ns = S_ISDIR(info.st_mode) ? 0 : (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec};
    return true;
}

static bool is_same(const struct oribi__watched_state *a, const struct oribi__watched_state *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size && a->mtime_ns == b->mtime_ns;
}

/* --- folders --- */

enum { PATH_CAP = 1024, DEPTH_MAX = 32 };

#define NO_FOLDER UINT32_MAX

static bool is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static bool join(const char *folder, const char *name, char path[PATH_CAP])
{
    int n = snprintf(path, PATH_CAP, "%s/%s", folder, name);
    return n > 0 && n < PATH_CAP;
}

static uint64_t mix(uint64_t h, const void *p, size_t n)
{
    for (const unsigned char *at = p; n > 0; n--, at++)
        h = (h ^ *at) * 0x100000001b3u;
    return h;
}

/* A sum over names and states of what counts in the folder, whatever the order in which the kernel gives the names.
 * `newest` (1024 bytes, or NULL): path of the file in it that was changed last. */
static uint64_t listing_of(const struct oribi__watched_folder *folder, char *newest)
{
    char path[PATH_CAP];
    struct oribi__watched_state state;
    int64_t newest_ns = -1;
    uint64_t sum = 0;
    if (newest)
        (void)snprintf(newest, PATH_CAP, "%s", folder->path); /* cut when longer: for the log */
    DIR *entries = folder->pattern ? opendir(folder->path) : NULL;
    const struct dirent *entry;
    while (entries && (entry = readdir(entries))) {
        if (entry->d_name[0] == '.' || !join(folder->path, entry->d_name, path) || !state_of(path, &state) ||
            (fnmatch(folder->pattern, entry->d_name, FNM_PERIOD) != 0 && !(folder->is_deep && is_folder(path))))
            continue;
        sum += mix(mix(0xcbf29ce484222325u, entry->d_name, strlen(entry->d_name)), &state, sizeof(state));
        if (newest && state.mtime_ns > newest_ns) {
            newest_ns = state.mtime_ns;
            memcpy(newest, path, strlen(path) + 1);
        }
    }
    if (entries)
        (void)closedir(entries);
    return sum;
}

static void poll_from_now_on(struct oribi__watch *watch, const char *why)
{
    watch->polls = true;
    if (watch->told)
        return;
    watch->told = true;
    if (!oribi_os_watches())
        oribi_log(ORIBI_LOG_INFO, "polling files once a second: %s", why);
    else
        oribi_log(ORIBI_LOG_WARN,
                  "files cannot be watched (%s; the limits are fs.inotify.max_user_watches and max_user_instances): "
                  "polling them once a second",
                  why);
}

static void tell_of_maximum(struct oribi__watch *watch, const char *what, size_t max)
{
    if (!watch->full)
        oribi_log(ORIBI_LOG_WARN, "%zu %s are watched; changes of further ones are not seen", max, what);
    watch->full = true;
}

/* A folder that is not there is looked for once a second. */
static void watch_folder(struct oribi__watch *watch, struct oribi__watched_folder *folder)
{
    struct oribi__watched_state state;
    folder->number = 0;
    if (watch->os.fd < 0)
        return;
    int number = oribi_os_watch_add(&watch->os, folder->path);
    if (number > 0)
        folder->number = number;
    else if (state_of(folder->path, &state))
        poll_from_now_on(watch, oribi_os_error_text());
}

static void count_lost(struct oribi__watch *watch)
{
    watch->lost_count = 0;
    for (size_t i = 0; i < watch->folder_count; i++)
        watch->lost_count += watch->folders[i].number == 0;
}

static uint32_t add_folder(struct oribi__watch *watch, const char *path, const char *pattern, bool is_deep)
{
    for (size_t i = 0; i < watch->folder_count; i++)
        if (strcmp(watch->folders[i].path, path) == 0 &&
            (!pattern || (watch->folders[i].pattern && strcmp(watch->folders[i].pattern, pattern) == 0)))
            return (uint32_t)i;
    if (watch->folder_count == ORIBI__WATCH_FOLDERS_MAX) {
        tell_of_maximum(watch, "folders", ORIBI__WATCH_FOLDERS_MAX);
        return NO_FOLDER;
    }
    struct oribi__watched_folder *folder = &watch->folders[watch->folder_count];
    *folder = (struct oribi__watched_folder){
        .path = copy_of(path), .pattern = pattern ? copy_of(pattern) : NULL, .is_deep = is_deep};
    watch_folder(watch, folder);
    folder->listing = listing_of(folder, NULL);
    return (uint32_t)watch->folder_count++;
}

/* --- patterns --- */

static void add_below(struct oribi__watch *watch, const char *path, const char *pattern, int depth)
{
    char below[PATH_CAP];
    DIR *entries = depth < DEPTH_MAX ? opendir(path) : NULL;
    const struct dirent *entry;
    while (entries && (entry = readdir(entries))) {
        if (entry->d_name[0] == '.' || strcmp(entry->d_name, "node_modules") == 0 ||
            (entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN && entry->d_type != DT_LNK) ||
            !join(path, entry->d_name, below) || !is_folder(below))
            continue;
        if (add_folder(watch, below, pattern, true) != NO_FOLDER)
            add_below(watch, below, pattern, depth + 1);
    }
    if (entries)
        (void)closedir(entries);
}

/* Adds the folders below that folder, but hidden ones and node_modules. */
static void add_folders_below(struct oribi__watch *watch, const char *path, const char *pattern)
{
    add_below(watch, path, pattern, 0);
}

static void add_deep(struct oribi__watch *watch, const char *path, const char *pattern)
{
    (void)add_folder(watch, path, pattern, true);
    add_folders_below(watch, path, pattern);
}

/* The last part of a pattern is for names; what stands before it are folders, which are looked up once. */
static void add_names(struct oribi__watch *watch, const char *text)
{
    char folders[PATH_CAP];
    const char *slash = strrchr(text, '/');
    glob_t found;
    size_t n = slash ? (size_t)(slash - text) : 0;
    if (!slash || n == 0 || n >= sizeof(folders)) {
        (void)add_folder(watch, slash ? "/" : ".", slash ? slash + 1 : text, false);
        return;
    }
    memcpy(folders, text, n);
    folders[n] = '\0';
    if (glob(folders, GLOB_NOCHECK, NULL, &found) != 0)
        return; /* out of memory, or a folder that cannot be read */
    for (size_t i = 0; i < found.gl_pathc; i++)
        (void)add_folder(watch, found.gl_pathv[i], slash + 1, false);
    globfree(&found);
}

static void add_pattern(struct oribi__watch *watch, const char *text)
{
    char base[PATH_CAP];
    const char *deep = strstr(text, "**");
    const char *slash = strrchr(text, '/');
    size_t n = deep ? (size_t)(deep - text) : 0;
    if (is_folder(text)) {
        n = strlen(text);
        while (n > 1 && text[n - 1] == '/')
            n--;
        (void)snprintf(base, sizeof(base), "%.*s", (int)n, text); /* an option's text is shorter */
        add_deep(watch, base, "*");
    } else if (deep && n < sizeof(base)) {
        while (n > 1 && text[n - 1] == '/')
            n--;
        (void)snprintf(base, sizeof(base), "%.*s", n ? (int)n : 1, n ? text : "."); /* fits */
        add_deep(watch, base, slash && slash > deep ? slash + 1 : "*");
    } else {
        add_names(watch, text);
    }
}

/* --- files --- */

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct oribi__watched_file *)a)->path, ((const struct oribi__watched_file *)b)->path);
}

/* Of a file that is touched, the folder may come later. */
static uint32_t folder_of(struct oribi__watch *watch, const char *path)
{
    char folder[1024];
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    if (n >= sizeof(folder))
        return NO_FOLDER;
    if (!slash || n == 0)
        return add_folder(watch, slash ? "/" : ".", NULL, false);
    memcpy(folder, path, n);
    folder[n] = '\0';
    struct oribi__watched_state state;
    if (!watch->touches && !state_of(folder, &state))
        return NO_FOLDER; /* such as config/ where there is no configuration: not worth a look a second */
    return add_folder(watch, folder, NULL, false);
}

static bool has_room(struct oribi__watch *watch)
{
    if (watch->count == ORIBI__WATCH_FILES_MAX) {
        tell_of_maximum(watch, "files", ORIBI__WATCH_FILES_MAX);
        return false;
    }
    if (watch->count < watch->capacity)
        return true;
    size_t capacity = watch->capacity ? 2 * watch->capacity : 256;
    struct oribi__watched_file *files = oribi_mem_try_resize(watch->files, capacity, sizeof(*files));
    if (!files)
        return false;
    watch->files = files;
    watch->capacity = capacity;
    return true;
}

/* Behind those that are sorted. */
static void append(struct oribi__watch *watch, const char *path)
{
    uint32_t folder = has_room(watch) ? folder_of(watch, path) : NO_FOLDER;
    if (folder == NO_FOLDER)
        return;
    struct oribi__watched_file *file = &watch->files[watch->count++];
    *file = (struct oribi__watched_file){.path = copy_of(path), .folder = folder};
    (void)state_of(path, &file->state); /* one that is not there yet may come */
}

/* A path may stand twice in one list. */
static void drop_doubles(struct oribi__watch *watch)
{
    size_t kept = 0;
    for (size_t i = 0; i < watch->count; i++) {
        if (kept && strcmp(watch->files[kept - 1].path, watch->files[i].path) == 0)
            oribi_mem_free(watch->files[i].path);
        else
            watch->files[kept++] = watch->files[i];
    }
    watch->count = kept;
}

void oribi__watch_files(struct oribi__watch *watch, const char *list, size_t len)
{
    size_t sorted = watch->count;
    const char *end = list + len;
    for (const char *path = list; watch->on && path < end;) {
        const char *nul = memchr(path, '\0', (size_t)(end - path));
        if (!nul)
            break;
        const struct oribi__watched_file key = {.path = (char *)(uintptr_t)path};
        if (nul > path && !(sorted && bsearch(&key, watch->files, sorted, sizeof(key), by_path)))
            append(watch, path);
        path = nul + 1;
    }
    if (watch->count == sorted)
        return;
    qsort(watch->files, watch->count, sizeof(*watch->files), by_path);
    drop_doubles(watch);
    count_lost(watch);
    oribi_log(ORIBI_LOG_DEBUG, "watching %zu files in %zu folders", watch->count, watch->folder_count);
}

/* Each file as its state and its path. */
void oribi__watch_export(const struct oribi__watch *watch, struct oribi_buf *out)
{
    for (size_t i = 0; i < watch->count; i++) {
        oribi_buf_append(out, &watch->files[i].state, sizeof(watch->files[i].state));
        oribi_buf_append(out, watch->files[i].path, strlen(watch->files[i].path) + 1);
    }
}

/* Gives what follows, and the state and path of the first one; NULL: there is none. */
static const char *next_exported(const char *at, const char *end, struct oribi__watched_state *state, const char **path)
{
    if ((size_t)(end - at) <= sizeof(*state))
        return NULL;
    memcpy(state, at, sizeof(*state));
    *path = at + sizeof(*state);
    const char *nul = memchr(*path, '\0', (size_t)(end - *path));
    return nul ? nul + 1 : NULL;
}

void oribi__watch_import(struct oribi__watch *watch, const char *bytes, size_t len)
{
    struct oribi__watched_state state;
    struct oribi_buf paths = {0};
    const char *end = bytes + len;
    const char *path;
    for (const char *at = bytes, *next; (next = next_exported(at, end, &state, &path)) != NULL; at = next)
        oribi_buf_append(&paths, path, strlen(path) + 1);
    oribi__watch_files(watch, paths.p, paths.len);
    oribi_buf_deinit(&paths);
    for (const char *at = bytes, *next; (next = next_exported(at, end, &state, &path)) != NULL; at = next) {
        const struct oribi__watched_file key = {.path = (char *)(uintptr_t)path};
        struct oribi__watched_file *file =
            watch->count ? bsearch(&key, watch->files, watch->count, sizeof(key), by_path) : NULL;
        if (!file)
            continue;
        file->state = state;
        watch->folders[file->folder].dirty = true;
        watch->due_ms = 1; /* long ago */
    }
}

/* --- changes --- */

static void change(struct oribi__watch *watch, const char *path)
{
    if (watch->changed_count++ == 0)
        (void)snprintf(watch->changed, sizeof(watch->changed), "%s", path); /* cut when longer: for the log */
}

static bool is_touched(const struct oribi__watched_state *now, const struct oribi__watched_state *before)
{
    return now->mtime_ns != 0 && now->mtime_ns != before->mtime_ns;
}

static void look_at_files(struct oribi__watch *watch)
{
    struct oribi__watched_state state;
    for (size_t i = 0; i < watch->count; i++) {
        struct oribi__watched_file *file = &watch->files[i];
        if (!watch->folders[file->folder].dirty)
            continue;
        (void)state_of(file->path, &state);
        if (is_same(&state, &file->state) || (watch->touches && !is_touched(&state, &file->state)))
            continue;
        file->state = state;
        change(watch, file->path);
    }
}

/* Folders that come with it are behind the end, and looked at already. */
static void look_at_listings(struct oribi__watch *watch)
{
    char newest[1024];
    for (size_t i = 0, end = watch->folder_count; i < end; i++) {
        struct oribi__watched_folder *folder = &watch->folders[i];
        if (!folder->dirty || !folder->pattern)
            continue;
        uint64_t listing = listing_of(folder, newest);
        if (listing == folder->listing)
            continue;
        folder->listing = listing;
        change(watch, newest);
        if (folder->is_deep)
            add_folders_below(watch, folder->path, folder->pattern);
    }
}

static const char *look(struct oribi__watch *watch)
{
    watch->changed_count = 0;
    watch->first_ms = watch->due_ms = 0;
    look_at_files(watch);
    look_at_listings(watch);
    for (size_t i = 0; i < watch->folder_count; i++)
        watch->folders[i].dirty = false;
    return watch->changed_count ? watch->changed : NULL;
}

static void report(void *self, int number, int gone)
{
    struct oribi__watch *watch = self;
    for (size_t i = 0; i < watch->folder_count; i++) {
        struct oribi__watched_folder *folder = &watch->folders[i];
        if (number != ORIBI_OS_WATCH_ALL && folder->number != number)
            continue;
        folder->dirty = true;
        watch->due_ms = -1; /* the turn knows the time */
        if (!gone || number == ORIBI_OS_WATCH_ALL)
            continue;
        folder->number = 0;
        watch->lost_count++;
    }
}

static void take_reports(struct oribi__watch *watch, int64_t now_ms)
{
    int64_t due_ms = watch->due_ms;
    oribi_os_watch_read(&watch->os, report, watch);
    if (watch->due_ms >= 0) {
        watch->due_ms = due_ms;
        return;
    }
    if (!watch->first_ms)
        watch->first_ms = now_ms;
    int64_t latest = watch->first_ms + ORIBI__WATCH_PAUSE_MS_MAX;
    watch->due_ms = now_ms + ORIBI__WATCH_PAUSE_MS < latest ? now_ms + ORIBI__WATCH_PAUSE_MS : latest;
}

/* Folders that are back, and with polling everything. */
static bool poll_turn(struct oribi__watch *watch, int64_t now_ms)
{
    if ((!watch->polls && !watch->lost_count) || now_ms < watch->poll_ms)
        return false;
    if (watch->touches && watch->due_ms)
        return false; /* touches in a row are one */
    watch->poll_ms = now_ms + ORIBI__WATCH_POLL_MS;
    bool any = watch->polls;
    for (size_t i = 0; i < watch->folder_count; i++) {
        struct oribi__watched_folder *folder = &watch->folders[i];
        bool was_lost = folder->number == 0;
        if (was_lost)
            watch_folder(watch, folder);
        bool is_back = was_lost && folder->number > 0;
        folder->dirty |= is_back || watch->polls;
        any |= is_back;
    }
    count_lost(watch);
    return any;
}

int oribi__watch_fd(const struct oribi__watch *watch)
{
    return watch->on && !watch->due_ms ? watch->os.fd : -1; /* a storm of reports wakes the process once a pause */
}

int64_t oribi__watch_deadline(const struct oribi__watch *watch)
{
    int64_t at = watch->due_ms ? watch->due_ms : INT64_MAX;
    bool polls = watch->on && (watch->polls || watch->lost_count);
    return polls && watch->poll_ms < at && !(watch->touches && watch->due_ms) ? watch->poll_ms : at;
}

const char *oribi__watch_turn(struct oribi__watch *watch, int64_t now_ms)
{
    if (!watch->on)
        return NULL;
    take_reports(watch, now_ms);
    bool is_due = watch->due_ms && now_ms >= watch->due_ms;
    if (!poll_turn(watch, now_ms) && !is_due)
        return NULL;
    return look(watch);
}

/* --- beginning and end --- */

static void begin(struct oribi__watch *watch, size_t folders_max)
{
    watch->on = true;
    watch->folders = oribi_mem_alloc(folders_max, sizeof(*watch->folders));
    if (oribi_os_watch_open(&watch->os) < 0)
        poll_from_now_on(watch, oribi_os_error_text());
}

void oribi__watch_begin_touch(struct oribi__watch *watch, const char *path)
{
    begin(watch, 1);
    watch->touches = watch->polls = true;
    oribi__watch_files(watch, path, strlen(path) + 1);
}

void oribi__watch_begin(struct oribi__watch *watch, const struct oribi_text_list *patterns)
{
    begin(watch, ORIBI__WATCH_FOLDERS_MAX);
    for (size_t i = 0; i < patterns->count; i++)
        add_pattern(watch, patterns->items[i]);
    count_lost(watch);
}

void oribi__watch_end(struct oribi__watch *watch)
{
    if (!watch->on)
        return;
    oribi_os_watch_close(&watch->os);
    for (size_t i = 0; i < watch->count; i++)
        oribi_mem_free(watch->files[i].path);
    for (size_t i = 0; i < watch->folder_count; i++) {
        oribi_mem_free(watch->folders[i].path);
        oribi_mem_free(watch->folders[i].pattern);
    }
    oribi_mem_free(watch->files);
    oribi_mem_free(watch->folders);
    *watch = (struct oribi__watch){.os = {-1}};
}

/* --- restart_file --- */

void oribi__restart_path(const struct oribi_options *options, char path[ORIBI__RESTART_PATH_CAP])
{
    const char *file = options->restart_file;
    const char *below = options->chdir && options->start_dir ? options->chdir : "";
    path[0] = '\0';
    if (!file || !*file)
        return;
    char *here = below[0] || file[0] == '/' ? NULL : oribi_process_dir();
    const char *start = here ? here : options->start_dir;
    int n = file[0] == '/'    ? snprintf(path, ORIBI__RESTART_PATH_CAP, "%s", file)
            : below[0] == '/' ? snprintf(path, ORIBI__RESTART_PATH_CAP, "%s/%s", below, file)
            : below[0]        ? snprintf(path, ORIBI__RESTART_PATH_CAP, "%s/%s/%s", start, below, file)
                              : snprintf(path, ORIBI__RESTART_PATH_CAP, "%s/%s", start, file);
    oribi_mem_free(here);
    if (n >= 0 && n < ORIBI__RESTART_PATH_CAP)
        return;
    path[0] = '\0';
    oribi_log(ORIBI_LOG_WARN, "restart_file: the absolute path is longer than %d bytes; it is not watched",
              ORIBI__RESTART_PATH_CAP - 1);
}

void oribi__restart_watch(struct oribi__restart_file *restart, const char *path)
{
    if (strcmp(restart->path, path) == 0)
        return;
    oribi__restart_end(restart);
    (void)snprintf(restart->path, sizeof(restart->path), "%s", path); /* fits */
    if (restart->path[0])
        oribi__watch_begin_touch(&restart->watch, restart->path);
}

void oribi__restart_end(struct oribi__restart_file *restart)
{
    oribi__watch_end(&restart->watch);
    restart->path[0] = '\0';
}
