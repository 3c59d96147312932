/* Memory that a burst of clients has left is given back to the system. A request in flight has some ten KB, a handshake
 * of TLS more; what thousands of them have freed lies in free lists, and in a heap that cannot shrink, since what they
 * have become lies between and behind it. Given back when such a burst is over for a while, and not in it: the next
 * requests would take the same pages again. */
#include "frontend/spare.h"
#include "frontend/frontend.h"
#include "frontend/upstream_request.h"
#include "frontend/websocket.h"

#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"

enum {
    FREED_MIN = 4096,      /* blocks: the requests in flight of a thousand clients, some MB */
    HANDSHAKE_BLOCKS = 16, /* that OpenSSL has for a handshake, or more; they are not counted */
    QUIET_MS = 1000,
};

static int64_t blocks_of(const struct oribi__frontend *frontend)
{
    return oribi_mem_blocks() + HANDSHAKE_BLOCKS * (int64_t)frontend->arrival_count;
}

static bool has_left_much(const struct oribi__spare *spare, int64_t blocks)
{
    return spare->most - blocks >= FREED_MIN;
}

static void on_look(void *self)
{
    struct oribi__frontend *frontend = self;
    struct oribi__spare *spare = frontend->spare;
    if (!has_left_much(spare, spare->lately))
        return; /* another burst has come; the next turn finds out when that is over */
    oribi_reactor_trim(&frontend->reactor);
    oribi__upstream_trim(frontend);
    oribi__websockets_trim(frontend->websockets);
    oribi_os_trim_memory();
    spare->most = spare->lately = blocks_of(frontend);
}

void oribi__spare_turn(struct oribi__frontend *frontend)
{
    struct oribi__spare *spare = frontend->spare;
    int64_t blocks = blocks_of(frontend);
    spare->lately = blocks > spare->lately ? blocks : spare->lately;
    spare->most = blocks > spare->most ? blocks : spare->most;
    if (!has_left_much(spare, blocks) || spare->look.place)
        return;
    spare->lately = blocks;
    spare->look = (struct oribi_timer){.expired = on_look, .owner = frontend};
    oribi_timers_arm(&frontend->timers, &spare->look, frontend->reactor.now_ms + QUIET_MS);
}
