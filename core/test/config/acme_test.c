/* Lines of the option `acme`, and when a certificate is asked for. */
#include "config/acme.c"

#include "tap.h"

#include <stdbool.h>

static struct oribi_acme_line acme;
static char error[ORIBI_ERROR_TEXT_CAP];

static void ok_line(const char *line, uint32_t count, const char *first, const char *email)
{
    error[0] = '\0';
    ok_named(oribi_acme_read(line, &acme, error) == 0, "%s: %s", line, error);
    ok_eq(acme.count, count);
    ok_named(strcmp(acme.names[0], first) == 0 && strcmp(acme.email, email) == 0, "%s: %s %s", line, acme.names[0],
             acme.email);
}

static void ok_refused(const char *line, const char *why)
{
    error[0] = '\0';
    ok_named(oribi_acme_read(line, &acme, error) == ORIBI_EINVAL, "%.60s is refused", line);
    ok_named(strstr(error, why) != NULL, "%s: %s", why, error);
}

static void test_names_and_an_address_of_mail_are_read(void)
{
    ok_line("example.org", 1, "example.org", "");
    ok_line("Example.ORG., www.example.org?email=me@example.org", 2, "example.org", "me@example.org");
    ok(strcmp(acme.names[1], "www.example.org") == 0);
    ok_line("xn--bcher-kva.example?email=a%2Bb%40example.org", 1, "xn--bcher-kva.example", "a+b@example.org");
    ok_line("localhost", 1, "localhost", "");
}

static void test_what_is_no_line_is_refused(void)
{
    ok_refused("", "needs a name");
    ok_refused("a.org,,b.org", "needs a name");
    ok_refused("*.example.org", "wildcard");
    ok_refused("127.0.0.1", "address");
    ok_refused("::1", "address");
    ok_refused("256.1.1.1", "number");
    ok_refused("a.org,me@a.org", "the setting email");
    ok_refused("0x7f.1", "number");
    ok_refused("-a.org", "no host name");
    ok_refused("a_b.org", "no host name");
    ok_refused("a..org", "no host name");
    ok_refused("a.org/x", "no host name");
    ok_refused("../../etc", "no host name");
    ok_refused("a.org,A.org", "twice");
    ok_refused("a.org?mail=x", "unknown setting");
    ok_refused("a.org?email=x", "no email address");
    ok_refused("a.org?email=-x@y", "no email address");
    ok_refused("a.org?email=x%20y@z", "no email address");
    ok_refused("a.org?email=a@b&email=c@d", "two email");
    ok_refused("a.org?email=", "needs an email");
}

