/* A heap that fails once: loaded before the C library (ld.so(8), LD_PRELOAD), it counts the allocations that our own
 * extension asks for, in all processes of a server together, and lets one of them fail. What the interpreters ask
 * for themselves is not touched.
 *
 * The test and the processes share the plan, a file that SCARCE_HEAP names: it is mapped, so that the test sets and
 * reads it while they run. */
#define _GNU_SOURCE /* RTLD_NEXT, dl_iterate_phdr(3) */
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PLACES = 5, FRAMES_MAX = 16 };

/* Words of 8 bytes; e2e/scarcity_test.rb packs and unpacks them. */
struct plan {
    _Atomic uint64_t tried;   /* allocations so far */
    _Atomic uint64_t fail_at; /* the one that fails; 0: none */
    /* Where it failed: addresses behind the innermost calls in the extension, from its start; the first is in
     * base/mem.c. 0: none has failed. */
    _Atomic uint64_t places[PLACES];
};

static struct plan *plan;
static uintptr_t ours; /* where the extension lies: both 0 until it is loaded, which happens before it has threads */
static uintptr_t ours_end;

/* glibc's own names of its functions, which need no look-up. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *p, size_t size);

__attribute__((constructor)) static void map_plan(void)
{
    const char *path = getenv("SCARCE_HEAP");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *p = mmap(NULL, sizeof(*plan), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    plan = p == MAP_FAILED ? NULL : p;
}

static int is_ours(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    (void)data;
    const char *slash = strrchr(info->dlpi_name, '/');
    if (!slash || (strcmp(slash, "/oribi.so") != 0 && strcmp(slash, "/Oribi.so") != 0))
        return 0;
    uintptr_t end = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && part->p_vaddr + part->p_memsz > end)
            end = part->p_vaddr + part->p_memsz;
    }
    ours = info->dlpi_addr;
    ours_end = ours + end;
    return 1;
}

/* Both interpreters load extensions by this. */
void *dlopen(const char *name, int flags)
{
    static void *(*real)(const char *, int);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "dlopen");
    void *library = real(name, flags);
    if (!ours)
        (void)dl_iterate_phdr(is_ours, NULL);
    return library;
}

static int lies_in_ours(const void *address)
{
    return (uintptr_t)address >= ours && (uintptr_t)address < ours_end;
}

static void note_places(void)
{
    void *frames[FRAMES_MAX];
    int count = backtrace(frames, FRAMES_MAX);
    for (int i = 0, noted = 0; i < count && noted < PLACES; i++)
        if (lies_in_ours(frames[i]))
            atomic_store(&plan->places[noted++], (uint64_t)((uintptr_t)frames[i] - ours));
}

static int fails(const void *caller)
{
    if (!plan || !lies_in_ours(caller))
        return 0;
    if (atomic_fetch_add(&plan->tried, 1) + 1 != atomic_load(&plan->fail_at))
        return 0;
    note_places();
    return 1;
}

void *malloc(size_t size)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *p, size_t size)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(p, size);
}
