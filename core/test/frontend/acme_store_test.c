/* The folder of certificates by ACME: its folders, lock, state and files. */
#include "frontend/acme_store.c"

#include "tap.h"

static char error[ORIBI_ERROR_TEXT_CAP];
static char base[] = "/tmp/oribi-acme-XXXXXX";

static struct oribi__acme_store store_at(const char *word)
{
    struct oribi__acme_store store = {.lock_fd = -1, .uid = geteuid(), .gid = getegid()};
    (void)snprintf(store.dir, sizeof(store.dir), "%s/%s", base, word);
    return store;
}

static mode_t mode_of(const char *dir, const char *word)
{
    char path[2 * PATH_MAX];
    struct stat found;
    (void)snprintf(path, sizeof(path), "%s/%s", dir, word);
    return stat(path, &found) == 0 ? found.st_mode & 0777 : 0;
}

static void test_folders_are_made(void)
{
    struct oribi__acme_store store = store_at("a/b/c");
    ok_eq(oribi__acme_store_open(&store, error), 0);
    ok_eq(mode_of(store.dir, "account"), 0700);
    ok_eq(mode_of(store.dir, "request"), 0700);
    char path[2 * PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/account", store.dir);
    ok_eq(chmod(path, 0755), 0);
    ok_eq(oribi__acme_store_open(&store, error), 0);
    ok_eq(mode_of(store.dir, "account"), 0700);
    ok_eq(rmdir(path), 0);
    ok_eq(symlink(base, path), 0);
    ok_named(oribi__acme_store_open(&store, error) < 0, "a link gives no other folder away");
    ok_named(strstr(error, "remove it") != NULL, "%s", error);
}

static void test_a_folder_that_is_none(void)
{
    struct oribi__acme_store store = store_at("file/x");
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/file", base);
    ok_eq(oribi__acme_store_put(&store, path, ORIBI_SLICE("x"), false, error), 0);
    ok_eq(oribi__acme_store_open(&store, error), ORIBI_ESYS);
    ok_named(strstr(error, "acme_dir") != NULL, "%s", error);
}

static void test_a_folder_in_which_others_may_write(void)
{
    struct oribi__acme_store store = store_at("a/open");
    ok_eq(oribi__acme_store_open(&store, error), 0);
    ok_eq(chmod(store.dir, 0777), 0);
    ok_eq(oribi__acme_store_open(&store, error), ORIBI_ESYS);
    ok_named(strstr(error, "chmod 755") != NULL, "%s", error);
    ok_eq(chmod(store.dir, 0775), 0);
    ok_eq(oribi__acme_store_open(&store, error), 0);
    if (geteuid() != 0)
        return;
    store.switches = true;
    store.uid = 65534;
    ok_eq(oribi__acme_store_open(&store, error), ORIBI_ESYS); /* its group is the client's */
    store.gid = 65534;
    ok_eq(oribi__acme_store_open(&store, error), 0);
    ok_eq(chown(store.dir, 65534, 0), 0);
    ok_eq(oribi__acme_store_open(&store, error), ORIBI_ESYS);
}

static void test_places_that_cannot_be_replaced(void)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/none", base);
    ok_eq(oribi__acme_store_check(path, error), 0);
    ok_eq(oribi__acme_store_check(base, error), ORIBI_ESYS);
    ok_named(strstr(error, "remove it") != NULL, "%s", error);
}

static void test_a_lock_that_is_a_pipe_holds_up_nobody(void)
{
    struct oribi__acme_store store = store_at("a/pipe");
    char path[2 * PATH_MAX];
    ok_eq(oribi__acme_store_open(&store, error), 0);
    (void)snprintf(path, sizeof(path), "%s/lock", store.dir);
    ok_eq(mkfifo(path, 0600), 0);
    ok(!oribi__acme_store_is_locked(&store));
}

static void test_one_asks_at_a_time(void)
{
    struct oribi__acme_store one = store_at("a/b/d");
    struct oribi__acme_store two = store_at("a/b/d");
    ok_eq(oribi__acme_store_open(&one, error), 0);
    ok(!oribi__acme_store_is_locked(&two));
    ok_eq(oribi__acme_store_lock(&one, error), 0);
    ok(oribi__acme_store_is_locked(&two));
    ok_eq(oribi__acme_store_lock(&two, error), ORIBI_AGAIN);
    oribi_os_close(one.lock_fd);
    ok_eq(oribi__acme_store_lock(&two, error), 0);
    oribi_os_close(two.lock_fd);
}

