/* The memory of the application's metrics on its way to molds and successors. */
#include "observe/app_store.c"

#include "tap.h"

#include <string.h>

enum { MAX = 20 };

static struct oribi__app_store store;
static struct oribi__app_store other;

/* Sets the environment that a process started by exec finds; its descriptor has another number here. */
static void hand_down(const struct oribi__app_store *from)
{
    char text[ORIBI__APP_STORE_TEXT_CAP];
    struct oribi__app_store copy = *from;
    copy.fd = from->fd >= 0 ? oribi_os_dup(from->fd) : -1;
    oribi__app_store_text(&copy, text);
    ok(strncmp(text, "ORIBI_METRICS=", 14) == 0);
    (void)setenv("ORIBI_METRICS", text + 14, 1);
}

static void test_none(void)
{
    ok_eq(oribi__app_store_create(&store, 0), 0);
    ok(!store.view.head && store.fd < 0);
    hand_down(&store);
    oribi__app_store_inherit(&other);
    ok(!other.view.head && other.fd < 0);
    oribi__app_store_destroy(&store);
}

static void test_a_mold_has_its_supervisors(void)
{
    ok_eq(oribi__app_store_create(&store, MAX), 0);
    ok_eq(store.view.max, MAX);
    hand_down(&store);
    oribi__app_store_inherit(&other);
    ok(getenv("ORIBI_METRICS") == NULL);
    ok(other.view.head && other.view.max == MAX && other.view.server == 0);
    ok(oribi_metric_store_drop(&other.view, ORIBI_METRIC_NO_ROOM));
    ok(!oribi_metric_store_drop(&store.view, ORIBI_METRIC_NO_ROOM));
    oribi__app_store_destroy(&other);
    oribi__app_store_destroy(&store);
}

static void test_a_successor_has_its_predecessors(void)
{
    ok_eq(oribi__app_store_create(&store, MAX), 0);
    hand_down(&store);
    ok_eq(oribi__app_store_create(&other, MAX), 0);
    ok_eq(other.view.server, 1);
    ok(oribi_metric_store_drop(&other.view, ORIBI_METRIC_NO_ROOM));
    ok(!oribi_metric_store_drop(&store.view, ORIBI_METRIC_NO_ROOM));
    oribi__app_store_destroy(&store);
    hand_down(&other);
    oribi__app_store_inherit(&store);
    ok_eq(store.view.server, 1);
    oribi__app_store_destroy(&store);
    hand_down(&other);
    ok_eq(oribi__app_store_create(&store, MAX), 0);
    ok_eq(store.view.server, 2);
    oribi__app_store_destroy(&store);
    oribi__app_store_destroy(&other);
}

static void test_another_number_of_series_begins_anew(void)
{
    ok_eq(oribi__app_store_create(&store, MAX), 0);
    hand_down(&store);
    ok_eq(oribi__app_store_create(&other, MAX + 1), 0);
    ok(other.view.max == MAX + 1 && other.view.server == 0);
    oribi__app_store_destroy(&other);
    hand_down(&store);
    ok_eq(oribi__app_store_create(&other, 0), 0);
    ok(!other.view.head);
    oribi__app_store_destroy(&store);
}

static void test_what_is_no_store_is_left_alone(void)
{
    char text[64];
    const char *const texts[] = {"x", "1 2 3", "-1", "99999999999999999999 3 0", text, text + 32};
    (void)snprintf(text, 32, "%u 1 0", oribi_metric_store_layout());
    (void)snprintf(text + 32, 32, "%u 999 0", oribi_metric_store_layout());
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        (void)setenv("ORIBI_METRICS", texts[i], 1);
        ok_eq(oribi__app_store_create(&store, MAX), 0);
        ok_named(store.view.max == MAX && store.view.server == 0 && !getenv("ORIBI_METRICS"), "%s", texts[i]);
        oribi__app_store_destroy(&store);
    }
}

int main(void)
{
    test_none();
    test_a_mold_has_its_supervisors();
    test_a_successor_has_its_predecessors();
    test_another_number_of_series_begins_anew();
    test_what_is_no_store_is_left_alone();
    return done_testing();
}
