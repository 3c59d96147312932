/* Error pages: what each form shows, what it escapes, and what it hides. */
#include "develop/failure_page.c"

#include "tap.h"

#include <stdlib.h>
#include <unistd.h>

#define FACT(k, n, v)                                                                                                  \
    {                                                                                                                  \
        .kind = ORIBI_SLICE(k), .name = ORIBI_SLICE(n), .value = ORIBI_SLICE(v)                                        \
    }

static struct oribi_buf out;
static char dir[] = "/tmp/oribi-failure-XXXXXX";
static char place[128];

static const char *render(const struct oribi_failure_fact *facts, size_t count)
{
    out.len = 0;
    const char *type = oribi_failure_page(facts, count, &out);
    oribi_buf_append(&out, "", 1);
    return type;
}

static bool shows(const char *text)
{
    return strstr(out.p, text) != NULL;
}

static struct oribi_slice text_of(const char *text)
{
    return oribi_slice(text, strlen(text));
}

/* An application of 20 lines, whose 12th has the mistake. */
static void write_source(void)
{
    if (!mkdtemp(dir))
        abort();
    (void)snprintf(place, sizeof(place), "%s/app.rb", dir);
    FILE *file = fopen(place, "w");
    for (int i = 1; i <= 20; i++)
        (void)fprintf(file, i == 12 ? "line 12 <b>&\n" : "line %d\n", i);
    (void)fclose(file);
    (void)snprintf(place, sizeof(place), "%s/app.rb:12", dir);
}

enum { ACCEPT = 10, WITH = 11, FACTS = 19 };

static void fill(struct oribi_failure_fact facts[FACTS], const char *accept)
{
    struct oribi_failure_fact all[FACTS] = {
        FACT("program", "", "oribi 0.1.0"),
        FACT("title", "", "GET /cart"),
        FACT("class", "", "KeyError"),
        FACT("message", "", "<script>alert(1)</script> \x1b[31m \xff & 'more'\nsecond line"),
        FACT("frame", "fetch", "/usr/lib/gems/shop-1/shop.rb:3"),
        FACT("frame", "buy", ""),
        FACT("root", "", ""),
        FACT("cause", "", "IOError: gone"),
        FACT("param", "user[password]", "geheim1"),
        FACT("param", "user[name]", "Jo"),
        FACT("env", "HTTP_ACCEPT", ""),
        FACT("env", "HTTP_X_REQUESTED_WITH", ""),
        FACT("env", "QUERY_STRING", "a=1&api_key=geheim2&p%61ssword=geheim3"),
        FACT("env", "HTTP_COOKIE", "sid=geheim4; theme=geheim5"),
        FACT("env", "HTTP_AUTHORIZATION", "Basic geheim6"),
        FACT("env", "HTTP_REFERER", "http://jo:geheim7@a/?token=geheim8&x=2"),
        FACT("env", "rack.session", "geheim9"),
        FACT("env", "rack.url_scheme", "http"),
        FACT("env", "rack.request.form_vars", "a=geheim10"),
    };
    all[5].value = text_of(place);
    all[6].value = text_of(dir);
    all[ACCEPT].value = text_of(accept);
    memcpy(facts, all, sizeof(all));
}

static void test_hidden_characters_are_shown_by_their_number_in_each_form(void)
{
    struct oribi_failure_fact facts[FACTS];
    const char *accepts[] = {"text/html", "text/plain", "application/json"};
    for (size_t i = 0; i < sizeof(accepts) / sizeof(accepts[0]); i++) {
        fill(facts, accepts[i]);
        facts[2].value = text_of("Key\xe2\x80\xae"
                                 "Error");
        facts[3].value = text_of("a\xc2\x9b"
                                 "31m \xe2\x80\xa8 \xe2\x80\xae"
                                 "b \xd8\x9c \xc3\xa9");
        facts[10].name = text_of("HTTP_ACCEPT");
        (void)render(facts, FACTS);
        ok(!shows("\xc2\x9b") && !shows("\xe2\x80\xa8") && !shows("\xe2\x80\xae") && !shows("\xd8\x9c"));
        ok(shows("\xc3\xa9"));
    }
    fill(facts, "text/html");
    facts[3].value = text_of("a\xc2\x9b"
                             "31m \xe2\x80\xa8 \xe2\x80\xae"
                             "b");
    (void)render(facts, FACTS);
    ok(shows("a\\u009b31m \\u2028 \\u202eb"));
}

