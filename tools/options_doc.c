/* Copies a document from standard input to standard output, with what stands between its two marks written anew from
 * the tables of the core. tools/options-doc builds and runs it.
 *
 *   options-doc                       tables, for doc/options.md
 *   options-doc --pod ruby|perl       items as the command line has them, for a page in POD
 *   options-doc --config ruby|perl    items as the configuration file has them
 *   options-doc --ctl oribi           the commands and options of ctl */
#include "oribi/base/buf.h"
#include "oribi/config/arguments.h"
#include "oribi/config/options.h"
#include "oribi/command/control_command.h"
#include "oribi/supervisor/control_words.h"

#include <ctype.h>
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
    oribi_buf_append(out, text, strlen(text));
}

/* POD's own signs: E<lt> and so on; names with dashes for the command line. */
static void put_pod_bytes(struct oribi_buf *out, const char *text, size_t n, int dashed)
{
    for (const char *end = text + n; text < end; text++) {
        const char one[] = {*text, '\0'};
        put(out, *text == '<' ? "E<lt>" : *text == '>' ? "E<gt>" : dashed && *text == '_' ? "-" : one);
    }
}

static void put_pod(struct oribi_buf *out, const char *text, int dashed)
{
    put_pod_bytes(out, text, strlen(text), dashed);
}

static void put_sentence(struct oribi_buf *out, const char *text)
{
    const char first[] = {(char)toupper((unsigned char)*text), '\0'};
    put_pod(out, first, 0);
    put_pod(out, text + 1, 0);
}

/* --- the command line --- */

static int is_switch(const struct oribi_option *option)
{
    return option->type == ORIBI_OPTION_BOOL && option->group != ORIBI_GROUP_COMMAND;
}

static void put_flags(struct oribi_buf *out, const struct oribi_option *option)
{
    if (option->short_flag) {
        put(out, "B<-");
        put(out, option->short_flag);
        put(out, ">, ");
    }
    put(out, is_switch(option) ? "B<--[no-]" : "B<--");
    put_pod(out, option->name, 1);
    put(out, ">");
}

static void put_argument(struct oribi_buf *out, const struct oribi_option *option)
{
    if (option->argument) {
        put(out, " I<");
        put_pod(out, option->argument, 0);
        put(out, ">");
    }
}

static void put_help(struct oribi_buf *out, const struct oribi_option *option, enum oribi_option_lang lang)
{
    char shown[TEXT_CAP];
    put_sentence(out, option->help);
    oribi_options_default_text(option, lang, shown, sizeof(shown));
    if (*shown && option->group != ORIBI_GROUP_COMMAND) {
        put(out, ". Default: ");
        put_pod(out, shown, 0);
    }
    put(out, ".\n\n");
}

static void put_command_item(struct oribi_buf *out, const struct oribi_option *option, enum oribi_option_lang lang)
{
    put(out, "=item ");
    put_flags(out, option);
    put_argument(out, option);
    put(out, "\n\n");
    put_help(out, option, lang);
}

/* --- the configuration file --- */

static void put_composed(struct oribi_buf *out, const struct oribi_option *option)
{
    struct oribi_buf signature = {0};
    oribi_option_print_signature(&signature, option);
    size_t word = strlen(option->name);
    put(out, "B<");
    put(out, option->name);
    put(out, ">");
    put_pod_bytes(out, signature.p + word, signature.len - word, 0);
    oribi_buf_deinit(&signature);
}

static void put_settings(struct oribi_buf *out, const char *settings)
{
    put(out, " Settings: ");
    for (const char *p = settings; *p; p++) {
        const char one[] = {*p, '\0'};
        put(out, *p == '?' ? "" : *p == ' ' ? ", " : one);
    }
    put(out, ".");
}

static void put_also(struct oribi_buf *out, const char *aliases)
{
    const char *before = " Other servers' names: ";
    for (const char *p = aliases; *p;) {
        size_t n = strcspn(p, " ");
        if (n > 1) {
            put(out, before);
            put(out, "C<");
            oribi_buf_append(out, p, n);
            put(out, ">");
            before = ", ";
        }
        p += n + (p[n] == ' ');
    }
    put(out, *before == ',' ? "." : "");
}

