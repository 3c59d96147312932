/* Several calls at a time in one worker: struct oribi_thread is one of its application threads. Threads take turns at
 * leading: the leader sleeps in the event loop, and leaves it for the first complete request. While that is short
 * no thread leads; once it lasts, another one does. doc/internals/placement.md has the drawing.
 *
 *   oribi_threads_open(worker, n);
 *   each application thread, with its `thread`:
 *       for (;;) {
 *           req = oribi_thread_take(thread);           // waits for no event, as oribi_worker_take()
 *           if (req) ... answer it (req.h)
 *           else if (!without_vm_lock(oribi_thread_wait) && oribi_thread_done(thread)) break;
 *       }
 *   oribi_threads_close(worker);                             // when all of them have ended
 *
 * A request is taken with the VM's lock only: a thread that took one and then had to wait for the lock would keep it
 * from the thread that has the lock.
 *
 * Between open and close oribi_worker_take() and oribi_worker_wait_for() are not called. Everything in req.h may be
 * called by the thread that has the request. */
#ifndef ORIBI_WORKER_PLACEMENT_THREADS_H
#define ORIBI_WORKER_PLACEMENT_THREADS_H

#include "oribi/worker/worker.h"

struct oribi_thread;

/* From here on `count` calls at a time, 2 to ORIBI_THREADS_MAX. By the worker's thread, outside a call. 0 or
 * ORIBI_ESYS. */
int oribi_threads_open(struct oribi_worker *worker, uint32_t count);

/* The worker makes one call at a time again. By the worker's own thread, when none of the others uses its `thread` any
 * more. Without effect when none are open. */
void oribi_threads_close(struct oribi_worker *worker);

/* One of them, index < count; without oribi_threads_open() the worker's only one, index 0. Each is used by one
 * application thread at a time. */
struct oribi_thread *oribi_thread(struct oribi_worker *worker, uint32_t index);

/* The oldest complete request, after a turn of the reactor if that may bring one; NULL: none is ready. Waits for no
 * event. */
struct oribi_req *oribi_thread_take(struct oribi_thread *thread);

/* Blocks until there is a request for this thread: true, and oribi_thread_take() is called next, which gives it unless
 * another thread was there before. False: oribi_thread_wake() or, by one of those that wait, oribi_worker_wake() was
 * called, the worker is done, or `ms` have passed (< 0: no bound). */
bool oribi_thread_wait(struct oribi_thread *thread, int64_t ms);

/* As oribi_worker_done(), while threads are open. */
bool oribi_thread_done(struct oribi_thread *thread);

/* Ends a current or the next oribi_thread_wait() of this thread, and a current oribi_reply_wait() of its call.
 * Async-signal-safe and thread-safe. */
void oribi_thread_wake(struct oribi_thread *thread);

/* The application runs on although its request has ended: it closes its body, calls back, or has taken the socket.
 * From here to oribi_thread_back() it has a deadline as in a call, and the worker's connections are turned for it.
 * By the thread itself, when nothing of its request is open; not nested. */
void oribi_thread_after(struct oribi_thread *thread);
void oribi_thread_back(struct oribi_thread *thread);

/* The deadline of the thread's call is `ms` from now instead; likewise between oribi_thread_after() and _back(). The
 * time for which oribi_reply_wait() waits for the client never counts, and what the application sends begins
 * call_timeout anew; neither shortens what was asked for here. Nothing happens without call_timeout, or outside a call.
 * Thread-safe as long as the call cannot end meanwhile. */
void oribi_thread_extend_deadline(struct oribi_thread *thread, int64_t ms);

/* The deadline of the thread's call is call_timeout from now: what it did so far does not count. */
void oribi_thread_begin_anew(struct oribi_thread *thread);

/* Has the thread's call passed its deadline? Then that deadline, which tells one from the next; else 0.
 * Async-signal-safe. */
int64_t oribi_thread_overdue(const struct oribi_thread *thread);

/* Is the thread's call to end because its client has gone (cancel_gone)? True once for a call: the runtime raises then.
 * False when that call has ended. Thread-safe and async-signal-safe; as long as it has not been asked, signals come
 * again. */
bool oribi_thread_take_gone(struct oribi_thread *thread);

/* The application has the client's socket and talks to the client itself, which will see it leave: this call of the
 * thread is not cancelled. By the thread of the call. */
void oribi_thread_never_gone(struct oribi_thread *thread);

/* "GET /path?query" of the thread's current or last call, cut and NUL-terminated: for log lines. Lives until its
 * next call. */
const char *oribi_thread_line(const struct oribi_thread *thread);

/* Log lines of the calling thread concern the current or last call of `thread` from now on, and have the id of its
 * request where requests have one (request_id, error_log_format json); NULL ends that. */
void oribi_thread_log_about(const struct oribi_thread *thread);

/* Calls being made by all threads. Thread-safe. */
uint32_t oribi_threads_busy(const struct oribi_worker *worker);

#endif
