/* Words with several arguments: to a line, what is refused, and back. */
#include "config/arguments.c"

#include "tap.h"

#include "oribi/http/syntax.h"

#include <string.h>

/* Forms that options have, and one with a switch of its own. */
static const struct oribi_option words[] = {
    {.name = "mount", .type = ORIBI_OPTION_LIST, .composed = {"[1=]2?", "/PREFIX FOLDER", "cache header html?"}},
    {.name = "answer", .type = ORIBI_OPTION_LIST, .composed = {"1=2[:3]", "/PATH #STATUS *TEXT", NULL}},
    {.name = "redirect", .type = ORIBI_OPTION_LIST, .composed = {"1=[3:]2", "/FROM TO #STATUS", NULL}},
    {.name = "header", .type = ORIBI_OPTION_LIST, .composed = {"1:2", "NAME TEXT", NULL}},
    {.name = "error_page", .type = ORIBI_OPTION_LIST, .composed = {"1=2", "#STATUS FILE", NULL}},
    {.name = "bind", .type = ORIBI_OPTION_LIST, .composed = {"1?", "ADDR", "certificate key frontend?"}},
    {.name = "health", .type = ORIBI_OPTION_TEXT, .composed = {"1", "/PATH", NULL}},
    {.name = "acme", .type = ORIBI_OPTION_LIST, .composed = {"1?", "+NAME", "email"}},
};

static const struct oribi_option *word(const char *name)
{
    const struct oribi_option *option = words;
    while (strcmp(option->name, name) != 0)
        option++;
    return option;
}

static char told[4096];

/* The line of these arguments, or the error. */
static const char *line_of(const char *name, const struct oribi_argument *arguments, size_t count)
{
    static char error[ORIBI_ERROR_TEXT_CAP];
    struct composing c = {.name = name, .arguments = arguments, .count = count, .error = error, .option = word(name)};
    oribi__form_read(&c.option->composed, &c.form);
    for (size_t i = 0; i < count; i++)
        if (!arguments[i].keyword && arguments[i].place >= c.places)
            c.places = arguments[i].place + 1;
    int code = compose(&c);
    (void)snprintf(told, sizeof(told), "%s", code < 0 ? error : c.line.p);
    oribi_buf_deinit(&c.line);
    return told;
}

#define LINE(name, ...)                                                                                                \
    line_of(name, (struct oribi_argument[]){__VA_ARGS__},                                                              \
            sizeof((struct oribi_argument[]){__VA_ARGS__}) / sizeof(struct oribi_argument))
#define AT(at, value)                                                                                                  \
    {                                                                                                                  \
        .text = (value), .place = (at)                                                                                 \
    }
#define SET(name, value)                                                                                               \
    {                                                                                                                  \
        .keyword = (name), .text = (value)                                                                             \
    }
#define KEY(name, k, value)                                                                                            \
    {                                                                                                                  \
        .keyword = (name), .key = (k), .text = (value)                                                                 \
    }

/* The word of a line in both languages, with a slash between them. */
static const char *word_of(const char *name, const char *line)
{
    struct oribi_buf out = {0};
    oribi_option_print_word(&out, word(name), line, ORIBI_LANG_RUBY);
    put(&out, " / ", 3);
    oribi_option_print_word(&out, word(name), line, ORIBI_LANG_PERL);
    (void)snprintf(told, sizeof(told), "%.*s", (int)out.len, out.p);
    oribi_buf_deinit(&out);
    return told;
}

static void test_arguments_become_a_line(void)
{
    is_str(LINE("mount", AT(0, "public")), "public");
    is_str(LINE("mount", AT(0, "/assets"), AT(1, "public/assets")), "/assets=public/assets");
    is_str(LINE("mount", AT(0, "public"), SET("cache", "no-cache")), "public?cache=no-cache");
    is_str(LINE("answer", AT(0, "/ping"), AT(1, "204")), "/ping=204");
    is_str(LINE("answer", AT(0, "/robots.txt"), AT(1, "200"), AT(2, "a: b\nc=d&e%\n")),
           "/robots.txt=200:a: b\nc=d&e%\n");
    is_str(LINE("redirect", AT(0, "/old"), AT(1, "/new")), "/old=/new");
    is_str(LINE("redirect", AT(0, "/old"), AT(1, "https://a/b=c"), AT(2, "301")), "/old=301:https://a/b=c");
    is_str(LINE("header", AT(0, "X-Frame-Options"), AT(1, "DENY")), "X-Frame-Options:DENY");
    is_str(LINE("error_page", AT(0, "500"), AT(1, "public/500.html")), "500=public/500.html");
    is_str(LINE("error_page", AT(0, "502"), AT(0, "503"), AT(1, "50x.html")), "502,503=50x.html");
    is_str(LINE("health", AT(0, "/up")), "/up");
}

