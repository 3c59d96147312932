/* The heap wrapper: zeroed, overflow-checked, loud. */
#include "base/mem.c"

#include "oribi/base/log.h"

#include "child.h"
#include "huge.h"
#include "tap.h"

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>

static void test_memory_is_zeroed(void)
{
    unsigned char *p = oribi_mem_try_alloc(1000, 3);
    bool zero = p != NULL;
    for (size_t i = 0; zero && i < 3000; i++)
        zero = p[i] == 0;
    ok(zero);
    oribi_mem_free(p);
}

static void test_an_overflowing_product_is_out_of_memory(void)
{
    volatile size_t huge = SIZE_MAX / 2 + 1;
    ok(oribi_mem_try_alloc(huge, 2) == NULL);
    ok(oribi_mem_try_resize(NULL, huge, 2) == NULL);
    void *p = oribi_mem_alloc(16, 1);
    memcpy(p, "still the same!", 16);
    ok(oribi_mem_try_resize(p, huge, 4) == NULL);
    is_str((char *)p, "still the same!");
    oribi_mem_free(p);
}

static void test_resize_keeps_what_was_there(void)
{
    char *p = oribi_mem_try_resize(NULL, 4, 1);
    memcpy(p, "abc", 4);
    p = oribi_mem_try_resize(p, 100000, 1);
    is_str(p, "abc");
    oribi_mem_free(p);
}

static void test_freeing_nothing_is_allowed(void)
{
    oribi_mem_free(NULL);
    pass("free of NULL");
}

static void test_blocks_are_counted(void)
{
    int64_t before = oribi_mem_blocks();
    void *one = oribi_mem_alloc(1, 10);
    void *two = oribi_mem_try_resize(NULL, 10, 1);
    ok_eq(oribi_mem_blocks(), before + 2);
    two = oribi_mem_try_resize(two, 100, 1);
    volatile size_t huge = SIZE_MAX / 2 + 1;
    ok(oribi_mem_try_alloc(huge, 2) == NULL && oribi_mem_try_resize(two, huge, 2) == NULL);
    ok_eq(oribi_mem_blocks(), before + 2);
    oribi_mem_free(NULL);
    oribi_mem_free(one);
    oribi_mem_free(two);
    ok_eq(oribi_mem_blocks(), before);
}

static int use_all_memory(void *data)
{
    __attribute__((unused)) struct rlimit limit = {1 << 30, 1 << 30};
    struct rlimit no_core = {0, 0};
    (void)data;
    setrlimit(RLIMIT_CORE, &no_core);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* their shadow memory alone is larger */
    setrlimit(RLIMIT_AS, &limit);
#endif
    oribi_log_init(open("/dev/null", O_WRONLY), ORIBI_LOG_ERROR);
    volatile size_t too_much = SIZE_MAX / 2 + 1; /* compilers warn of a constant */
    return oribi_mem_alloc(too_much, 1) != NULL;
}

static void test_alloc_ends_the_process_when_memory_is_out(void)
{
    ok_eq(child_code(use_all_memory, NULL), ORIBI_EXIT_MEMORY);
}

int main(void)
{
    test_memory_is_zeroed();
    test_an_overflowing_product_is_out_of_memory();
    test_resize_keeps_what_was_there();
    test_freeing_nothing_is_allowed();
    test_blocks_are_counted();
    test_alloc_ends_the_process_when_memory_is_out();
    return done_testing();
}
