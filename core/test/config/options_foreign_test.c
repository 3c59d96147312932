/* Names of other servers: the table points to what is there, and one name is found in it. */
#include "config/options_foreign.c"

#include "tap.h"

static char error[ORIBI_ERROR_TEXT_CAP];

static bool is_hook(const char *name)
{
    const char *hooks = oribi__options_hook_names();
    const char *at = strstr(hooks, name);
    return at && (at == hooks || at[-1] == ' ') && strchr(" ", at[strlen(name)]);
}

static void test_the_table_of_other_servers_names_points_to_what_is_there(void)
{
    size_t count;
    const struct oribi__foreign_name *all = oribi__options_foreign(&count);
    for (size_t i = 0; i < count; i++) {
        const char *name = all[i].name;
        struct oribi__option_name found = oribi__options_resolve(name);
        enum oribi_option_lang lang = found.option ? found.option->lang : found.alias ? found.alias->lang : 0;
        ok_named(lang != ORIBI_LANG_BOTH && !is_hook(name), "%s is no name of both commands", name);
        ok_named(all[i].here ? !all[i].advice && (oribi_options_find(all[i].here) || is_hook(all[i].here) ||
                                                  oribi__options_resolve(all[i].here).alias)
                             : all[i].advice != NULL,
                 "%s: what is here, or advice", name);
        ok_named(oribi__options_refuse_foreign(name, error) < 0 && strlen(error) < 220, "%s", error);
        for (size_t k = 0; k < i; k++) {
            if (oribi__options_same_name(all[k].name, name))
                fail("%s stands there twice", name);
        }
    }
}

static void test_what_another_servers_name_is_here(void)
{
    struct oribi_option_foreign found;
    ok(oribi_options_find_foreign("worker_processes", &found));
    is_str(found.here, "workers");
    is_str(found.server, "Unicorn, Pitchfork");
    ok(!found.advice);
    ok(oribi_options_find_foreign("--WorkerProcesses", &found));
    ok(oribi_options_find_foreign("ssl_bind", &found));
    ok(!found.here && found.advice);
    ok(oribi_options_find_foreign("--no-default-middleware", &found) && strstr(found.server, "plackup"));
    ok(oribi_options_find_foreign("-V", &found) && strcmp(found.here, "version") == 0);
    ok(!oribi_options_find_foreign("workers", &found)); /* a name of ours */
    ok(!oribi_options_find_foreign("zzz", &found));
    ok(!oribi_options_find_foreign("", &found));
}

static void test_a_flag_that_is_not_missed_is_ignored(void)
{
    struct oribi_options options;
    oribi_options_init(&options);
    options.lang = ORIBI_LANG_PERL;
    const char *const words[] = {"--disable-proctitle", "--net_server-log_level", "4", "-N", "--no-default-middleware"};
    ok_eq(oribi_options_parse(&options, 5, words, error), 0);
    ok(!options.app);
    ok_eq(options.ignored_count, 4);
    is_str(options.ignored[1]->name, "net_server_log_level");
    ok_eq(oribi_options_set_from(&options, ORIBI_FROM_COMMAND, "proctitle", "0", error), 0); /* by plackup */
    ok(oribi_options_set_from(&options, ORIBI_FROM_FILE, "proctitle", "0", error) < 0);
    ok(oribi_options_set(&options, "--net-server-allow", "10.0.0.0/8", error) < 0); /* it would be missed */
    ok(oribi_options_set(&options, "--default-middleware", "on", error) < 0);
    for (int i = 0; i < ORIBI_OPTIONS_IGNORED_MAX; i++)
        ok_eq(oribi_options_set(&options, "--master", "on", error), 0);
    ok_eq(options.ignored_count, ORIBI_OPTIONS_IGNORED_MAX);
    oribi_options_deinit(&options);
}

int main(void)
{
    test_the_table_of_other_servers_names_points_to_what_is_there();
    test_what_another_servers_name_is_here();
    test_a_flag_that_is_not_missed_is_ignored();
    return done_testing();
}
