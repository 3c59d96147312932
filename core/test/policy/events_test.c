/* The supervisor's own events: their order, their texts, and a queue that is full. */
#include "policy/policy.c"

#include "tap.h"

#include <string.h>

static struct oribi_policy_event exited(int32_t pid)
{
    return (struct oribi_policy_event){.type = ORIBI_EVENT_EXITED, .pid = pid};
}

static void test_events_come_out_in_their_order(void)
{
    struct oribi__events events = {0};
    struct oribi_policy_event event;
    ok(!oribi__events_pop(&events, &event));
    for (int32_t round = 0; round < 3 * ORIBI__EVENTS_MAX; round++) { /* the ring goes round */
        struct oribi_policy_event first = exited(2 * round);
        struct oribi_policy_event second = exited(2 * round + 1);
        ok(oribi__events_push(&events, &first) && oribi__events_push(&events, &second));
        ok(oribi__events_pop(&events, &event) && event.pid == 2 * round);
        ok(oribi__events_pop(&events, &event) && event.pid == 2 * round + 1);
    }
    ok(!oribi__events_pop(&events, &event));
}

/* The words of the system's last failure are overwritten by its next one. */
static void test_a_text_is_copied_and_cut(void)
{
    struct oribi__events events = {0};
    struct oribi_policy_event event = {.type = ORIBI_EVENT_UPGRADE_STARTED, .pid = -1};
    char text[2 * ORIBI__EVENT_TEXT_CAP];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    event.text = text;
    ok(oribi__events_push(&events, &event));
    memset(text, 'y', sizeof(text) - 1);
    ok(oribi__events_pop(&events, &event));
    ok_eq(strlen(event.text), ORIBI__EVENT_TEXT_CAP - 1);
    ok_eq(strspn(event.text, "x"), ORIBI__EVENT_TEXT_CAP - 1);
    event = exited(7);
    ok(oribi__events_push(&events, &event) && oribi__events_pop(&events, &event) && event.text == NULL);
}

static void test_a_full_queue_refuses_and_loses_nothing(void)
{
    struct oribi__events events = {0};
    struct oribi_policy_event event;
    for (int32_t pid = 1; pid <= ORIBI__EVENTS_MAX; pid++) {
        event = exited(pid);
        ok(oribi__events_push(&events, &event));
    }
    event = exited(ORIBI__EVENTS_MAX + 1);
    ok(!oribi__events_push(&events, &event));
    for (int32_t pid = 1; pid <= ORIBI__EVENTS_MAX; pid++)
        ok(oribi__events_pop(&events, &event) && event.pid == pid);
    ok(!oribi__events_pop(&events, &event));
    event = exited(4711);
    ok(oribi__events_push(&events, &event));
}

int main(void)
{
    test_events_come_out_in_their_order();
    test_a_text_is_copied_and_cut();
    test_a_full_queue_refuses_and_loses_nothing();
    return done_testing();
}
