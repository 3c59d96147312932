/* Copies doc/options.md from standard input to standard output, with the tables between its two marks written anew from the options table.
 * tools/options-doc builds and runs it. */
#include "oribi/base/buf.h"
#include "oribi/server/options.h"

#include <stdio.h>
#include <string.h>

#define MARK_BEGIN "<!-- options: begin -->"
#define MARK_END   "<!-- options: end -->"

enum { LINE_CAP = 64 * 1024 };

int main(void)
{
    static char line[LINE_CAP];
    struct oribi_buf tables = {0};
    int inside = 0;
    int marks = 0;
    oribi_options_doc(&tables);
    while (fgets(line, sizeof(line), stdin)) {
        int ends = strncmp(line, MARK_END, strlen(MARK_END)) == 0;
        if (ends) {
            inside = 0;
            marks++;
            printf("\n");
        }
        if (!inside)
            fputs(line, stdout);
        if (strncmp(line, MARK_BEGIN, strlen(MARK_BEGIN)) == 0) {
            inside = 1;
            marks++;
            printf("\n%.*s", (int)tables.len, tables.p);
        }
    }
    oribi_buf_deinit(&tables);
    if (marks != 2 || inside || fflush(stdout) != 0) {
        fprintf(stderr, "options-doc: the two marks were not found in this order\n");
        return 1;
    }
    return 0;
}
