/* The writer thread; see the header. Reading order: run, carry_out; then what the owner calls.
 *
 * The lock is held for list operations alone, never around a system call that may wait for a disk. A temporary file
 * belongs to the thread from the push to the collect, but for `released`: what its owner has given up is not written
 * any more, and is closed and freed by the thread. */
#include "oribi/base/writer.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>

enum { STACK_BYTES = 256 * 1024 };

struct list {
    struct oribi_temp_file *first;
    struct oribi_temp_file *last;
};

struct oribi_writer {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work;  /* the queue has something, or quit */
    pthread_cond_t ended; /* a write has */
    struct list queue;
    struct list done;
    uint64_t ended_count;
    uint32_t waiting; /* threads in oribi_writer_wait() */
    bool quit;
    struct oribi_wake wake;
    struct oribi_fd_mark wake_mark;
};

static void append(struct list *list, struct oribi_temp_file *temp_file)
{
    temp_file->next = NULL;
    if (list->last)
        list->last->next = temp_file;
    else
        list->first = temp_file;
    list->last = temp_file;
}

static struct oribi_temp_file *take_first(struct list *list)
{
    struct oribi_temp_file *temp_file = list->first;
    if (!temp_file)
        return NULL;
    list->first = temp_file->next;
    if (!list->first)
        list->last = NULL;
    return temp_file;
}

/* --- the thread --- */

static int store(struct oribi_temp_file *temp_file)
{
    struct oribi_buf *bytes = &temp_file->job.bytes;
    if (temp_file->job.fd < 0 && oribi_os_temp_file_in(temp_file->dir, &temp_file->job.fd) < 0)
        return oribi_os_store_failed();
    for (size_t done = 0; done < bytes->len;) {
        struct iovec rest = {bytes->p + done, bytes->len - done};
        ssize_t written = oribi_os_write_vec(temp_file->job.fd, &rest, 1);
        if (written <= 0)
            return oribi_os_store_failed();
        done += (size_t)written;
        temp_file->job.written += written;
    }
    return 0;
}

static void carry_out(struct oribi_temp_file *temp_file)
{
    temp_file->job.error = store(temp_file);
    if (temp_file->job.error < 0)
        (void)snprintf(temp_file->job.reason, sizeof(temp_file->job.reason), "%s", oribi_os_error_text());
    temp_file->job.bytes.len = 0;
}

static void destroy(struct oribi_temp_file *temp_file)
{
    oribi_os_close(temp_file->job.fd);
    oribi_buf_deinit(&temp_file->job.bytes);
    oribi_buf_deinit(&temp_file->bytes);
    oribi_mem_free(temp_file);
}

/* An application that has closed our descriptor may have a file of its own under the number. */
static void notify(const struct oribi_writer *w)
{
    if (oribi_os_is_marked(w->wake.write_fd, &w->wake_mark))
        oribi_wake_notify(&w->wake);
}

static void lock(struct oribi_writer *w)
{
    (void)pthread_mutex_lock(&w->lock); /* of the default kind, and not held by this thread: cannot fail */
}

static void unlock(struct oribi_writer *w)
{
    (void)pthread_mutex_unlock(&w->lock);
}

static void *run(void *self)
{
    struct oribi_writer *w = self;
    oribi_os_thread_name("oribi-writer");
    lock(w);
    for (;;) {
        struct oribi_temp_file *temp_file = take_first(&w->queue);
        if (!temp_file && w->quit)
            break;
        if (!temp_file) {
            (void)pthread_cond_wait(&w->work, &w->lock);
            continue;
        }
        bool wanted = !temp_file->released;
        unlock(w);
        if (wanted)
            carry_out(temp_file);
        lock(w);
        w->ended_count++;
        if (w->waiting > 0)
            (void)pthread_cond_broadcast(&w->ended);
        bool released = temp_file->released;
        bool first = !w->done.first;
        if (!released)
            append(&w->done, temp_file);
        unlock(w);
        if (released)
            destroy(temp_file);
        else if (first)
            notify(w);
        lock(w);
    }
    unlock(w);
    return NULL;
}

/* --- its owner --- */

static bool start_thread(struct oribi_writer *w)
{
    sigset_t all;
    sigset_t before;
    pthread_attr_t attributes;
    sigfillset(&all);
    if (pthread_attr_init(&attributes) != 0)
        return false;
    (void)pthread_attr_setstacksize(&attributes, STACK_BYTES); /* a valid size */
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int result = pthread_create(&w->thread, &attributes, run, w);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    return result == 0;
}

struct oribi_writer *oribi_writer_try_start(void)
{
    struct oribi_writer *w = oribi_mem_try_alloc(1, sizeof(*w));
    pthread_condattr_t clock;
    if (!w)
        return NULL;
    if (oribi_wake_create(&w->wake) < 0) {
        oribi_mem_free(w);
        return NULL;
    }
    oribi_os_mark(w->wake.write_fd, &w->wake_mark);
    (void)pthread_mutex_init(&w->lock, NULL); /* these cannot fail with the C libraries that we know */
    (void)pthread_condattr_init(&clock);
    (void)pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&w->work, NULL);
    (void)pthread_cond_init(&w->ended, &clock);
    (void)pthread_condattr_destroy(&clock);
    if (start_thread(w))
        return w;
    oribi_wake_destroy(&w->wake);
    oribi_mem_free(w);
    (void)oribi_os_fail_saying("the system gives no thread");
    return NULL;
}

