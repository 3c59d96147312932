/* The cache of open files: a hash table, and two lists in the order of their last use.
 *
 *     places ─► entry ─► entry          files:   newest ◄─► … ◄─► oldest   what goes first
 *            ─► entry                   missing: newest ◄─► … ◄─► oldest
 *
 * An entry that goes while it is used leaves the table and its list at once, and is freed by its last user. */
#include "oribi/files/cache.h"
#include "oribi/base/log.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/files/root.h"
#include "files/os_beneath.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

struct oribi__entry {
    struct oribi_file file; /* first: what the caller has */
    enum oribi_file_verdict verdict;
    bool listed;   /* in the table and its list; else it lives as long as it is used */
    uint32_t refs; /* of callers */
    uint32_t open_count;
    uint64_t bytes;
    int64_t checked_ms;
    const struct oribi_root *root;
    uint32_t generation; /* of the root */
    uint64_t hash;
    struct oribi__entry *next; /* with the same place in the table */
    struct oribi__entry *newer;
    struct oribi__entry *older;
    uint32_t path_n;
    char path[]; /* NUL-terminated */
};

/* Entries in the order of their last use. */
struct oribi__entries {
    struct oribi__entry *newest;
    struct oribi__entry *oldest;
    uint32_t count;
    uint32_t open_count;
    uint64_t bytes;
};

struct oribi_cache {
    struct oribi_cache_limits limits;
    const struct oribi_types *types;
    struct oribi__entries files;
    struct oribi__entries missing;
    uint64_t looks;
    uint32_t stale_told_count;
    uint64_t stale_told[ORIBI_CACHE_STALE_TOLD_MAX]; /* hashes of names */
    uint32_t place_count;                            /* a power of two */
    struct oribi__entry **places;
};

/* The files on the disk under a path at this moment, opened. */
struct oribi__found {
    enum oribi_file_verdict verdict;
    struct {
        bool is_there;
        int fd;
        struct oribi_file_info info;
    } contents[ORIBI_CODING_COUNT];
};

/* ---- cache_load ---- */

/* Entries made from the disk: the file, its precompressed files, small bodies. */

enum {
    READ_ATTEMPTS_MAX = 3,        /* at a small file that is written to while it is read */
    HASH_PIECE_BYTES = 64 * 1024, /* of a file that is hashed from its descriptor; a multiple of a word */
};

const char *oribi_coding_suffix(enum oribi_coding coding)
{
    static const char *const suffixes[] = {
        [ORIBI_CODING_NONE] = "",  [ORIBI_CODING_IDENTITY] = "", [ORIBI_CODING_GZIP] = ".gz",
        [ORIBI_CODING_BR] = ".br", [ORIBI_CODING_ZSTD] = ".zst",
    };
    return suffixes[coding];
}

/* Hash of a name: FNV-1a from `seed` on. */
static uint64_t cache_hash(uint64_t seed, const char *text)
{
    uint64_t hash = 14695981039346656037u ^ seed;
    for (; *text; text++)
        hash = (hash ^ (uint8_t)*text) * 1099511628211u;
    return hash;
}

/* --- looking --- */

/* Each stale precompressed file is named once; when there are too many to remember, that is said once. */
static void tell_stale(struct oribi_cache *cache, const char *precompressed, int64_t older_s)
{
    uint64_t hash = cache_hash(0, precompressed);
    for (uint32_t i = 0; i < cache->stale_told_count; i++)
        if (cache->stale_told[i] == hash)
            return;
    if (cache->stale_told_count == ORIBI_CACHE_STALE_TOLD_MAX)
        return;
    cache->stale_told[cache->stale_told_count++] = hash;
    oribi_log(ORIBI_LOG_WARN, "%s is %lld s older than the file that it was compressed from; it is not sent%s",
              precompressed, (long long)older_s,
              cache->stale_told_count == ORIBI_CACHE_STALE_TOLD_MAX ? ", and no more of these are named" : "");
}

