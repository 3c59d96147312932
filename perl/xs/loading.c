/* Where an application stands that takes long to load: a thread of C looks each second at the statement that the
 * interpreter is at, and the core tells it to the supervisor. Perl runs on meanwhile, so that what is looked at may be
 * freed at any moment; it is read through /proc/self/mem, where a bad address is an error and no fault. */
#include "xs/binding.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { FIRST_AFTER_S = 4, PLACE_CAP = 256 };

struct psgi_loading {
    struct oribi_process *process;
    const COP *const *at; /* the interpreter's own */
    bool ended;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t end;
};

#ifdef USE_ITHREADS
static bool file_of(int memory_fd, const COP *cop, char *dst, size_t cap)
{
    ssize_t n = pread(memory_fd, dst, cap - 1, (off_t)(uintptr_t)cop->cop_file);
    dst[n > 0 ? n : 0] = '\0';
    return n > 0 && dst[0];
}
#else
/* There a statement has no name of a file but a glob, several steps away. */
static bool file_of(int memory_fd, const COP *cop, char *dst, size_t cap)
{
    GV gv;
    XPVGV body;
    HEK key;
    ssize_t n = 0;
    if (pread(memory_fd, &gv, sizeof(gv), (off_t)(uintptr_t)cop->cop_filegv) == (ssize_t)sizeof(gv) &&
        pread(memory_fd, &body, sizeof(body), (off_t)(uintptr_t)gv.sv_any) == (ssize_t)sizeof(body) &&
        pread(memory_fd, &key, sizeof(key), (off_t)(uintptr_t)body.xiv_u.xivu_namehek) == (ssize_t)sizeof(key))
        n = pread(memory_fd, dst, cap - 1, (off_t)(uintptr_t)body.xiv_u.xivu_namehek + offsetof(HEK, hek_key) + 2);
    dst[n > 0 ? n : 0] = '\0'; /* behind "_<" */
    return n > 0 && dst[0];
}
#endif

/* The descriptor lives for a moment only: the application may close what it does not know. */
static void look(const struct psgi_loading *loading)
{
    COP cop;
    char file[PLACE_CAP];
    char place[PLACE_CAP + 24];
    const COP *at = *(const COP *const volatile *)loading->at;
    int memory_fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    if (memory_fd < 0)
        return;
    bool read = at && pread(memory_fd, &cop, sizeof(cop), (off_t)(uintptr_t)at) == (ssize_t)sizeof(cop) &&
                file_of(memory_fd, &cop, file, sizeof(file));
    (void)close(memory_fd);
    int n = read ? snprintf(place, sizeof(place), "%s:%lu", file, (unsigned long)cop.cop_line) : 0;
    if (n > 0)
        oribi_process_loading_at(loading->process, place, (size_t)n);
}

/* By the clock that every system's condition variables know: one that is set meanwhile makes one look early or late. */
static void *run(void *data)
{
    struct psgi_loading *loading = (struct psgi_loading *)data;
    struct timespec until;
    int seconds = FIRST_AFTER_S;
    (void)pthread_mutex_lock(&loading->lock);
    while (!loading->ended) {
        (void)clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += seconds;
        if (pthread_cond_timedwait(&loading->end, &loading->lock, &until) == 0)
            continue;
        if (!loading->ended)
            look(loading);
        seconds = 1;
    }
    (void)pthread_mutex_unlock(&loading->lock);
    return NULL;
}

/* Signals are the interpreter's thread's. */
static int start(struct psgi_loading *loading)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(&loading->thread, NULL, run, loading);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

struct psgi_loading *psgi_loading_watch(pTHX_ struct oribi_process *process)
{
    struct psgi_loading *loading;
    Newxz(loading, 1, struct psgi_loading);
    loading->process = process;
    loading->at = (const COP *const *)&PL_curcop;
    (void)pthread_mutex_init(&loading->lock, NULL);
    (void)pthread_cond_init(&loading->end, NULL);
    if (start(loading) == 0)
        return loading;
    Safefree(loading); /* then the log does not say where */
    return NULL;
}

void psgi_loading_end(pTHX_ struct psgi_loading *loading)
{
    if (!loading)
        return;
    (void)pthread_mutex_lock(&loading->lock);
    loading->ended = true;
    (void)pthread_cond_signal(&loading->end);
    (void)pthread_mutex_unlock(&loading->lock);
    (void)pthread_join(loading->thread, NULL);
    Safefree(loading);
}
