/* Runs a function for each case of a folder of spec/, for tests of one module. */
#ifndef ORIBI_TEST_CASE_FOLDER_H
#define ORIBI_TEST_CASE_FOLDER_H

#include "case_file.h"
#include "tap.h"

#include <glob.h>

/* The case at hand, and whether all of it was as expected so far. */
static struct case_file file;
static bool good;

__attribute__((unused)) static void complain(const char *key)
{
    diag("%s differs", key);
    good = false;
}

__attribute__((unused)) static void check_number(const char *key, long long got)
{
    if (!case_has(&file, key) || case_number(&file, key, 0) == got)
        return;
    complain(key);
    diag("got %lld", got);
}

/* All values of the key joined, against at most 64 KiB. */
__attribute__((unused)) static void check_bytes(const char *key, struct oribi_slice got)
{
    static char expected[64 * 1024];
    if (!case_has(&file, key))
        return;
    size_t n = case_bytes(&file, key, expected, sizeof(expected));
    if (oribi_slice_equal(got, oribi_slice(expected, n)))
        return;
    complain(key);
    tap_print_bytes_("got ", got.p, got.n);
    tap_print_bytes_("want", expected, n);
}

/* Runs all cases of spec/FOLDER, each as one check. Every one has a name and the section that it comes from. */
__attribute__((unused)) static void run_case_folder(const char *folder, void (*run)(void))
{
    char pattern[512];
    const char *spec = getenv("ORIBI_SPEC");
    glob_t found = {0};
    snprintf(pattern, sizeof(pattern), "%s/%s/*.case", spec ? spec : "../spec", folder);
    ok(glob(pattern, 0, NULL, &found) == 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        if (!ok(case_file_open(&file, found.gl_pathv[i])))
            continue;
        while (case_next(&file)) {
            struct oribi_slice label = case_raw(&file, "name");
            good = true;
            run();
            ok_named(good && label.n && case_has(&file, "rule"), "%s: %.*s", strrchr(found.gl_pathv[i], '/') + 1,
                     (int)label.n, label.p);
        }
        case_file_close(&file);
    }
    globfree(&found);
}

#endif
