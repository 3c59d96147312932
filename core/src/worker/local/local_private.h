/* Declarations that the sources of a worker's local content share: local.c (which part answers a request,
 * requests that should have come by HTTPS, an answer's bytes and its line in the access log), local_files.c (files of
 * mounts), local_fixed.c (fixed answers). */
#ifndef ORIBI_WORKER_LOCAL_LOCAL_PRIVATE_H
#define ORIBI_WORKER_LOCAL_LOCAL_PRIVATE_H

#include "oribi/files/cache.h"
#include "oribi/files/fixed.h"
#include "oribi/files/mount.h"
#include "oribi/files/root.h"
#include "oribi/files/types.h"
#include "oribi/http/conditions.h"

#include "worker/local/local.h"
#include "worker/logs/exchange_log.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { ORIBI__LOCAL_HEADERS_MAX = 12 }; /* of an answer, beside those of its mount */

struct oribi__local_mount {
    struct oribi_mount spec;
    struct oribi_root *root;
};

struct oribi__local {
    struct oribi_types *types;
    struct oribi_cache *cache;
    struct oribi_fixed_set *fixed; /* NULL: none */
    int64_t refreshed_ms;
    struct oribi_local_thread *thread; /* of a frontend, which makes no calls (local_thread.c); NULL: a worker's */
    uint32_t count;
    struct oribi_slice prefixes[ORIBI_MOUNTS_MAX];
    struct oribi_path path;               /* of the request at hand */
    char tried[ORIBI_PATH_BYTES_MAX + 1]; /* a path made of it */
    char location[ORIBI_FIXED_LOCATION_MAX];
    struct oribi__local_mount mounts[];
};

/* One answer being made. Header texts are borrowed until it is sent. */
struct oribi__local_answer {
    struct oribi_worker *w;
    struct oribi__local *local;
    struct oribi_conn *c;
    const struct oribi__local_mount *mount; /* of a file */
    struct oribi_cache_now now;
    bool passes; /* a worker is asked, and no other mount */
    uint32_t header_count;
    struct oribi_header headers[ORIBI__LOCAL_HEADERS_MAX + ORIBI_MOUNT_HEADERS_MAX];
};

/* --- local.c --- */

void oribi__local_add(struct oribi__local_answer *answer, const char *name, const char *value, size_t n);
void oribi__local_add_text(struct oribi__local_answer *answer, const char *name, const char *value);

/* The value of a field of the request, repeats joined (oribi_head_field()); p is NULL where there is none. */
struct oribi_slice oribi__local_field(const struct oribi__local_answer *answer, enum oribi_field_id id);

enum { ORIBI__LOCAL_VECS_MAX = 2 * (ORIBI_RANGES_MAX + 1) };

/* A body of `len` bytes: a vector in memory, or pieces of a source. */
struct oribi__local_body {
    int64_t len;
    uint32_t vec_count; /* ORIBI__LOCAL_VECS_MAX at most */
    const struct iovec *vec;
    const struct oribi_source *source; /* NULL: memory */
    const struct oribi_piece *pieces;
    size_t piece_count;
};

/* Sends the head and the body (NULL: an empty one); counts and logs the answer, and ends the exchange. Borrows all. */
void oribi__local_send_body(struct oribi__local_answer *answer, int status, const struct oribi__local_body *body);

/* Answers as oribi__local_send_body(), with a body from memory. */
void oribi__local_send(struct oribi__local_answer *answer, int status, struct oribi_slice memory);

/* The server's own short answer of this status, with none of the headers added so far. A 405 allows GET and HEAD. */
void oribi__local_send_error(struct oribi__local_answer *answer, int status);

/* --- local_fixed.c --- */

/* Answers with the fixed answer of the request's path. */
void oribi__local_answer_fixed(struct oribi__local_answer *answer, const struct oribi_fixed *fixed);

/* --- local_files.c --- */

/* Answers from the mounts, by local->path, which has been read. False: none has the file, and those that could have it
 * fall through. */
bool oribi__local_answer_file(struct oribi__local_answer *answer);

/* Answers a path that no file can have: 400 or 404 of a mount that does not fall through. False: there is none. */
bool oribi__local_refuse_path(struct oribi__local_answer *answer, enum oribi_path_verdict verdict);

#endif
