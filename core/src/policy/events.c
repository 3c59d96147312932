/* A ring of a few events; texts are copied, because the system's next failure overwrites the words of the last. */
#include "oribi/policy/events.h"

#include <stdio.h>

bool oribi__events_push(struct oribi__events *events, const struct oribi_policy_event *event)
{
    if (events->count == ORIBI__EVENTS_MAX)
        return false;
    uint32_t at = (events->first + events->count++) % ORIBI__EVENTS_MAX;
    events->items[at] = *event;
    if (!event->text)
        return true;
    (void)snprintf(events->texts[at], ORIBI__EVENT_TEXT_CAP, "%.*s", ORIBI__EVENT_TEXT_CAP - 1, event->text);
    events->items[at].text = events->texts[at];
    return true;
}

bool oribi__events_pop(struct oribi__events *events, struct oribi_policy_event *event)
{
    if (events->count == 0)
        return false;
    *event = events->items[events->first];
    events->first = (events->first + 1) % ORIBI__EVENTS_MAX;
    events->count--;
    return true;
}
