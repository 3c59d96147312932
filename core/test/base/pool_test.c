/* The free list. */
#include "base/pool.c"

#include "huge.h"
#include "tap.h"

static void test_a_block_put_back_is_the_next_one_lent(void)
{
    struct oribi_pool pool;
    oribi_pool_init(&pool, 64, 4);
    void *a = oribi_pool_try_get(&pool);
    void *b = oribi_pool_try_get(&pool);
    ok(a && b && a != b);
    memset(a, 0xaa, 64);
    oribi_pool_put(&pool, a);
    oribi_pool_put(&pool, b);
    ok(oribi_pool_try_get(&pool) == b);
    ok(oribi_pool_try_get(&pool) == a);
    oribi_pool_put(&pool, a);
    oribi_pool_put(&pool, b);
    oribi_pool_deinit(&pool);
    ok(pool.free_list == NULL);
}

static void test_no_more_blocks_are_kept_than_asked_for(void)
{
    struct oribi_pool pool;
    void *blocks[4];
    oribi_pool_init(&pool, sizeof(struct free_block), 3);
    for (int i = 0; i < 4; i++)
        blocks[i] = oribi_pool_try_get(&pool);
    ok_eq(pool.lent_count, 4);
    for (int i = 0; i < 3; i++)
        oribi_pool_put(&pool, blocks[i]);
    ok_eq(pool.free_count, 3);
    oribi_pool_put(&pool, blocks[3]);
    ok_eq(pool.free_count, 3);
    ok_eq(pool.lent_count, 0);
    oribi_pool_deinit(&pool);
    ok_eq(pool.free_count, 0);
}

static void test_a_pool_that_keeps_nothing_works(void)
{
    struct oribi_pool pool;
    oribi_pool_init(&pool, 100, 0);
    void *a = oribi_pool_try_get(&pool);
    ok(a != NULL);
    oribi_pool_put(&pool, a);
    ok_eq(pool.free_count, 0);
    oribi_pool_deinit(&pool);
}

static void test_trimming_frees_what_is_not_lent(void)
{
    struct oribi_pool pool;
    oribi_pool_init(&pool, 64, 4);
    void *a = oribi_pool_try_get(&pool);
    void *b = oribi_pool_try_get(&pool);
    oribi_pool_put(&pool, b);
    int64_t blocks = oribi_mem_blocks();
    oribi_pool_trim(&pool);
    ok_eq(pool.free_count, 0);
    ok_eq(pool.lent_count, 1);
    ok_eq(oribi_mem_blocks(), blocks - 1);
    oribi_pool_put(&pool, a);
    ok(oribi_pool_try_get(&pool) == a);
    oribi_pool_put(&pool, a);
    oribi_pool_deinit(&pool);
}

static void test_memory_that_cannot_be_had_is_null(void)
{
    struct oribi_pool pool;
    oribi_pool_init(&pool, SIZE_MAX / 2 + 1, 1);
    ok(oribi_pool_try_get(&pool) == NULL);
    ok_eq(pool.lent_count, 0);
    oribi_pool_deinit(&pool);
}

int main(void)
{
    test_a_block_put_back_is_the_next_one_lent();
    test_no_more_blocks_are_kept_than_asked_for();
    test_a_pool_that_keeps_nothing_works();
    test_trimming_frees_what_is_not_lent();
    test_memory_that_cannot_be_had_is_null();
    return done_testing();
}
