/* Free list of equal-sized blocks. A free block's first word is the link:
 *
 *   free_list ──► [next|....] ──► [next|....] ──► NULL
 *
 * Last in, first out, so that the block handed out is the one whose cache lines are warm. */
#include "oribi/base/mem.h"

#include <assert.h>

struct free_block {
    struct free_block *next;
};

void oribi_pool_init(struct oribi_pool *pool, size_t block_bytes, uint32_t keep_max)
{
    assert(block_bytes >= sizeof(struct free_block));
    *pool = (struct oribi_pool){.block_bytes = block_bytes, .keep_max = keep_max};
}

void oribi_pool_deinit(struct oribi_pool *pool)
{
    assert(pool->lent_count == 0);
    oribi_pool_trim(pool);
}

void oribi_pool_trim(struct oribi_pool *pool)
{
    while (pool->free_list) {
        struct free_block *block = pool->free_list;
        pool->free_list = block->next;
        oribi_mem_free(block);
    }
    pool->free_count = 0;
}

void *oribi_pool_try_get(struct oribi_pool *pool)
{
    struct free_block *block = pool->free_list;
    if (block) {
        pool->free_list = block->next;
        pool->free_count--;
    } else {
        block = oribi_mem_try_resize(NULL, pool->block_bytes, 1); /* not zeroed: contents are unspecified anyway */
        if (!block)
            return NULL;
    }
    pool->lent_count++;
    return block;
}

void oribi_pool_put(struct oribi_pool *pool, void *block)
{
    assert(block && pool->lent_count > 0);
    pool->lent_count--;
    if (pool->free_count >= pool->keep_max) {
        oribi_mem_free(block);
        return;
    }
    struct free_block *link = block;
    link->next = pool->free_list;
    pool->free_list = link;
    pool->free_count++;
}
