/* The cache of open files: what it gives, when it looks at the disk, what goes when there is no more room, and that
 * nothing is ever half old and half new. */
#include "files/cache.c"

#include "base/mem_counted.h"
#include "child.h"
#include "tap.h"
#include "tree.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <time.h>

enum { OPEN_LIMIT = 1024, MEMORY_LIMIT = 32 * 1024 * 1024, LARGE = ORIBI_CACHE_BODY_BYTES_MAX + 1 };

static struct oribi_types *types;
static struct oribi_root *root;
static struct oribi_cache *cache;
static struct oribi_cache_now now;
static int descriptors_before;
static int64_t blocks_before;

/* A tree with a root and an empty cache. The wall clock is ahead, so that no file is young unless a test says so. */
static void begin(uint32_t open_max, uint32_t missing_max, uint64_t memory_max)
{
    struct oribi_cache_limits limits = {open_max, missing_max, memory_max};
    tree_begin();
    make_folder("site");
    descriptors_before = open_descriptors();
    blocks_before = oribi_mem_blocks();
    types = oribi_types_create("utf-8");
    must(oribi_root_create(&root, at("site"), NULL, 0, NULL) == 0);
    cache = oribi_cache_create(&limits, types);
    now = (struct oribi_cache_now){.ms = 5000, .wall_s = (int64_t)time(NULL) + 3600};
}

static void begin_large(void)
{
    begin(OPEN_LIMIT, ORIBI_CACHE_MISSING_DEFAULT, MEMORY_LIMIT);
}

static void end(void)
{
    oribi_cache_destroy(cache);
    oribi_root_destroy(root);
    oribi_types_destroy(types);
    ok_named(open_descriptors() == descriptors_before, "no descriptor is left open");
    ok_named(oribi_mem_blocks() == blocks_before, "no memory is left");
    tree_end();
}

static const struct oribi_file *get(const char *path)
{
    const struct oribi_file *file = NULL;
    enum oribi_file_verdict verdict = oribi_cache_get(cache, root, path, now, &file);
    ok_named(verdict == ORIBI_FILE_OK && file, "%s: %s", path, oribi_file_verdict_text(verdict));
    if (!file)
        exit(done_testing());
    return file;
}

static void get_and_release(const char *path)
{
    oribi_cache_release(get(path));
}

static enum oribi_file_verdict verdict_of(const char *path)
{
    const struct oribi_file *file = NULL;
    enum oribi_file_verdict verdict = oribi_cache_get(cache, root, path, now, &file);
    if (verdict == ORIBI_FILE_OK)
        oribi_cache_release(file);
    return verdict;
}

static struct oribi_cache_counts counts(void)
{
    struct oribi_cache_counts given;
    oribi_cache_count(cache, &given);
    return given;
}

static struct oribi_slice body_of(const struct oribi_file *file, enum oribi_coding coding)
{
    const struct oribi_file_content *content = &file->contents[coding];
    return oribi_slice(content->body, (size_t)content->info.size);
}

/* `n` times the letter. */
static void make_letters(const char *name, char letter, size_t n)
{
    char *p = malloc(n + 1);
    memset(p, letter, n);
    make_bytes(name, p, n);
    free(p);
}

/* --- what is given --- */

static void test_a_small_file_is_kept_in_memory(void)
{
    begin_large();
    make_file("site/a.css", "body {}");
    const struct oribi_file *file = get("a.css");
    const struct oribi_file_content *content = &file->contents[ORIBI_CODING_IDENTITY];
    is_slice(file->type, "text/css; charset=utf-8");
    is_slice(body_of(file, ORIBI_CODING_IDENTITY), "body {}");
    ok(content->is_there && content->fd == -1 && !file->young);
    ok_eq(content->info.size, 7);
    ok_eq(content->info.inode, inode_of("site/a.css"));
    ok(!file->contents[ORIBI_CODING_GZIP].is_there && !file->contents[ORIBI_CODING_BR].is_there &&
       !file->contents[ORIBI_CODING_ZSTD].is_there);
    ok(oribi_file_unchanged(content));
    ok_eq(counts().files, 1);
    ok_eq(counts().open, 0);
    oribi_cache_release(file);
    make_file("site/empty", "");
    file = get("empty");
    ok(file->contents[ORIBI_CODING_IDENTITY].body && file->contents[ORIBI_CODING_IDENTITY].info.size == 0);
    oribi_cache_release(file);
    end();
}

