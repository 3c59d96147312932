/* The memory of the application's metrics. */
#include "oribi/observe/context.h"

#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Takes fd on success. */
static int map(struct oribi__app_store *store, int fd, uint32_t server)
{
    size_t bytes;
    int code = oribi_process_shared_memory_size(fd, &bytes);
    if (code < 0)
        return code;
    uint32_t max = oribi_metric_store_max(bytes);
    void *memory = max ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (memory == MAP_FAILED)
        return ORIBI_ENOMEM;
    *store = (struct oribi__app_store){.memory = memory, .bytes = bytes, .fd = fd};
    oribi_metric_store_at(&store->view, memory, max);
    store->view.server = server;
    return 0;
}

/* Takes the store that ORIBI_METRICS names, and clears that. False: it names none. */
static bool take(struct oribi__app_store *store)
{
    unsigned layout = 0;
    unsigned server = 0;
    int fd = -1;
    const char *text = getenv("ORIBI_METRICS");
    int n = sscanf(text ? text : "", "%u %d %u", &layout, &fd, &server);
    bool given = text && *text;
    (void)unsetenv("ORIBI_METRICS"); /* fails for names with `=` only */
    *store = (struct oribi__app_store){.fd = -1};
    if (!given)
        return false;
    if (n == 3 && layout == oribi_metric_store_layout() && fd > 2 && oribi_os_set_cloexec(fd, true) == 0 &&
        map(store, fd, server) == 0)
        return true;
    oribi_log(ORIBI_LOG_WARN, "the application's metrics of the server before cannot be read; they begin at 0");
    return false;
}

int oribi__app_store_create(struct oribi__app_store *store, uint32_t series_max)
{
    int fd;
    bool taken = take(store);
    if (taken && store->view.max == series_max) {
        oribi_metric_store_take_over(&store->view);
        return 0;
    }
    if (taken && series_max)
        oribi_log(ORIBI_LOG_WARN, "metrics_max is %u now and was %u: the application's metrics begin at 0", series_max,
                  store->view.max);
    oribi__app_store_destroy(store);
    if (series_max == 0)
        return 0;
    int code = oribi_process_shared_memory(oribi_metric_store_bytes(series_max), &fd);
    if (code == 0 && (code = map(store, fd, 0)) < 0)
        oribi_os_close(fd);
    return code;
}

void oribi__app_store_inherit(struct oribi__app_store *store)
{
    (void)take(store); /* without one nothing is kept */
}

void oribi__app_store_text(const struct oribi__app_store *store, char text[ORIBI__APP_STORE_TEXT_CAP])
{
    (void)snprintf(text, ORIBI__APP_STORE_TEXT_CAP, "ORIBI_METRICS="); /* fits, as the other does */
    if (store->memory)
        (void)snprintf(text, ORIBI__APP_STORE_TEXT_CAP, "ORIBI_METRICS=%u %d %u", oribi_metric_store_layout(),
                       store->fd, store->view.server);
}

void oribi__app_store_destroy(struct oribi__app_store *store)
{
    if (store->memory)
        (void)munmap(store->memory, store->bytes); /* fails for wrong arguments only */
    oribi_os_close(store->fd);
    *store = (struct oribi__app_store){.fd = -1};
}
