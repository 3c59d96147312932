/* Options for the server's answers, checked: each line when it is read, and all of them together. */
#include "config/options_private.h"

#include "oribi/base/mem.h"
#include "oribi/files/error_pages.h"
#include "oribi/files/fixed.h"
#include "oribi/http/added.h"

static int check_fixed(enum oribi_fixed_kind kind, const char *line, char *error)
{
    struct oribi_fixed *fixed = NULL;
    int code = oribi_fixed_read(kind, line, &fixed, error);
    oribi_mem_free(fixed);
    return code;
}

int oribi__option_check_answer(const struct oribi_option *option, const char *line, char *error)
{
    if (option->offset == offsetof(struct oribi_options, answers))
        return check_fixed(ORIBI_FIXED_ANSWER, line, error);
    if (option->offset == offsetof(struct oribi_options, redirects))
        return check_fixed(ORIBI_FIXED_REDIRECT, line, error);
    if (option->offset == offsetof(struct oribi_options, health))
        return check_fixed(ORIBI_FIXED_HEALTH, line, error);
    if (option->offset == offsetof(struct oribi_options, headers))
        return oribi_added_read(line, &(struct oribi_header){0}, error);
    if (option->offset == offsetof(struct oribi_options, error_pages))
        return oribi_error_page_read(line, NULL, &(const char *){NULL}, error);
    return 0;
}

struct oribi_fixed_lines oribi_options_fixed_lines(const struct oribi_options *options)
{
    return (struct oribi_fixed_lines){
        .answers = options->answers.items,
        .redirects = options->redirects.items,
        .health = options->health,
        .answer_count = options->answers.count,
        .redirect_count = options->redirects.count,
    };
}

int oribi__options_check_answers(const struct oribi_options *options, char *error)
{
    const struct oribi_fixed_lines lines = oribi_options_fixed_lines(options);
    struct oribi_fixed_set *set = NULL;
    int code = oribi_fixed_set_create(&lines, &set, error);
    oribi_fixed_set_destroy(set);
    if (code < 0)
        return code;
    struct oribi_added *added = NULL;
    code = oribi_added_create(options->headers.items, options->headers.count, &added, error);
    oribi_mem_free(added);
    return code;
}
