/* When a title is due, against a clock that the test sets, and a process that is only a slot. */
#include "supervisor/title.c"

#include "tap.h"

static int64_t now_ms = 5000000;
static struct oribi_slot slot;
static int shown;

/* These stand in for the library's. */
int64_t oribi_clock_ms(void)
{
    return now_ms;
}

struct oribi_slot *oribi_process_slot(struct oribi_process *process)
{
    return &slot;
}

size_t oribi_process_title(struct oribi_process *process, char *dst, size_t cap)
{
    shown++;
    return 1;
}

static struct oribi_title title;

static void begin(void)
{
    slot = (struct oribi_slot){0};
    shown = 0;
    oribi_title_init(&title, (struct oribi_process *)&slot);
}

static void tell(void)
{
    char text[8];
    (void)oribi_title_text(&title, text, sizeof(text));
}

static void start_call(void)
{
    atomic_store(&slot.call_started_us, now_ms * 1000);
}

static void end_call(void)
{
    atomic_store(&slot.call_started_us, 0);
    atomic_fetch_add(&slot.request_count, 1);
}

static void test_without_a_process_nothing_is_due(void)
{
    struct oribi_title none = {0};
    ok(!oribi_title_in_call(&none));
    ok_eq(oribi_title_at_rest(&none, now_ms), -1);
}

static void test_the_first_is_due_at_once_and_then_when_something_has_changed(void)
{
    begin();
    ok_eq(oribi_title_at_rest(&title, now_ms), 0);
    tell();
    now_ms += 10000;
    ok_eq(oribi_title_at_rest(&title, now_ms), -1);
    start_call();
    end_call();
    ok_eq(oribi_title_at_rest(&title, now_ms), 0);
}

static void test_at_rest_it_waits_until_a_second_has_passed(void)
{
    begin();
    tell();
    start_call();
    end_call();
    ok_eq(oribi_title_at_rest(&title, now_ms), 1000);
    ok_eq(oribi_title_at_rest(&title, now_ms + 999), 1);
    ok_eq(oribi_title_at_rest(&title, now_ms + 1000), 0);
}

static void test_a_call_shows_when_none_was_shown_for_a_second(void)
{
    begin();
    start_call();
    ok(oribi_title_in_call(&title));
    tell();
    end_call();
    tell(); /* a rest in between does not count */
    now_ms += 999;
    start_call();
    ok(!oribi_title_in_call(&title));
    end_call();
    now_ms++;
    start_call();
    ok(oribi_title_in_call(&title));
    tell();
    ok(!oribi_title_in_call(&title));
    end_call();
}

static void test_who_was_told_to_be_busy_is_told_to_rest_at_once(void)
{
    begin();
    start_call();
    tell();
    end_call();
    ok_eq(oribi_title_at_rest(&title, now_ms), 0);
    tell();
    ok_eq(oribi_title_at_rest(&title, now_ms), -1);
    ok_eq(shown, 2);
}

int main(void)
{
    test_without_a_process_nothing_is_due();
    test_the_first_is_due_at_once_and_then_when_something_has_changed();
    test_at_rest_it_waits_until_a_second_has_passed();
    test_a_call_shows_when_none_was_shown_for_a_second();
    test_who_was_told_to_be_busy_is_told_to_rest_at_once();
    return done_testing();
}
