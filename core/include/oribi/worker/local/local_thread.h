/* local_thread - what a server answers without the application, in a process that makes no calls: mounts, fixed
 * answers, redirects and health for a frontend's clients. A worker of its own, on a thread of its own, since disks are
 * slow and the frontend is one loop: it answers the requests of channels (handoff.h), and says of a request that
 * nothing here answers that it passes, with a line of status ORIBI_LOCAL_PASSED in the place of an answer.
 *
 * All functions but the thread itself are for the thread that has started it. */
#ifndef ORIBI_WORKER_LOCAL_LOCAL_THREAD_H
#define ORIBI_WORKER_LOCAL_LOCAL_THREAD_H

#include "oribi/config/listener.h"
#include "oribi/config/options.h"
#include "oribi/files/fixed.h"
#include "oribi/http/head.h"
#include "oribi/worker/placement/scoreboard.h"

#include <stdbool.h>
#include <stdint.h>

struct oribi_local_thread;

enum { ORIBI_LOCAL_PASSED = 199 }; /* no status of any answer: the application is to be asked */

struct oribi_local_setup {
    const struct oribi_options *options;    /* borrowed for the thread's life, as all of these */
    struct oribi_listeners *listeners;      /* by the indexes that channel heads have; none is accepted at */
    const struct oribi_scoreboard *workers; /* what health tells of */
    const char *folder;                     /* relative paths are seen from it; NULL: the working directory */
};

/* Starts it, and does not wait until it has opened its folders. 0, with *out NULL where the options name nothing to
 * answer; or ORIBI_ENOMEM or ORIBI_ESYS. */
int oribi_local_thread_start(const struct oribi_local_setup *setup, struct oribi_local_thread **out);

/* 0: it serves. ORIBI_AGAIN: it still begins (not with `wait`). Or why it has ended at once; then only join is for it.
 * The three functions that follow are for one that serves. */
int oribi_local_thread_result(struct oribi_local_thread *local, bool wait);

/* Pages for the server's answers, which it has read; NULL: none. They live until it is freed. */
const struct oribi_error_pages *oribi_local_thread_pages(const struct oribi_local_thread *local);

/* May this request be answered here? Cheap; looks at no disk. Borrows the head. */
bool oribi_local_thread_claims(struct oribi_local_thread *local, const struct oribi_head *head);

/* Gives it the far end of a channel, whose number the caller chooses (1 … ORIBI_CHANNELS_MAX). Takes fd.
 * False: it has no room for it now. */
bool oribi_local_thread_give(struct oribi_local_thread *local, int fd, uint16_t number);

/* The request on this channel is answered elsewhere: call it before you close your end. The thread drops it then,
 * without a line in its access log. */
void oribi_local_thread_take_back(struct oribi_local_thread *local, uint16_t number);

/* Since when it has been at what it does now, oribi_clock_us(); 0: it waits for something to do.
 * *number: of the channel whose request it answers; 0: none, it may be sending. */
int64_t oribi_local_thread_busy_us(const struct oribi_local_thread *local, uint16_t *number);

/* Standard output, its access log, leads elsewhere now. */
void oribi_local_thread_reopen(struct oribi_local_thread *local);

/* Tells it to end, also while it begins; what is on its channels is lost. Does not wait. */
void oribi_local_thread_end(struct oribi_local_thread *local);

/* After that: waits until it has ended, for `ms` at most, and frees it. False: it has not, since a disk stands still;
 * nothing is freed. */
bool oribi_local_thread_join(struct oribi_local_thread *local, int64_t ms);

#endif
