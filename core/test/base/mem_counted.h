/* The heap, counted, and failing on demand: definitions that stand in for base/mem.c in the test that includes this. */
#ifndef ORIBI_TEST_BASE_MEM_COUNTED_H
#define ORIBI_TEST_BASE_MEM_COUNTED_H

#include "oribi/base/mem.h"

#include <stdint.h>
#include <stdlib.h>

static uint64_t allocations;       /* of any kind, since somebody set it to 0 */
static uint64_t allocations_tried; /* those that may fail */
static uint64_t fail_at;           /* the allocations_tried-th fails; 0: none */
static int64_t memory_in_use;      /* blocks */

static int may_go_(void)
{
    allocations++;
    return ++allocations_tried != fail_at;
}

void *oribi_mem_try_alloc(size_t count, size_t size)
{
    void *p = may_go_() ? calloc(count, size) : NULL;
    memory_in_use += p != NULL;
    return p;
}

void *oribi_mem_alloc(size_t count, size_t size)
{
    allocations++;
    void *p = calloc(count, size);
    if (!p)
        abort();
    memory_in_use++;
    return p;
}

void *oribi_mem_try_resize(void *p, size_t count, size_t size)
{
    void *resized = may_go_() ? realloc(p, count * size) : NULL;
    memory_in_use += resized && !p;
    return resized;
}

void oribi_mem_free(void *p)
{
    memory_in_use -= p != NULL;
    free(p);
}

#endif
