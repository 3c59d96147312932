/* Allocations that may fail, each of which a test can make fail. Included by one source of a test, before all else: its
 * definitions go before those of the library. Small allocations of our own end the process (base/mem.h) and are left
 * out. */
#ifndef ORIBI_TEST_FAILING_H
#define ORIBI_TEST_FAILING_H

#include <stddef.h>

#define oribi_mem_try_alloc  real_try_alloc
#define oribi_mem_try_resize real_try_resize
void *real_try_alloc(size_t count, size_t size);
void *real_try_resize(void *p, size_t count, size_t size);
#include "base/mem.c"
#define oribi_buf_try_reserve real_try_reserve
#define oribi_buf_try_append  real_try_append
struct oribi_buf;
char *real_try_reserve(struct oribi_buf *buf, size_t more);
int real_try_append(struct oribi_buf *buf, const void *p, size_t n);
#include "base/buf.c"
#undef oribi_mem_try_alloc
#undef oribi_mem_try_resize
#undef oribi_buf_try_reserve
#undef oribi_buf_try_append

static uint32_t asked;   /* allocations so far */
static uint32_t fail_at; /* which of them fails; 0: none */

void *oribi_mem_try_alloc(size_t count, size_t size);
void *oribi_mem_try_resize(void *p, size_t count, size_t size);
char *oribi_buf_try_reserve(struct oribi_buf *buf, size_t more);
int oribi_buf_try_append(struct oribi_buf *buf, const void *p, size_t n);

static bool fails(void)
{
    return ++asked == fail_at;
}

void *oribi_mem_try_alloc(size_t count, size_t size)
{
    return fails() ? NULL : real_try_alloc(count, size);
}

void *oribi_mem_try_resize(void *p, size_t count, size_t size)
{
    return fails() ? NULL : real_try_resize(p, count, size);
}

char *oribi_buf_try_reserve(struct oribi_buf *buf, size_t more)
{
    bool fits = buf->p && more <= buf->cap - buf->len;
    return !fits && fails() ? NULL : real_try_reserve(buf, more);
}

int oribi_buf_try_append(struct oribi_buf *buf, const void *p, size_t n)
{
    if (n == 0)
        return 0;
    return oribi_buf_try_reserve(buf, n) ? real_try_append(buf, p, n) : ORIBI_ENOMEM;
}

#endif