static void look_for_precompressed(struct oribi_cache *cache, struct oribi_root *root, const char *path,
                                   enum oribi_coding coding, struct oribi__found *found)
{
    char precompressed[ORIBI_PATH_BYTES_MAX + 1];
    int64_t file_s = found->contents[ORIBI_CODING_IDENTITY].info.mtime_s;
    int n = snprintf(precompressed, sizeof(precompressed), "%s%s", path, oribi_coding_suffix(coding));
    if (n < 0 || (size_t)n >= sizeof(precompressed)) /* no file can have that name */
        return;
    int fd;
    struct oribi_file_info info;
    if (oribi_root_open(root, precompressed, &fd, &info) != ORIBI_FILE_OK)
        return;
    if (info.mtime_s < file_s) {
        oribi_os_close(fd);
        tell_stale(cache, precompressed, file_s - info.mtime_s);
        return;
    }
    found->contents[coding].is_there = true;
    found->contents[coding].fd = fd;
    found->contents[coding].info = info;
}

/* Looks at the disk. What it gives is either taken by cache_make(), or ended here with found_close(). */
static void cache_look(struct oribi_cache *cache, struct oribi_root *root, const char *path, struct oribi__found *found)
{
    static const enum oribi_coding precompressed[] = {ORIBI_CODING_ZSTD, ORIBI_CODING_BR, ORIBI_CODING_GZIP};
    memset(found, 0, sizeof(*found));
    for (int i = 0; i < ORIBI_CODING_COUNT; i++)
        found->contents[i].fd = -1;
    cache->looks++;
    found->verdict = oribi_root_open(root, path, &found->contents[ORIBI_CODING_IDENTITY].fd,
                                     &found->contents[ORIBI_CODING_IDENTITY].info);
    if (found->verdict != ORIBI_FILE_OK)
        return;
    found->contents[ORIBI_CODING_IDENTITY].is_there = true;
    for (size_t i = 0; i < sizeof(precompressed) / sizeof(precompressed[0]); i++)
        look_for_precompressed(cache, root, path, precompressed[i], found);
}

static void found_close(struct oribi__found *found)
{
    for (int i = 0; i < ORIBI_CODING_COUNT; i++) {
        oribi_os_close(found->contents[i].fd);
        found->contents[i].fd = -1;
    }
}

/* --- comparing --- */

/* An application may close what is ours and open something else under its number: that is not ours to close. */
static bool is_ours(struct oribi_file_content *content)
{
    struct oribi_file_info now;
    if (content->fd < 0)
        return true;
    if (oribi_file_look(content->fd, &now) && now.inode == content->info.inode && now.device == content->info.device)
        return true;
    content->fd = -1;
    return false;
}

/* Is the entry what was found? Descriptors of the entry that are not ours any more are given up. */
static bool cache_same(struct oribi__entry *entry, const struct oribi__found *found)
{
    bool same = entry->verdict == found->verdict && !entry->file.young;
    for (int i = 0; i < ORIBI_CODING_COUNT && entry->verdict == ORIBI_FILE_OK; i++) {
        struct oribi_file_content *content = &entry->file.contents[i];
        same = is_ours(content) && same;
        if (content->is_there != found->contents[i].is_there)
            same = false;
        else if (content->is_there && !oribi_file_info_equal(&content->info, &found->contents[i].info))
            same = false;
    }
    return same;
}

bool oribi_file_unchanged(const struct oribi_file_content *content)
{
    struct oribi_file_info now;
    return content->body || (oribi_file_look(content->fd, &now) && oribi_file_info_equal(&now, &content->info));
}

/* --- reading --- */

/* The whole of n bytes from `from` on, no more and no less. */
static bool read_range(int fd, char *dst, size_t n, int64_t from)
{
    for (size_t at = 0; at < n;) {
        ssize_t got = oribi__beneath_read(fd, dst + at, n - at, from + (int64_t)at);
        if (got <= 0)
            return false;
        at += (size_t)got;
    }
    return true;
}

/* --- hashing --- */

/* Eight bytes, the first one lowest on every machine; fewer at the end. */
static uint64_t word_of(const char *p, size_t n)
{
    uint64_t word = 0;
    for (size_t i = 0; i < n; i++)
        word |= (uint64_t)(uint8_t)p[i] << (8 * i);
    return word;
}

