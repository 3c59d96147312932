/* The heap, counted, and failing on demand: definitions that stand in for base/mem.c in the test that includes this. */
#ifndef ORIBI_TEST_BASE_MEM_COUNTED_H
#define ORIBI_TEST_BASE_MEM_COUNTED_H

#include "oribi/base/mem.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

static uint64_t allocations;          /* of any kind, since a test set it to 0 */
static uint64_t allocations_tried;    /* those that may fail */
static uint64_t fail_at;              /* the allocations_tried-th fails; 0: none */
static _Atomic int64_t memory_in_use; /* blocks; the writer's thread frees some */
static _Atomic int64_t memory_bytes;  /* of these blocks, as the allocator spends them: its own fields included */

static void *counted_(void *p, int sign)
{
    if (p) {
        memory_in_use += sign;
        memory_bytes += sign * (int64_t)(malloc_usable_size(p) + sizeof(size_t));
    }
    return p;
}

/* Where the failures were: one more place in the code each time that a new one asks. */
static void *failed_places[64];
static uint32_t failed_place_count;

static void note_place_(void *place)
{
    for (uint32_t i = 0; i < failed_place_count; i++)
        if (failed_places[i] == place)
            return;
    if (failed_place_count < sizeof(failed_places) / sizeof(failed_places[0]))
        failed_places[failed_place_count++] = place;
}

static int may_go_(void *place)
{
    allocations++;
    if (++allocations_tried != fail_at)
        return 1;
    note_place_(place);
    return 0;
}

void *oribi_mem_try_alloc(size_t count, size_t size)
{
    return counted_(may_go_(__builtin_return_address(0)) ? calloc(count, size) : NULL, 1);
}

void *oribi_mem_alloc(size_t count, size_t size)
{
    allocations++;
    void *p = calloc(count, size);
    if (!p)
        _exit(ORIBI_EXIT_MEMORY);
    return counted_(p, 1);
}

void *oribi_mem_try_resize(void *p, size_t count, size_t size)
{
    if (!may_go_(__builtin_return_address(0)))
        return NULL;
    (void)counted_(p, -1);
    void *resized = realloc(p, count * size);
    (void)counted_(resized ? resized : p, 1);
    return resized;
}

void oribi_mem_free(void *p)
{
    free(counted_(p, -1));
}

int64_t oribi_mem_blocks(void)
{
    return memory_in_use;
}

#endif
