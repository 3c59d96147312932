/* Inputs laid against a guard page: reading one byte past their end is a SIGSEGV, also in SIMD code that a sanitizer
 * cannot see.
 *
 *     [ page ][ ......... input ][ PROT_NONE ]       guard_copy:       over-reads crash
 *     [ PROT_NONE ][ input ......... ]               guard_copy_front: under-reads crash
 */
#ifndef ORIBI_TEST_GUARD_H
#define ORIBI_TEST_GUARD_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct guard {
    char *p;  /* the copy */
    size_t n; /* its length */
    /* private */
    char *map;
    size_t map_len;
};

__attribute__((unused)) static struct guard guard_map_(size_t n, int at_end)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t body = (n + page - 1) / page * page;
    if (body == 0)
        body = page;
    struct guard guard = {.n = n, .map_len = body + 2 * page};
    guard.map = mmap(NULL, guard.map_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (guard.map == MAP_FAILED || mprotect(guard.map, page, PROT_NONE) != 0 ||
        mprotect(guard.map + page + body, page, PROT_NONE) != 0) {
        perror("guard");
        exit(2);
    }
    guard.p = at_end ? guard.map + page + body - n : guard.map + page;
    return guard;
}

/* n writable bytes whose end touches the guard page. Give them back with guard_free. */
__attribute__((unused)) static struct guard guard_alloc(size_t n)
{
    return guard_map_(n, 1);
}

/* A copy of [p, p+n) whose end touches the guard page. */
__attribute__((unused)) static struct guard guard_copy(const void *p, size_t n)
{
    struct guard guard = guard_map_(n, 1);
    if (n)
        memcpy(guard.p, p, n);
    return guard;
}

/* A copy of a string without its NUL, its end touching the guard page. */
__attribute__((unused)) static struct guard guard_str(const char *text)
{
    return guard_copy(text, strlen(text));
}

/* A copy whose first byte touches the guard page: reading backwards crashes. */
__attribute__((unused)) static struct guard guard_copy_front(const void *p, size_t n)
{
    struct guard guard = guard_map_(n, 0);
    if (n)
        memcpy(guard.p, p, n);
    return guard;
}

__attribute__((unused)) static void guard_free(struct guard *guard)
{
    if (guard->map)
        munmap(guard->map, guard->map_len);
    *guard = (struct guard){0};
}

/* Lays many inputs of at most `cap` bytes against one guard page, for loops where a mapping per input would
 * dominate. */
__attribute__((unused)) static char *guard_place(struct guard *arena, const void *p, size_t n)
{
    char *dst = arena->p + arena->n - n;
    if (n)
        memcpy(dst, p, n);
    return dst;
}

#endif
