/* For tests that ask for more memory than there is: a sanitizer's allocator must give NULL then, as malloc does,
 * instead of ending the test. */
#ifndef ORIBI_TEST_HUGE_H
#define ORIBI_TEST_HUGE_H

__attribute__((visibility("default"))) const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__tsan_default_options(void);

const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1";
}

#endif