void oribi_writer_stop(struct oribi_writer *w)
{
    struct oribi_temp_file *temp_file = oribi_writer_collect(w); /* gives those that were released to the thread */
    assert(!temp_file);
    lock(w);
    w->quit = true;
    (void)pthread_cond_signal(&w->work);
    unlock(w);
    (void)pthread_join(w->thread, NULL); /* joinable, and not us */
    while ((temp_file = take_first(&w->done)) != NULL)
        destroy(temp_file);
    oribi_wake_destroy(&w->wake);
    (void)pthread_cond_destroy(&w->work);
    (void)pthread_cond_destroy(&w->ended);
    (void)pthread_mutex_destroy(&w->lock);
    oribi_mem_free(w);
}

void oribi_writer_forget(struct oribi_writer *w)
{
    oribi_wake_destroy(&w->wake);
}

const struct oribi_wake *oribi_writer_wake(const struct oribi_writer *w)
{
    return &w->wake;
}

int oribi_writer_fd(const struct oribi_writer *w)
{
    return w->wake.read_fd;
}

void oribi_writer_clear(struct oribi_writer *w)
{
    (void)oribi_wake_clear(&w->wake);
}

static void enqueue(struct oribi_writer *w, struct oribi_temp_file *temp_file)
{
    append(&w->queue, temp_file);
    (void)pthread_cond_signal(&w->work);
}

/* The results of the thread's job become the owner's. */
static void settle(struct oribi_temp_file *temp_file)
{
    temp_file->busy = false;
    temp_file->fd = temp_file->job.fd;
    temp_file->stored = temp_file->job.written;
    temp_file->under_way = 0;
    temp_file->error = temp_file->job.error;
    memcpy(temp_file->reason, temp_file->job.reason, sizeof(temp_file->reason));
    if (!temp_file->bytes.p) { /* its memory serves again */
        temp_file->bytes = temp_file->job.bytes;
        temp_file->job.bytes = (struct oribi_buf){0};
    } else {
        oribi_buf_deinit(&temp_file->job.bytes);
    }
}

struct oribi_temp_file *oribi_writer_collect(struct oribi_writer *w)
{
    struct oribi_temp_file *temp_file;
    lock(w);
    while ((temp_file = take_first(&w->done)) != NULL && temp_file->released)
        enqueue(w, temp_file); /* to be closed */
    unlock(w);
    if (temp_file)
        settle(temp_file);
    return temp_file;
}

uint64_t oribi_writer_ended(struct oribi_writer *w)
{
    lock(w);
    uint64_t count = w->ended_count;
    unlock(w);
    return count;
}

void oribi_writer_wait(struct oribi_writer *w, uint64_t seen, int timeout_ms)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until); /* exists everywhere */
    int64_t ns = until.tv_nsec + (int64_t)(timeout_ms % 1000) * 1000000;
    until.tv_sec += timeout_ms / 1000 + (time_t)(ns / 1000000000);
    until.tv_nsec = (long)(ns % 1000000000);
    lock(w);
    w->waiting++;
    for (int result = 0; result == 0 && w->ended_count == seen;)
        result = pthread_cond_timedwait(&w->ended, &w->lock, &until);
    w->waiting--;
    unlock(w);
}

/* --- a temporary file --- */

struct oribi_temp_file *oribi_temp_file_try_create(struct oribi_writer *w, void *owner)
{
    const char *dir = oribi_os_temp_dir();
    size_t n = strlen(dir) + 1;
    struct oribi_temp_file *temp_file = oribi_mem_try_alloc(1, sizeof(*temp_file) + n);
    if (!temp_file)
        return NULL;
    memcpy(temp_file->dir, dir, n);
    temp_file->owner = owner;
    temp_file->writer = w;
    temp_file->fd = temp_file->job.fd = -1;
    return temp_file;
}

int oribi_temp_file_push(struct oribi_temp_file *temp_file)
{
    struct oribi_writer *w = temp_file->writer;
    if (temp_file->busy || temp_file->error < 0)
        return temp_file->busy ? 0 : temp_file->error;
    temp_file->busy = true;
    temp_file->job.bytes = temp_file->bytes;
    temp_file->under_way = temp_file->bytes.cap;
    temp_file->bytes = (struct oribi_buf){0};
    if (w) {
        lock(w);
        enqueue(w, temp_file);
        unlock(w);
        return 0;
    }
    carry_out(temp_file);
    settle(temp_file);
    return temp_file->error;
}

size_t oribi_temp_file_memory(const struct oribi_temp_file *temp_file)
{
    return temp_file->bytes.cap + temp_file->under_way;
}

void oribi_temp_file_release(struct oribi_temp_file *temp_file)
{
    if (!temp_file)
        return;
    struct oribi_writer *w = temp_file->writer;
    if (!w || (!temp_file->busy && temp_file->fd < 0)) {
        destroy(temp_file);
        return;
    }
    lock(w);
    temp_file->released = true;
    if (!temp_file->busy) {
        temp_file->busy = true;
        enqueue(w, temp_file);
    }
    unlock(w);
}
