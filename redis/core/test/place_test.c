#include "src/place.c"

#include "oribi/base/buf.h"
#include "tap.h"

static struct oribi_redis_place place;

static const char *read_url(const char *url)
{
    return oribi_redis_place_read(&place, oribi_slice(url, strlen(url)));
}

static void test_urls(void)
{
    static const struct {
        const char *url, *host, *path, *user, *password;
        int port, db;
        bool tls;
    } CASES[] = {
        {"redis://", "127.0.0.1", "", "", NULL, 6379, 0, false},
        {"redis://h", "h", "", "", NULL, 6379, 0, false},
        {"redis://h/", "h", "", "", NULL, 6379, 0, false},
        {"redis://h:1/15", "h", "", "", NULL, 1, 15, false},
        {"redis://h:65535?db=3", "h", "", "", NULL, 65535, 3, false},
        {"redis://h/2?db=3", "h", "", "", NULL, 6379, 3, false},
        {"rediss://[::1]:7000/1", "::1", "", "", NULL, 7000, 1, true},
        {"rediss://[fe80::1]", "fe80::1", "", "", NULL, 6379, 0, true},
        {"redis://u:p@h", "h", "", "u", "p", 6379, 0, false},
        {"redis://:p%40%3a%2F@h", "h", "", "", "p@:/", 6379, 0, false},
        {"redis://u:a@b@h", "h", "", "u", "a@b", 6379, 0, false},
        {"redis://u@h", "h", "", "u", NULL, 6379, 0, false},
        {"redis://u:@h", "h", "", "u", "", 6379, 0, false},
        {"unix:///run/r.sock", "", "/run/r.sock", "", NULL, 6379, 0, false},
        {"unix:///a%20b?db=4", "", "/a b", "", NULL, 6379, 4, false},
        {"unix://u:p@/r", "", "/r", "u", "p", 6379, 0, false},
        {"redis://h/2147483646", "h", "", "", NULL, 6379, 2147483646, false},
    };
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        const char *why = read_url(CASES[i].url);
        bool same = !why && strcmp(place.host, CASES[i].host) == 0 && strcmp(place.path, CASES[i].path) == 0 &&
                    strcmp(place.user, CASES[i].user) == 0 && place.has_password == (CASES[i].password != NULL) &&
                    strcmp(place.password, CASES[i].password ? CASES[i].password : "") == 0 &&
                    place.port == CASES[i].port && place.db == CASES[i].db && place.tls == CASES[i].tls;
        ok_named(same, "%s", CASES[i].url);
    }
}

static void test_what_is_wrong_is_said_without_the_url(void)
{
    static const struct {
        const char *url, *why;
    } CASES[] = {
        {"", "begin with"},
        {"http://h", "begin with"},
        {"redis:/h", "begin with"},
        {"REDIS://h", "begin with"},
        {"redis://h:", "port"},
        {"redis://h:0", "port"},
        {"redis://h:65536", "port"},
        {"redis://h:1x", "port"},
        {"redis://::1", "port"},
        {"redis://[::1", "not closed"},
        {"redis://[::1]x", "something other than a port"},
        {"redis://[]:1", "no address"},
        {"redis://h/x", "database"},
        {"redis://h/1/", "database"},
        {"redis://h/-1", "database"},
        {"redis://h/2147483647", "database"},
        {"redis://h?db=", "database"},
        {"redis://h?bd=1", "unknown"},
        {"redis://h?db=1&timeout=5", "unknown"},
        {"redis://:secret%4@h", "password"},
        {"redis://u%00:secret@h", "user"},
        {"redis://h%zz", "host"},
        {"unix://run/r.sock", "absolute"},
        {"unix://", "absolute"},
        {"unix:///a%", "path"},
    };
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        oribi_redis_place_init(&place);
        struct oribi_redis_place before = place;
        const char *why = read_url(CASES[i].url);
        ok_named(why && strstr(why, CASES[i].why) && !strstr(why, "secret") &&
                     memcmp(&place, &before, sizeof(place)) == 0,
                 "%s: %s", CASES[i].url, why ? why : "taken");
    }
}

/* Each text at its maximum, and one beyond. */
static void test_maxima(void)
{
    static const struct {
        const char *before, *behind;
        size_t most;
    } CASES[] = {
        {"redis://", "/1", ORIBI_REDIS_HOST_MAX},
        {"redis://", ":p@h", ORIBI_REDIS_USER_MAX},
        {"redis://u:", "@h", ORIBI_REDIS_PASSWORD_MAX},
        {"unix:///", "", ORIBI_REDIS_PATH_MAX - 1},
    };
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++)
        for (size_t more = 0; more < 2; more++) {
            struct oribi_buf url = {0};
            oribi_buf_print(&url, "%s", CASES[i].before);
            for (size_t n = 0; n < CASES[i].most + more; n++)
                oribi_buf_append(&url, "x", 1);
            oribi_buf_print(&url, "%s", CASES[i].behind);
            const char *why = oribi_redis_place_read(&place, oribi_slice(url.p, url.len));
            ok_named((why != NULL) == (more == 1), "%s: %zu bytes", CASES[i].before, CASES[i].most + more);
            oribi_buf_deinit(&url);
        }
    char url[ORIBI_REDIS_URL_MAX + 2];
    memset(url, '&', sizeof(url));
    memcpy(url, "redis://h?db=1", 14);
    for (size_t i = 0; i + 5 < sizeof(url) - 14; i += 5)
        memcpy(url + 14 + i, "&db=1", 5);
    const char *why = oribi_redis_place_read(&place, oribi_slice(url, ORIBI_REDIS_URL_MAX + 1));
    is_str(why ? why : "", "the URL is too long");
}

int main(void)
{
    test_urls();
    test_what_is_wrong_is_said_without_the_url();
    test_maxima();
    return done_testing();
}
