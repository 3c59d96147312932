/* Memory: from the heap (mem.c is the only source of the core that calls malloc and free), and free lists (pool.c). */
#ifndef ORIBI_BASE_MEM_H
#define ORIBI_BASE_MEM_H

#include <stddef.h>
#include <stdint.h>

/* ---- mem ---- */

/* Memory from the heap: mem.c is the only source of the core that calls malloc and free. */

enum {
    ORIBI_EXIT_MEMORY = 71, /* the exit code of a process that could not go on without memory; sysexits(3), EX_OSERR */
};

/* Gives zeroed memory of count * size bytes; NULL when out of memory or when the product overflows. */
void *oribi_mem_try_alloc(size_t count, size_t size);

/* Gives zeroed memory as oribi_mem_try_alloc() does, for our own small fixed sizes: logs and ends the process
 * (ORIBI_EXIT_MEMORY) when memory is out. */
void *oribi_mem_alloc(size_t count, size_t size);

/* realloc for count * size bytes, the new part not zeroed; NULL leaves `p` as it was. */
void *oribi_mem_try_resize(void *p, size_t count, size_t size);

/* Takes p; NULL is allowed. */
void oribi_mem_free(void *p);

/* How many blocks are in use in this process: the same before and after means that none was forgotten. Thread-safe. */
int64_t oribi_mem_blocks(void);

/* ---- pool ---- */

/* Free list of equal-sized blocks: what steady state allocates from. Not shared between threads. */

struct oribi_pool {
    size_t block_bytes;
    uint32_t keep_max; /* free blocks kept; more go back to the heap */
    /* private */
    void *free_list;
    uint32_t free_count;
    uint32_t lent_count;
};

void oribi_pool_init(struct oribi_pool *pool, size_t block_bytes, uint32_t keep_max);
void oribi_pool_deinit(struct oribi_pool *pool); /* every block must be back */

/* Frees the blocks that are not lent. */
void oribi_pool_trim(struct oribi_pool *pool);

/* Lends one block, contents unspecified; NULL when out of memory. */
void *oribi_pool_try_get(struct oribi_pool *pool);

/* Takes a block back. */
void oribi_pool_put(struct oribi_pool *pool, void *block);

#endif