static void test_values_of_settings_are_escaped(void)
{
    is_str(LINE("mount", AT(0, "a"), SET("cache", "50% & more\t?=")), "a?cache=50%25 %26 more%09?=");
    is_str(LINE("mount", AT(0, "a"), KEY("header", "X-A", "b"), KEY("header", "X-B", "c")),
           "a?header=X-A:b&header=X-B:c");
    is_str(LINE("mount", AT(0, "a"), SET("html", "TRUE")), "a?html=on");
    is_str(LINE("mount", AT(0, "a"), SET("html", "0")), "a?html=off");
    is_str(LINE("mount", AT(0, "a"), SET("html", "")), "a?html=off");
}

static void test_mistakes_name_the_word_and_the_argument(void)
{
    is_str(LINE("redirect", AT(0, "/old")), "redirect needs TO: redirect FROM, TO[, STATUS]");
    is_str(LINE("mount", SET("cache", "a")), "mount needs FOLDER: mount [PREFIX, ]FOLDER");
    is_str(LINE("error_page", AT(0, "500"), AT(1, "a"), AT(2, "b")),
           "error_page takes at most 2 arguments, not 3: error_page STATUS, FILE");
    is_str(LINE("mount", AT(0, "a"), AT(1, "b")), "mount: PREFIX must begin with a slash, not \"a\"");
    is_str(LINE("mount", AT(0, "/a=b"), AT(1, "b")), "mount: PREFIX must not contain \"=\": \"/a=b\"");
    is_str(LINE("mount", AT(0, "a?b"), SET("cache", "c")), "mount: FOLDER must not contain \"?\": \"a?b\"");
    is_str(LINE("header", AT(0, "X:"), AT(1, "b")), "header: NAME must not contain \":\": \"X:\"");
    is_str(LINE("redirect", AT(0, "/a"), AT(1, "301"), AT(2, "/b")), "redirect: STATUS must be a number, not \"/b\"");
    is_str(LINE("answer", AT(0, "a\nb"), AT(1, "200")), "answer: PATH must begin with a slash, not \"a?b\"");
    is_str(LINE("answer", AT(0, "/a"), AT(1, NULL)), "answer: STATUS must be text");
    is_str(LINE("answer", AT(0, "/a"), AT(1, "200"), AT(2, "b"), AT(2, "c")),
           "answer: TEXT must be one text, not a list");
    is_str(LINE("mount", AT(0, "a"), SET("cach", "b")), "mount has no setting \"cach\": did you mean cache?");
    is_str(LINE("mount", AT(0, "a"), SET("index", "b")), "mount has no setting \"index\" (known: cache, header, html)");
    is_str(LINE("mount", AT(0, "a"), SET("cache", NULL)), "mount: cache must be text");
    is_str(LINE("mount", AT(0, "a"), SET("html", "perhaps")), "mount: html must be on or off, not \"perhaps\"");
    is_str(LINE("redirect", AT(0, "/a"), AT(1, "/b"), SET("status", "301")),
           "redirect has no settings, such as status: redirect FROM, TO[, STATUS]");
}

