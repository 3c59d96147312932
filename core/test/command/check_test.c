/* Each finding of `check` at its bound and beside it; the report in both forms; the command line. */
#include "command/check.c"

#include "tap.h"

static struct oribi_options options;
static struct oribi__check_facts facts;
static struct oribi_check *check;
static char error[ORIBI_ERROR_TEXT_CAP];

static void set(const char *name, const char *value)
{
    if (oribi_options_set(&options, name, value, error) < 0)
        fail("%s: %s", name, error);
}

/* A machine with room for everything, and options with which nothing is to be said. */
static void begin(void)
{
    oribi_options_init(&options);
    options.lang = ORIBI_LANG_RUBY;
    set("workers", "2");
    set("bind", "127.0.0.1:1");
    set("env", "production");
    facts = (struct oribi__check_facts){
        .machine = {.descriptors_max = UINT64_MAX,
                    .files_max = UINT64_MAX,
                    .processes_max = UINT64_MAX,
                    .file_bytes_max = UINT64_MAX,
                    .memory_bytes = -1,
                    .tasks_left = -1,
                    .cpus = 2,
                    .backlog_max = 4096,
                    .has_memfd = true,
                    .has_subreaper = true,
                    .has_openat2 = true,
                    .has_proc = true},
        .temp = {.dir = "/tmp", .disk = {.free_bytes = INT64_MAX}},
    };
    check = oribi_check_create();
}

static void end(void)
{
    oribi_check_destroy(check);
    oribi_options_deinit(&options);
}

/* The level of the finding, -1: there is none. */
static int found(const char *id)
{
    for (size_t i = 0; i < check->count; i++)
        if (strcmp(check->findings[i].id, id) == 0)
            return (int)check->findings[i].level;
    return -1;
}

/* Judges anew. */
static int limits_say(const char *id)
{
    *check = (struct oribi_check){0};
    if (oribi_options_finish(&options, error) < 0)
        fail("finish: %s", error);
    oribi__check_limits(check, &options, &facts);
    return found(id);
}

static int settings_say(const char *id)
{
    *check = (struct oribi_check){0};
    if (oribi_options_finish(&options, error) < 0)
        fail("finish: %s", error);
    oribi__check_settings(check, &options, facts.is_root);
    return found(id);
}

static void test_nothing_is_said_where_there_is_room(void)
{
    begin();
    ok_eq(limits_say("descriptors"), -1);
    ok_eq(check->count, 0);
    ok_eq(settings_say("environment"), -1);
    ok_eq(check->count, 0);
    end();
}

static void test_descriptors(void)
{
    begin();
    set("connections_max", "1000");
    facts.machine.descriptors_max = 1512;
    ok_eq(limits_say("descriptors"), -1);
    facts.machine.descriptors_max = 1511;
    ok_eq(limits_say("descriptors"), ORIBI_CHECK_RISK);
    is_str(check->findings[0].what, "a worker may open 1511 files, and connections_max 1000 needs 1512");
    facts.machine.descriptors_max = UINT64_MAX;
    facts.machine.files_max = 3024; /* of two workers */
    ok_eq(limits_say("system-files"), -1);
    facts.machine.files_max = 3023;
    ok_eq(limits_say("system-files"), ORIBI_CHECK_RISK);
    end();
}

static void test_length_of_files(void)
{
    begin();
    set("body_bytes_max", "1M");
    facts.machine.file_bytes_max = 1024 * 1024;
    ok_eq(limits_say("file-size"), -1);
    facts.machine.file_bytes_max--;
    ok_eq(limits_say("file-size"), ORIBI_CHECK_RISK);
    end();
}

static void test_memory(void)
{
    begin();
    set("memory_max", "200M");
    set("buffers_memory_max", "100M");
    facts.machine.memory_bytes = 400 * 1024 * 1024;
    ok_eq(limits_say("memory"), -1);
    facts.machine.memory_bytes--;
    ok_eq(limits_say("memory"), ORIBI_CHECK_RISK);
    facts.machine.memory_bytes = 200 * 1024 * 1024;
    ok_eq(limits_say("buffers-memory"), -1);
    facts.machine.memory_bytes--;
    ok_eq(limits_say("buffers-memory"), ORIBI_CHECK_RISK);
    set("memory_max", "0"); /* is not looked at */
    ok_eq(limits_say("memory"), -1);
    set("memory_max", "1024G"); /* the product has room, with 512 workers too */
    set("workers", "512");
    facts.machine.memory_bytes = INT64_MAX;
    ok_eq(limits_say("memory"), -1);
    end();
}

static void test_processors(void)
{
    begin();
    set("workers", "8");
    ok_eq(limits_say("cpus"), -1);
    set("workers", "9");
    ok_eq(limits_say("cpus"), ORIBI_CHECK_RISK);
    end();
}

