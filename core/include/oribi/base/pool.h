/* Free list of equal-sized blocks: what steady state allocates from. Not shared between threads. */
#ifndef ORIBI_BASE_POOL_H
#define ORIBI_BASE_POOL_H

#include <stddef.h>
#include <stdint.h>

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

/* Lends one block, contents unspecified; NULL when out of memory. */
void *oribi_pool_try_get(struct oribi_pool *pool);

/* Takes a block back. */
void oribi_pool_put(struct oribi_pool *pool, void *block);

#endif
