/* Files that change: as editors save them, in folders that come and go, beside each other, with and without inotify. */
#include "oribi/develop/watch.h"

#include "oribi/base/buf.h"
#include "oribi/base/clock.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"
#include "system.h"
#include "tap.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
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

/* --- one file that is touched --- */

static int64_t now_ms = 1; /* of a clock of its own */

static void begin_touch(const char *name)
{
    begin(NULL);
    oribi__watch_end(&watch);
    oribi__watch_begin_touch(&watch, at(name));
}

/* How often in the next two seconds and a half the file is found touched. */
static int touches(void)
{
    int count = 0;
    for (int64_t end_ms = now_ms + 2500; now_ms < end_ms; now_ms += 10)
        count += oribi__watch_turn(&watch, now_ms) != NULL;
    return count;
}

static void set_time(const char *name, time_t seconds)
{
    const struct timespec times[2] = {{.tv_sec = seconds}, {.tv_sec = seconds}};
    if (utimensat(AT_FDCWD, at(name), times, 0) < 0)
        exit(1);
}

static void test_a_file_that_is_touched(void)
{
    begin_touch("lib/a.rb");
    ok_eq(touches(), 0);
    set_time("lib/a.rb", 1000);
    ok_eq(touches(), 1);
    set_time("lib/a.rb", 1000);
    ok_eq(touches(), 0); /* the same time again */
    set_time("lib/b.rb", 1000);
    ok_eq(touches(), 0);
    for (int i = 0; i < 100; i++)
        set_time("lib/a.rb", 2000 + i);
    ok_eq(touches(), 1);
    ok_eq(chmod(at("lib/a.rb"), 0), 0);
    ok_eq(touches(), 0);
    end();
}

/* Nor its folder; both go and come. */
static void test_a_file_to_touch_need_not_be_there(void)
{
    begin_touch("tmp/restart.txt");
    ok_eq(touches(), 0);
    make_folder("tmp");
    ok_eq(touches(), 0);
    put("tmp/restart.txt", "");
    ok_eq(touches(), 1);
    set_time("tmp/restart.txt", 1000);
    ok_eq(touches(), 1);
    ok_eq(unlink(at("tmp/restart.txt")), 0);
    ok_eq(touches(), 0);
    put("tmp/restart.txt", "");
    set_time("tmp/restart.txt", 1000);
    ok_eq(touches(), 0); /* back with its old time: restored, not touched */
    ok_eq(rename(at("tmp"), at("old")), 0);
    ok_eq(touches(), 0);
    make_folder("tmp");
    put("tmp/restart.txt", "");
    set_time("tmp/restart.txt", 3000);
    ok_eq(touches(), 1);
    set_time("old/restart.txt", 5000);
    ok_eq(touches(), 0);
    put("tmp/new", "");
    set_time("tmp/new", 7000);
    ok_eq(rename(at("tmp/new"), at("tmp/restart.txt")), 0);
    ok_eq(touches(), 1);
    end();
}

/* inotify says nothing of these; the look once a second sees them. */
static void test_what_links_lead_to_is_touched(void)
{
    begin_touch("current/a.rb");
    set_time("lib/b.rb", 3000); /* else all may be of the same tick of the kernel's clock */
    ok_eq(symlink("lib", at("current")), 0);
    ok_eq(touches(), 1);
    set_time("lib/a.rb", 1000);
    ok_eq(touches(), 1);
    put("views/a.rb", "the next release");
    ok_eq(symlink("views", at("next")), 0);
    ok_eq(rename(at("next"), at("current")), 0);
    ok_eq(touches(), 1);
    ok_eq(unlink(at("views/a.rb")), 0);
    ok_eq(symlink("../lib/b.rb", at("views/a.rb")), 0);
    ok_eq(touches(), 1);
    set_time("lib/b.rb", 2000);
    ok_eq(touches(), 1);
    end();
}

