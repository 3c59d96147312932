/* Files without a name that are written by a thread of their own, so that nobody else waits for a disk:
 *
 *   owner   bytes ─► oribi_temp_file_push() ─► queue ─► thread: open, write, close
 *             ▲                                        │
 *             └──── oribi_writer_collect() ◄── done ◄──┘   wake descriptor readable
 *
 * A temporary file has at most one write under way, so the queue is never longer than there are temporary files; the
 * owner bounds what it collects in `bytes` meanwhile. One thread at a time calls these functions (a reactor's owner),
 * except for oribi_writer_wait(), which any thread of the process may call. Also the file is made and closed by the
 * writer's thread: on a slow disk both take as long as a write (open(2) with O_TMPFILE, close(2) of the last
 * descriptor). */
#ifndef ORIBI_BASE_WRITER_H
#define ORIBI_BASE_WRITER_H

#include "oribi/base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct oribi_writer;

enum { ORIBI_TEMP_FILE_REASON_CAP = 96 };

/* A file in the oribi_os_temp_dir() of when the temporary file is created; made with its first write. */
struct oribi_temp_file {
    /* the owner's */
    struct oribi_buf bytes; /* for the next write */
    void *owner;            /* borrowed; for who collects */

    /* the owner's to read */
    int fd;           /* the file, or -1: not made yet. Borrowed, see oribi_temp_file_release() */
    int64_t stored;   /* bytes that can be read from it */
    size_t under_way; /* memory of the write under way */
    bool busy;        /* a write is under way */
    int error;        /* 0, or ORIBI_EFULL or ORIBI_ESTORE: it takes no more */
    char reason[ORIBI_TEMP_FILE_REASON_CAP]; /* of the error: words of the system */

    /* private */
    struct oribi_writer *writer;
    struct oribi_temp_file *next; /* in the queue, or among those done */
    bool released;                /* guarded by the writer's lock while busy */
    struct {                      /* the writer's thread's while busy */
        struct oribi_buf bytes;
        int fd;
        int64_t written;
        int error;
        char reason[ORIBI_TEMP_FILE_REASON_CAP];
    } job;
    char dir[]; /* oribi_os_temp_dir() when the temporary file was made */
};

/* Starts the thread, "oribi-writer", with all signals blocked. NULL, with the reason in oribi_os_error_text() where the
 * system has told it, when there is no memory, descriptor or thread. */
struct oribi_writer *oribi_writer_try_start(void);

/* Ends the thread, behind the write under way, and frees the writer. All its temporary files were released. */
void oribi_writer_stop(struct oribi_writer *writer);

/* In a forked child, where the thread is not: closes the descriptor. The memory goes with the process. */
void oribi_writer_forget(struct oribi_writer *writer);

/* Readable when a temporary file may be done: oribi_writer_clear(), then oribi_writer_collect() until it gives none. */
int oribi_writer_fd(const struct oribi_writer *writer);
const struct oribi_wake *oribi_writer_wake(const struct oribi_writer *writer); /* with the end that the thread writes */
void oribi_writer_clear(struct oribi_writer *writer);

/* Gives a temporary file whose write has ended, well or not: `busy` is false again. NULL: none. */
struct oribi_temp_file *oribi_writer_collect(struct oribi_writer *writer);

/* The number of writes that have ended; and waits until it is another than `seen`, or timeout_ms have passed. */
uint64_t oribi_writer_ended(struct oribi_writer *writer);
void oribi_writer_wait(struct oribi_writer *writer, uint64_t seen, int timeout_ms);

/* Gives a temporary file; `owner` is borrowed. Without a writer (NULL) each push writes by itself, in the caller's
 * thread: for where the system gives no thread. NULL: out of memory. */
struct oribi_temp_file *oribi_temp_file_try_create(struct oribi_writer *writer, void *owner);

/* Gives `bytes` (also none: the file is made) to the writer. Nothing while a write is under way. 0, or the temporary
 * file's error, at once or of an earlier write. */
int oribi_temp_file_push(struct oribi_temp_file *temp_file);

/* Bytes of memory held, beside the struct. */
size_t oribi_temp_file_memory(const struct oribi_temp_file *temp_file);

/* Closes the file and frees the temporary file, behind its write under way; what waits is not written. The caller
 * duplicates the descriptor where it is needed longer. NULL: nothing. */
void oribi_temp_file_release(struct oribi_temp_file *temp_file);

#endif
