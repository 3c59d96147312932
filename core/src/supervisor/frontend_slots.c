/* Memory of the counters of frontends (worker/frontend_slot.h). */
#include "supervisor/supervisor_private.h"

#include "oribi/base/log.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"

#include <sys/mman.h>

void oribi__frontends_make_slots(struct oribi__frontends *frontends)
{
    size_t bytes = ORIBI_FRONTENDS_MAX * sizeof(*frontends->set.slots);
    void *map = MAP_FAILED;
    if (oribi_process_shared_memory(bytes, &frontends->slots_fd) == 0)
        map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, frontends->slots_fd, 0);
    if (map != MAP_FAILED) {
        frontends->set.slots = map;
        return;
    }
    oribi_log(ORIBI_LOG_WARN, "no memory for the counters of frontends: status and metrics do not have them");
    oribi__close(&frontends->slots_fd);
}

void oribi__frontends_note_sole(struct oribi__frontends *frontends, bool sole)
{
    for (uint32_t i = 0; frontends->set.slots && i < frontends->set.count; i++)
        atomic_store_explicit(&frontends->set.slots[i].sole, sole, memory_order_relaxed);
}
