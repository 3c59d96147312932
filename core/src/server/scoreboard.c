/* The shared mapping behind the scoreboard. Anonymous and MAP_SHARED: every process forked later sees the same pages, nothing is left behind
 * when the last one ends, and no name in a file system has to be found or guarded. */
#include "oribi/server/scoreboard.h"

#include "oribi/base/error.h"

#include <assert.h>
#include <sys/mman.h>

_Static_assert(sizeof(struct oribi_slot) % 128 == 0, "slots of two workers never share a cache line or its neighbour");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2,
               "an atomic with a lock inside cannot be shared between processes");

int oribi_scoreboard_create(struct oribi_scoreboard *board, uint32_t count)
{
    assert(count > 0 && count <= ORIBI_SLOTS_MAX);
    void *slots =
        mmap(NULL, count * sizeof(struct oribi_slot), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (slots == MAP_FAILED)
        return ORIBI_ENOMEM;
    board->slots = slots; /* page-aligned, and the kernel zeroed it */
    board->count = count;
    return 0;
}

void oribi_scoreboard_destroy(struct oribi_scoreboard *board)
{
    if (board->slots)
        (void)munmap(board->slots, board->count * sizeof(struct oribi_slot)); /* fails for wrong arguments only */
    *board = (struct oribi_scoreboard){0};
}
