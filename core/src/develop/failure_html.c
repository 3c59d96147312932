/* The error page for browsers. It has no script and asks for nothing: its Content-Security-Policy allows its style
 * alone, so that a message full of markup stays text even where escaping were to fail. */
#include "develop/failure_private.h"

#include "oribi/base/escape.h"
#include "oribi/base/limits.h"

#include <string.h>

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
    "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
    "<meta name=\"robots\" content=\"noindex\"><title>";

static const char style[] =
    "</title><style>"
    ":root{--back:#fff;--text:#1c2126;--dim:#5f6b76;--line:#d9dee3;--soft:#f4f6f8;--red:#b3261e;--mark:#fdecea}"
    "@media(prefers-color-scheme:dark){:root{--back:#15191d;--text:#e3e7eb;--dim:#98a4af;--line:#333b43;"
    "--soft:#1d2328;--red:#ff8a80;--mark:#3d2422;color-scheme:dark}}"
    "*{box-sizing:border-box}"
    "body{margin:0;background:var(--back);color:var(--text);font:15px/1.5 system-ui,sans-serif}"
    "header{background:var(--soft);border-bottom:3px solid var(--red)}"
    "header>div,main,footer{max-width:70rem;margin:0 auto;padding:1rem}"
    "h1{margin:0;font-size:1.05rem;color:var(--red);overflow-wrap:anywhere}"
    ".message{margin:.4rem 0;font:600 1.15rem/1.4 ui-monospace,monospace;white-space:pre-wrap;overflow-wrap:anywhere}"
    ".dim,footer{color:var(--dim);overflow-wrap:anywhere}.dim{margin:0}"
    "h2{margin:1.8rem 0 .5rem;font-size:1rem}"
    "code,pre,td,th{font-family:ui-monospace,monospace;font-size:.85rem}"
    "details{border-bottom:1px solid var(--line)}"
    "summary{padding:.35rem 0;cursor:pointer;overflow-wrap:anywhere}"
    "p.frame{margin:0;padding:.35rem 0;border-bottom:1px solid var(--line);overflow-wrap:anywhere}"
    "pre{margin:0 0 .7rem;padding:.5rem 0;overflow-x:auto;background:var(--soft);border-radius:6px}"
    "pre span{display:block;min-width:max-content;padding:0 .8rem}"
    "pre b{display:inline-block;width:3.2rem;font-weight:400;color:var(--dim)}"
    "pre .at{background:var(--mark);box-shadow:inset 3px 0 var(--red)}"
    "table{width:100%;border-collapse:collapse;table-layout:fixed}"
    "th,td{padding:.3rem .6rem .3rem 0;border-bottom:1px solid var(--line);text-align:left;vertical-align:top;"
    "overflow-wrap:anywhere;white-space:pre-wrap}th{width:32%;font-weight:400;color:var(--dim)}"
    "</style></head><body><header><div>";

static void put(struct oribi_buf *out, const char *text)
{
    (void)oribi_buf_try_append(out, text, strlen(text));
}

/* Markup of the text's own becomes text; bytes that are no UTF-8 and controls, which no page may have, become \xNN,
 * and hidden characters, which show the text in another order, \uNNNN. */
static void put_text(struct oribi_buf *out, struct oribi_slice text)
{
    for (size_t i = 0; i < text.n;) {
        unsigned char c = (unsigned char)text.p[i];
        size_t n = c < 0x80 ? 0 : oribi_utf8_len(text.p + i, text.n - i);
        uint32_t hidden = n > 0 ? oribi_hidden_character(text.p + i, n) : 0;
        if (hidden)
            oribi_buf_print(out, "\\u%04x", hidden);
        else if (c == '<')
            put(out, "&lt;");
        else if (c == '>')
            put(out, "&gt;");
        else if (c == '&')
            put(out, "&amp;");
        else if (c == '"')
            put(out, "&quot;");
        else if (c == '\'')
            put(out, "&#39;");
        else if (n > 0 || (c >= 0x20 && c < 0x7f) || c == '\t' || c == '\n')
            (void)oribi_buf_try_append(out, text.p + i, n ? n : 1);
        else
            oribi_buf_print(out, "\\x%02x", c);
        i += n ? n : 1;
    }
}

static void put_element(struct oribi_buf *out, const char *open, struct oribi_slice text, const char *close)
{
    if (text.n == 0)
        return;
    put(out, open);
    put_text(out, text);
    put(out, close);
}