/* Odd factors and shifts: every step can be undone, so that one different word is enough for a different hash. */
static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

static uint64_t hash_bytes(uint64_t hash, const char *p, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        hash = mix(hash, word_of(p + i, 8));
    return i < n ? mix(hash, word_of(p + i, n - i)) : hash;
}

/* Pieces are whole words, but for the last. */
static bool hash_file(const struct oribi_file_content *content, uint64_t *hash)
{
    char *piece = oribi_mem_try_alloc(1, HASH_PIECE_BYTES);
    int64_t at = 0;
    bool read = piece != NULL;
    while (read && at < content->info.size) {
        int64_t left = content->info.size - at;
        size_t n = left < HASH_PIECE_BYTES ? (size_t)left : HASH_PIECE_BYTES;
        read = read_range(content->fd, piece, n, at);
        if (read)
            *hash = hash_bytes(*hash, piece, n);
        at += (int64_t)n;
    }
    oribi_mem_free(piece);
    return read && oribi_file_unchanged(content);
}

bool oribi_file_hash(const struct oribi_file_content *content, uint64_t *hash)
{
    struct oribi_file_content *own = (struct oribi_file_content *)(uintptr_t)content;
    uint64_t sum = (uint64_t)content->info.size;
    assert(content->info.size <= ORIBI_CACHE_HASHED_BYTES_MAX);
    if (content->hash == 0) {
        if (content->body)
            sum = hash_bytes(sum, content->body, (size_t)content->info.size);
        else if (!hash_file(content, &sum))
            return false;
        sum = mix(mix(sum, 0), 0);
        own->hash = sum ? sum : 1;
    }
    *hash = content->hash;
    return true;
}

/* --- making --- */

/* Reads a small file into memory and closes it. Should it change meanwhile, the newer state counts; what does not stand
 * still or does not fit is left to its descriptor. */
static void keep_body(struct oribi_file_content *content, uint64_t bytes_max)
{
    for (int attempt = 0; attempt < READ_ATTEMPTS_MAX; attempt++) {
        struct oribi_file_info after;
        if (content->info.size > ORIBI_CACHE_BODY_BYTES_MAX || (uint64_t)content->info.size > bytes_max)
            return;
        size_t n = (size_t)content->info.size;
        char *body = oribi_mem_try_alloc(1, n ? n : 1);
        if (!body)
            return;
        bool whole = read_range(content->fd, body, n, 0);
        bool known = oribi_file_look(content->fd, &after);
        if (whole && known && oribi_file_info_equal(&content->info, &after)) {
            oribi_os_close(content->fd);
            content->fd = -1;
            content->body = body;
            return;
        }
        oribi_mem_free(body);
        if (!known)
            return;
        content->info = after;
    }
}

/* The later of the two times that a change shows in. */
static bool is_young(const struct oribi_file_info *info, int64_t wall_s)
{
    int64_t changed_s = info->mtime_s > info->ctime_s ? info->mtime_s : info->ctime_s;
    return wall_s - changed_s < ORIBI_CACHE_YOUNG_S;
}

static void take_contents(struct oribi_cache *cache, struct oribi__entry *entry, struct oribi__found *found,
                          int64_t wall_s)
{
    for (int i = 0; i < ORIBI_CODING_COUNT; i++) {
        struct oribi_file_content *content = &entry->file.contents[i];
        content->fd = -1;
        if (!found->contents[i].is_there)
            continue;
        *content =
            (struct oribi_file_content){.is_there = true, .fd = found->contents[i].fd, .info = found->contents[i].info};
        found->contents[i].fd = -1;
        if (entry->bytes < cache->limits.memory_max)
            keep_body(content, cache->limits.memory_max - entry->bytes);
        entry->open_count += content->fd >= 0;
        entry->bytes += content->body ? (uint64_t)content->info.size : 0;
        entry->file.young = entry->file.young || is_young(&content->info, wall_s);
    }
}

