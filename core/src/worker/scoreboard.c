/* The shared mapping behind the scoreboard. Anonymous and MAP_SHARED: every process forked later sees the same
 * pages, nothing is left behind when the last one ends, and no name in a file system has to be found or guarded. A
 * program started by exec gets a descriptor instead. */
#include "oribi/worker/scoreboard.h"

#include "oribi/base/error.h"
#include "oribi/base/os.h"
#include "oribi/base/os_process.h"

#include <assert.h>
#include <sys/mman.h>

_Static_assert(sizeof(struct oribi_slot) % 128 == 0, "slots of two workers never share a cache line or its neighbour");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2,
               "an atomic with a lock inside cannot be shared between processes");

static int map_slots(struct oribi_scoreboard *board, uint32_t count, int flags, int fd)
{
    void *slots = mmap(NULL, count * sizeof(struct oribi_slot), PROT_READ | PROT_WRITE, flags, fd, 0);
    if (slots == MAP_FAILED)
        return ORIBI_ENOMEM;
    *board = (struct oribi_scoreboard){
        .slots = slots, .count = count, .fd = fd}; /* page-aligned, and the kernel zeroed it */
    return 0;
}

int oribi_scoreboard_create(struct oribi_scoreboard *board, uint32_t count)
{
    assert(count > 0 && count <= ORIBI_SLOTS_MAX);
    return map_slots(board, count, MAP_SHARED | MAP_ANONYMOUS, -1);
}

int oribi_scoreboard_create_named(struct oribi_scoreboard *board, uint32_t count)
{
    int fd;
    assert(count > 0 && count <= ORIBI_SLOTS_MAX);
    int code = oribi_process_shared_memory(count * sizeof(struct oribi_slot), &fd);
    if (code < 0)
        return code;
    code = oribi_scoreboard_attach(board, count, fd);
    if (code < 0)
        oribi_os_close(fd);
    return code;
}

int oribi_scoreboard_attach(struct oribi_scoreboard *board, uint32_t count, int fd)
{
    return map_slots(board, count, MAP_SHARED, fd);
}

void oribi_scoreboard_forget_idle_waiter(const struct oribi_scoreboard *board, struct oribi_slot *slot)
{
    if (atomic_exchange(&slot->is_idle_waiter, 0))
        atomic_fetch_sub(&board->slots[0].idle_waiters, 1);
}

void oribi_scoreboard_destroy(struct oribi_scoreboard *board)
{
    if (board->slots) {
        (void)munmap(board->slots, board->count * sizeof(struct oribi_slot)); /* fails for wrong arguments only */
        oribi_os_close(board->fd);
    }
    *board = (struct oribi_scoreboard){.fd = -1};
}
