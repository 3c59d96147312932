/* Files that change: as editors save them, in folders that come and go, beside each other, with and without inotify. */
#include "process/watch.h"

#include "oribi/base/clock.h"
#include "oribi/base/os.h"
#include "oribi/base/os_process.h"
#include "tap.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[32];
static struct oribi__watch watch;

static const char *at(const char *name)
{
    static char paths[4][128];
    static int next;
    char *path = paths[next++ % 4];
    (void)snprintf(path, sizeof(paths[0]), "%s/%s", root, name);
    return path;
}

static void put(const char *name, const char *text)
{
    FILE *file = fopen(at(name), "w");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0)
        exit(1);
}

static void make_folder(const char *name)
{
    if (mkdir(at(name), 0755) < 0)
        exit(1);
}

static void begin(const char *pattern)
{
    char text[128];
    char *items[] = {text};
    struct oribi_text_list patterns = {items, pattern ? 1 : 0};
    (void)snprintf(root, sizeof(root), "/tmp/watch-XXXXXX");
    if (!mkdtemp(root))
        exit(1);
    make_folder("lib");
    make_folder("views");
    put("lib/a.rb", "a");
    put("lib/b.rb", "b");
    put("views/a.tt", "a");
    (void)snprintf(text, sizeof(text), "%s", at(pattern ? pattern : ""));
    watch = (struct oribi__watch){.os = {-1}};
    oribi__watch_begin(&watch, &patterns);
}

static void end(void)
{
    char line[64];
    oribi__watch_end(&watch);
    (void)snprintf(line, sizeof(line), "rm -r %s", root); /* a name of mkdtemp's */
    ok_eq(system(line), 0);
}

static void name_files(const char *const *names, size_t count)
{
    char list[1024];
    size_t len = 0;
    for (size_t i = 0; i < count; i++)
        len += (size_t)snprintf(list + len, sizeof(list) - len, "%s", at(names[i])) + 1;
    oribi__watch_files(&watch, list, len);
}

#define NAME(...)                                                                                                      \
    name_files((const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

/* The name below the root of what has changed; "" when nothing has until all is looked at. */
static const char *changed(void)
{
    for (;;) {
        int64_t now_ms = oribi_clock_ms();
        const char *path = oribi__watch_turn(&watch, now_ms);
        if (path)
            return path + strlen(root) + 1;
        if (oribi__watch_deadline(&watch) == INT64_MAX)
            return "";
        struct pollfd fd = {.fd = oribi__watch_fd(&watch), .events = POLLIN};
        int64_t left_ms = oribi__watch_deadline(&watch) - now_ms;
        (void)poll(&fd, 1, left_ms > 0 ? (int)left_ms : 0);
    }
}

static void test_files_that_are_saved(void)
{
    begin(NULL);
    NAME("lib/a.rb", "lib/b.rb", "lib/a.rb");
    ok_eq(watch.count, 2);
    ok_eq(watch.folder_count, 1);
    is_str(changed(), "");
    put("lib/a.rb", "more");
    is_str(changed(), "lib/a.rb");
    ok_eq(watch.changed_count, 1);
    is_str(changed(), "");
    put("lib/a.rb~", "a");
    ok_eq(rename(at("lib/a.rb~"), at("lib/a.rb")), 0); /* as editors do */
    is_str(changed(), "lib/a.rb");
    put("lib/a.rb", "1");
    put("lib/b.rb", "22");
    is_str(changed(), "lib/a.rb");
    ok_eq(watch.changed_count, 2);
    put("lib/c.rb", "of no concern");
    is_str(changed(), "");
    ok_eq(unlink(at("lib/b.rb")), 0);
    is_str(changed(), "lib/b.rb");
    end();
}

static void test_files_that_come(void)
{
    begin(NULL);
    NAME("lib/later.rb", "none/later.rb");
    ok_eq(watch.count, 1); /* no folder, no file, and no look for it once a second */
    ok(oribi__watch_deadline(&watch) == INT64_MAX);
    put("lib/later.rb", "here");
    is_str(changed(), "lib/later.rb");
    NAME("lib/later.rb");
    ok_eq(watch.count, 1);
    end();
}

static void test_a_folder_that_is_replaced(void)
{
    begin(NULL);
    NAME("lib/a.rb");
    ok_eq(rename(at("lib"), at("old")), 0);
    while (strcmp(changed(), "lib/a.rb") != 0)
        continue;
    make_folder("lib");
    put("lib/a.rb", "new");
    while (strcmp(changed(), "lib/a.rb") != 0)
        continue;
    put("old/a.rb", "of no concern any more");
    is_str(changed(), "");
    put("lib/a.rb", "newer");
    is_str(changed(), "lib/a.rb");
    end();
}

static void test_a_folder_with_everything_below(void)
{
    begin("views");
    put("views/b.tt", "new");
    is_str(changed(), "views/b.tt");
    make_folder("views/deep");
    ok(changed()[0] != '\0');
    put("views/deep/c.tt", "new");
    is_str(changed(), "views/deep/c.tt");
    put("views/.b.tt.swp", "of an editor");
    is_str(changed(), "");
    ok_eq(unlink(at("views/b.tt")), 0);
    ok(changed()[0] != '\0');
    end();
}

static void test_patterns(void)
{
    begin("*.yml");
    put("a.yml", "new");
    is_str(changed(), "a.yml");
    put("a.txt", "new");
    is_str(changed(), "");
    end();
    begin("**/*.tt");
    put("views/a.tt", "more");
    is_str(changed(), "views/a.tt");
    put("lib/a.rb", "more");
    is_str(changed(), "");
    end();
}

/* As when all watches of the user are taken. */
static void test_without_inotify_files_are_looked_at(void)
{
    begin("*.yml");
    NAME("lib/a.rb");
    oribi_os_watch_close(&watch.os);
    watch.polls = true;
    put("lib/a.rb", "more");
    is_str(changed(), "lib/a.rb");
    put("a.yml", "new");
    is_str(changed(), "a.yml");
    ok(oribi__watch_deadline(&watch) > oribi_clock_ms());
    end();
}

static void test_maxima(void)
{
    char list[64];
    begin(NULL);
    for (int i = 0; i <= ORIBI__WATCH_FILES_MAX; i += 100) {
        char many[100 * 32];
        size_t len = 0;
        for (int j = 0; j < 100; j++)
            len += (size_t)snprintf(many + len, sizeof(many) - len, "/%d", i + j) + 1;
        oribi__watch_files(&watch, many, len);
    }
    ok_eq(watch.count, ORIBI__WATCH_FILES_MAX);
    ok(watch.full);
    oribi__watch_files(&watch, list, (size_t)snprintf(list, sizeof(list), "/no-end")); /* its NUL is missing */
    oribi__watch_files(&watch, "\0\0", 2);
    ok_eq(watch.count, ORIBI__WATCH_FILES_MAX);
    end();
}

/* A watch that is off has no deadline and no descriptor. */
static void test_off(void)
{
    static struct oribi__watch off = {.os = {-1}};
    oribi__watch_files(&off, "/a", 3);
    ok_eq(oribi__watch_fd(&off), -1);
    ok(oribi__watch_deadline(&off) == INT64_MAX);
    ok(oribi__watch_turn(&off, 1) == NULL);
    oribi__watch_end(&off);
}

int main(void)
{
    test_files_that_are_saved();
    test_files_that_come();
    test_a_folder_that_is_replaced();
    test_a_folder_with_everything_below();
    test_patterns();
    test_without_inotify_files_are_looked_at();
    test_maxima();
    test_off();
    return done_testing();
}