static void test_the_largest_body_in_memory_and_one_byte_more(void)
{
    begin_large();
    make_letters("site/most", 'm', ORIBI_CACHE_BODY_BYTES_MAX);
    make_letters("site/more", 'm', ORIBI_CACHE_BODY_BYTES_MAX + 1);
    const struct oribi_file *most = get("most");
    const struct oribi_file *more = get("more");
    ok(most->contents[ORIBI_CODING_IDENTITY].body && most->contents[ORIBI_CODING_IDENTITY].fd == -1);
    ok(!more->contents[ORIBI_CODING_IDENTITY].body && more->contents[ORIBI_CODING_IDENTITY].fd > 2);
    ok_eq(more->contents[ORIBI_CODING_IDENTITY].info.size, ORIBI_CACHE_BODY_BYTES_MAX + 1);
    ok_eq(counts().open, 1);
    oribi_cache_release(most);
    oribi_cache_release(more);
    end();
}

static void test_what_is_no_file(void)
{
    static char path[ORIBI_PATH_BYTES_MAX + 2];
    begin_large();
    make_folder("site/folder");
    make_link("/etc/passwd", "site/out");
    ok_eq(verdict_of("none"), ORIBI_FILE_MISSING);
    ok_eq(verdict_of("folder"), ORIBI_FILE_FOLDER);
    ok_eq(verdict_of(""), ORIBI_FILE_FOLDER);
    ok_eq(verdict_of("out"), ORIBI_FILE_OUTSIDE);
    ok_eq(counts().missing, 4);
    uint64_t looks = counts().looks;
    ok_eq(verdict_of("out"), ORIBI_FILE_OUTSIDE);
    ok_eq(verdict_of("none"), ORIBI_FILE_MISSING);
    ok_eq(counts().looks, looks);
    memset(path, 'a', sizeof(path) - 1);
    ok_eq(verdict_of(path), ORIBI_FILE_MISSING);
    ok_eq(counts().looks, looks);
    end();
}

/* --- when the disk is looked at --- */

static void test_the_disk_is_looked_at_once_a_second(void)
{
    begin_large();
    make_file("site/a", "a");
    const struct oribi_file *first = get("a");
    for (int i = 0; i < 100; i++)
        get_and_release("a");
    ok_eq(counts().looks, 1);
    now.ms += ORIBI_CACHE_CHECK_MS - 1;
    get_and_release("a");
    ok_eq(counts().looks, 1);
    now.ms += 1;
    const struct oribi_file *second = get("a");
    ok_eq(counts().looks, 2);
    ok(first == second); /* the same state is the same entry */
    get_and_release("a");
    ok_eq(counts().looks, 2);
    oribi_cache_release(first);
    oribi_cache_release(second);
    end();
}

static void test_a_file_replaced_by_rename_is_new_within_a_second(void)
{
    begin_large();
    make_file("site/a", "old");
    const struct oribi_file *old = get("a");
    replace_file("site/a", "newer");
    is_slice(body_of(old, ORIBI_CODING_IDENTITY), "old");
    get_and_release("a");
    now.ms += ORIBI_CACHE_CHECK_MS;
    const struct oribi_file *new = get("a");
    is_slice(body_of(new, ORIBI_CODING_IDENTITY), "newer");
    is_slice(body_of(old, ORIBI_CODING_IDENTITY), "old"); /* answers that are being sent keep theirs */
    ok_eq(counts().files, 1);
    oribi_cache_release(old);
    oribi_cache_release(new);
    end();
}

