/* The grammar of listening addresses. */
#include "config/address.c"

#include "tap.h"

static char error[ORIBI_ERROR_TEXT_CAP];

static void test_spellings_of_one_address_are_equal(void)
{
    static const struct {
        const char *text;
        const char *canonical;
        enum oribi_address_type type;
    } cases[] = {
        {"tcp://127.0.0.1:9292", "tcp://127.0.0.1:9292", ORIBI_ADDRESS_TCP},
        {"127.0.0.1:9292", "tcp://127.0.0.1:9292", ORIBI_ADDRESS_TCP},
        {"127.0.0.1:09292", "tcp://127.0.0.1:9292", ORIBI_ADDRESS_TCP},
        {"localhost:80", "tcp://localhost:80", ORIBI_ADDRESS_TCP},
        {"my-host.example:65535", "tcp://my-host.example:65535", ORIBI_ADDRESS_TCP},
        {"tcp://[::1]:9292", "tcp://[::1]:9292", ORIBI_ADDRESS_TCP},
        {"[::1]:9292", "tcp://[::1]:9292", ORIBI_ADDRESS_TCP},
        {"[fe80::1%eth0]:1", "tcp://[fe80::1%eth0]:1", ORIBI_ADDRESS_TCP},
        {":5001", "tcp://0.0.0.0:5001", ORIBI_ADDRESS_TCP},
        {"*:5001", "tcp://0.0.0.0:5001", ORIBI_ADDRESS_TCP},
        {"tcp://:5001", "tcp://0.0.0.0:5001", ORIBI_ADDRESS_TCP},
        {"5001", "tcp://0.0.0.0:5001", ORIBI_ADDRESS_TCP},
        {"0", "tcp://0.0.0.0:0", ORIBI_ADDRESS_TCP},
        {"unix:///run/app.sock", "unix:///run/app.sock", ORIBI_ADDRESS_UNIX},
        {"unix:/run/app.sock", "unix:///run/app.sock", ORIBI_ADDRESS_UNIX},
        {"/run/app.sock", "unix:///run/app.sock", ORIBI_ADDRESS_UNIX},
        {"unix://tmp/app.sock", "unix://tmp/app.sock", ORIBI_ADDRESS_UNIX},
        {"tmp/app.sock", "unix://tmp/app.sock", ORIBI_ADDRESS_UNIX},
        {"./app.sock", "unix://./app.sock", ORIBI_ADDRESS_UNIX},
        {"unix://app.sock", "unix://app.sock", ORIBI_ADDRESS_UNIX},
        {"/run/odd:80", "unix:///run/odd:80", ORIBI_ADDRESS_UNIX},
        {"fd://3", "fd://3", ORIBI_ADDRESS_FD},
        {"fd://web", "fd://web", ORIBI_ADDRESS_FD},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct oribi_address address;
        error[0] = '\0';
        int code = oribi_address_parse(cases[i].text, &address, error);
        ok_named(code == 0 && strcmp(address.text, cases[i].canonical) == 0 && address.type == cases[i].type,
                 "%s is %s %s", cases[i].text, cases[i].canonical, error);
    }
}

static void test_the_parts_are_told_apart(void)
{
    struct oribi_address address;
    ok_eq(oribi_address_parse("tcp://[::1]:8080?backlog=511", &address, error), 0);
    is_str(address.name, "::1");
    ok_eq(address.port, 8080);
    ok_eq(address.backlog, 511);
    ok_eq(oribi_address_parse("unix:///run/a?umask=007&backlog=9", &address, error), 0);
    is_str(address.name, "/run/a");
    ok_eq(address.umask, 007);
    ok_eq(address.backlog, 9);
    ok_eq(oribi_address_parse("/run/a?mode=660", &address, error), 0);
    ok_eq(address.umask, 0117);
    ok_eq(oribi_address_parse("/run/a", &address, error), 0);
    ok_eq(address.umask, 0);
    ok_eq(oribi_address_parse("/run/a?proxy=on&umask=007", &address, error), 0);
    ok(address.proxy);
    ok_eq(address.umask, 7);
    ok_eq(oribi_address_parse("fd://3?proxy=on", &address, error), 0);
    ok(address.proxy);
    ok_eq(oribi_address_parse(":80?proxy=on&proxy=off", &address, error), 0);
    ok(!address.proxy);
    ok_eq(oribi_address_parse(":80", &address, error), 0);
    ok(!address.proxy);
    is_str(address.name, "0.0.0.0");
    ok_eq(address.backlog, 0);
    is_str(address.text, "tcp://0.0.0.0:80");
}

