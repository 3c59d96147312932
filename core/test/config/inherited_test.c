/* Reading who hands sockets down. */
#include "config/inherited.c"

#include "child.h"
#include "tap.h"

static char error[ORIBI_ERROR_TEXT_CAP];
static struct oribi_inherited inherited;

static void clear_environment(void)
{
    oribi_inherited_clear();
    unsetenv("SERVER_STARTER_PORT");
}

static int read_with(const char *name, const char *value)
{
    clear_environment();
    setenv(name, value, 1);
    error[0] = '\0';
    int code = oribi_inherited_read(&inherited, error);
    clear_environment();
    return code;
}

/* Descriptors that are open for sure: duplicates of standard error at the numbers asked for. */
static void open_at(int number)
{
    if (dup2(STDERR_FILENO, number) < 0)
        exit(2);
}

static void test_an_empty_environment_hands_nothing_down(void)
{
    clear_environment();
    inherited.count = 9;
    ok_eq(oribi_inherited_read(&inherited, error), 0);
    ok_eq(inherited.count, 0);
    ok_eq(read_with("SERVER_STARTER_PORT", ""), 0);
    ok_eq(inherited.count, 0);
}

static void test_server_starter_names_ports_and_paths(void)
{
    ok_eq(read_with("SERVER_STARTER_PORT", "127.0.0.1:8080=30;9292=31;[::]:80=32;/run/x=y.sock=33"), 0);
    ok_eq(inherited.count, 4);
    for (int i = 0; i < 4; i++)
        ok(inherited.items[i].fd == 30 + i && inherited.items[i].origin == ORIBI_ORIGIN_STARTER &&
           !inherited.items[i].taken);
    ok_eq(read_with("SERVER_STARTER_PORT", "8080=30;"), 0);
    ok_eq(inherited.count, 1);
}

static void test_a_server_starter_value_that_cannot_be_read_is_an_error(void)
{
    static const char *const bad[] = {"8080", "=3",      "8080=",           "8080=x", "8080=3x",
                                      ";",    "8080=-1", "8080=2147483648", "a=30;b"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ok_eq(read_with("SERVER_STARTER_PORT", bad[i]), ORIBI_EINVAL);
        ok_named(strncmp(error, "SERVER_STARTER_PORT cannot be read: \"", 37) == 0, "%s", error);
    }
    ok_eq(read_with("SERVER_STARTER_PORT", "8080=799"), ORIBI_EINVAL);
    is_str(error, "SERVER_STARTER_PORT names descriptor 799, which is not open");
    ok_eq(read_with("SERVER_STARTER_PORT", "a=30;b=30"), ORIBI_EINVAL);
    is_str(error, "SERVER_STARTER_PORT names descriptor 30 twice");
}

static void test_64_sockets_can_be_handed_down_and_no_more(void)
{
    char value[2048] = "";
    size_t len = 0;
    for (int i = 0; i < ORIBI_LISTENERS_MAX; i++) {
        open_at(100 + i);
        len += (size_t)snprintf(value + len, sizeof(value) - len, "p=%d;", 100 + i);
    }
    ok_eq(read_with("SERVER_STARTER_PORT", value), 0);
    ok_eq(inherited.count, ORIBI_LISTENERS_MAX);
    open_at(100 + ORIBI_LISTENERS_MAX);
    snprintf(value + len, sizeof(value) - len, "p=%d;", 100 + ORIBI_LISTENERS_MAX);
    ok_eq(read_with("SERVER_STARTER_PORT", value), ORIBI_EINVAL);
    is_str(error, "SERVER_STARTER_PORT hands down more than 64 sockets");
}

static int read_systemd_names(void *data)
{
    char pid[32];
    (void)data;
    clear_environment();
    for (int fd = 3; fd < 7; fd++)
        open_at(fd);
    snprintf(pid, sizeof(pid), "%d", (int)getpid());
    setenv("LISTEN_PID", pid, 1);
    setenv("LISTEN_FDS", "4", 1);
    setenv("LISTEN_FDNAMES", "web::a-name-that-is-longer-than-sixty-three-bytes-is-cut-to-what-fits-here", 1);
    if (oribi_inherited_read(&inherited, error) != 0 || inherited.count != 4)
        return 1;
    for (int i = 0; i < 4; i++) {
        if (inherited.items[i].fd != 3 + i || inherited.items[i].origin != ORIBI_ORIGIN_SYSTEMD)
            return 2;
    }
    if (strcmp(inherited.items[0].name, "web") != 0 || *inherited.items[1].name ||
        strlen(inherited.items[2].name) != 63 || *inherited.items[3].name)
        return 3;
    setenv("LISTEN_FDS", "four", 1);
    if (oribi_inherited_read(&inherited, error) != ORIBI_EINVAL ||
        strcmp(error, "LISTEN_FDS is not a number: \"four\"") != 0)
        return 4;
    setenv("LISTEN_FDS", "4", 1);
    setenv("LISTEN_PID", "1", 1);
    if (oribi_inherited_read(&inherited, error) != 0 || inherited.count != 0)
        return 5;
    unsetenv("LISTEN_PID");
    return oribi_inherited_read(&inherited, error) == 0 && inherited.count == 0 ? 0 : 6;
}

