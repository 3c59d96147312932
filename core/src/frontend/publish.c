/* Publishing, in this frontend alone. */
#include "frontend/publish.h"

#include "frontend/frontend.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/os/os.h"

enum { SUBSCRIPTIONS_MAX = 1000000 };

int oribi__publish_init(struct oribi__frontend *frontend)
{
    struct oribi__topics_config config = {.subscriptions_max = SUBSCRIPTIONS_MAX};
    uint64_t number = (frontend->config->channel_first - 1) / (ORIBI_CHANNELS_MAX / ORIBI_FRONTENDS_MAX);
    config.epoch = (uint64_t)oribi_clock_wall_ms() * ORIBI_FRONTENDS_MAX + number;
    (void)oribi_os_random(&config.seed, sizeof(config.seed)); /* else names can be chosen that are slow to find */
    frontend->topics = oribi__topics_create(&config);
    return frontend->topics ? 0 : ORIBI_ENOMEM;
}

void oribi__publish_deinit(struct oribi__frontend *frontend)
{
    oribi__topics_destroy(frontend->topics);
}

void oribi__publish_turn(struct oribi__frontend *frontend)
{
    int64_t now_ms = frontend->reactor.now_ms;
    if (oribi__topics_due(frontend->topics) <= now_ms)
        oribi__topics_expire(frontend->topics, now_ms);
}

int oribi__publish_from_call(struct oribi__frontend *frontend, const struct oribi__publication *publication)
{
    struct oribi__position position;
    int64_t count = oribi__publish(frontend->topics, publication, &position);
    return count < 0 ? (int)count : 0;
}
