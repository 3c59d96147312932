/* Functions and constants that POSIX or most systems have, and that one of macOS and the BSDs lacks or calls otherwise.
 * os_features.h of the build includes it, which the compiler reads before each source (core/Makefile, ORIBI_OS=bsd). */
#ifndef ORIBI_BASE_OS_OS_MISSING_H
#define ORIBI_BASE_OS_OS_MISSING_H

#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include <sys/types.h>

#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

/* SO_NOSIGPIPE does it there: os_bsd.c. */
#ifndef ORIBI_HAS_MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif

#ifndef ORIBI_HAS_ST_MTIM
#define st_mtim st_mtimespec
#define st_ctim st_ctimespec
#endif

#ifdef ORIBI_HAS_SYS_RANDOM
#include <sys/random.h>
#endif

/* The compiler cannot know that nobody reads it again, and leaves it. */
#ifndef ORIBI_HAS_EXPLICIT_BZERO
static inline void explicit_bzero(void *p, size_t n)
{
    volatile char *bytes = (volatile char *)p;
    while (n > 0)
        bytes[--n] = 0;
}
#endif

/* macOS: a condition variable goes by the wall clock, or by a time span, which is what we make of our deadlines. */
#ifndef ORIBI_HAS_CONDATTR_SETCLOCK
static inline int oribi__cond_until(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    struct timespec span = {.tv_sec = until->tv_sec - now.tv_sec, .tv_nsec = until->tv_nsec - now.tv_nsec};
    if (span.tv_nsec < 0)
        span = (struct timespec){.tv_sec = span.tv_sec - 1, .tv_nsec = span.tv_nsec + 1000000000};
    if (span.tv_sec < 0)
        span = (struct timespec){0};
    return pthread_cond_timedwait_relative_np(cond, mutex, &span);
}
#define pthread_condattr_setclock(attributes, clock) ((void)(attributes), (void)(clock), 0)
#define pthread_cond_timedwait                       oribi__cond_until
#endif

/* macOS: sem_init(2) is declared, and fails with ENOSYS. Between threads of one process, not for signal handlers. */
#ifndef ORIBI_HAS_UNNAMED_SEMAPHORES
#include <semaphore.h>

struct oribi__semaphore {
    pthread_mutex_t lock;
    pthread_cond_t posted;
    unsigned value;
};

static inline int oribi__sem_init(struct oribi__semaphore *s, int shared, unsigned value)
{
    (void)shared;
    s->value = value;
    return pthread_mutex_init(&s->lock, NULL) || pthread_cond_init(&s->posted, NULL) ? -1 : 0;
}

static inline int oribi__sem_post(struct oribi__semaphore *s)
{
    (void)pthread_mutex_lock(&s->lock);
    s->value++;
    (void)pthread_cond_signal(&s->posted);
    (void)pthread_mutex_unlock(&s->lock);
    return 0;
}

static inline int oribi__sem_wait(struct oribi__semaphore *s)
{
    (void)pthread_mutex_lock(&s->lock);
    while (s->value == 0)
        (void)pthread_cond_wait(&s->posted, &s->lock);
    s->value--;
    (void)pthread_mutex_unlock(&s->lock);
    return 0;
}

static inline int oribi__sem_trywait(struct oribi__semaphore *s)
{
    (void)pthread_mutex_lock(&s->lock);
    int code = s->value > 0 ? 0 : -1;
    s->value -= code == 0;
    (void)pthread_mutex_unlock(&s->lock);
    return code;
}

static inline int oribi__sem_destroy(struct oribi__semaphore *s)
{
    (void)pthread_cond_destroy(&s->posted);
    (void)pthread_mutex_destroy(&s->lock);
    return 0;
}

#define sem_t       struct oribi__semaphore
#define sem_init    oribi__sem_init
#define sem_post    oribi__sem_post
#define sem_wait    oribi__sem_wait
#define sem_trywait oribi__sem_trywait
#define sem_destroy oribi__sem_destroy
#endif

#endif