static void test_systemd_sockets_have_names_and_an_addressee(void)
{
    ok_eq(child_code(read_systemd_names, NULL), 0);
}

static void test_our_own_variable_is_read_as_it_was_written(void)
{
    static struct oribi_listeners listeners;
    char value[ORIBI_INHERITED_TEXT_CAP];
    listeners.count = 3;
    listeners.items[0] = (struct oribi_listener){.fd = 30, .origin = ORIBI_ORIGIN_OWN, .spec = "tcp://localhost:0"};
    listeners.items[1] =
        (struct oribi_listener){.fd = 31, .origin = ORIBI_ORIGIN_STARTER, .spec = "unix:///run/a b;c=d"};
    listeners.items[2] = (struct oribi_listener){.fd = 32, .origin = ORIBI_ORIGIN_SYSTEMD, .spec = "fd://web"};
    size_t len = oribi_inherited_format(&listeners, value, sizeof(value));
    ok_eq(len, strlen(value));
    is_str(value, "30 o tcp://localhost:0\n31 s unix:///run/a b;c=d\n32 d fd://web");
    ok_eq(read_with("ORIBI_LISTEN", value), 0);
    ok_eq(inherited.count, 3);
    for (uint32_t i = 0; i < 3; i++)
        ok(inherited.items[i].fd == listeners.items[i].fd && inherited.items[i].origin == listeners.items[i].origin &&
           strcmp(inherited.items[i].spec, listeners.items[i].spec) == 0);
    ok_eq(oribi_inherited_format(&listeners, value, 40), 22); /* whole lines only */
    is_str(value, "30 o tcp://localhost:0");
    listeners.count = 0;
    ok_eq(oribi_inherited_format(&listeners, value, sizeof(value)), 0);
}

static void test_the_largest_set_fits_its_room(void)
{
    static struct oribi_listeners listeners;
    char value[ORIBI_INHERITED_TEXT_CAP];
    listeners.count = ORIBI_LISTENERS_MAX;
    for (int i = 0; i < ORIBI_LISTENERS_MAX; i++) {
        struct oribi_listener *item = &listeners.items[i];
        *item = (struct oribi_listener){.fd = 2147483000 + i, .origin = ORIBI_ORIGIN_OWN};
        memset(item->spec, 'x', sizeof(item->spec) - 1);
    }
    size_t len = oribi_inherited_format(&listeners, value, sizeof(value));
    ok_eq(len, ORIBI_LISTENERS_MAX * (10 + 3 + ORIBI_ADDRESS_TEXT_CAP - 1) + ORIBI_LISTENERS_MAX - 1);
}

static void test_our_own_variable_in_disorder_is_an_error(void)
{
    char longest[300] = "30 o ";
    static const char *const bad[] = {"30", "x o a", "30 o", "30 o ", "30 q a", "30o a", "30 o a\n31 o", " ", "30 oa"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ok_eq(read_with("ORIBI_LISTEN", bad[i]), ORIBI_EINVAL);
        ok_named(strncmp(error, "ORIBI_LISTEN cannot be read: \"", 30) == 0, "%s", error);
    }
    memset(longest + 5, 's', ORIBI_ADDRESS_TEXT_CAP - 1);
    ok_eq(read_with("ORIBI_LISTEN", longest), 0);
    longest[5 + ORIBI_ADDRESS_TEXT_CAP - 1] = 's';
    ok_eq(read_with("ORIBI_LISTEN", longest), ORIBI_EINVAL);
}

static void test_our_own_variable_comes_first(void)
{
    clear_environment();
    setenv("ORIBI_LISTEN", "30 o tcp://a:1", 1);
    setenv("SERVER_STARTER_PORT", "8080=31", 1);
    ok_eq(oribi_inherited_read(&inherited, error), 0);
    ok(inherited.count == 1 && inherited.items[0].fd == 30);
    oribi_inherited_clear();
    ok(getenv("ORIBI_LISTEN") == NULL && getenv("SERVER_STARTER_PORT") != NULL);
    ok_eq(oribi_inherited_read(&inherited, error), 0);
    ok(inherited.count == 1 && inherited.items[0].fd == 31);
    clear_environment();
}

int main(void)
{
    for (int fd = 30; fd < 34; fd++)
        open_at(fd);
    test_an_empty_environment_hands_nothing_down();
    test_server_starter_names_ports_and_paths();
    test_a_server_starter_value_that_cannot_be_read_is_an_error();
    test_64_sockets_can_be_handed_down_and_no_more();
    test_systemd_sockets_have_names_and_an_addressee();
    test_our_own_variable_is_read_as_it_was_written();
    test_the_largest_set_fits_its_room();
    test_our_own_variable_in_disorder_is_an_error();
    test_our_own_variable_comes_first();
    return done_testing();
}