/* Gives an entry of what was found, small bodies in memory, and takes its descriptors; NULL when memory is out, with
 * nothing left open. The caller fills what concerns the table. */
static struct oribi__entry *cache_make(struct oribi_cache *cache, const char *path, struct oribi__found *found,
                                       struct oribi_cache_now now)
{
    size_t path_n = strlen(path);
    struct oribi__entry *entry = oribi_mem_try_alloc(1, sizeof(*entry) + path_n + 1);
    if (!entry) {
        found_close(found);
        return NULL;
    }
    memcpy(entry->path, path, path_n + 1);
    entry->path_n = (uint32_t)path_n;
    entry->bytes = sizeof(*entry) + path_n + 1;
    entry->verdict = found->verdict;
    entry->checked_ms = now.ms;
    take_contents(cache, entry, found, now.wall_s);
    if (entry->verdict == ORIBI_FILE_OK)
        entry->file.type = oribi_types_find(cache->types, path);
    return entry;
}

/* Closes the descriptors that are still ours. */
static void entry_close(struct oribi__entry *entry)
{
    for (int i = 0; i < ORIBI_CODING_COUNT; i++) {
        struct oribi_file_content *content = &entry->file.contents[i];
        (void)is_ours(content); /* else its descriptor is given up */
        oribi_os_close(content->fd);
        content->fd = -1;
    }
}

static void entry_free(struct oribi__entry *entry)
{
    entry_close(entry);
    for (int i = 0; i < ORIBI_CODING_COUNT; i++)
        oribi_mem_free((char *)entry->file.contents[i].body);
    oribi_mem_free(entry);
}

/* ---- cache ---- */

enum {
    PLACES_MIN = 256,
    PLACES_MAX = 64 * 1024,
    BYTES_OF_PLACE = 4096, /* of memory_max for each place in the table */
    MISSING_SHARE = 8,     /* this part of memory_max is theirs at most */
};

/* --- table and lists --- */

static uint64_t hash_of(const struct oribi_root *root, const char *path)
{
    return cache_hash((uint64_t)(uintptr_t)root, path);
}

static struct oribi__entry **place_of(const struct oribi_cache *cache, uint64_t hash)
{
    return &cache->places[(hash ^ hash >> 32) & (cache->place_count - 1)];
}

static struct oribi__entry *find(const struct oribi_cache *cache, const struct oribi_root *root, const char *path,
                                 uint64_t hash)
{
    struct oribi__entry *entry = *place_of(cache, hash);
    while (entry && (entry->hash != hash || entry->root != root || strcmp(entry->path, path) != 0))
        entry = entry->next;
    return entry;
}

static struct oribi__entries *list_of(struct oribi_cache *cache, const struct oribi__entry *entry)
{
    return entry->verdict == ORIBI_FILE_OK ? &cache->files : &cache->missing;
}

static void list_add(struct oribi__entries *list, struct oribi__entry *entry)
{
    entry->newer = NULL;
    entry->older = list->newest;
    *(list->newest ? &list->newest->newer : &list->oldest) = entry;
    list->newest = entry;
}

static void list_remove(struct oribi__entries *list, struct oribi__entry *entry)
{
    *(entry->newer ? &entry->newer->older : &list->newest) = entry->older;
    *(entry->older ? &entry->older->newer : &list->oldest) = entry->newer;
}

static void free_unused(struct oribi__entry *entry)
{
    if (!entry->listed && entry->refs == 0)
        entry_free(entry);
}

static void drop(struct oribi_cache *cache, struct oribi__entry *entry)
{
    struct oribi__entries *list = list_of(cache, entry);
    struct oribi__entry **at = place_of(cache, entry->hash);
    while (*at != entry)
        at = &(*at)->next;
    *at = entry->next;
    list_remove(list, entry);
    list->count--;
    list->open_count -= entry->open_count;
    list->bytes -= entry->bytes;
    entry->listed = false;
    free_unused(entry);
}

/* --- room --- */