static void test_a_large_file_that_is_replaced_keeps_its_descriptor_while_it_is_used(void)
{
    char byte = 0;
    begin_large();
    make_letters("site/a", 'o', LARGE);
    const struct oribi_file *old = get("a");
    make_letters("new", 'n', LARGE);
    must(rename(at("new"), at("site/a")) == 0);
    now.ms += ORIBI_CACHE_CHECK_MS;
    const struct oribi_file *new = get("a");
    ok(pread(old->contents[ORIBI_CODING_IDENTITY].fd, &byte, 1, 0) == 1 && byte == 'o');
    ok(pread(new->contents[ORIBI_CODING_IDENTITY].fd, &byte, 1, 0) == 1 && byte == 'n');
    ok(oribi_file_unchanged(&new->contents[ORIBI_CODING_IDENTITY]));
    int descriptors = open_descriptors();
    oribi_cache_release(old);
    ok_eq(open_descriptors(), descriptors - 1);
    oribi_cache_release(new);
    ok_eq(open_descriptors(), descriptors - 1); /* in the cache */
    end();
}

static void test_a_file_that_comes_and_goes(void)
{
    begin_large();
    ok_eq(verdict_of("a"), ORIBI_FILE_MISSING);
    make_file("site/a", "a");
    ok_eq(verdict_of("a"), ORIBI_FILE_MISSING);
    now.ms += ORIBI_CACHE_CHECK_MS;
    ok_eq(verdict_of("a"), ORIBI_FILE_OK);
    remove_name("site/a");
    ok_eq(verdict_of("a"), ORIBI_FILE_OK);
    now.ms += ORIBI_CACHE_CHECK_MS;
    ok_eq(verdict_of("a"), ORIBI_FILE_MISSING);
    ok_eq(counts().files, 0);
    ok_eq(counts().missing, 1);
    end();
}

static void test_another_root_behind_the_same_path_is_seen_at_once(void)
{
    begin_large();
    make_folder("r2");
    make_file("site/a", "one");
    make_file("r2/a", "two");
    must(rename(at("site"), at("r1")) == 0);
    make_link("r1", "site");
    get_and_release("a");
    ok_eq(verdict_of("b"), ORIBI_FILE_MISSING);
    change_link("r2", "site");
    make_file("r2/b", "b");
    ok_eq(oribi_root_refresh(root), 1);
    const struct oribi_file *file = get("a");
    is_slice(body_of(file, ORIBI_CODING_IDENTITY), "two");
    ok_eq(verdict_of("b"), ORIBI_FILE_OK);
    oribi_cache_release(file);
    end();
}

/* A change within the same tick of the file system's clock shows in no time: what is young is read again. */
static void test_young_files_are_read_anew_at_every_check(void)
{
    begin_large();
    make_file("site/a", "a");
    struct stat file;
    must(stat(at("site/a"), &file) == 0);
    now.wall_s = file.st_ctim.tv_sec + ORIBI_CACHE_YOUNG_S - 1;
    const struct oribi_file *young = get("a");
    ok(young->young);
    const struct oribi_file *again = get("a");
    ok(again == young); /* within the second */
    oribi_cache_release(again);
    now.ms += ORIBI_CACHE_CHECK_MS;
    now.wall_s += 1;
    const struct oribi_file *aged = get("a");
    ok(aged != young && !aged->young);
    now.ms += ORIBI_CACHE_CHECK_MS;
    again = get("a");
    ok(again == aged);
    oribi_cache_release(young);
    oribi_cache_release(aged);
    oribi_cache_release(again);
    end();
}

