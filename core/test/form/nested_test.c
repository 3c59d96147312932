/* Results of names are in spec/nested; here are depth and the work that deep names cause. */
#include "form/nested.c"

#include "guard.h"
#include "http/case_folder.h"
#include "oribi/base/limits.h"
#include "oribi/base/mem.h"

enum { NAME_MAX_BYTES = 4096, DEEP_BYTES = 300 * 1000 };

static struct guard arena;

static size_t show(struct oribi_slice name, char *dst, size_t cap)
{
    static const char *const kinds[] = {"SET", "APPEND", "HASH", "ELEMENT", "LIST"};
    struct oribi_nested nested;
    struct oribi_nested_step step = {0};
    size_t n = 0;
    oribi_nested_begin(&nested, name, ORIBI_FORM_DEPTH_DEFAULT);
    while (oribi_nested_next(&nested, &step) > 0) {
        n += (size_t)snprintf(dst + n, cap - n, "%s%s %.*s", n ? "|" : "", kinds[step.kind], (int)step.key.n,
                              step.key.p);
        if (step.kind == ORIBI_NESTED_ELEMENT)
            n += (size_t)snprintf(dst + n, cap - n, " (%.*s)%s", (int)step.path.n, step.path.p,
                                  step.shared ? " shared" : "");
    }
    return n;
}

static void run_case(void)
{
    static char name[NAME_MAX_BYTES];
    static char steps[NAME_MAX_BYTES * 2];
    size_t n = case_bytes(&file, "key", name, sizeof(name));
    const char *p = guard_place(&arena, name, n);
    check_bytes("steps", oribi_slice(steps, show(oribi_slice(p, n), steps, sizeof(steps))));
}

/* Steps of a name, or the code that ended them. */
static long count_steps(struct oribi_slice name, uint32_t depth_max, size_t *bytes)
{
    struct oribi_nested nested;
    struct oribi_nested_step step;
    long count = 0;
    int code;
    *bytes = 0;
    oribi_nested_begin(&nested, name, depth_max);
    while ((code = oribi_nested_next(&nested, &step)) > 0) {
        *bytes += step.key.n;
        count++;
    }
    return code < 0 ? code : count;
}

/* `a` and `depth` times the unit. */
static struct oribi_slice deep(char *dst, const char *unit, size_t depth)
{
    size_t n = 1;
    dst[0] = 'a';
    for (size_t i = 0; i < depth; i++, n += strlen(unit))
        memcpy(dst + n, unit, strlen(unit));
    return oribi_slice(dst, n);
}

static void test_the_deepest_name_and_one_deeper(void)
{
    char text[1024];
    size_t bytes;
    ok_eq(count_steps(deep(text, "[b]", ORIBI_FORM_DEPTH_DEFAULT - 1), ORIBI_FORM_DEPTH_DEFAULT, &bytes),
          ORIBI_FORM_DEPTH_DEFAULT);
    ok_eq(count_steps(deep(text, "[b]", ORIBI_FORM_DEPTH_DEFAULT), ORIBI_FORM_DEPTH_DEFAULT, &bytes), ORIBI_ELIMIT);
    ok_eq(count_steps(deep(text, "[][b]", 31), ORIBI_FORM_DEPTH_DEFAULT, &bytes), ORIBI_FORM_DEPTH_DEFAULT);
    ok_eq(count_steps(deep(text, "[][b]", 32), ORIBI_FORM_DEPTH_DEFAULT, &bytes), ORIBI_ELIMIT);
    ok_eq(count_steps(ORIBI_SLICE("a[][]"), 2, &bytes), 1);
    ok_eq(count_steps(ORIBI_SLICE("a[][]"), 1, &bytes), ORIBI_ELIMIT);
    ok_eq(count_steps(ORIBI_SLICE("a"), 0, &bytes), ORIBI_ELIMIT);
}

/* Keys of all steps together are no longer than the name, at any depth: no byte belongs to two of them. */
static void test_keys_of_deep_names_are_no_longer_than_the_name(void)
{
    static const char *const units[] = {"[a]", "[", "]", "[]", "[][a]", "[][", "[a][]", "[[]]", "[a]b", "][", "[][]a"};
    char *text = oribi_mem_alloc(1, DEEP_BYTES + 16);
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        size_t bytes;
        size_t depth = DEEP_BYTES / strlen(units[i]);
        struct oribi_slice name = deep(text, units[i], depth);
        long count = count_steps(name, UINT32_MAX, &bytes);
        ok_named(count > 0 && bytes <= name.n, "%s", units[i]);
        ok_named(count <= (long)depth + 1, "%s: a step for each unit at most", units[i]);
    }
    oribi_mem_free(text);
}

static void test_parts_of_a_path(void)
{
    struct oribi_slice path = ORIBI_SLICE("[b][][c]d]");
    struct oribi_slice key;
    ok(oribi_nested_part(&path, &key));
    is_slice(key, "b");
    ok(oribi_nested_part(&path, &key));
    is_slice(key, "c");
    ok(oribi_nested_part(&path, &key));
    is_slice(key, "d");
    ok(!oribi_nested_part(&path, &key));
    path = ORIBI_SLICE("");
    ok(!oribi_nested_part(&path, &key));
    path = ORIBI_SLICE("][");
    ok(!oribi_nested_part(&path, &key));
}

static void test_names_that_all_releases_of_rack_read_alike(void)
{
    static const char *const plain[] = {"a",        "a[b]",  "a[]",      "a[][b]",    "a[b][]",
                                        "a[][b][]", "a[][]", "a[b][][]", "a[b][c][d]"};
    static const char *const odd[] = {"",       "[a]", "a]",   "a[",       "a[b",     "a[b]c",  "a[[b]]",
                                      "a[][]b", "[]",  "a[]b", "a[][][b]", "a[][][]", "a[b\n]", "a\nb[c]"};
    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
        ok_named(oribi_nested_is_plain(oribi_slice(plain[i], strlen(plain[i]))), "%s", plain[i]);
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
        ok_named(!oribi_nested_is_plain(oribi_slice(odd[i], strlen(odd[i]))), "%s", odd[i]);
}

/* Every name of up to seven of these bytes, laid against the guard page. */
static void test_all_short_names_end(void)
{
    static const char bytes[] = "a[]b";
    bool all = true;
    for (uint32_t code = 0; code < 1U << 14; code++) {
        char text[7];
        size_t sum;
        for (size_t i = 0; i < sizeof(text); i++)
            text[i] = bytes[code >> 2 * i & 3];
        for (size_t n = 0; n <= sizeof(text); n++) {
            struct oribi_slice name = oribi_slice(guard_place(&arena, text, n), n);
            all &= count_steps(name, 32, &sum) >= 0 && sum <= n;
            all &= !oribi_nested_is_plain(name) || memchr("ab", text[0], 2);
        }
    }
    ok(all);
}

int main(void)
{
    arena = guard_alloc(NAME_MAX_BYTES);
    run_case_folder("nested", run_case);
    test_the_deepest_name_and_one_deeper();
    test_keys_of_deep_names_are_no_longer_than_the_name();
    test_parts_of_a_path();
    test_names_that_all_releases_of_rack_read_alike();
    test_all_short_names_end();
    return done_testing();
}