static void test_a_line_becomes_a_word(void)
{
    is_str(word_of("mount", "public"), "mount \"public\" / mount 'public';");
    is_str(word_of("mount", "/=a#{b}?cache=it's %26 $5%25 \"\\"),
           "mount \"/\", \"a\\#{b}\", cache: \"it's & $5% \\\"\\\\\" / "
           "mount '/', 'a#{b}', cache => 'it\\'s & $5% \"\\\\';");
    is_str(word_of("mount", "/a=b?header=X:y&html=on&header=Z:%09"),
           "mount \"/a\", \"b\", header: [\"X:y\", \"Z:\\x09\"], html: true / "
           "mount '/a', 'b', header => ['X:y', \"Z:\\x09\"], html => 'on';");
    is_str(word_of("answer", "/a=405\n/b=405"), "answer \"/a=405\\n/b=405\" / answer \"/a=405\\n/b=405\";"); /* two */
    is_str(word_of("answer", "/a=200:$b:\n"), "answer \"/a\", 200, \"$b:\\n\" / answer '/a', 200, \"\\$b:\\n\";");
    is_str(word_of("answer", "/a=204"), "answer \"/a\", 204 / answer '/a', 204;");
    is_str(word_of("answer", "/a=204:"), "answer \"/a\", 204, \"\" / answer '/a', 204, '';");
    is_str(word_of("redirect", "/a=https://b"), "redirect \"/a\", \"https://b\" / redirect '/a', 'https://b';");
    is_str(word_of("redirect", "/a=308:/b=c:d"), "redirect \"/a\", \"/b=c:d\", 308 / redirect '/a', '/b=c:d', 308;");
    is_str(word_of("error_page", "502,503=f"), "error_page [502, 503], \"f\" / error_page [502, 503], 'f';");
    is_str(word_of("header", "X: y:z"), "header \"X\", \" y:z\" / header 'X', ' y:z';");
    is_str(word_of("header", "nothing"), "header \"nothing\" / header 'nothing';");
    is_str(word_of("health", "/up"), "health \"/up\" / health '/up';");
}

/* Of so many values, the second one this text. */
static size_t places(const char *name, const char *second, size_t count)
{
    const char *texts[8] = {"a", second, "c", "d", "e", "f", "g", "h"};
    return oribi_option_places(word(name), texts, count);
}

static void test_pairs_behind_arguments_are_told_by_their_number(void)
{
    ok_eq(places("mount", "b", 0), 0);
    ok_eq(places("mount", "b", 1), 1);
    ok_eq(places("mount", "b", 2), 2);
    ok_eq(places("mount", "b", 3), 1);
    ok_eq(places("mount", "b", 6), 2);
    ok_eq(places("redirect", "b", 5), 5);
    ok_eq(places("bind", NULL, 1), 1);
    ok_eq(places("bind", ":2", 2), 2);
    ok_eq(places("bind", ":2", 3), 3);
    ok_eq(places("bind", "/run/app", 3), 3);
    ok_eq(places("bind", "certificate", 3), 1);
    ok_eq(places("bind", "certificat", 5), 1); /* a mistake, which is told so */
    ok(oribi_option_takes_lines(word("bind")));
    ok(!oribi_option_takes_lines(word("mount")) && !oribi_option_takes_lines(word("health")));
}

static void test_names_are_joined(void)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    char text[256];
    struct oribi_options options;
    oribi_options_init(&options);
    const struct oribi_option *option = oribi_options_find("acme");
    const struct oribi_argument names[] = {AT(0, "a.org"), AT(1, "b.org"), AT(2, "c.org"), SET("email", "x+y@z")};
    const struct oribi_argument comma[] = {AT(0, "d.org?email=x@z"), AT(1, "b.org")};
    ok_eq(oribi_options_set_arguments(&options, ORIBI_FROM_FILE, "acme", names, 4, error), 0);
    ok_eq(oribi_options_set_arguments(&options, ORIBI_FROM_FILE, "acme", names, 2, error), 0);
    ok_eq(oribi_options_set_arguments(&options, ORIBI_FROM_FILE, "acme", names, 1, error), 0);
    oribi_options_get(&options, option, text, sizeof(text));
    is_str(text, "a.org,b.org,c.org?email=x+y@z\na.org,b.org\na.org");
    ok_eq(oribi_options_set_arguments(&options, ORIBI_FROM_FILE, "acme", names + 3, 1, error), ORIBI_EINVAL);
    is_str(error, "acme needs NAME: acme NAME, ...");
    ok_eq(oribi_options_set_arguments(&options, ORIBI_FROM_FILE, "acme", comma, 2, error), ORIBI_EINVAL);
    is_str(word_of("acme", "a.org,b.org?email=x@z"),
           "acme \"a.org\", \"b.org\", email: \"x@z\" / acme 'a.org', 'b.org', email => 'x@z';");
    const char *const perl[] = {"a.org", "b.org", "email", "x@z"};
    ok_eq(oribi_option_places(word("acme"), perl, 4), 2);
    ok_eq(oribi_option_places(word("acme"), perl, 2), 2);
    ok(!oribi_option_takes_lines(word("acme")));
    oribi_options_deinit(&options);
}