static void test_a_file_written_to_in_place(void)
{
    begin_large();
    make_letters("site/a", 'a', LARGE);
    const struct oribi_file *file = get("a");
    ok(oribi_file_unchanged(&file->contents[ORIBI_CODING_IDENTITY]));
    must(truncate(at("site/a"), 10) == 0);
    ok(!oribi_file_unchanged(&file->contents[ORIBI_CODING_IDENTITY]));
    ok_eq(file->contents[ORIBI_CODING_IDENTITY].info.size, LARGE);
    now.ms += ORIBI_CACHE_CHECK_MS;
    const struct oribi_file *shorter = get("a");
    ok_eq(shorter->contents[ORIBI_CODING_IDENTITY].info.size, 10);
    is_slice(body_of(shorter, ORIBI_CODING_IDENTITY), "aaaaaaaaaa");
    oribi_cache_release(file);
    oribi_cache_release(shorter);
    end();
}

static void test_a_clock_that_goes_back_is_a_reason_to_look(void)
{
    begin_large();
    make_file("site/a", "a");
    get_and_release("a");
    now.ms -= 1;
    get_and_release("a");
    ok_eq(counts().looks, 2);
    end();
}

/* --- precompressed files --- */

static void test_precompressed_files(void)
{
    begin_large();
    int64_t wall_s = (int64_t)time(NULL);
    make_file("site/a.js", "plain");
    make_file("site/a.js.br", "brotli");
    make_file("site/a.js.gz", "gzipped");
    make_letters("site/a.js.zst", 'z', LARGE);
    age_file("site/a.js", wall_s, 60);
    age_file("site/a.js.br", wall_s, 60); /* as old as the file: made from it */
    age_file("site/a.js.gz", wall_s, 0);
    const struct oribi_file *file = get("a.js");
    is_slice(file->type, "text/javascript; charset=utf-8");
    is_slice(body_of(file, ORIBI_CODING_IDENTITY), "plain");
    is_slice(body_of(file, ORIBI_CODING_BR), "brotli");
    is_slice(body_of(file, ORIBI_CODING_GZIP), "gzipped");
    ok(file->contents[ORIBI_CODING_ZSTD].is_there && file->contents[ORIBI_CODING_ZSTD].fd > 2);
    ok_eq(counts().open, 1);
    ok_eq(counts().looks, 1);
    remove_name("site/a.js.br");
    replace_file("site/a.js.gz", "gzipped anew");
    now.ms += ORIBI_CACHE_CHECK_MS;
    const struct oribi_file *later = get("a.js");
    ok(!later->contents[ORIBI_CODING_BR].is_there);
    is_slice(body_of(later, ORIBI_CODING_GZIP), "gzipped anew");
    is_slice(body_of(file, ORIBI_CODING_GZIP), "gzipped");
    oribi_cache_release(file);
    oribi_cache_release(later);
    end();
}

static void test_what_is_no_precompressed_file(void)
{
    begin_large();
    make_file("site/a", "a");
    make_folder("site/a.gz");
    make_link("/etc/passwd", "site/a.br");
    const struct oribi_file *file = get("a");
    ok(!file->contents[ORIBI_CODING_GZIP].is_there && !file->contents[ORIBI_CODING_BR].is_there);
    oribi_cache_release(file);
    end();
}

static void test_codings_have_names(void)
{
    is_str(oribi_coding_suffix(ORIBI_CODING_IDENTITY), "");
    is_str(oribi_coding_suffix(ORIBI_CODING_ZSTD), ".zst");
    is_str(oribi_coding_suffix(ORIBI_CODING_BR), ".br");
    is_str(oribi_coding_suffix(ORIBI_CODING_GZIP), ".gz");
}

/* Lines of the log that say `text`. */
static int told(const char *text)
{
    static char log[256 * 1024];
    FILE *file = fopen(at("log"), "re");
    int count = 0;
    size_t n = file ? fread(log, 1, sizeof(log) - 1, file) : 0;
    log[n] = '\0';
    for (const char *p = log; (p = strstr(p, text)) != NULL; p++)
        count++;
    if (file)
        (void)fclose(file);
    return count;
}

