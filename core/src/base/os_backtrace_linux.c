/* Signals that no other part of a process uses, and where a thread stands when one arrives. */
#include "oribi/base/os.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#endif

/* Real-time signals have no meaning of their own; from the upper end, because libraries begin at the lower one. */
int oribi_os_private_signal(void)
{
    return SIGRTMAX - 3;
}

int oribi_os_runtime_signal(void)
{
    return SIGRTMAX - 4;
}

/* Never NULL. */
const void *oribi_os_interrupted(const void *context)
{
    const ucontext_t *at = context;
#if defined(__x86_64__)
    return (const void *)at->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (const void *)at->uc_mcontext.pc;
#else
    return at; /* not known */
#endif
}

#ifdef __GLIBC__
enum { FRAMES_MAX = 64 };

/* The loader knows the program by its first argument, which a process title overwrites. */
static char program[64] = "program";

/* The first call loads the unwinder, which takes memory and locks. */
void oribi_os_backtrace_prepare(void)
{
    char path[PATH_MAX];
    void *frame;
    (void)backtrace(&frame, 1);
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    path[n > 0 ? n : 0] = '\0';
    const char *name = strrchr(path, '/');
    if (name && name[1])
        (void)snprintf(program, sizeof(program), "%s", name + 1); /* cut: only shown */
}

/* "    C: crypt_r (libcrypt.so.1)\n", 0 when it does not fit. */
static size_t put_frame(void *address, char *dst, size_t cap)
{
    Dl_info info = {0};
    struct link_map *map = NULL;
    (void)dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP); /* fails: nothing is known */
    const char *path = map && map->l_name[0] ? map->l_name : program;
    const char *file = strrchr(path, '/');
    file = file ? file + 1 : path;
    int n = info.dli_sname ? snprintf(dst, cap, "C: %.80s (%.60s)\n", info.dli_sname, file)
                           : snprintf(dst, cap, "C: %p (%.60s)\n", address, file);
    return n > 0 && (size_t)n < cap ? (size_t)n : 0;
}

/* Above the interrupted function stand the handler and what it has called. */
size_t oribi_os_native_frames(const void *interrupted, int max, char *dst, size_t cap)
{
    void *frames[FRAMES_MAX];
    int count = backtrace(frames, FRAMES_MAX);
    int first = 0;
    size_t n = 0;
    while (first < count && frames[first] != interrupted)
        first++;
    if (first == count)
        first = 0;
    for (int i = first; i < count && i < first + max; i++)
        n += put_frame(frames[i], dst + n, cap - n);
    return n;
}
#else
void oribi_os_backtrace_prepare(void)
{
}

size_t oribi_os_native_frames(const void *interrupted, int max, char *dst, size_t cap)
{
    return 0;
}
#endif
