/* The keys of session tickets, which all frontends have in a mapping of their own. */
#include "supervisor/supervisor_private.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"

#include <string.h>
#include <sys/mman.h>

enum { TICKETS_MS = 8 * 3600 * 1000 }; /* RFC 8446 C.4: keys live for hours */

void oribi__frontends_turn_tickets(struct oribi__frontends *frontends, int64_t now_ms)
{
    struct oribi_tls_tickets *tickets = frontends->tickets;
    uint8_t fresh[ORIBI_TLS_TICKET_KEY_BYTES];
    if (!tickets || oribi_os_random(fresh, sizeof(fresh)) < 0)
        return;
    atomic_fetch_add(&tickets->version, 1);
    atomic_thread_fence(memory_order_release); /* no key goes before the odd number; partner: read_keys() */
    memmove(tickets->keys[1], tickets->keys[0], (ORIBI_TLS_TICKET_KEYS - 1) * sizeof(fresh));
    memcpy(tickets->keys[0], fresh, sizeof(fresh));
    atomic_fetch_add(&tickets->version, 1);
    explicit_bzero(fresh, sizeof(fresh));
    frontends->tickets_at = now_ms + TICKETS_MS;
}

void oribi__frontends_make_tickets(struct oribi__frontends *frontends)
{
    void *map = MAP_FAILED;
    if (oribi_process_shared_memory(sizeof(struct oribi_tls_tickets), &frontends->tickets_fd) == 0)
        map =
            mmap(NULL, sizeof(struct oribi_tls_tickets), PROT_READ | PROT_WRITE, MAP_SHARED, frontends->tickets_fd, 0);
    if (map == MAP_FAILED) {
        oribi_log(ORIBI_LOG_WARN, "no memory for the keys of session tickets: clients shake hands anew each time");
        oribi__close(&frontends->tickets_fd);
        return;
    }
    frontends->tickets = map;
    oribi__frontends_turn_tickets(frontends, oribi_clock_ms());
}