static void test_options_take_words(void)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    char text[256];
    struct oribi_options options;
    oribi_options_init(&options);
    const struct oribi_option *option = oribi_options_find("static");
    const struct oribi_argument two[] = {AT(0, "/a"), AT(1, "b"), SET("nosniff", "off")};
    const struct oribi_argument lines[] = {AT(0, "/c=d"), AT(0, "e?index=f")};
    const struct oribi_argument list[] = {AT(0, "/assets"), AT(0, "public/assets")};
    const struct oribi_argument folder[] = {AT(0, "/srv/app")};
    const struct oribi_argument bad[] = {AT(0, "/a"), AT(1, "b"), SET("index", "a/b")};
    ok_eq(oribi_options_set_arguments(&options, ORIBI_FROM_FILE, "static", two, 3, error), 0);
    ok_eq(oribi_options_set_arguments(&options, ORIBI_FROM_FILE, "static", lines, 2, error), 0);
    oribi_options_get(&options, option, text, sizeof(text));
    is_str(text, "/a=b?nosniff=off\n/c=d\ne?index=f");
    ok_eq(oribi_options_set_arguments(&options, ORIBI_FROM_FILE, "static", folder, 1, error), 0);
    ok_eq(oribi_options_set_arguments(&options, ORIBI_FROM_FILE, "static", list, 2, error), ORIBI_EINVAL);
    is_str(error, "static: each item of a list is a whole line, [PREFIX=]FOLDER, which \"/assets\" is not");
    ok_eq(oribi_options_set_arguments(&options, ORIBI_FROM_FILE, "static", bad, 3, error), ORIBI_EINVAL);
    is_str(error, "static \"/a=b?index=a/b\" needs index to be a file's name, as index.html");
    ok_eq(oribi_options_set(&options, "static", "/a=b?index=", error), ORIBI_EINVAL);
    oribi_options_deinit(&options);
}

static void test_the_most_arguments(void)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    struct oribi_options options;
    struct oribi_argument many[ORIBI_ARGUMENTS_MAX + 1] = {AT(0, "/a"), AT(1, "b")};
    for (size_t i = 2; i <= ORIBI_ARGUMENTS_MAX; i++)
        many[i] = (struct oribi_argument)SET("cache", "");
    oribi_options_init(&options);
    ok_eq(oribi_options_set_arguments(&options, ORIBI_FROM_FILE, "static", many, ORIBI_ARGUMENTS_MAX, error),
          ORIBI_EINVAL);
    is_str(error + strlen(error) - 20, "more than 16 headers");
    ok_eq(oribi_options_set_arguments(&options, ORIBI_FROM_FILE, "static", many, ORIBI_ARGUMENTS_MAX + 1, error),
          ORIBI_EINVAL);
    is_str(error, "static takes at most 256 texts");
    oribi_options_deinit(&options);
}

/* Every setting that the table names is one that mounts take, and what is printed reads as the same line. */
static void test_each_setting_of_static_there_and_back(void)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    const char *line = "/a=b?cache=c&header=X:d&index=e&html=on&fallthrough=on&symlinks=f&symlinks=g&nosniff=off";
    struct oribi_options options;
    oribi_options_init(&options);
    ok_eq(oribi_options_set(&options, "static", line, error), 0);
    struct oribi_buf out = {0};
    options.lang = ORIBI_LANG_PERL;
    oribi_options_print(&out, &options);
    *oribi_buf_reserve(&out, 1) = '\0';
    ok(strstr(out.p, "\nstatic '/a', 'b', cache => 'c', header => 'X:d', index => 'e', html => 'on', "
                     "fallthrough => 'on', "
                     "symlinks => ['f', 'g'], nosniff => 'off';\n") != NULL);
    oribi_buf_deinit(&out);
    oribi_options_deinit(&options);
}

int main(void)
{
    test_arguments_become_a_line();
    test_values_of_settings_are_escaped();
    test_mistakes_name_the_word_and_the_argument();
    test_a_line_becomes_a_word();
    test_pairs_behind_arguments_are_told_by_their_number();
    test_names_are_joined();
    test_options_take_words();
    test_the_most_arguments();
    test_each_setting_of_static_there_and_back();
    return done_testing();
}