/* Two workers with helper and no threads: 2 + 2 * 2, and 1 + 1 * 2 for a reload. */
static void test_processes_and_threads(void)
{
    begin();
    facts.machine.tasks_left = 9;
    ok_eq(limits_say("tasks-reload"), -1);
    ok_eq(limits_say("tasks"), -1);
    facts.machine.tasks_left = 8;
    ok_eq(limits_say("tasks-reload"), ORIBI_CHECK_RISK);
    facts.machine.tasks_left = 6;
    ok_eq(limits_say("tasks"), -1);
    facts.machine.tasks_left = 5;
    ok_eq(limits_say("tasks"), ORIBI_CHECK_WRONG);
    facts.machine.tasks_left = 0;
    ok_eq(limits_say("tasks"), ORIBI_CHECK_WRONG);
    facts.is_running = true; /* then those of the start are there already */
    facts.machine.tasks_left = 3;
    ok_eq(limits_say("tasks-reload"), -1);
    facts.machine.tasks_left = 2;
    ok_eq(limits_say("tasks-reload"), ORIBI_CHECK_RISK);
    ok_eq(found("tasks"), -1);
    facts = (struct oribi__check_facts){.machine = facts.machine, .temp = facts.temp};
    facts.machine.tasks_left = 2 + 2 * (1 + 1 + 4) + 1 + (1 + 1 + 4); /* with threads */
    set("threads", "4");
    ok_eq(limits_say("tasks-reload"), -1);
    facts.machine.tasks_left--;
    ok_eq(limits_say("tasks-reload"), ORIBI_CHECK_RISK);
    end();
}

static void test_processes_of_a_user(void)
{
    begin();
    facts.machine.processes_max = 9;
    ok_eq(limits_say("processes"), -1);
    facts.machine.processes_max = 8;
    ok_eq(limits_say("processes"), ORIBI_CHECK_RISK);
    facts.is_root = true;
    ok_eq(limits_say("processes"), -1);
    set("user", "nobody");
    ok_eq(limits_say("processes"), ORIBI_CHECK_RISK);
    end();
}

static void test_backlog(void)
{
    begin();
    set("backlog", "4096");
    ok_eq(limits_say("backlog"), -1);
    set("backlog", "4097");
    ok_eq(limits_say("backlog"), ORIBI_CHECK_RISK);
    set("backlog", "0");
    ok_eq(limits_say("backlog"), -1);
    set("bind", "127.0.0.1:2?backlog=4097"); /* of one address */
    ok_eq(limits_say("backlog"), ORIBI_CHECK_RISK);
    end();
}

static void test_folder_of_bodies(void)
{
    begin();
    set("body_bytes_max", "1M");
    facts.temp.disk.free_bytes = 1024 * 1024;
    ok_eq(limits_say("tmpdir-space"), -1);
    facts.temp.disk.free_bytes--;
    ok_eq(limits_say("tmpdir-space"), ORIBI_CHECK_RISK);
    ok_eq(found("tmpdir-budget"), -1); /* the default is larger than many disks */
    set("buffers_file_max", "1M");
    facts.temp.disk.free_bytes = 2 * 1024 * 1024;
    ok_eq(limits_say("tmpdir-budget"), -1);
    facts.temp.disk.free_bytes--;
    ok_eq(limits_say("tmpdir-budget"), ORIBI_CHECK_RISK);
    set("buffers_file_max", "0"); /* any amount */
    ok_eq(limits_say("tmpdir-budget"), -1);
    facts.temp.disk = (struct oribi_disk){.free_bytes = INT64_MAX, .is_memory = true};
    ok_eq(limits_say("tmpdir-memory"), -1);
    facts.machine.is_group_memory = true;
    ok_eq(limits_say("tmpdir-memory"), ORIBI_CHECK_RISK);
    facts.temp.trouble = "permission denied";
    ok_eq(limits_say("tmpdir"), ORIBI_CHECK_WRONG);
    ok_eq(found("tmpdir-memory"), -1);
    end();
}

static void test_features_of_the_kernel(void)
{
    begin();
    facts.machine.has_openat2 = false; /* only files of static need it */
    ok_eq(limits_say("openat2"), -1);
    set("static", "/tmp");
    ok_eq(limits_say("openat2"), ORIBI_CHECK_RISK);
    facts.machine.has_proc = false;
    ok_eq(limits_say("proc"), ORIBI_CHECK_RISK);
    facts.machine.has_subreaper = false;
    ok_eq(limits_say("subreaper"), ORIBI_CHECK_RISK);
    facts.machine.has_memfd = false;
    ok_eq(limits_say("memfd"), ORIBI_CHECK_WRONG);
    end();
}