static void test_addresses_of_frontends(void)
{
    struct oribi_address address;
    ok_eq(oribi_address_parse("tls://a:443?certificate=c.pem&key=/k.pem", &address, error), 0);
    ok(address.tls && address.frontend);
    is_str(address.text, "tcp://a:443"); /* so that sockets that are handed down are found */
    is_bytes(address.files[0].p, address.files[0].n, "c.pem", 5);
    is_bytes(address.files[1].p, address.files[1].n, "/k.pem", 6);
    ok_eq(address.files[2].n, 0);
    ok_eq(oribi_address_parse("/run/a?frontend=on", &address, error), 0);
    ok(address.frontend && !address.tls);
    ok_eq(oribi_address_parse(":80?frontend=off", &address, error), 0);
    ok(!address.frontend && !address.tls);
}

static void test_what_is_wrong_is_said_in_one_line(void)
{
    static const char *const cases[][2] = {
        {"", "address \"\" is empty"},
        {"app.sock", "address \"app.sock\" needs a port from 0 to 65535"},
        {"localhost", "address \"localhost\" needs a port from 0 to 65535"},
        {"localhost:", "address \"localhost:\" needs a port from 0 to 65535"},
        {"localhost:http", "address \"localhost:http\" needs a port from 0 to 65535"},
        {"localhost:65536", "address \"localhost:65536\" needs a port from 0 to 65535"},
        {"localhost:-1", "address \"localhost:-1\" needs a port from 0 to 65535"},
        {"localhost:80 ", "address \"localhost:80 \" needs a port from 0 to 65535"},
        {"::1:80", "address \"::1:80\" must be host:port, with brackets around an IPv6 address"},
        {"[::1]", "address \"[::1]\" must be host:port, with brackets around an IPv6 address"},
        {"[::1]80", "address \"[::1]80\" must be host:port, with brackets around an IPv6 address"},
        {"[::1:80", "address \"[::1:80\" must be host:port, with brackets around an IPv6 address"},
        {"[]:80", "address \"[]:80\" must be host:port, with brackets around an IPv6 address"},
        {"a b:80", "address \"a b:80\" has a host that is neither a name nor a number"},
        {"http://a:80", "address \"http://a:80\" has an unknown scheme (known: tcp, tls, unix and fd)"},
        {"ssl://a:80?key=k",
         "address \"ssl://a:80?key=k\" asks for TLS: say tls://host:port, and where the certificate is"},
        {"a:443:ssl", "address \"a:443:ssl\" asks for TLS: say tls://host:port, and where the certificate is"},
        {"tls://a:443?frontend=on",
         "address \"tls://a:443?frontend=on\" has an unknown option \"frontend\" (known: certificate, "
         "key, ocsp, backlog, ipv6only and proxy)"},
        {"tls://a:443?key=", "address \"tls://a:443?key=\" needs a file for key"},
        {":80?frontend=yes", "address \":80?frontend=yes\" needs frontend to be on or off"},
        {"unix://", "address \"unix://\" has no path"},
        {"unix://?umask=0", "address \"unix://?umask=0\" has no path"},
        {"/run/", "address \"/run/\" is a directory, not a socket's path"},
        {"fd://", "address \"fd://\" needs a descriptor's number or name"},
        {"/a?umask=8", "address \"/a?umask=8\" needs an octal umask from 0 to 777"},
        {"/a?umask=1000", "address \"/a?umask=1000\" needs an octal umask from 0 to 777"},
        {"/a?umask", "address \"/a?umask\" needs an octal umask from 0 to 777"},
        {"/a?mode=rw", "address \"/a?mode=rw\" needs an octal mode from 0 to 777"},
        {"/a?backlog=0", "address \"/a?backlog=0\" needs a backlog of at least 1"},
        {":80?backlog=2147483648", "address \":80?backlog=2147483648\" needs a backlog of at least 1"},
        {":80?umask=0",
         "address \":80?umask=0\" has an unknown option \"umask\" (known: backlog, frontend, ipv6only and proxy)"},
        {"/a?", "address \"/a?\" has an unknown option \"\" (known: umask, mode, backlog, frontend and proxy)"},
        {"fd://3?backlog=1", "address \"fd://3?backlog=1\" has an unknown option \"backlog\" (known: proxy)"},
        {":80?proxy", "address \":80?proxy\" needs proxy to be on or off"},
        {"/a?proxy=yes", "address \"/a?proxy=yes\" needs proxy to be on or off"},
        {"a\nb:80", "address \"\" has a control character"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct oribi_address address = {.port = 4711};
        error[0] = '\0';
        int code = oribi_address_parse(cases[i][0], &address, error);
        ok_named(code == ORIBI_EINVAL && strcmp(error, cases[i][1]) == 0, "%s", error);
        ok_named(address.port == 4711, "the result is untouched");
    }
    struct oribi_address address;
    ok_eq(oribi_address_parse("localhost:65535", &address, error), 0);
    ok_eq(oribi_address_parse(":80?backlog=2147483647", &address, error), 0);
    ok_eq(oribi_address_parse("/a?umask=777", &address, error), 0);
}

static void test_a_path_may_have_107_bytes(void)
{
    struct oribi_address address;
    char text[256] = "unix://";
    memset(text + 7, 'p', 108);
    text[7] = '/';
    text[7 + 107] = '\0';
    ok_eq(oribi_address_parse(text, &address, error), 0);
    is_str(address.name, text + 7);
    is_str(address.text, text);
    text[7 + 107] = 'p';
    text[7 + 108] = '\0';
    ok_eq(oribi_address_parse(text, &address, error), ORIBI_EINVAL);
    ok(strstr(error, "has a path of more than 107 bytes") != NULL);
}

static void test_a_host_may_have_100_bytes(void)
{
    struct oribi_address address;
    char text[256];
    memset(text, 'h', 101);
    memcpy(text + 100, ":1", 3);
    ok_eq(oribi_address_parse(text, &address, error), 0);
    ok_eq(strlen(address.name), 100);
    text[100] = 'h';
    memcpy(text + 101, ":1", 3);
    ok_eq(oribi_address_parse(text, &address, error), ORIBI_EINVAL);
    ok(strstr(error, "has a host of more than 100 bytes") != NULL);
}

static void test_an_endless_address_fits_its_error(void)
{
    struct oribi_address address;
    char text[5000];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    ok_eq(oribi_address_parse(text, &address, error), ORIBI_EINVAL);
    ok(strlen(error) < ORIBI_ERROR_TEXT_CAP);
    text[0] = '/';
    ok_eq(oribi_address_parse(text, &address, error), ORIBI_EINVAL);
}

static void test_format_puts_brackets_around_ipv6_only(void)
{
    char text[64];
    ok_eq(oribi_address_format_tcp("::1", 80, text, sizeof(text)), 14);
    is_str(text, "tcp://[::1]:80");
    (void)oribi_address_format_tcp("127.0.0.1", 0, text, sizeof(text));
    is_str(text, "tcp://127.0.0.1:0");
    ok_eq(oribi_address_format_tcp("127.0.0.1", 80, text, 8), 7);
    is_str(text, "tcp://1");
}

int main(void)
{
    test_spellings_of_one_address_are_equal();
    test_the_parts_are_told_apart();
    test_addresses_of_frontends();
    test_what_is_wrong_is_said_in_one_line();
    test_a_path_may_have_107_bytes();
    test_a_host_may_have_100_bytes();
    test_an_endless_address_fits_its_error();
    test_format_puts_brackets_around_ipv6_only();
    return done_testing();
}