static void log_to_tree(void)
{
    int fd = open(at("log"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    must(fd >= 0);
    oribi_log_init(fd, ORIBI_LOG_INFO);
    close(fd);
}

static void test_a_stale_precompressed_file_is_not_sent_and_named_once(void)
{
    oribi_log_init(STDERR_FILENO, ORIBI_LOG_INFO); /* the log's own descriptor is there before any is counted */
    begin_large();
    log_to_tree();
    int64_t wall_s = (int64_t)time(NULL);
    make_file("site/a", "a");
    make_file("site/a.gz", "old");
    age_file("site/a", wall_s, 10);
    age_file("site/a.gz", wall_s, 11);
    for (int i = 0; i < 5; i++) {
        const struct oribi_file *file = get("a");
        ok(!file->contents[ORIBI_CODING_GZIP].is_there);
        oribi_cache_release(file);
        now.ms += ORIBI_CACHE_CHECK_MS;
    }
    ok_eq(told("a.gz is 1 s older than the file that it was compressed from; it is not sent"), 1);
    age_file("site/a.gz", wall_s, 10);
    const struct oribi_file *file = get("a");
    is_slice(body_of(file, ORIBI_CODING_GZIP), "old");
    oribi_cache_release(file);
    oribi_log_init(STDERR_FILENO, ORIBI_LOG_INFO);
    end();
}

static void test_so_many_stale_precompressed_files_are_named_and_no_more(void)
{
    char name[32];
    begin_large();
    log_to_tree();
    int64_t wall_s = (int64_t)time(NULL);
    for (int i = 0; i < ORIBI_CACHE_STALE_TOLD_MAX + 2; i++) {
        (void)snprintf(name, sizeof(name), "site/%d", i);
        make_file(name, "x");
        (void)snprintf(name, sizeof(name), "site/%d.gz", i);
        make_file(name, "x");
        age_file(name, wall_s, 60);
        (void)snprintf(name, sizeof(name), "%d", i);
        if (verdict_of(name) != ORIBI_FILE_OK)
            fail("%s is there", name);
    }
    ok_eq(told("is not sent"), ORIBI_CACHE_STALE_TOLD_MAX);
    ok_eq(told("no more of these are named"), 1);
    oribi_log_init(STDERR_FILENO, ORIBI_LOG_INFO);
    end();
}

/* --- room --- */

static void make_many(uint32_t count, size_t bytes)
{
    char name[32];
    for (uint32_t i = 0; i < count; i++) {
        (void)snprintf(name, sizeof(name), "site/%u", i);
        make_letters(name, 'x', bytes);
    }
}

static bool is_kept(uint32_t number)
{
    char name[32];
    (void)snprintf(name, sizeof(name), "%u", number);
    return find(cache, root, name, hash_of(root, name)) != NULL;
}

static void use_many(uint32_t count)
{
    char name[32];
    for (uint32_t i = 0; i < count; i++) {
        (void)snprintf(name, sizeof(name), "%u", i);
        get_and_release(name);
    }
}

static void test_no_more_descriptors_than_open_max(void)
{
    begin(4, 4, MEMORY_LIMIT);
    make_many(6, LARGE);
    int before = open_descriptors();
    use_many(4);
    ok_eq(counts().open, 4);
    get_and_release("0"); /* 1 is the one not used for longest now */
    get_and_release("4");
    ok_eq(counts().open, 4);
    ok_eq(open_descriptors(), before + 4);
    ok(is_kept(0) && !is_kept(1) && is_kept(2) && is_kept(3) && is_kept(4));
    get_and_release("5");
    ok(is_kept(0) && !is_kept(2));
    end();
}

static void test_no_more_memory_than_memory_max(void)
{
    enum { BYTES = 10000, MAX = 60000 };
    begin(4, 4, MAX);
    make_many(12, BYTES);
    use_many(5);
    get_and_release("0");
    uint64_t of_each = counts().memory_bytes / counts().files;
    ok(of_each > BYTES && of_each < BYTES + 1000);
    get_and_release("5");
    get_and_release("6");
    ok(counts().memory_bytes <= MAX);
    ok_eq(counts().files, MAX / of_each);
    ok(is_kept(0) && !is_kept(1) && is_kept(6));
    use_many(12);
    ok(counts().memory_bytes <= MAX && counts().files == MAX / of_each);
    end();
}

static void test_no_more_missing_names_than_missing_max(void)
{
    char name[400];
    begin(4, 4, 17 * 1024);
    make_file("site/0", "x");
    get_and_release("0");
    for (uint32_t i = 1; i <= 6; i++) {
        (void)snprintf(name, sizeof(name), "%u", i);
        ok_eq(verdict_of(name), ORIBI_FILE_MISSING);
        ok(counts().missing == (i < 4 ? i : 4));
    }
    ok(!is_kept(1) && !is_kept(2) && is_kept(3) && is_kept(6));
    for (uint32_t i = 0; i < 20; i++) { /* long names go sooner, and never take a file's place */
        (void)snprintf(name, sizeof(name), "%0200u", i);
        ok_eq(verdict_of(name), ORIBI_FILE_MISSING);
    }
    ok(counts().missing < 4 && is_kept(0));
    end();
}

static void test_a_cache_of_nothing_gives_files_all_the_same(void)
{
    begin(0, 0, 0);
    make_file("site/small", "small");
    make_letters("site/large", 'x', LARGE);
    const struct oribi_file *small = get("small");
    const struct oribi_file *large = get("large");
    ok(small->contents[ORIBI_CODING_IDENTITY].fd > 2 && large->contents[ORIBI_CODING_IDENTITY].fd > 2);
    ok_eq(verdict_of("none"), ORIBI_FILE_MISSING);
    ok_eq(counts().files + counts().missing, 0);
    ok_eq(counts().memory_bytes, 0);
    oribi_cache_release(small);
    oribi_cache_release(large);
    ok_eq(open_descriptors(), descriptors_before + 1); /* the root's */
    end();
}

static void test_what_is_used_outlives_its_place(void)
{
    begin(1, 1, MEMORY_LIMIT);
    make_many(3, LARGE);
    const struct oribi_file *first = get("0");
    const struct oribi_file *second = get("1");
    get_and_release("2");
    ok_eq(counts().open, 1);
    ok(!is_kept(0) && !is_kept(1));
    ok(oribi_file_unchanged(&first->contents[ORIBI_CODING_IDENTITY]) &&
       oribi_file_unchanged(&second->contents[ORIBI_CODING_IDENTITY]));
    const struct oribi_file *again = get("0");
    ok(again != first);
    oribi_cache_release(first);
    oribi_cache_release(second);
    oribi_cache_release(again);
    end();
}

/* Two roots with the same path in them. */
static void test_forgetting(void)
{
    struct oribi_root *other = NULL;
    const struct oribi_file *file = NULL;
    begin_large();
    cache->place_count = 1; /* all entries meet */
    make_folder("other");
    make_file("site/a", "site");
    make_file("other/a", "other");
    must(oribi_root_create(&other, at("other"), NULL, 0, NULL) == 0);
    ok_eq(oribi_cache_get(cache, other, "a", now, &file), ORIBI_FILE_OK);
    is_slice(body_of(file, ORIBI_CODING_IDENTITY), "other");
    get_and_release("a");
    ok_eq(verdict_of("b"), ORIBI_FILE_MISSING);
    ok_eq(counts().files, 2);
    const struct oribi_file *ours = get("a");
    is_slice(body_of(ours, ORIBI_CODING_IDENTITY), "site");
    oribi_cache_release(ours);
    oribi_cache_forget(cache, other);
    ok_eq(counts().files, 1);
    ok_eq(counts().missing, 1);
    is_slice(body_of(file, ORIBI_CODING_IDENTITY), "other");
    oribi_cache_release(file);
    get_and_release("a");
    ok_eq(verdict_of("b"), ORIBI_FILE_MISSING);
    oribi_cache_forget(cache, NULL);
    ok_eq(counts().files + counts().missing, 0);
    oribi_root_destroy(other);
    end();
}

/* --- when the system has no more --- */

static bool limit_descriptors(void)
{
    int next = dup(STDIN_FILENO);
    struct rlimit limit = {(rlim_t)next, (rlim_t)next};
    close(next);
    return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

static int out_of_descriptors(void *data)
{
    const struct oribi_file *file;
    if (!limit_descriptors())
        return 2;
    now.ms += ORIBI_CACHE_CHECK_MS;
    if (oribi_cache_get(cache, root, "0", now, &file) != ORIBI_FILE_OK) /* as it was */
        return 3;
    oribi_cache_release(file);
    if (oribi_cache_get(cache, root, "5", now, &file) != ORIBI_FILE_OK || counts().open != 3) /* two of four went */
        return 4;
    oribi_cache_forget(cache, NULL);
    if (counts().open != 0 || !limit_descriptors())
        return 5;
    return oribi_cache_get(cache, root, "1", now, &file) == ORIBI_FILE_LIMIT ? 0 : 6;
}

static void test_the_process_has_no_descriptor_left(void)
{
    begin_large();
    make_many(6, LARGE);
    use_many(4);
    ok_eq(child_code(out_of_descriptors, NULL), 0);
    end();
}

/* Every allocation of a get fails once. */
static void test_no_memory(void)
{
    begin_large();
    make_letters("site/small", 's', 100);
    make_letters("site/small.gz", 's', 50);
    uint64_t refused = 0;
    uint64_t without_body = 0;
    for (uint64_t i = 1; i <= 4; i++) {
        const struct oribi_file *file = NULL;
        oribi_cache_forget(cache, NULL);
        allocations_tried = 0;
        fail_at = i;
        enum oribi_file_verdict verdict = oribi_cache_get(cache, root, "small", now, &file);
        fail_at = 0;
        refused += verdict == ORIBI_FILE_LIMIT;
        if (verdict != ORIBI_FILE_OK)
            continue;
        without_body += !file->contents[ORIBI_CODING_IDENTITY].body || !file->contents[ORIBI_CODING_GZIP].body;
        ok_eq(file->contents[ORIBI_CODING_IDENTITY].info.size, 100);
        oribi_cache_release(file);
    }
    ok_eq(refused, 1);
    ok_eq(without_body, 2);
    end();
}

/* The application closes a descriptor of ours, and its own file gets the number. */
static void test_a_descriptor_that_is_not_ours_any_more(void)
{
    begin_large();
    make_letters("site/a", 'a', LARGE);
    make_file("theirs", "theirs");
    const struct oribi_file *file = get("a");
    int fd = file->contents[ORIBI_CODING_IDENTITY].fd;
    close(fd);
    ok(!oribi_file_unchanged(&file->contents[ORIBI_CODING_IDENTITY]));
    int theirs = open(at("theirs"), O_RDONLY | O_CLOEXEC);
    must(theirs >= 0 && (theirs == fd || (dup2(theirs, fd) == fd && close(theirs) == 0)));
    ok(!oribi_file_unchanged(&file->contents[ORIBI_CODING_IDENTITY]));
    now.ms += ORIBI_CACHE_CHECK_MS;
    const struct oribi_file *again = get("a");
    ok(again->contents[ORIBI_CODING_IDENTITY].fd != fd &&
       oribi_file_unchanged(&again->contents[ORIBI_CODING_IDENTITY]));
    oribi_cache_release(file);
    oribi_cache_release(again);
    ok(fcntl(fd, F_GETFD) >= 0); /* and is left to them */
    close(fd);
    end();
}

/* --- races --- */

static atomic_bool racing;

static void *deploy_without_pause(void *data)
{
    enum { SMALL = 20000 };
    for (unsigned i = 0; atomic_load(&racing); i++) {
        char letter = (char)('a' + i % 26);
        make_letters("new", letter, SMALL + i % 26);
        must(rename(at("new"), at("site/a")) == 0);
        make_letters("new", letter, LARGE + i % 26);
        must(rename(at("new"), at("site/b")) == 0);
    }
    return NULL;
}

/* All of it is one letter, and as long as that letter's file was. */
static bool is_one_state(const struct oribi_file_content *content, size_t least)
{
    static char bytes[LARGE + 64];
    size_t n = (size_t)content->info.size;
    if (n > sizeof(bytes))
        return false;
    if (content->body)
        memcpy(bytes, content->body, n);
    else if (pread(content->fd, bytes, sizeof(bytes), 0) != (ssize_t)n)
        return false;
    for (size_t i = 0; i < n; i++)
        if (bytes[i] != bytes[0])
            return false;
    return n == least + (size_t)(bytes[0] - 'a');
}

static void test_never_a_mixture_of_old_and_new(void)
{
    enum { ROUNDS = 1500, SMALL = 20000 };
    pthread_t thread;
    uint32_t mixed = 0;
    uint32_t changes = 0;
    uint64_t inode = 0;
    begin_large();
    make_letters("site/a", 'a', SMALL);
    make_letters("site/b", 'a', LARGE);
    atomic_store(&racing, true);
    must(pthread_create(&thread, NULL, deploy_without_pause, NULL) == 0);
    for (int i = 0; i < ROUNDS; i++) {
        const struct oribi_file *small = NULL;
        const struct oribi_file *large = NULL;
        now.ms += ORIBI_CACHE_CHECK_MS;
        if (oribi_cache_get(cache, root, "a", now, &small) != ORIBI_FILE_OK ||
            oribi_cache_get(cache, root, "b", now, &large) != ORIBI_FILE_OK) {
            fail("a replaced file is always there");
            break;
        }
        mixed += !is_one_state(&small->contents[ORIBI_CODING_IDENTITY], SMALL) ||
                 !is_one_state(&large->contents[ORIBI_CODING_IDENTITY], LARGE);
        changes += inode != small->contents[ORIBI_CODING_IDENTITY].info.inode;
        inode = small->contents[ORIBI_CODING_IDENTITY].info.inode;
        oribi_cache_release(small);
        oribi_cache_release(large);
    }
    atomic_store(&racing, false);
    must(pthread_join(thread, NULL) == 0);
    ok_eq(mixed, 0);
    ok(changes > 1);
    end();
}

int main(void)
{
    test_a_small_file_is_kept_in_memory();
    test_the_largest_body_in_memory_and_one_byte_more();
    test_what_is_no_file();
    test_the_disk_is_looked_at_once_a_second();
    test_a_file_replaced_by_rename_is_new_within_a_second();
    test_a_large_file_that_is_replaced_keeps_its_descriptor_while_it_is_used();
    test_a_file_that_comes_and_goes();
    test_another_root_behind_the_same_path_is_seen_at_once();
    test_young_files_are_read_anew_at_every_check();
    test_a_file_written_to_in_place();
    test_a_clock_that_goes_back_is_a_reason_to_look();
    test_precompressed_files();
    test_what_is_no_precompressed_file();
    test_codings_have_names();
    test_a_stale_precompressed_file_is_not_sent_and_named_once();
    test_so_many_stale_precompressed_files_are_named_and_no_more();
    test_no_more_descriptors_than_open_max();
    test_no_more_memory_than_memory_max();
    test_no_more_missing_names_than_missing_max();
    test_a_cache_of_nothing_gives_files_all_the_same();
    test_what_is_used_outlives_its_place();
    test_forgetting();
    test_the_process_has_no_descriptor_left();
    test_no_memory();
    test_a_descriptor_that_is_not_ours_any_more();
    test_never_a_mixture_of_old_and_new();
    return done_testing();
}
