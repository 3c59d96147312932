/* The heap. Every allocation of the core passes here: the multiply is checked once, and running out is either the
 * caller's business (try) or the end of the process, which the supervisor replaces. */
#include "oribi/base/mem.h"

#include "oribi/base/log.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

/* The only thing here that outlives a call. It belongs to the process as the heap does; the helper thread counts as
 * well, and no order is needed. */
static _Atomic int64_t blocks;

static void *counted(void *p, int64_t change)
{
    if (p)
        atomic_fetch_add_explicit(&blocks, change, memory_order_relaxed);
    return p;
}

void *oribi_mem_try_alloc(size_t count, size_t size)
{
    assert(count > 0 && size > 0);          /* calloc(0) may give NULL, which would read as out of memory */
    return counted(calloc(count, size), 1); /* checks the product itself, C11 7.22.3.2 as glibc and musl implement it */
}

void *oribi_mem_alloc(size_t count, size_t size)
{
    void *p = oribi_mem_try_alloc(count, size);
    if (!p) {
        oribi_log(ORIBI_LOG_ERROR, "out of memory: %zu bytes times %zu", size, count);
        _exit(ORIBI_EXIT_MEMORY); /* no clean-up that might want memory, and no core file: the line above says all */
    }
    return p;
}

void *oribi_mem_try_resize(void *p, size_t count, size_t size)
{
    assert(count > 0 && size > 0); /* realloc(p, 0) frees p: not what a caller of resize means */
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        return NULL;
    return counted(realloc(p, bytes), p ? 0 : 1);
}

void oribi_mem_free(void *p)
{
    (void)counted(p, -1); /* for the count */
    free(p);
}

int64_t oribi_mem_blocks(void)
{
    return atomic_load_explicit(&blocks, memory_order_relaxed);
}