static bool has_room(const struct oribi_cache *cache, const struct oribi__entry *entry)
{
    return cache->files.open_count + entry->open_count <= cache->limits.open_max &&
           cache->files.bytes + cache->missing.bytes + entry->bytes <= cache->limits.memory_max;
}

static bool has_room_missing(const struct oribi_cache *cache, const struct oribi__entry *entry)
{
    return cache->missing.count < cache->limits.missing_max &&
           cache->missing.bytes + entry->bytes <= cache->limits.memory_max / MISSING_SHARE;
}

/* False when the entry is too large for the cache even alone; then nothing has gone for it. */
static bool make_room(struct oribi_cache *cache, const struct oribi__entry *entry)
{
    const struct oribi_cache_limits *limits = &cache->limits;
    if (entry->verdict != ORIBI_FILE_OK) {
        if (limits->missing_max == 0 || entry->bytes > limits->memory_max / MISSING_SHARE)
            return false;
        while (!has_room_missing(cache, entry))
            drop(cache, cache->missing.oldest);
    } else if (entry->open_count > limits->open_max || entry->bytes > limits->memory_max) {
        return false;
    }
    while (!has_room(cache, entry))
        drop(cache, cache->files.oldest ? cache->files.oldest : cache->missing.oldest);
    return true;
}

static void list_entry(struct oribi_cache *cache, struct oribi__entry *entry)
{
    if (!make_room(cache, entry))
        return;
    struct oribi__entries *list = list_of(cache, entry);
    struct oribi__entry **place = place_of(cache, entry->hash);
    entry->next = *place;
    *place = entry;
    list_add(list, entry);
    list->count++;
    list->open_count += entry->open_count;
    list->bytes += entry->bytes;
    entry->listed = true;
}

/* The process has no descriptor left: half of ours go, those not used for longest first. True when any went. */
static bool give_up_half(struct oribi_cache *cache)
{
    uint32_t before = cache->files.open_count;
    while (cache->files.oldest && cache->files.open_count > before / 2)
        drop(cache, cache->files.oldest);
    return before > 0;
}

/* --- getting --- */

static bool is_checked(const struct oribi__entry *entry, const struct oribi_root *root, int64_t now_ms)
{
    return entry->generation == oribi_root_generation(root) && now_ms >= entry->checked_ms &&
           now_ms - entry->checked_ms < ORIBI_CACHE_CHECK_MS;
}

static enum oribi_file_verdict give(struct oribi_cache *cache, struct oribi__entry *entry,
                                    const struct oribi_file **file)
{
    enum oribi_file_verdict verdict = entry->verdict;
    if (entry->listed) {
        list_remove(list_of(cache, entry), entry);
        list_add(list_of(cache, entry), entry);
    }
    if (verdict == ORIBI_FILE_OK) {
        entry->refs++;
        *file = &entry->file;
    }
    free_unused(entry);
    return verdict;
}

/* Verdicts that another try may change say nothing about the file. */
static bool is_passing(enum oribi_file_verdict verdict)
{
    return verdict == ORIBI_FILE_LIMIT || verdict == ORIBI_FILE_CHANGING || verdict == ORIBI_FILE_FAILED;
}

/* Makes the file found on the disk the entry of this path; `old`, which may be NULL, goes. */
static enum oribi_file_verdict replace(struct oribi_cache *cache, struct oribi_root *root, const char *path,
                                       struct oribi_cache_now now, struct oribi__entry *old, struct oribi__found *found,
                                       const struct oribi_file **file)
{
    uint64_t hash = hash_of(root, path);
    if (old)
        drop(cache, old);
    struct oribi__entry *entry = cache_make(cache, path, found, now);
    if (!entry)
        return ORIBI_FILE_LIMIT;
    entry->root = root;
    entry->generation = oribi_root_generation(root);
    entry->hash = hash;
    list_entry(cache, entry);
    return give(cache, entry, file);
}