static void test_a_memory_max_that_nobody_measures(void)
{
    begin();
    set("memory_max", "100M");
    ok_eq(limits_say("memory-max"), -1);
    facts.machine.cannot_measure = true;
    ok_eq(limits_say("memory-max"), ORIBI_CHECK_RISK);
    set("memory_max", "0");
    ok_eq(limits_say("memory-max"), -1);
    end();
}

static void test_development_on_an_open_address(void)
{
    begin();
    set("env", "development");
    ok_eq(settings_say("environment"), -1);
    set("bind", "unix:///tmp/s");
    ok_eq(settings_say("environment"), -1);
    set("bind", "0.0.0.0:1");
    ok_eq(settings_say("environment"), ORIBI_CHECK_RISK);
    set("env", "test");
    ok_eq(settings_say("environment"), -1);
    end();
}

static void test_proxies_that_are_everybody(void)
{
    static const struct {
        const char *range;
        int level;
    } cases[] = {{"10.0.0.0/8", -1}, {"0.0.0.0/1", -1},          {"0.0.0.0/0", ORIBI_CHECK_RISK},
                 {"::/1", -1},       {"::/0", ORIBI_CHECK_RISK}, {"unix", -1}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        begin();
        set("bind", "[::]:1");
        set("trusted_proxies", cases[i].range);
        ok_named(settings_say("trusted-proxies") == cases[i].level, "trusted_proxies %s", cases[i].range);
        end();
    }
    begin(); /* a bind on loopback */
    set("trusted_proxies", "0.0.0.0/0");
    ok_eq(settings_say("trusted-proxies"), -1);
    end();
}

static void test_token_of_an_open_status(void)
{
    begin();
    set("status", "0.0.0.0:2");
    set("status_token", "0123456789abcdef");
    ok_eq(settings_say("status-token"), -1);
    set("status_token", "0123456789abcde");
    ok_eq(settings_say("status-token"), ORIBI_CHECK_RISK);
    set("status", "127.0.0.1:2");
    ok_eq(settings_say("status-token"), -1);
    end();
}

static void test_production(void)
{
    begin();
    set("call_timeout", "0");
    ok_eq(settings_say("call-timeout"), ORIBI_CHECK_RISK);
    ok_eq(found("shutdown-timeout"), -1);
    set("shutdown_timeout", "0");
    ok_eq(settings_say("shutdown-timeout"), ORIBI_CHECK_RISK);
    set("boot_timeout", "0");
    ok_eq(settings_say("boot-timeout"), ORIBI_CHECK_RISK);
    set("env", "development");
    ok_eq(settings_say("boot-timeout"), -1);
    ok_eq(found("call-timeout"), -1);
    set("env", "deployment");
    facts.is_root = true;
    ok_eq(settings_say("root"), ORIBI_CHECK_RISK);
    set("user", "nobody");
    ok_eq(settings_say("root"), -1);
    end();
}

static void test_pairs_that_do_not_fit(void)
{
    begin();
    set("daemonize", "on");
    ok_eq(settings_say("daemon-log"), ORIBI_CHECK_RISK);
    set("error_log", "/tmp/log");
    ok_eq(settings_say("daemon-log"), -1);
    set("call_timeout", "10s");
    set("slow_log", "9999ms");
    ok_eq(settings_say("slow-log"), -1);
    set("slow_log", "10s");
    ok_eq(settings_say("slow-log"), ORIBI_CHECK_RISK);
    set("call_timeout", "0");
    ok_eq(settings_say("slow-log"), -1);
    set("memory_max", "64M"); /* the default of buffers_memory_max */
    ok_eq(settings_say("buffers-of-worker"), -1);
    set("memory_max", "63M");
    ok_eq(settings_say("buffers-of-worker"), ORIBI_CHECK_RISK);
    end();
}

/* --- the report --- */

static const struct oribi_check_version versions[] = {{"oribi", "1.2"}, {"ruby", "\"3\""}};

static int report(struct oribi_buf *out, bool json, bool strict)
{
    oribi_buf_deinit(out);
    int code = oribi_check_report(check, out, (struct oribi_check_asked){json, strict}, "oribi", versions, 2);
    oribi_buf_append(out, "", 1);
    return code;
}