static void test_limits_are_limits(void)
{
    char line[ORIBI_ACME_TEXT_MAX + 512] = "";
    size_t n = 0;
    for (int i = 0; i < ORIBI_ACME_NAMES_MAX; i++)
        n += (size_t)snprintf(line + n, sizeof(line) - n, "%sn%d.org", i ? "," : "", i);
    ok_line(line, ORIBI_ACME_NAMES_MAX, "n0.org", "");
    (void)snprintf(line + n, sizeof(line) - n, ",more.org");
    ok_refused(line, "more than 100 names");
    n = 0; /* 253 bytes: three labels of 63, one of 61 */
    for (int i = 0; i < 4; i++)
        n += (size_t)snprintf(line + n, sizeof(line) - n, "%s%.*s", i ? "." : "", i == 3 ? 61 : 63,
                              "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    ok_eq(n, ORIBI_ACME_NAME_MAX);
    ok_refused(line, "which names files");
    memmove(line + 6, line, n + 1);
    memcpy(line, "b.org,", 6);
    ok(oribi_acme_read(line, &acme, error) == 0);
    line[6 + ORIBI_ACME_FIRST_NAME_MAX] = '\0';
    ok(oribi_acme_read(line + 6, &acme, error) == 0);
    n = 0;
    for (int i = 0; i < 4; i++)
        n += (size_t)snprintf(line + n, sizeof(line) - n, "%s%.*s", i ? "." : "", i == 3 ? 61 : 63,
                              "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    line[n] = 'a';
    line[n + 1] = '\0';
    ok_refused(line, "more than 253");
    ok_refused("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.org", "no host name"); /* 64 */
}

static void test_due_in_the_last_third(void)
{
    const int64_t day_s = 24 * 3600;
    struct oribi_acme_facts facts = {.begins_s = 1000 * day_s, .expires_s = 1090 * day_s};
    for (uint32_t seed = 0; seed < 4000000000u; seed += 40000019u) {
        int64_t due_s = oribi_acme_due_s(&facts, seed);
        ok(due_s >= 1060 * day_s && due_s < 1060 * day_s + 90 * day_s / 12);
    }
    ok_eq(oribi_acme_due_s(&(struct oribi_acme_facts){0}, 7), 0);
    facts.failures = 1;
    facts.tried_s = 1080 * day_s;
    ok_eq(oribi_acme_due_s(&facts, 7), 1080 * day_s + 3600);
    facts.failures = 3;
    ok_eq(oribi_acme_due_s(&facts, 7), 1080 * day_s + 4 * 3600);
    facts.failures = 4000000000u;
    ok_eq(oribi_acme_due_s(&facts, 7), 1081 * day_s);
    facts = (struct oribi_acme_facts){.failures = 1, .tried_s = 500}; /* none yet */
    ok_eq(oribi_acme_due_s(&facts, 7), 500 + 3600);
    facts = (struct oribi_acme_facts){.begins_s = 1000, .expires_s = 1024, .failures = 2, .tried_s = 1020};
    ok_eq(oribi_acme_due_s(&facts, 0), 1022);
}

/* A quarter, second by second where something happens: an authority that is away for a week in the last third. */
static void test_a_quarter_with_an_authority_away(void)
{
    const int64_t day_s = 24 * 3600;
    struct oribi_acme_facts facts = {.begins_s = 0, .expires_s = 90 * day_s};
    int64_t now_s = 0;
    int orders = 0;
    int renewed = 0;
    while (now_s < 100 * day_s) {
        int64_t due_s = oribi_acme_due_s(&facts, 12345);
        if (due_s > now_s)
            now_s = due_s;
        if (now_s >= 100 * day_s)
            break;
        orders++;
        facts.tried_s = now_s;
        facts.failures++;
        if (now_s < 60 * day_s || now_s > 67 * day_s + 7 * day_s) { /* away: day 60 to 74 */
            facts = (struct oribi_acme_facts){.begins_s = now_s, .expires_s = now_s + 90 * day_s, .tried_s = now_s};
            renewed++;
        }
    }
    ok_eq(renewed, 1);
    ok_named(orders > 8 && orders < 24, "%d orders", orders);
    ok(facts.begins_s < 76 * day_s);
}

static void test_options_together(void)
{
    struct oribi_options options;
    oribi_options_init(&options);
    ok_eq(oribi_acme_check(&options, error), 0);
    ok_eq(oribi_options_set(&options, "acme", "a.org,b.org", error), 0);
    ok_eq(oribi_acme_check(&options, error), ORIBI_EINVAL);
    ok(strstr(error, "acme_terms") != NULL);
    ok_eq(oribi_options_set(&options, "acme_terms", "on", error), 0);
    ok_eq(oribi_acme_check(&options, error), 0);
    ok_eq(oribi_options_set(&options, "acme_directory", "http://a", error), 0);
    ok_eq(oribi_acme_check(&options, error), ORIBI_EINVAL);
    ok_eq(oribi_options_set(&options, "acme_directory", "https://../dir", error), 0);
    ok_eq(oribi_acme_check(&options, error), ORIBI_EINVAL);
    ok_eq(oribi_options_set(&options, "acme_directory", "https://a/dir", error), 0);
    ok_eq(oribi_options_set(&options, "acme_command", "  ", error), 0);
    ok_eq(oribi_acme_check(&options, error), ORIBI_EINVAL);
    is_str(error, "acme_command is empty");
    ok_eq(oribi_options_set(&options, "acme_command", "uacme", error), 0);
    ok_eq(oribi_options_set(&options, "acme", "b.org", error), 0);
    ok_eq(oribi_acme_check(&options, error), 0);
    ok_eq(oribi_options_set(&options, "acme", "a.org", error), 0);
    ok_eq(oribi_acme_check(&options, error), ORIBI_EINVAL);
    ok(strstr(error, "same name") != NULL);
    oribi_options_deinit(&options);
}

static void test_finish_binds(void)
{
    struct oribi_options options;
    oribi_options_init(&options);
    ok_eq(oribi_options_set(&options, "acme", "a.org", error), 0);
    ok_eq(oribi_options_set(&options, "acme_terms", "on", error), 0);
    ok_named(oribi_options_finish(&options, error) == 0, "%s", error);
    ok_eq(options.bind.count, 2);
    ok(strncmp(options.bind.items[0], "tls://", 6) == 0 && strstr(options.bind.items[0], ":443"));
    ok(strstr(options.bind.items[1], ":80?frontend=on") != NULL);
    ok_eq(options.https_redirect, 443);
    oribi_options_deinit(&options);
    oribi_options_init(&options);
    ok_eq(oribi_options_set(&options, "acme", "a.org", error), 0);
    ok_eq(oribi_options_set(&options, "acme_terms", "on", error), 0);
    ok_eq(oribi_options_set(&options, "bind", "127.0.0.1:80?backlog=5", error), 0);
    ok_eq(oribi_options_finish(&options, error), ORIBI_EINVAL);
    ok(strstr(error, "tls://") != NULL);
    ok_eq(oribi_options_set(&options, "bind", "tls://127.0.0.1:8443", error), 0);
    ok_eq(oribi_options_set(&options, "https_redirect", "8443", error), 0);
    ok_eq(oribi_options_finish(&options, error), 0);
    ok(strcmp(options.bind.items[0], "127.0.0.1:80?backlog=5&frontend=on") == 0);
    ok_eq(oribi_options_set(&options, "acme_dir", "acme", error), 0);
    ok_eq(oribi_options_finish(&options, error), ORIBI_EINVAL);
    ok(strstr(error, "absolute") != NULL);
    oribi_options_deinit(&options);
    oribi_options_init(&options);
    ok_eq(oribi_options_set(&options, "acme", "a.org", error), 0);
    ok_eq(oribi_options_set(&options, "acme_terms", "on", error), 0);
    ok_eq(oribi_options_set(&options, "bind", "127.0.0.1:80?frontend=off", error), 0);
    ok_eq(oribi_options_set(&options, "bind", "tls://127.0.0.1:443", error), 0);
    ok_eq(oribi_options_finish(&options, error), 0);
    ok(strcmp(options.bind.items[0], "127.0.0.1:80?frontend=off") == 0);
    ok_named(options.https_redirect == 0, "addresses of one's own: nothing is redirected");
    oribi_options_deinit(&options);
    oribi_options_init(&options);
    ok_eq(oribi_options_set(&options, "acme", "a.org", error), 0);
    ok_eq(oribi_options_set(&options, "acme_terms", "on", error), 0);
    ok_eq(oribi_options_set(&options, "https_redirect", "8443", error), 0);
    ok_eq(oribi_options_finish(&options, error), 0);
    ok_eq(options.https_redirect, 8443);
    oribi_options_deinit(&options);
}

static void test_places(void)
{
    struct oribi_options options;
    char dst[256];
    oribi_options_init(&options);
    (void)setenv("STATE_DIRECTORY", "/var/lib/oribi/site:/x", 1);
    ok(oribi_acme_dir(&options, dst, sizeof(dst)) && strcmp(dst, "/var/lib/oribi/site/acme") == 0);
    (void)unsetenv("STATE_DIRECTORY");
    ok(oribi_acme_dir(&options, dst, sizeof(dst)) && strcmp(dst, "/var/lib/oribi/acme") == 0);
    ok(!oribi_acme_dir(&options, dst, 19));
    ok_eq(oribi_options_set(&options, "acme_dir", "/srv/acme", error), 0);
    ok(oribi_acme_dir(&options, dst, sizeof(dst)) && strcmp(dst, "/srv/acme") == 0);
    ok_eq(oribi_acme_read("b.org,a.org", &acme, error), 0);
    ok(oribi_acme_file("/srv/acme", &acme, dst, sizeof(dst)) && strcmp(dst, "/srv/acme/b.org.pem") == 0);
    oribi_options_deinit(&options);
}

int main(void)
{
    test_names_and_an_address_of_mail_are_read();
    test_what_is_no_line_is_refused();
    test_limits_are_limits();
    test_due_in_the_last_third();
    test_a_quarter_with_an_authority_away();
    test_options_together();
    test_finish_binds();
    test_places();
    return done_testing();
}
