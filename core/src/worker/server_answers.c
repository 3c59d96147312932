/* Headers of all answers, and pages of the server's own. */
#include "oribi/worker/server_answers.h"

#include "worker/worker_private.h"

#include "oribi/base/mem.h"

void oribi__server_answers_open(struct oribi__server_answers *own, const struct oribi_options *options)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    (void)oribi_added_create(options->headers.items, options->headers.count, &own->added,
                             error); /* oribi_options_finish() has checked it */
    if (oribi_error_pages_create(options->error_pages.items, options->error_pages.count, &own->pages, error) < 0)
        oribi_log(ORIBI_LOG_ERROR, "%s; this worker does without error pages", error);
}

void oribi__server_answers_close(struct oribi__server_answers *own)
{
    oribi_mem_free(own->added);
    oribi_error_pages_destroy(own->pages);
    *own = (struct oribi__server_answers){0};
}

struct oribi_slice oribi__server_page(void *self, int status, struct oribi_slice *type)
{
    const struct oribi_worker *w = self;
    return oribi_error_page_find(w->server_answers.pages, status, type);
}

struct oribi_slice oribi__server_body(struct oribi_worker *w, int status, char *text, struct oribi_slice *type)
{
    return oribi_error_page_or_text(w->server_answers.pages, status, text, type);
}
