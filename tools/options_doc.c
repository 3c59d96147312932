/* Copies a document from standard input to standard output, with what stands between its two marks written anew from
 * the options table: tables for doc/options.md, items for a page in POD (--pod ruby, --pod perl). tools/options-doc
 * builds and runs it. */
#include "oribi/base/buf.h"
#include "oribi/config/options.h"

#include <stdio.h>
#include <string.h>

enum { LINE_CAP = 64 * 1024, TEXT_CAP = 4096 };

struct marks {
    const char *begin;
    const char *end;
};

static const struct marks page_marks = {"<!-- options: begin -->", "<!-- options: end -->"};
static const struct marks pod_marks = {"=for options begin", "=for options end"};

static void put(struct oribi_buf *out, const char *text)
{
    size_t n = strlen(text);
    memcpy(oribi_buf_reserve(out, n), text, n);
    out->len += n;
}

/* POD's own signs: E<lt> and so on; names with dashes for the command line. */
static void put_pod(struct oribi_buf *out, const char *text, int dashed)
{
    for (; *text; text++) {
        const char one[] = {*text, '\0'};
        put(out, *text == '<' ? "E<lt>" : *text == '>' ? "E<gt>" : dashed && *text == '_' ? "-" : one);
    }
}

static void put_item(struct oribi_buf *out, const struct oribi_option *option, enum oribi_option_lang lang)
{
    char shown[TEXT_CAP];
    const int is_command = option->group == ORIBI_GROUP_COMMAND;
    put(out, "=item ");
    if (option->short_flag) {
        put(out, "B<-");
        put(out, option->short_flag);
        put(out, ">, ");
    }
    put(out, option->type == ORIBI_OPTION_BOOL && !is_command ? "B<--[no-]" : "B<--");
    put_pod(out, option->name, 1);
    put(out, ">");
    if (option->argument) {
        put(out, " I<");
        put_pod(out, option->argument, 0);
        put(out, ">");
    }
    put(out, "\n\n");
    put_pod(out, option->help, 0);
    oribi_options_default_text(option, lang, shown, sizeof(shown));
    if (*shown && !is_command) {
        put(out, ". Default: ");
        put_pod(out, shown, 0);
    }
    put(out, ".\n\n");
}

static void put_items(struct oribi_buf *out, enum oribi_option_lang lang)
{
    size_t count;
    const struct oribi_option *table = oribi_options_table(&count);
    for (int group = 0; group < ORIBI_GROUP_COUNT; group++) {
        put(out, "=head2 ");
        put(out, oribi_options_group_title((enum oribi_option_group)group));
        put(out, "\n\n=over 4\n\n");
        for (size_t i = 0; i < count; i++) {
            if ((int)table[i].group == group && (table[i].lang & lang))
                put_item(out, &table[i], lang);
        }
        put(out, "=back\n\n");
    }
}

static int is_mark(const char *line, const char *mark)
{
    return strncmp(line, mark, strlen(mark)) == 0;
}

int main(int argc, char **argv)
{
    static char line[LINE_CAP];
    const int is_pod = argc == 3 && strcmp(argv[1], "--pod") == 0;
    const struct marks *mark = is_pod ? &pod_marks : &page_marks;
    struct oribi_buf tables = {0};
    int inside = 0;
    int marks = 0;
    if (is_pod)
        put_items(&tables, strcmp(argv[2], "ruby") == 0 ? ORIBI_LANG_RUBY : ORIBI_LANG_PERL);
    else
        oribi_options_doc(&tables);
    while (fgets(line, sizeof(line), stdin)) {
        int ends = is_mark(line, mark->end);
        if (ends) {
            inside = 0;
            marks++;
            printf("%s", is_pod ? "" : "\n");
        }
        if (!inside)
            fputs(line, stdout);
        if (is_mark(line, mark->begin)) {
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