enum oribi_file_verdict oribi_cache_get(struct oribi_cache *cache, struct oribi_root *root, const char *path,
                                        struct oribi_cache_now now, const struct oribi_file **file)
{
    struct oribi__found found;
    if (strnlen(path, ORIBI_PATH_BYTES_MAX + 1) > ORIBI_PATH_BYTES_MAX)
        return ORIBI_FILE_MISSING;
    struct oribi__entry *entry = find(cache, root, path, hash_of(root, path));
    if (entry && is_checked(entry, root, now.ms))
        return give(cache, entry, file);
    cache_look(cache, root, path, &found);
    if (found.verdict == ORIBI_FILE_LIMIT && !entry && give_up_half(cache))
        cache_look(cache, root, path, &found);
    if (is_passing(found.verdict)) {
        bool stays = entry && entry->verdict == ORIBI_FILE_OK && found.verdict == ORIBI_FILE_LIMIT;
        return stays ? give(cache, entry, file) : found.verdict;
    }
    if (!entry || !cache_same(entry, &found))
        return replace(cache, root, path, now, entry, &found, file);
    found_close(&found);
    entry->checked_ms = now.ms;
    entry->generation = oribi_root_generation(root);
    return give(cache, entry, file);
}

void oribi_cache_release(const struct oribi_file *file)
{
    struct oribi__entry *entry = (struct oribi__entry *)file;
    assert(entry->refs > 0);
    entry->refs--;
    free_unused(entry);
}

void oribi_cache_retain(const struct oribi_file *file)
{
    ((struct oribi__entry *)file)->refs++;
}

static void retain_owner(void *owner)
{
    oribi_cache_retain(owner);
}

static void release_owner(void *owner)
{
    oribi_cache_release(owner);
}

void oribi_file_source(const struct oribi_file *file, const struct oribi_file_content *content,
                       struct oribi_source *source)
{
    const struct oribi_file_info *info = &content->info;
    *source = (struct oribi_source){
        .fd = content->fd,
        .looked = true,
        .state = {{info->device, info->inode}, info->size, info->mtime_s, info->mtime_ns},
        .owner = (void *)file,
        .retain = retain_owner,
        .release = release_owner,
    };
}

void oribi_cache_doubt(const struct oribi_file *file)
{
    ((struct oribi__entry *)file)->checked_ms = INT64_MAX; /* ahead of every clock */
}

/* --- a cache's life --- */

struct oribi_cache *oribi_cache_create(const struct oribi_cache_limits *limits, const struct oribi_types *types)
{
    struct oribi_cache *cache = oribi_mem_alloc(1, sizeof(*cache));
    cache->limits = *limits;
    cache->types = types;
    cache->place_count = PLACES_MIN;
    while (cache->place_count < PLACES_MAX && cache->place_count < limits->memory_max / BYTES_OF_PLACE)
        cache->place_count *= 2;
    cache->places = oribi_mem_alloc(cache->place_count, sizeof(struct oribi__entry *));
    return cache;
}

static void forget_list(struct oribi_cache *cache, struct oribi__entries *list, const struct oribi_root *root)
{
    for (struct oribi__entry *entry = list->oldest; entry;) {
        struct oribi__entry *newer = entry->newer;
        if (!root || entry->root == root)
            drop(cache, entry);
        entry = newer;
    }
}

void oribi_cache_forget(struct oribi_cache *cache, const struct oribi_root *root)
{
    forget_list(cache, &cache->files, root);
    forget_list(cache, &cache->missing, root);
}

void oribi_cache_destroy(struct oribi_cache *cache)
{
    if (!cache)
        return;
    oribi_cache_forget(cache, NULL);
    oribi_mem_free(cache->places);
    oribi_mem_free(cache);
}

void oribi_cache_abandon(struct oribi_cache *cache)
{
    for (struct oribi__entry *entry = cache->files.oldest; entry; entry = entry->newer)
        entry_close(entry);
}

void oribi_cache_count(const struct oribi_cache *cache, struct oribi_cache_counts *counts)
{
    *counts = (struct oribi_cache_counts){
        .files = cache->files.count,
        .missing = cache->missing.count,
        .open = cache->files.open_count,
        .memory_bytes = cache->files.bytes + cache->missing.bytes,
        .looks = cache->looks,
    };
}