static void test_both_forms_and_the_exit_code(void)
{
    struct oribi_buf out = {0};
    begin();
    ok_eq(report(&out, false, true), 0);
    is_str(out.p, "oribi 1.2, ruby \"3\": 0 wrong, 0 risks\n");
    oribi_check_add(check, ORIBI_CHECK_RISK, "one", "a\nb", "c", "d");
    ok_eq(report(&out, false, false), 0);
    ok_eq(report(&out, false, true), 1);
    oribi_check_add(check, ORIBI_CHECK_WRONG, "two", "e \"f\"", "g", "h");
    ok_eq(report(&out, false, false), 1);
    is_str(out.p, "wrong  two: e \"f\"\n       why: g\n       do:  h\n\n" /* what is wrong comes first */
                  "risk   one: a b\n       why: c\n       do:  d\n\n"
                  "oribi 1.2, ruby \"3\": 1 wrong, 1 risk\n");
    ok_eq(report(&out, true, false), 1);
    is_str(out.p, "{\"command\":\"oribi\",\"ok\":false,\"wrong\":1,\"risks\":1,\"dropped\":0,\"findings\":["
                  "{\"level\":\"risk\",\"id\":\"one\",\"what\":\"a b\",\"why\":\"c\",\"do\":\"d\"},"
                  "{\"level\":\"wrong\",\"id\":\"two\",\"what\":\"e \\\"f\\\"\",\"why\":\"g\",\"do\":\"h\"}],"
                  "\"versions\":{\"oribi\":\"1.2\",\"ruby\":\"\\\"3\\\"\"}}\n");
    oribi_buf_deinit(&out);
    end();
}

static void test_findings_without_room_are_counted(void)
{
    struct oribi_buf out = {0};
    begin();
    for (int i = 0; i < ORIBI_CHECK_FINDINGS_MAX; i++)
        oribi_check_add(check, ORIBI_CHECK_RISK, "x", "x", "x", "x");
    ok_eq(check->dropped, 0);
    oribi_check_add(check, ORIBI_CHECK_WRONG, "y", "y", "y", "y");
    ok_eq(check->dropped, 1);
    ok_eq(check->count, ORIBI_CHECK_FINDINGS_MAX);
    ok_eq(report(&out, false, false), 1); /* it counts all the same */
    ok(strstr(out.p, ": 1 wrong, 100 risks (1 not shown)\n"));
    oribi_buf_deinit(&out);
    end();
}

static void test_long_texts_are_cut_between_characters(void)
{
    char text[2 * ORIBI_CHECK_WHAT_CAP];
    begin();
    memset(text, 'x', sizeof(text));
    memcpy(text + ORIBI_CHECK_WHAT_CAP - 2, "\xc3\xa4", 2);
    text[sizeof(text) - 1] = '\0';
    oribi_check_add(check, ORIBI_CHECK_RISK, text, text, "w", "t");
    ok_eq(strlen(check->findings[0].what), ORIBI_CHECK_WHAT_CAP - 2);
    ok_eq(strlen(check->findings[0].id), ORIBI_CHECK_ID_CAP - 1);
    text[ORIBI_CHECK_WHAT_CAP - 1] = '\0';
    memset(text, 'x', ORIBI_CHECK_WHAT_CAP - 1);
    oribi_check_add(check, ORIBI_CHECK_RISK, "i", text, "w", "t");
    ok_eq(strlen(check->findings[1].what), ORIBI_CHECK_WHAT_CAP - 1); /* fits */
    end();
}

static void test_the_command_line(void)
{
    static const char *const words[] = {"--json", "-w", "3", "--strict", "app.ru"};
    static const char *const behind[] = {"--", "--json"};
    static const char *const unknown[] = {"--jsno"};
    struct oribi_check_asked asked;
    begin();
    ok_eq(oribi_check_parse(&options, 5, words, &asked, error), 0);
    ok(asked.json && asked.strict);
    ok_eq(options.workers, 3);
    is_str(options.app, "app.ru");
    end();
    begin();
    ok_eq(oribi_check_parse(&options, 2, behind, &asked, error), 0);
    ok(!asked.json);
    is_str(options.app, "--json");
    ok_eq(oribi_check_parse(&options, 1, unknown, &asked, error), ORIBI_EINVAL);
    ok_eq(oribi_check_parse(&options, 0, unknown, &asked, error), 0);
    end();
}

int main(void)
{
    test_nothing_is_said_where_there_is_room();
    test_descriptors();
    test_length_of_files();
    test_memory();
    test_processors();
    test_processes_and_threads();
    test_processes_of_a_user();
    test_backlog();
    test_folder_of_bodies();
    test_features_of_the_kernel();
    test_a_memory_max_that_nobody_measures();
    test_development_on_an_open_address();
    test_proxies_that_are_everybody();
    test_token_of_an_open_status();
    test_production();
    test_pairs_that_do_not_fit();
    test_both_forms_and_the_exit_code();
    test_findings_without_room_are_counted();
    test_long_texts_are_cut_between_characters();
    test_the_command_line();
    return done_testing();
}
