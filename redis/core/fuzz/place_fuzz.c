/* A URL of a Redis: every text of a place ends within its array, what is refused changes nothing and says why without
 * the URL, and a place that was read is one that sockets can have. */
#include "oribi/base/mem.h"
#include "oribi/redis/place.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ENDS(text)                                                                                                     \
    do {                                                                                                               \
        if (!memchr(text, '\0', sizeof(text)))                                                                         \
            abort();                                                                                                   \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *url = oribi_mem_alloc(1, size + 1);
    memcpy(url, data, size);
    struct oribi_redis_place place, before;
    memset(&place, 'x', sizeof(place));
    oribi_redis_place_init(&place);
    before = place;
    const char *why = oribi_redis_place_read(&place, oribi_slice(url, size));
    if (why && (!*why || memcmp(&place, &before, sizeof(place)) != 0))
        abort();
    ENDS(place.host);
    ENDS(place.path);
    ENDS(place.user);
    ENDS(place.password);
    if ((place.path[0] != '\0') == (place.host[0] != '\0') || (place.path[0] && place.path[0] != '/'))
        abort();
    if (place.port == 0 || place.db < 0 || place.db > ORIBI_REDIS_DB_MAX || (place.password[0] && !place.has_password))
        abort();
    oribi_mem_free(url);
    return 0;
}
