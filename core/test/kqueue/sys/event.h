/* Parts of kqueue(2) that os_kqueue.c and os_bsd.c use, for a build on Linux: kqueue.c beside this folder is the
 * model. */
#ifndef ORIBI_TEST_KQUEUE_SYS_EVENT_H
#define ORIBI_TEST_KQUEUE_SYS_EVENT_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct kevent {
    uintptr_t ident;
    int16_t filter;
    uint16_t flags;
    uint32_t fflags;
    intptr_t data;
    void *udata;
};

enum { EVFILT_READ = -1, EVFILT_WRITE = -2 };
enum { EV_ADD = 1, EV_DELETE = 2, EV_ENABLE = 4, EV_CLEAR = 0x20, EV_ERROR = 0x4000, EV_EOF = 0x8000 };

#define EV_SET(event, ident_, filter_, flags_, fflags_, data_, udata_)                                                 \
    (*(event) = (struct kevent){(ident_), (int16_t)(filter_), (uint16_t)(flags_), (fflags_), (data_), (udata_)})

int kqueue(void);
int kevent(int kq, const struct kevent *changes, int change_count, struct kevent *events, int event_count,
           const struct timespec *timeout);

#endif
