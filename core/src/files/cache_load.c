/* Entries of the cache made from the disk: the file, its precompressed files, small bodies; see cache_private.h. */
#include "files/cache_private.h"

#include "oribi/base/log.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/files/path.h"
#include "files/os_beneath.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

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

uint64_t oribi__cache_hash(uint64_t seed, const char *text)
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
    uint64_t hash = oribi__cache_hash(0, precompressed);
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

void oribi__cache_look(struct oribi_cache *cache, struct oribi_root *root, const char *path, struct oribi__found *found)
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

void oribi__found_close(struct oribi__found *found)
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

bool oribi__cache_same(struct oribi__entry *entry, const struct oribi__found *found)
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

struct oribi__entry *oribi__cache_make(struct oribi_cache *cache, const char *path, struct oribi__found *found,
                                       struct oribi_cache_now now)
{
    size_t path_n = strlen(path);
    struct oribi__entry *entry = oribi_mem_try_alloc(1, sizeof(*entry) + path_n + 1);
    if (!entry) {
        oribi__found_close(found);
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

void oribi__entry_close(struct oribi__entry *entry)
{
    for (int i = 0; i < ORIBI_CODING_COUNT; i++) {
        struct oribi_file_content *content = &entry->file.contents[i];
        (void)is_ours(content); /* else its descriptor is given up */
        oribi_os_close(content->fd);
        content->fd = -1;
    }
}

void oribi__entry_free(struct oribi__entry *entry)
{
    oribi__entry_close(entry);
    for (int i = 0; i < ORIBI_CODING_COUNT; i++)
        oribi_mem_free((char *)entry->file.contents[i].body);
    oribi_mem_free(entry);
}