static void test_html(void)
{
    struct oribi_failure_fact facts[FACTS];
    fill(facts, "text/html,application/xhtml+xml,*/*;q=0.8");
    is_str(render(facts, FACTS), "text/html; charset=utf-8");
    ok(shows("&lt;script&gt;alert(1)&lt;/script&gt; \\x1b[31m \\xff &amp; &#39;more&#39;\nsecond line"));
    ok(!shows("<script"));
    ok(shows("<code>app.rb:12</code>"));
    ok(shows("<span class=\"at\"><b>12</b>line 12 &lt;b&gt;&amp;</span>"));
    ok(shows("<b>7</b>line 7"));
    ok(!shows("<b>6</b>"));
    ok(shows("<b>17</b>line 17"));
    ok(!shows("<b>18</b>"));
    ok(strstr(out.p, "app.rb:12") < strstr(out.p, "gems/shop-1/shop.rb:3"));
    ok(shows("Caused by IOError: gone"));
    ok(shows("<th>user[name]</th><td>Jo</td>"));
    ok(!shows("geheim"));
}

static void test_text(void)
{
    struct oribi_failure_fact facts[FACTS];
    fill(facts, "*/*");
    is_str(render(facts, FACTS), "text/plain; charset=utf-8");
    ok(strncmp(out.p, "KeyError: <script>", 18) == 0);
    ok(shows("\\x1b[31m \\xff & 'more'\n  second line\nGET /cart\n"));
    ok(shows("\napp.rb:12\n      7 | line 7\n"));
    ok(shows("\n>    12 | line 12 <b>&\n"));
    ok(shows("\nTrace, the application's frames\n  app.rb:12 in buy\n"));
    ok(shows("\nTrace, all other frames\n  /usr/lib/gems/shop-1/shop.rb:3 in fetch\n"));
    ok(shows("  a: 1\n  api_key: [hidden]\n  password: [hidden]\n  user[password]: [hidden]\n  user[name]: Jo\n"));
    ok(shows("  QUERY_STRING: a=1&api_key=[hidden]&p%61ssword=[hidden]\n"));
    ok(shows("  HTTP_COOKIE: sid=[hidden]; theme=[hidden]\n"));
    ok(shows("  HTTP_AUTHORIZATION: [hidden]\n"));
    ok(shows("  HTTP_REFERER: http://[hidden]@a/?token=[hidden]&x=2\n"));
    ok(shows("  rack.session: [hidden]\n  rack.url_scheme: http\n"));
    ok(!shows("geheim"));
}

static void test_json(void)
{
    struct oribi_failure_fact facts[FACTS];
    fill(facts, "application/json");
    is_str(render(facts, FACTS), "application/json");
    ok(strncmp(out.p, "{\"error\":\"<script>", 18) == 0);
    ok(shows("\"file\":\"app.rb\",\"line\":12,\"source\":[{\"line\":7,\"text\":\"line 7\"},"));
    ok(shows("\"trace\":[{\"file\":\"app.rb\",\"line\":12,\"name\":\"buy\",\"application\":true},{\"file\":\"/usr"));
    ok(shows("\"user[name]\":\"Jo\"}"));
    ok(!shows(",}") && !shows(",]") && !shows("geheim"));
    fill(facts, "*/*");
    facts[WITH].value = ORIBI_SLICE("XMLHttpRequest");
    is_str(render(facts, FACTS), "application/json");
    fill(facts, "text/html, application/json;q=0.5");
    is_str(render(facts, FACTS), "text/html; charset=utf-8");
    fill(facts, "application/problem+json, text/html;q=0.5");
    is_str(render(facts, FACTS), "application/json");
}