static void put_source(const struct oribi__failure_frame *frame, const struct oribi__failure_source *source,
                       struct oribi_buf *out)
{
    put(out, "<pre>");
    for (uint32_t i = 0; i < source->count; i++) {
        uint32_t number = source->first + i;
        oribi_buf_print(out, "<span%s><b>%u</b>", number == frame->line ? " class=\"at\"" : "", number);
        put_text(out, source->lines[i]);
        put(out, "</span>");
    }
    put(out, "</pre>");
}

static void put_place(const struct oribi__failure_frame *frame, struct oribi_buf *out)
{
    put_element(out, "<code>", frame->shown, "");
    oribi_buf_print(out, ":%u</code>", frame->line);
    put_element(out, " <span class=\"dim\">", frame->name, "</span>");
}

/* One frame; one with its source can be unfolded, and the first one is. */
static void put_frame(const struct oribi__failure_frame *frame, bool with_source, bool open, struct oribi_buf *out)
{
    struct oribi__failure_source source = {0};
    if (with_source)
        oribi__failure_source(frame, &source);
    put(out, source.count ? open ? "<details open><summary>" : "<details><summary>" : "<p class=\"frame\">");
    put_place(frame, out);
    put(out, source.count ? "</summary>" : "</p>");
    if (source.count) {
        put_source(frame, &source, out);
        put(out, "</details>");
    }
    oribi_buf_deinit(&source.text);
}

static void put_frames(const struct oribi__failure *failure, bool own, bool open, struct oribi_buf *out)
{
    struct oribi__failure_frame frame;
    uint32_t shown = 0;
    for (size_t i = 0; i < failure->count; i++) {
        if (!oribi__failure_frame(failure, i, &frame) || frame.own != own)
            continue;
        put_frame(&frame, shown < (own || open ? (uint32_t)ORIBI_FAILURE_SHOWN_FRAMES_MAX : 0), open && shown == 0,
                  out);
        shown++;
    }
}

static void put_trace(const struct oribi__failure *failure, struct oribi_buf *out)
{
    bool none = failure->own_count == 0;
    if (!none) {
        put(out, "<h2>Trace: the application</h2>");
        put_frames(failure, true, true, out);
    }
    if (failure->other_count == 0)
        return;
    oribi_buf_print(out, "<h2>Trace: libraries</h2><details%s><summary>%u frame%s</summary>", none ? " open" : "",
                    failure->other_count, failure->other_count == 1 ? "" : "s");
    put_frames(failure, false, none, out);
    put(out, "</details>");
}

static void put_pair(void *arg, struct oribi_slice name, struct oribi_slice value)
{
    struct oribi_buf *out = arg;
    put(out, "<tr><th>");
    put_text(out, name);
    put(out, "</th><td>");
    put_text(out, value);
    put(out, "</td></tr>");
}

static void put_section(const struct oribi__failure *failure, enum oribi__failure_section section,
                        struct oribi_buf *out)
{
    struct oribi_buf rows = {0};
    bool folded = section == ORIBI__SECTION_ENVIRONMENT;
    oribi__failure_pairs(failure, section, put_pair, &rows);
    if (rows.len > 0) {
        oribi_buf_print(out, "<h2>%s</h2>%s<table>", oribi__failure_section_title(section),
                        folded ? "<details><summary>values of the server and of middleware</summary>" : "");
        (void)oribi_buf_try_append(out, rows.p, rows.len);
        put(out, folded ? "</table></details>" : "</table>");
    }
    oribi_buf_deinit(&rows);
}

void oribi__failure_html(const struct oribi__failure *failure, struct oribi_buf *out)
{
    static const char cause[] = "cause";
    put(out, head);
    put_text(out, failure->class_name.n ? failure->class_name : failure->title);
    put(out, style);
    put_element(out, "<h1>", failure->class_name, "</h1>");
    put_element(out, "<p class=\"message\">", failure->message, "</p>");
    put_element(out, "<p class=\"dim\">", failure->title, "</p>");
    put_element(out, "<p class=\"dim\">", failure->note, "</p>");
    put(out, "</div></header><main>");
    for (size_t i = 0; i < failure->count; i++) {
        const struct oribi_failure_fact *fact = &failure->facts[i];
        if (fact->kind.n == sizeof(cause) - 1 && memcmp(fact->kind.p, cause, fact->kind.n) == 0)
            put_element(out, "<p class=\"dim\">Caused by ", fact->value, "</p>");
    }
    put_trace(failure, out);
    for (int section = ORIBI__SECTION_REQUEST; section < ORIBI__SECTIONS; section++)
        put_section(failure, (enum oribi__failure_section)section, out);
    put(out, "</main><footer>");
    put_text(out, failure->program);
    put(out, "</footer></body></html>\n");
}