static void put_config_item(struct oribi_buf *out, const struct oribi_option *option, enum oribi_option_lang lang)
{
    char value[ORIBI_OPTION_VALUE_TEXT_CAP];
    put(out, "=item ");
    if (option->composed.form) {
        put_composed(out, option);
    } else {
        put(out, "B<");
        put(out, option->name);
        put(out, lang == ORIBI_LANG_PERL ? "> =E<gt>" : ">");
        put_argument(out, option);
        put(out, is_switch(option) ? lang == ORIBI_LANG_PERL ? " 1|0" : " true|false" : "");
    }
    put(out, "\n\n");
    put_help(out, option, lang);
    put(out, "Takes: ");
    put_pod(out, oribi_option_value_text(option, value), 0);
    put(out, ".");
    if (option->composed.settings)
        put_settings(out, option->composed.settings);
    put(out, " Changes with a ");
    put(out, option->reloads ? "reload" : "restart");
    put(out, ". Command line: ");
    put_flags(out, option);
    put(out, ".");
    put_also(out, option->aliases ? option->aliases : "");
    put(out, "\n\n");
}

typedef void (*item_fn)(struct oribi_buf *out, const struct oribi_option *option, enum oribi_option_lang lang);

static void put_items(struct oribi_buf *out, enum oribi_option_lang lang, item_fn put_item, int groups)
{
    size_t count;
    const struct oribi_option *table = oribi_options_table(&count);
    for (int group = 0; group < groups; group++) {
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

/* --- ctl --- */

/* The options are shown as --help has them, which is where they are told: its lines behind the commands. */
static void put_ctl(struct oribi_buf *out, const char *program)
{
    struct oribi_buf help = {0};
    put(out, "=over 4\n\n");
    for (int i = 0; i < ORIBI__CONTROL_WORDS; i++) {
        const struct oribi__control_word *command = &oribi__control_words[i];
        put(out, "=item B<");
        put(out, command->word);
        put(out, command->has_number ? "> I<N>" : ">");
        if (command->flag) {
            put(out, " [B<");
            put(out, command->flag);
            put(out, ">]");
        }
        put(out, "\n\n");
        put_sentence(out, command->help);
        put(out, ".\n\n");
    }
    put(out, "=back\n\n=head1 OPTIONS\n\n");
    oribi_control_command_help(&help, program);
    oribi_buf_append(&help, "", 1);
    const char *options = strstr(help.p, "\n\n  -");
    const char *end = options ? strstr(options + 2, "\n\n") : NULL;
    if (end)
        oribi_buf_append(out, options + 2, (size_t)(end + 2 - options - 2));
    oribi_buf_deinit(&help);
}

static int is_mark(const char *line, const char *mark)
{
    return strncmp(line, mark, strlen(mark)) == 0;
}

/* Returns whether the two marks were found in their order. */
static int copy_around(const struct marks *mark, const struct oribi_buf *between, const char *blank)
{
    static char line[LINE_CAP];
    int inside = 0;
    int marks = 0;
    while (fgets(line, sizeof(line), stdin)) {
        int ends = is_mark(line, mark->end);
        if (ends) {
            inside = 0;
            marks++;
            printf("%s", blank);
        }
        if (!inside)
            fputs(line, stdout);
        if (is_mark(line, mark->begin)) {
            inside = 1;
            marks++;
            printf("\n%.*s", (int)between->len, between->p);
        }
    }
    return marks == 2 && !inside && fflush(stdout) == 0;
}

int main(int argc, char **argv)
{
    const char *part = argc == 3 ? argv[1] : "";
    const char *of = argc == 3 ? argv[2] : "";
    enum oribi_option_lang lang = strcmp(of, "ruby") == 0 ? ORIBI_LANG_RUBY : ORIBI_LANG_PERL;
    struct oribi_buf between = {0};
    if (strcmp(part, "--pod") == 0)
        put_items(&between, lang, put_command_item, ORIBI_GROUP_COUNT);
    else if (strcmp(part, "--config") == 0)
        put_items(&between, lang, put_config_item, ORIBI_GROUP_COMMAND);
    else if (strcmp(part, "--ctl") == 0)
        put_ctl(&between, of);
    else
        oribi_options_doc(&between);
    int copied = copy_around(*part ? &pod_marks : &page_marks, &between, *part ? "" : "\n");
    oribi_buf_deinit(&between);
    if (!copied)
        fprintf(stderr, "options-doc: the two marks were not found in this order\n");
    return !copied;
}
