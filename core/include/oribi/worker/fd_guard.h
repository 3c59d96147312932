/* The descriptors that a process cannot do without, with what each of them stood for when it was made. Applications
 * and libraries that close what they do not know (`POSIX::close(3..200)`, daemonising code) close these too, and may
 * open something of their own under the same number. The process could neither hear of connections nor of its
 * supervisor any more, or it would find its loop's wait failing at once, for ever; so it says what has happened and
 * ends, and its supervisor makes a new one. */
#ifndef ORIBI_WORKER_FD_GUARD_H
#define ORIBI_WORKER_FD_GUARD_H

#include "oribi/base/os/os.h"
#include "oribi/base/limits.h"
#include "oribi/config/listener.h"

enum {
    ORIBI_EXIT_DESCRIPTORS = 123, /* the exit code of such a process */
    ORIBI__FD_GUARD_MAX = ORIBI_LISTENERS_MAX + 2 * ORIBI_THREADS_MAX + 24,
    ORIBI__FD_GUARD_CHECK_US = 1000 * 1000, /* between two checks while calls are made */
};

struct oribi_worker;

struct oribi__fd_guard_item {
    int fd;
    const char *what; /* borrowed for as long as the item is there */
    struct oribi_fd_mark mark;
};

struct oribi__fd_guard {
    uint32_t count;
    struct oribi__fd_guard_item items[ORIBI__FD_GUARD_MAX];
};

/* Notes an open descriptor; a negative one is passed over. */
void oribi__fd_guard_add(struct oribi__fd_guard *own, int fd, const char *what);

/* Forgets a descriptor that is about to be closed. */
void oribi__fd_guard_drop(struct oribi__fd_guard *own, int fd);

/* Notes, or forgets, the descriptors that wake a thread: one, or both ends of a pipe. If the application closed the end
 * that is written, the end that is read would be readable for ever. */
void oribi__fd_guard_add_wake(struct oribi__fd_guard *own, const struct oribi_wake *wake, const char *what);
void oribi__fd_guard_drop_wake(struct oribi__fd_guard *own, const struct oribi_wake *wake);

/* Is this descriptor noted, and still what it was? */
bool oribi__fd_guard_has(const struct oribi__fd_guard *own, int fd);

/* The first that is not what it was, or NULL. */
const struct oribi__fd_guard_item *oribi__fd_guard_lost(const struct oribi__fd_guard *own);

/* Notes the worker's descriptors; looks whether all of them are still there, and ends the process when one is not. By
 * the reactor's owner. */
void oribi__fd_guard_begin(struct oribi_worker *worker);
void oribi__fd_guard_check(struct oribi_worker *worker);

#endif
