/* Scripts that complete the command line: every option of the table and every word of ctl is in each. What shells make
 * of them is asked in ruby/test/completion_test.rb. */
#include "command/completion.c"

#include "tap.h"

static char error[ORIBI_ERROR_TEXT_CAP];

static const char *dashed(const char *before, const char *name, const char *after)
{
    static char text[128];
    int n = snprintf(text, sizeof(text), "%s%s%s", before, name, after);
    for (char *p = text + strlen(before); p < text + n; p++)
        *p = *p == '_' ? '-' : *p;
    return text;
}

static bool has(const struct oribi_buf *script, const char *text)
{
    return memmem(script->p, script->len, text, strlen(text)) != NULL;
}

/* How each shell's script names an option: before and behind the name. */
static const char *const shells[][3] = {
    {"bash", " --", ""},
    {"zsh", "--", "["},
    {"fish", " -l ", " "},
};

static void test_all_that_is_there(const char *const *shell, enum oribi_option_lang lang, const char *program)
{
    struct oribi_buf script = {0};
    size_t count;
    const struct oribi_option *table = oribi_options_table(&count);
    ok_eq(oribi_completion(&script, lang, program, shell[0], error), 0);
    for (size_t i = 0; i < count; i++) {
        const char *name = dashed(shell[1], table[i].name, shell[2]);
        bool is_there = has(&script, name) || has(&script, dashed(shell[1], table[i].name, "=["));
        ok_named(is_there == ((table[i].lang & lang) != 0), "%s: %s", shell[0], table[i].name);
    }
    for (size_t i = 0; i < ORIBI__CONTROL_WORDS; i++)
        ok_named(has(&script, oribi__control_words[i].word), "%s: %s", shell[0], oribi__control_words[i].word);
    ok(has(&script, program));
    ok(script.len > 0 && script.p[script.len - 1] == '\n');
    oribi_buf_deinit(&script);
}

/* Options whose values completion.c knows exist, and its words are values that they take. */
static void test_options_with_known_values_exist(void)
{
    struct oribi_options options;
    oribi_options_init(&options);
    for (size_t i = 0; i < KNOWN_VALUES; i++) {
        const struct oribi_option *option = oribi_options_find(known_values[i].option);
        ok_named(option && !option->choices && strcmp(option->name, known_values[i].option) == 0, "%s",
                 known_values[i].option);
        const char *words = known_values[i].values.words;
        char word[64];
        for (int n = 0; option && words && sscanf(words, "%63s%n", word, &n) == 1; words += n)
            ok_named(oribi_options_set(&options, option->name, word, error) == 0, "%s %s", option->name, word);
    }
    oribi_options_deinit(&options);
}

static void test_flags_are_those_of_subcommands(void)
{
    for (size_t i = 0; i < FLAGS; i++) {
        bool is_there = false;
        for (size_t j = 0; j < ORIBI__SUBCOMMANDS; j++)
            is_there = is_there || strcmp(flags[i].command, oribi__subcommands[j].word) == 0;
        ok_named(is_there, "%s --%s", flags[i].command, flags[i].name);
    }
}

static void test_another_shell(void)
{
    struct oribi_buf script = {0};
    ok_eq(oribi_completion(&script, ORIBI_LANG_RUBY, "oribi", "tcsh", error), ORIBI_EINVAL);
    is_str(error, "completion is for bash, zsh or fish, not 'tcsh'");
    ok_eq(script.len, 0);
    oribi_buf_deinit(&script);
}

int main(void)
{
    for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++) {
        test_all_that_is_there(shells[i], ORIBI_LANG_RUBY, "oribi");
        test_all_that_is_there(shells[i], ORIBI_LANG_PERL, "oribi-psgi");
    }
    test_options_with_known_values_exist();
    test_flags_are_those_of_subcommands();
    test_another_shell();
    return done_testing();
}
