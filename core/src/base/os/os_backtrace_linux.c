/* Signals that no other part of a process uses, and where a thread stands when one arrives. */
#include "oribi/base/os/os.h"

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
#if __GLIBC_PREREQ(2, 35)
#define LOCKLESS 1 /* the loader's list can be asked without its lock: _dl_find_object(3) */
#endif
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

int oribi_os_sample_signal(void)
{
    return SIGRTMAX - 5;
}

/* Never NULL. */
const void *oribi_os_interrupted(const void *context)
{
    const ucontext_t *at = context;
#if defined(__x86_64__)
    return (const void *)at->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (const void *)at->uc_mcontext.pc;
#elif defined(__arm__)
    return (const void *)at->uc_mcontext.arm_pc;
#elif defined(__s390x__)
    return (const void *)at->uc_mcontext.psw.addr;
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

/* Above the interrupted function stand the handler and what it has called. */
int oribi_os_native_addresses(const void *interrupted, void **dst, int max)
{
    void *frames[FRAMES_MAX];
    int count = backtrace(frames, FRAMES_MAX);
    int first = 0;
    while (first < count && frames[first] != interrupted)
        first++;
    if (first == count)
        first = 0;
    int n = count - first < max ? count - first : max;
    memcpy(dst, frames + first, (size_t)n * sizeof(*dst));
    return n;
}

#ifdef LOCKLESS
bool oribi_os_backtrace_is_lockless(void)
{
    return true;
}

/* Symbols of an object, as its dynamic section tells of them. */
struct symbols {
    const ElfW(Sym) * table;
    const char *names;
    const uint32_t *hash; /* DT_GNU_HASH, which alone tells how many symbols there are */
};

static void find_symbols(const struct link_map *map, struct symbols *symbols)
{
    *symbols = (struct symbols){0};
    for (const ElfW(Dyn) *entry = map->l_ld; entry && entry->d_tag != DT_NULL; entry++) {
        ElfW(Addr) offset = entry->d_un.d_ptr; /* the loader has made addresses of most */
        const void *at = (const void *)(offset < map->l_addr ? map->l_addr + offset : offset);
        if (entry->d_tag == DT_SYMTAB)
            symbols->table = at;
        else if (entry->d_tag == DT_STRTAB)
            symbols->names = at;
        else if (entry->d_tag == DT_GNU_HASH)
            symbols->hash = at;
    }
}

/* One more than the last symbol of the last chain. The table: buckets, first symbol, words of a filter, its shift; the
 * filter; the buckets; for each symbol from the first on a word whose lowest bit ends a chain. */
static uint32_t count_symbols(const uint32_t *hash)
{
    const uint32_t *buckets = hash + 4 + hash[2] * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
    const uint32_t *chains = buckets + hash[0];
    uint32_t last = 0;
    for (uint32_t i = 0; i < hash[0]; i++)
        last = buckets[i] > last ? buckets[i] : last;
    if (last < hash[1])
        return 0;
    while (!(chains[last - hash[1]] & 1))
        last++;
    return last + 1;
}

static const char *find_name(const struct link_map *map, const void *address)
{
    struct symbols symbols;
    const char *name = NULL;
    ElfW(Addr) offset = (ElfW(Addr))address - map->l_addr;
    find_symbols(map, &symbols);
    uint32_t count = symbols.table && symbols.names && symbols.hash ? count_symbols(symbols.hash) : 0;
    for (uint32_t i = 0; i < count; i++) {
        const ElfW(Sym) *symbol = &symbols.table[i];
        if (symbol->st_shndx != SHN_UNDEF && offset - symbol->st_value < symbol->st_size &&
            ELF64_ST_TYPE(symbol->st_info) == STT_FUNC)
            name = symbols.names + symbol->st_name;
    }
    return name;
}

static const char *look_up(void *address, const char **path)
{
    struct dl_find_object object;
    if (_dl_find_object(address, &object) != 0)
        return NULL;
    *path = object.dlfo_link_map->l_name;
    return find_name(object.dlfo_link_map, address);
}
#else
bool oribi_os_backtrace_is_lockless(void)
{
    return false;
}

static const char *look_up(void *address, const char **path)
{
    Dl_info info = {0};
    struct link_map *map = NULL;
    (void)dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP); /* fails: nothing is known */
    *path = map ? map->l_name : "";
    return info.dli_sname;
}
#endif

size_t oribi_os_native_name(void *address, char *dst, size_t cap)
{
    const char *path = "";
    const char *name = look_up(address, &path);
    path = path && path[0] ? path : program;
    const char *file = strrchr(path, '/');
    file = file ? file + 1 : path;
    int n = name ? snprintf(dst, cap, "C: %.80s (%.60s)\n", name, file)
                 : snprintf(dst, cap, "C: %p (%.60s)\n", address, file);
    return n > 0 && (size_t)n < cap ? (size_t)n : 0;
}
#else
void oribi_os_backtrace_prepare(void)
{
}

bool oribi_os_backtrace_is_lockless(void)
{
    return false;
}

int oribi_os_native_addresses(const void *interrupted, void **dst, int max)
{
    return 0;
}

size_t oribi_os_native_name(void *address, char *dst, size_t cap)
{
    return 0;
}
#endif
