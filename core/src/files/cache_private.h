/* Private to the cache: cache.c keeps entries, cache_load.c makes them from what is on the disk. */
#ifndef ORIBI_FILES_CACHE_PRIVATE_H
#define ORIBI_FILES_CACHE_PRIVATE_H

#include "oribi/files/cache.h"

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

/* Looks at the disk. What it gives is either taken by oribi__cache_make(), or ended here with oribi__found_close(). */
void oribi__cache_look(struct oribi_cache *cache, struct oribi_root *root, const char *path,
                       struct oribi__found *found);
void oribi__found_close(struct oribi__found *found);

/* Is the entry what was found? Descriptors of the entry that are not ours any more are given up. */
bool oribi__cache_same(struct oribi__entry *entry, const struct oribi__found *found);

/* Gives an entry of what was found, small bodies in memory, and takes its descriptors; NULL when memory is out, with
 * nothing left open. The caller fills what concerns the table. */
struct oribi__entry *oribi__cache_make(struct oribi_cache *cache, const char *path, struct oribi__found *found,
                                       struct oribi_cache_now now);
void oribi__entry_free(struct oribi__entry *entry);

/* Closes the descriptors that are still ours. */
void oribi__entry_close(struct oribi__entry *entry);

/* Hash of a name: FNV-1a from `seed` on. */
uint64_t oribi__cache_hash(uint64_t seed, const char *text);

#endif
