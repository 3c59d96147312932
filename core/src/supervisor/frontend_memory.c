/* Shared mappings of frontends; see the header. */
#include "supervisor/frontend_memory.h"

#include "oribi/base/log.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

/* NULL: there is no memory, and no descriptor. */
static void *map_shared(size_t bytes, int *fd)
{
    void *map = MAP_FAILED;
    if (oribi_process_shared_memory(bytes, fd) == 0)
        map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
    if (map != MAP_FAILED)
        return map;
    oribi_os_close(*fd);
    *fd = -1;
    return NULL;
}

struct oribi_frontend_slot *oribi__frontend_slots_make(int *fd)
{
    struct oribi_frontend_slot *slots = map_shared(ORIBI_FRONTENDS_MAX * sizeof(*slots), fd);
    if (!slots)
        oribi_log(ORIBI_LOG_WARN, "no memory for the counters of frontends: status and metrics do not have them");
    return slots;
}

void oribi__frontend_tickets_turn(struct oribi_tls_tickets *tickets)
{
    uint8_t fresh[ORIBI_TLS_TICKET_KEY_BYTES];
    if (oribi_os_random(fresh, sizeof(fresh)) < 0)
        return;
    atomic_fetch_add(&tickets->version, 1);
    atomic_thread_fence(memory_order_release); /* no key goes before the odd number; partner: read_keys() */
    memmove(tickets->keys[1], tickets->keys[0], (ORIBI_TLS_TICKET_KEYS - 1) * sizeof(fresh));
    memcpy(tickets->keys[0], fresh, sizeof(fresh));
    atomic_fetch_add(&tickets->version, 1);
    explicit_bzero(fresh, sizeof(fresh));
}

struct oribi_tls_tickets *oribi__frontend_tickets_make(int *fd)
{
    struct oribi_tls_tickets *tickets = map_shared(sizeof(*tickets), fd);
    if (tickets)
        oribi__frontend_tickets_turn(tickets);
    else
        oribi_log(ORIBI_LOG_WARN, "no memory for the keys of session tickets: clients shake hands anew each time");
    return tickets;
}
