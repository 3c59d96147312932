/* The cache of open files: a hash table, and two lists in the order of their last use.
 *
 *     places ─► entry ─► entry          files:   newest ◄─► … ◄─► oldest   what goes first
 *            ─► entry                   missing: newest ◄─► … ◄─► oldest
 *
 * An entry that goes while it is used leaves the table and its list at once, and is freed by its last user. */
#include "files/cache_private.h"

#include "oribi/base/mem.h"
#include "oribi/files/path.h"

#include <assert.h>
#include <string.h>

enum {
    PLACES_MIN = 256,
    PLACES_MAX = 64 * 1024,
    BYTES_OF_PLACE = 4096, /* of memory_max for each place in the table */
    MISSING_SHARE = 8,     /* this part of memory_max is theirs at most */
};

/* --- table and lists --- */

static uint64_t hash_of(const struct oribi_root *root, const char *path)
{
    return oribi__cache_hash((uint64_t)(uintptr_t)root, path);
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
        oribi__entry_free(entry);
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
    struct oribi__entry *entry = oribi__cache_make(cache, path, found, now);
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
    oribi__cache_look(cache, root, path, &found);
    if (found.verdict == ORIBI_FILE_LIMIT && !entry && give_up_half(cache))
        oribi__cache_look(cache, root, path, &found);
    if (is_passing(found.verdict)) {
        bool stays = entry && entry->verdict == ORIBI_FILE_OK && found.verdict == ORIBI_FILE_LIMIT;
        return stays ? give(cache, entry, file) : found.verdict;
    }
    if (!entry || !oribi__cache_same(entry, &found))
        return replace(cache, root, path, now, entry, &found, file);
    oribi__found_close(&found);
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
        oribi__entry_close(entry);
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
