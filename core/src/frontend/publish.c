/* Publishing, in this frontend alone. */
#include "frontend/publish.h"

#include "frontend/frontend.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/os/os.h"
#include "oribi/config/history.h"

#include <string.h>

/* Makes the store as the options say. NULL: out of memory. */
static struct oribi__topics *create(const struct oribi_options *options, uint64_t epoch)
{
    struct oribi__history_rule rules[ORIBI__HISTORIES_MAX];
    char prefixes[ORIBI__HISTORIES_MAX][ORIBI__TOPIC_NAME_BYTES_MAX + 1];
    struct oribi__topics_config config = {.rules = rules,
                                          .history_memory_max = (size_t)options->history_memory_max,
                                          .subscriptions_max = options->subscriptions_max,
                                          .epoch = epoch};
    for (size_t i = 0; i < options->history.count && config.rule_count < ORIBI__HISTORIES_MAX; i++) {
        struct oribi_history history;
        char error[ORIBI_ERROR_TEXT_CAP];
        char *prefix = prefixes[config.rule_count];
        if (oribi_history_read(options->history.items[i], &history, error) < 0)
            continue; /* the supervisor has refused it */
        memcpy(prefix, history.prefix.p, history.prefix.n);
        prefix[history.prefix.n] = '\0';
        rules[config.rule_count++] = (struct oribi__history_rule){prefix, history.messages_max, history.age_max_ms};
    }
    (void)oribi_os_random(&config.seed, sizeof(config.seed)); /* else names can be chosen that are slow to find */
    return oribi__topics_create(&config);
}

int oribi__publish_init(struct oribi__frontend *frontend)
{
    uint64_t number = (frontend->config->channel_first - 1) / (ORIBI_CHANNELS_MAX / ORIBI_FRONTENDS_MAX);
    frontend->topics =
        create(frontend->config->options, (uint64_t)oribi_clock_wall_ms() * ORIBI_FRONTENDS_MAX + number);
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