static void test_what_is_no_file_is_touched(void)
{
    begin_touch("lib/a.rb");
    ok_eq(unlink(at("lib/a.rb")), 0);
    make_folder("lib/a.rb");
    ok_eq(touches(), 0);
    put("lib/a.rb/c", "");
    ok_eq(touches(), 0);
    ok_eq(unlink(at("lib/a.rb/c")), 0);
    ok_eq(rmdir(at("lib/a.rb")), 0);
    ok_eq(mkfifo(at("lib/a.rb"), 0600), 0); /* is not opened, which would wait for a writer */
    set_time("lib/a.rb", 1000);
    ok_eq(touches(), 1);
    ok_eq(unlink(at("lib/a.rb")), 0);
    put("lib/a.rb", "");
    ok_eq(truncate(at("lib/a.rb"), (off_t)1 << 40), 0);
    set_time("lib/a.rb", 2000);
    ok_eq(touches(), 1);
    end();
}

static void test_without_inotify_a_file_is_looked_at(void)
{
    begin_touch("lib/a.rb");
    oribi_os_watch_close(&watch.os);
    ok_eq(oribi__watch_fd(&watch), -1);
    ok_eq(touches(), 0);
    set_time("lib/a.rb", 1000);
    ok_eq(touches(), 1);
    ok(oribi__watch_deadline(&watch) <= now_ms + ORIBI__WATCH_POLL_MS);
    end();
}

/* A thousand touches a second for ten seconds: found once a second, and the process is woken a few times for each. */
static void test_a_storm_of_touches(void)
{
    int found = 0;
    int woken = 0;
    begin_touch("lib/a.rb");
    ok_eq(touches(), 0);
    for (int i = 0; i < 10000; i++, now_ms++) {
        struct pollfd fd = {.fd = oribi__watch_fd(&watch), .events = POLLIN};
        set_time("lib/a.rb", 1000 + i);
        if (oribi__watch_deadline(&watch) > now_ms && !(fd.fd >= 0 && poll(&fd, 1, 0) == 1))
            continue;
        woken++;
        found += oribi__watch_turn(&watch, now_ms) != NULL;
    }
    ok(found >= 9 && found <= 10);
    ok(woken <= 12 * 10);
    ok_eq(touches(), 1);
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

/* A program that is started anew knows what its files were like. */
static void test_what_was_known_before(void)
{
    struct oribi_buf known = {0};
    begin(NULL);
    NAME("lib/a.rb", "lib/b.rb");
    oribi__watch_export(&watch, &known);
    oribi__watch_end(&watch);
    put("lib/b.rb", "more");
    watch = (struct oribi__watch){.os = {-1}};
    oribi__watch_begin(&watch, &(struct oribi_text_list){0});
    oribi__watch_import(&watch, known.p, known.len - 1); /* the last one has no end */
    ok_eq(watch.count, 1);
    is_str(changed(), "");
    oribi__watch_import(&watch, known.p, known.len);
    ok_eq(watch.count, 2);
    is_str(changed(), "lib/b.rb");
    ok_eq(watch.changed_count, 1);
    is_str(changed(), "");
    put("lib/a.rb", "more");
    is_str(changed(), "lib/a.rb");
    oribi__watch_import(&watch, known.p, 0);
    ok_eq(watch.count, 2);
    oribi_buf_deinit(&known);
    end();
}

int main(void)
{
    if (!only_on_linux("polling files once a second"))
        return done_testing();
    test_files_that_are_saved();
    test_files_that_come();
    test_a_folder_that_is_replaced();
    test_a_folder_with_everything_below();
    test_patterns();
    test_without_inotify_files_are_looked_at();
    test_maxima();
    test_a_file_that_is_touched();
    test_a_file_to_touch_need_not_be_there();
    test_what_links_lead_to_is_touched();
    test_what_is_no_file_is_touched();
    test_without_inotify_a_file_is_looked_at();
    test_a_storm_of_touches();
    test_what_was_known_before();
    test_off();
    return done_testing();
}