static void write_raw(const struct oribi__acme_store *store, const char *text)
{
    char path[2 * PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/a.org.state", store->dir);
    ok_eq(oribi__acme_store_install(path, oribi_slice(text, strlen(text)), error), 0);
}

static void test_state_is_kept(void)
{
    struct oribi__acme_store store = store_at("a/b/e");
    struct oribi_acme_facts facts = {.failures = 3, .tried_s = 1700000000};
    char reason[ORIBI_ACME_REASON_MAX + 1];
    ok_eq(oribi__acme_store_open(&store, error), 0);
    oribi__acme_state_read(&store, "a.org", &facts, reason);
    ok(facts.failures == 0 && facts.tried_s == 0 && !reason[0]);
    facts = (struct oribi_acme_facts){.failures = 3, .tried_s = 1700000000};
    ok_eq(oribi__acme_state_write(&store, "a.org", &facts, "it was \"away\"", error), 0);
    facts = (struct oribi_acme_facts){0};
    oribi__acme_state_read(&store, "a.org", &facts, reason);
    ok(facts.failures == 3 && facts.tried_s == 1700000000);
    is_str(reason, "it was \"away\"");
    static const char *const bad[] = {
        "", "x", "failures", "failures 1\n", "failures x\ntried 1\nreason\n", "failures 1\ntried 2\nreas"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        write_raw(&store, bad[i]);
        oribi__acme_state_read(&store, "a.org", &facts, reason);
        ok_named(facts.failures == 0 && facts.tried_s == 0 && !reason[0], "\"%s\" counts as nothing", bad[i]);
    }
    write_raw(&store, "failures 1\ntried 2\nreason\n");
    oribi__acme_state_read(&store, "a.org", &facts, reason);
    ok(facts.failures == 1 && facts.tried_s == 2 && !reason[0]);
}

static void test_files_are_whole_or_not_there(void)
{
    struct oribi__acme_store store = store_at("a/b/f");
    struct oribi_buf text = {0};
    char path[2 * PATH_MAX];
    ok_eq(oribi__acme_store_open(&store, error), 0);
    (void)snprintf(path, sizeof(path), "%s/x.pem", store.dir);
    ok_eq(oribi__acme_store_read(path, &text, error), 1);
    ok_eq(oribi__acme_store_install(path, ORIBI_SLICE("old"), error), 0);
    ok_eq(oribi__acme_store_install(path, ORIBI_SLICE("new one"), error), 0);
    ok_eq(mode_of(store.dir, "x.pem"), 0600);
    ok_eq(mode_of(store.dir, "x.pem.new"), 0);
    ok_eq(oribi__acme_store_read(path, &text, error), 0);
    ok(text.len == 7 && memcmp(text.p, "new one", 7) == 0);
    (void)snprintf(path, sizeof(path), "%s/long", store.dir);
    ok_eq(oribi__acme_store_install(path, ORIBI_SLICE("x"), error), 0);
    ok_eq(truncate(path, ORIBI__ACME_FILE_MAX + 1), 0);
    ok_eq(oribi__acme_store_read(path, &text, error), ORIBI_ESYS);
    ok_named(strstr(error, "longer than") != NULL, "%s", error);
    text.len = 0;
    ok_eq(truncate(path, ORIBI__ACME_FILE_MAX), 0);
    ok_eq(oribi__acme_store_read(path, &text, error), 0);
    ok_eq(oribi__acme_store_read("/dev/zero", &text, error), ORIBI_ESYS);
    ok_named(strstr(error, "not a regular file") != NULL, "%s", error);
    char other[2 * PATH_MAX];
    (void)snprintf(other, sizeof(other), "%s/pipe", store.dir);
    ok_eq(mkfifo(other, 0600), 0);
    ok_named(oribi__acme_store_take(other, &text, error) == ORIBI_ESYS, "a pipe is not waited for");
    (void)snprintf(other, sizeof(other), "%s/link", store.dir);
    ok_eq(symlink(path, other), 0);
    ok_named(oribi__acme_store_take(other, &text, error) == ORIBI_ESYS, "a link of the client's is not followed");
    text.len = 0;
    ok_eq(oribi__acme_store_take(path, &text, error), 0);
    ok_eq(oribi__acme_store_read(base, &text, error), ORIBI_ESYS);
    oribi_buf_deinit(&text);
    ok_eq(oribi__acme_store_install("/dev/full/x", ORIBI_SLICE("x"), error), ORIBI_ESYS);
}

int main(void)
{
    ok(mkdtemp(base) != NULL);
    test_folders_are_made();
    test_a_folder_that_is_none();
    test_a_folder_in_which_others_may_write();
    test_places_that_cannot_be_replaced();
    test_a_lock_that_is_a_pipe_holds_up_nobody();
    test_one_asks_at_a_time();
    test_state_is_kept();
    test_files_are_whole_or_not_there();
    char command[64];
    (void)snprintf(command, sizeof(command), "rm -rf %s", base);
    ok_eq(system(command), 0);
    return done_testing();
}
