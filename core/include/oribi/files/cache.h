/* Open files of a worker: descriptors, what they stand for, small bodies in memory, precompressed files, and names
 * under which there is nothing.
 *
 * An entry is one state of a file, with the precompressed files that were beside it then, and never changes: what
 * changes on the disk becomes a new entry, and answers that are being sent keep theirs. Each entry is compared with the
 * disk when it is asked for and a second has gone by since it was last; the caller gives the time. A file replaced by
 * rename(2) is therefore new within a second, and none is ever half old and half new. A file written to in place can be
 * torn by whoever writes: its length is that of the entry, and oribi_file_unchanged() tells the sender. A file and its
 * precompressed files are opened one after the other: where a deployment replaces them in between, a precompressed file
 * can be newer than its file for a second, each with its own length and times.
 *
 * Made after the fork, for one worker; one owner at a time, like the reactor. */
#ifndef ORIBI_FILES_CACHE_H
#define ORIBI_FILES_CACHE_H

#include "oribi/base/buf.h"
#include "oribi/event/out.h"
#include "oribi/files/root.h"
#include "oribi/files/types.h"
#include "oribi/http/compress.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    ORIBI_CACHE_CHECK_MS = 1000,
    ORIBI_CACHE_BODY_BYTES_MAX = 64 * 1024, /* of a file that is kept in memory; larger ones keep their descriptor */
    ORIBI_CACHE_HASHED_BYTES_MAX = 4 * 1024 * 1024, /* oribi_file_hash(): a few milliseconds, in the worker's turn */
    ORIBI_CACHE_YOUNG_S = 2, /* so long after a change the next one need not show in the file's times */
    /* precompressed files that are older than their file, each named in the log once */
    ORIBI_CACHE_STALE_TOLD_MAX = 256,
    ORIBI_CACHE_MISSING_DEFAULT = 1024,
};

/* Limits of all entries of a cache together. An answer that is being sent keeps its entry beyond that, when another has
 * taken its place. */
struct oribi_cache_limits {
    uint32_t open_max;    /* descriptors */
    uint32_t missing_max; /* names under which there is no file; they never take more than an eighth of the memory */
    uint64_t memory_max;  /* bytes, with names and book-keeping */
};

/* The suffix of a precompressed file's name, behind the name of its file: .zst .br .gz; empty for identity. Static
 * storage. */
const char *oribi_coding_suffix(enum oribi_coding coding);

/* Bytes to send: info.size of them, from `body`, or where that is NULL from `fd`, whose own position is not used. */
struct oribi_file_content {
    bool is_there; /* always of ORIBI_CODING_IDENTITY */
    int fd;        /* -1 beside a body */
    const char *body;
    struct oribi_file_info info;
    uint64_t hash; /* oribi_file_hash(); 0: it has not been asked for */
};

/* Lives until it is released. */
struct oribi_file {
    struct oribi_slice type; /* the value of Content-Type; lives as long as the types */
    /* Changed less than ORIBI_CACHE_YOUNG_S before it was read, by the file system's clock: it may have changed once
     * more without another time, so its entity tag is weak. Such an entry is read anew at every check. */
    bool young;
    struct oribi_file_content contents[ORIBI_CODING_COUNT]; /* by enum oribi_coding; that of NONE is never there */
};

/* The time of a call: of clock.h, so that a turn of the reactor reads its clocks once. */
struct oribi_cache_now {
    int64_t ms;     /* monotonic */
    int64_t wall_s; /* since the epoch */
};

struct oribi_cache;

/* Gives an empty cache. Borrows `types` until it is destroyed. destroy: takes it, and NULL; every file must have been
 * released. */
struct oribi_cache *oribi_cache_create(const struct oribi_cache_limits *limits, const struct oribi_types *types);
void oribi_cache_destroy(struct oribi_cache *cache);

/* Closes the descriptors of all entries that are still ours, and nothing else, in a child of a process that goes on. */
void oribi_cache_abandon(struct oribi_cache *cache);

/* Gives the file `path` of the root, checked as for oribi_root_open(); end it with oribi_cache_release(). Any other
 * verdict than ORIBI_FILE_OK is that of the root, at most a second old, and `file` is untouched. When descriptors are
 * out, a file that is in the cache is given as it was, and for another half of ours are closed before it is
 * ORIBI_FILE_LIMIT. */
enum oribi_file_verdict oribi_cache_get(struct oribi_cache *cache, struct oribi_root *root, const char *path,
                                        struct oribi_cache_now now, const struct oribi_file **file);
void oribi_cache_release(const struct oribi_file *file);

/* The file is needed by one more user, who releases it too. */
void oribi_cache_retain(const struct oribi_file *file);

/* The file is not what it was: the next look for its path looks at the disk. */
void oribi_cache_doubt(const struct oribi_file *file);

/* Drops all entries of a root, before the root is destroyed; of NULL those of all roots. */
void oribi_cache_forget(struct oribi_cache *cache, const struct oribi_root *root);

/* Is the descriptor of a content still what the content says, unwritten and not closed by the application? One system
 * call; none, and true, for a body in memory. For a look before the head of an answer; while it is sent,
 * oribi_file_source() does the same. */
bool oribi_file_unchanged(const struct oribi_file_content *content);

/* Gives a hash of the bytes, the same on every machine; for files of ORIBI_CACHE_HASHED_BYTES_MAX at most. Reads them
 * once in the life of the entry. False: they cannot be read, or are not what the content says any more. */
bool oribi_file_hash(const struct oribi_file_content *content, uint64_t *hash);

/* Fills `source` for sending from the descriptor of a content of this file, after oribi_file_unchanged() and at once;
 * the file is retained as long as that takes. A file that is replaced or removed meanwhile is sent to its end, and so
 * is one that grows, with the length that it had; one that is written to otherwise is not. */
void oribi_file_source(const struct oribi_file *file, const struct oribi_file_content *content,
                       struct oribi_source *source);

struct oribi_cache_counts {
    uint32_t files;
    uint32_t missing;
    uint32_t open; /* descriptors of `files` */
    uint64_t memory_bytes;
    uint64_t looks; /* at the disk, for one path and its precompressed files, since the beginning */
};
void oribi_cache_count(const struct oribi_cache *cache, struct oribi_cache_counts *counts);

#endif