static void test_nothing_known(void)
{
    is_str(render(NULL, 0), "text/plain; charset=utf-8");
    struct oribi_failure_fact facts[] = {
        FACT("frame", "", ""),
        FACT("frame", "", ":"),
        FACT("frame", "", "nowhere.rb:4"),
        FACT("frame", "", "/dev/zero:1"),
        FACT("frame", "", "/tmp:1"),
        FACT("frame", "", "app.rb:99999999999999999999"),
        FACT("unknown", "a", "b"),
        FACT("env", "", ""),
        FACT("env", "HTTP_ACCEPT", "text/html"),
    };
    is_str(render(facts, sizeof(facts) / sizeof(facts[0])), "text/html; charset=utf-8");
    ok(shows("<code>nowhere.rb:4</code>"));
}

static void test_limits(void)
{
    static struct oribi_failure_fact facts[ORIBI_FAILURE_FACTS_MAX + 1];
    static char value[ORIBI_FAILURE_MESSAGE_BYTES_MAX + 1];
    memset(value, 'v', sizeof(value));
    for (size_t i = 0; i <= ORIBI_FAILURE_FACTS_MAX; i++)
        facts[i] = (struct oribi_failure_fact)FACT("param", "a", "1");
    facts[ORIBI_FAILURE_FACTS_MAX - 1].value = ORIBI_SLICE("the last");
    facts[ORIBI_FAILURE_FACTS_MAX].value = ORIBI_SLICE("one more");
    facts[0].value = oribi_slice(value, ORIBI_FAILURE_VALUE_BYTES_MAX + 1);
    facts[1] = (struct oribi_failure_fact)FACT("message", "", "");
    facts[1].value = oribi_slice(value, sizeof(value));
    (void)render(facts, ORIBI_FAILURE_FACTS_MAX + 1);
    ok(shows("the last"));
    ok(!shows("one more"));
    ok_eq(strspn(out.p, "v"), ORIBI_FAILURE_MESSAGE_BYTES_MAX);
    ok_eq(strspn(strstr(out.p, "\n  a: ") + 6, "v"), ORIBI_FAILURE_VALUE_BYTES_MAX);
}

static void test_secret_names(void)
{
    static const char *const secret[] = {
        "password",      "PASSWD",       "user[Password_Confirmation]", "api_key",       "API-Key",
        "keys[aws]",     "X-Auth-Token", "HTTP_AUTHORIZATION",          "client_secret", "pin",
        "secretKeyBase", "credit-card",  "HTTP_X_CSRF_TOKEN",           "session_id",    "auth",
        "user[pin]",     "X-Auth"};
    static const char *const open_names[] = {"author",   "keyboard", "name",          "HTTP_ACCEPT", "page",
                                             "spinning", "bypass",   "rack.run_once", "class_name",  "footprint"};
    for (size_t i = 0; i < sizeof(secret) / sizeof(secret[0]); i++)
        ok_named(oribi__failure_is_secret(text_of(secret[i])), "%s is hidden", secret[i]);
    for (size_t i = 0; i < sizeof(open_names) / sizeof(open_names[0]); i++)
        ok_named(!oribi__failure_is_secret(text_of(open_names[i])), "%s is shown", open_names[i]);
}

int main(void)
{
    write_source();
    test_html();
    test_hidden_characters_are_shown_by_their_number_in_each_form();
    test_text();
    test_json();
    test_nothing_known();
    test_limits();
    test_secret_names();
    oribi_buf_deinit(&out);
    char *colon = strrchr(place, ':');
    *colon = '\0';
    (void)unlink(place);
    (void)rmdir(dir);
    return done_testing();
}
