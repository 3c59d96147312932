/* Records that wait until a socket takes them, in order and within bounds: a frontend's feed to another one, and what
 * its own calls have published on the way to the leader. */
#ifndef ORIBI_FRONTEND_OUTBOX_H
#define ORIBI_FRONTEND_OUTBOX_H

#include "oribi/base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ORIBI__OUTBOX_BYTES_MAX = 4 * 1024 * 1024, /* of records, with what is apart and what keeps them */
    ORIBI__OUTBOX_RECORDS_MAX = 4096,
};

struct oribi__outbox_record;

/* All-zero is empty. */
struct oribi__outbox {
    struct oribi__outbox_record *first;
    struct oribi__outbox_record *last;
    size_t bytes;
    uint32_t count;
    size_t bytes_max; /* 0: ORIBI__OUTBOX_BYTES_MAX, and so many records; else any number of them */
};

/* Sends the record, or keeps it behind those that wait: head and body (copied), and a copy of `passed` (-1: none), of
 * `apart` bytes. 0; ORIBI_ELIMIT: too much waits; ORIBI_ENOMEM; ORIBI_ECLOSED or ORIBI_ESYS: the socket takes nothing
 * any more. Nothing has changed then. */
int oribi__outbox_send(struct oribi__outbox *outbox, int fd, struct oribi_slice head, struct oribi_slice body,
                       int passed, size_t apart);

/* Sends what the socket takes of those that wait. 0, or a code of os.h: it takes nothing any more. */
int oribi__outbox_flush(struct oribi__outbox *outbox, int fd);

void oribi__outbox_clear(struct oribi__outbox *outbox);

#endif
