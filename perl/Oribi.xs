/* The Perl side of the core: objects over its headers, which only map arguments. Suggested reading order:
 *
 *   xs/binding.h   what the C files share, and the life of a call
 *   xs/worker.c    the loop
 *   xs/env.c       request to environment; xs/env_keys.h has its keys
 *   xs/lent.c, xs/lazy.c                                        parts lent from one to the next, and made on demand
 *   xs/reply.c     response to reply             xs/body.c   handles, objects, streams
 *   this file      what the objects share
 *   xs/options.xsi, xs/listeners.xsi                            what a server is told
 *   xs/process.xsi, xs/worker.xsi                               its processes; lib/Oribi/Supervisor.pm drives them
 *   xs/signals.c   handlers and traps
 *   xs/metrics.c   the application's own metrics, with xs/metrics.xsi
 *   xs/failure.c   what is said of a failed call
 *   xs/multipart.c bodies of multipart/form-data, with xs/multipart.xsi
 *   xs/form.c      forms and cookies
 *   xs/websocket.c                                              WebSockets
 *   xs/events.c    event streams
 *   xs/http_parser.c                                            heads from strings
 *
 * An object is a blessed scalar that holds a pointer; 0 once it was handed on. What the core borrows for the life of
 * the process is never freed: its scalar is kept by a reference that is never given back. */
#include "xs/binding.h"

#include "oribi/base/os/os_process.h"
#include "oribi/base/buf.h"
#include "oribi/base/os/os.h"
#include "oribi/config/arguments.h"
#include "oribi/http/compress.h"
#include "oribi/command/check.h"
#include "oribi/command/init.h"
#include "oribi/command/completion.h"
#include "oribi/command/control_command.h"
#include "oribi/command/publish_command.h"
#include "oribi/supervisor/publish.h"
#include "oribi/develop/failure_page.h"
#include "oribi/supervisor/methods.h"
#include "oribi/supervisor/prefork.h"
#include "oribi/worker/app_metrics.h"
#include "oribi/form/multipart.h"

typedef struct oribi_options *Oribi__Options;
typedef struct oribi_listeners *Oribi__Listeners;
typedef struct psgi_worker *Oribi__Worker;
typedef struct oribi_process *Oribi__Core__Process;

enum {
    OPTION_TEXT_CAP = 64 * 1024,
    FINDING_WORDS = 5, /* level, id, what, why, what to do */
    FACT_WORDS = 3,    /* kind, name, value */
};

static SV *object_of(pTHX_ const char *class, void *p)
{
    SV *inner = newSViv(PTR2IV(p));
    return sv_bless(newRV_noinc(inner), gv_stashpv(class, GV_ADD));
}

/* The object gives its pointer away. */
static void hand_on(pTHX_ SV *object)
{
    sv_setiv(SvRV(object), 0);
}

static void keep(pTHX_ SV *object)
{
    SvREFCNT_inc(SvRV(object));
}

static SV *text_or_undef(pTHX_ const char *text)
{
    return text ? newSVpv(text, 0) : newSV(0);
}

static SV *text_of_buf(pTHX_ struct oribi_buf *buf)
{
    SV *text = newSVpvn(buf->len ? buf->p : "", buf->len);
    oribi_buf_deinit(buf);
    return text;
}

/* The bytes as they lie there: UTF-8 with Perl's flag, and most often without. */
static struct oribi_slice slice_of(pTHX_ SV *text)
{
    STRLEN n;
    const char *p = SvPV(text, n);
    return oribi_slice(p, n);
}

/* The words of the last system call are worth more than that it failed; other codes come without one. */
static const char *why(int code)
{
    return code == ORIBI_ESYS ? oribi_os_error_text() : oribi_error_text(code);
}

static SV *entry_of(pTHX_ const struct oribi_option *option)
{
    HV *entry = newHV();
    (void)hv_stores(entry, "name", newSVpv(option->name, 0));
    (void)hv_stores(entry, "flag", text_or_undef(aTHX_ option->short_flag));
    (void)hv_stores(entry, "argument", text_or_undef(aTHX_ option->argument));
    (void)hv_stores(entry, "help", text_or_undef(aTHX_ option->help));
    (void)hv_stores(entry, "default", text_or_undef(aTHX_ option->default_text));
    (void)hv_stores(entry, "aliases", text_or_undef(aTHX_ option->aliases));
    (void)hv_stores(entry, "type", newSVpv(oribi_option_type_name(option->type), 0));
    return newRV_noinc((SV *)entry);
}

/* The arguments from `first` on, and NULL behind them, until the end of the call. */
static const char **words_of(pTHX_ I32 ax, I32 first, I32 items)
{
    const char **words;
    Newxz(words, items - first + 1, const char *);
    SAVEFREEPV(words);
    for (I32 i = first; i < items; i++)
        words[i - first] = SvPV_nolen(ST(i));
    return words;
}

/* The object around a new worker of the core's, whose application is `app`. */
static SV *worker_of(pTHX_ const char *class, struct oribi_worker_setup *setup, SV *app, bool multiprocess,
                     struct psgi_worker **worker)
{
    struct oribi_worker *core;
    setup->deadline_signal = setup->slot ? oribi_os_runtime_signal() : 0;
    int code = oribi_worker_create(setup, &core);
    if (code < 0)
        croak("the worker cannot be made: %s\n", why(code));
    SV *object = object_of(aTHX_ class, NULL);
    *worker = psgi_worker_new(aTHX_ core, setup->options, SvRV(object), app, multiprocess);
    sv_setiv(SvRV(object), PTR2IV(*worker));
    return object;
}

/* --- what the core names: methods.h --- */

static SV *from_value(pTHX_ const struct oribi_value *value)
{
    switch (value->type) {
    case ORIBI_VALUE_BOOL:
    case ORIBI_VALUE_NUMBER:
        return newSViv((IV)value->number);
    case ORIBI_VALUE_TEXT:
        return newSVpvn(value->text, value->len);
    case ORIBI_VALUE_NONE:
        break;
    }
    return newSV(0);
}

static struct oribi_value to_value(pTHX_ enum oribi_value_type type, SV *sv)
{
    struct oribi_value value = {.type = type};
    if (type == ORIBI_VALUE_TEXT) {
        STRLEN n;
        value.text = SvPV(sv, n);
        value.len = n;
    } else {
        value.number = type == ORIBI_VALUE_BOOL ? SvTRUE(sv) : SvIV(sv);
    }
    return value;
}

/* Any method of the core's table, whose place there is the function's own number. */
XS_INTERNAL(process_method)
{
    dXSARGS;
    dXSI32;
    size_t count;
    const struct oribi_method *method = &oribi_process_methods(&count)[ix];
    char error[ORIBI_ERROR_TEXT_CAP];
    struct oribi_value argument = {.type = ORIBI_VALUE_NONE};
    struct oribi_value result;
    if (items != (method->argument ? 2 : 1) || !sv_derived_from(ST(0), "Oribi::Core::Process") || !SvIV(SvRV(ST(0))))
        croak("Oribi: %s of no Oribi::Core::Process, or of one that was handed on", method->name);
    if (method->argument)
        argument = to_value(aTHX_ method->argument, ST(1));
    if (oribi_method_call(method, INT2PTR(struct oribi_process *, SvIV(SvRV(ST(0)))), &argument, &result, error) < 0)
        croak("%s\n", error);
    ST(0) = sv_2mortal(from_value(aTHX_ &result));
    XSRETURN(1);
}

static void define_methods(pTHX)
{
    size_t count;
    const struct oribi_method *methods = oribi_process_methods(&count);
    for (size_t i = 0; i < count; i++) {
        CV *cv = newXS(form("Oribi::Core::Process::%s", methods[i].name), process_method, __FILE__);
        CvXSUBANY(cv).any_i32 = (I32)i;
    }
}

MODULE = Oribi    PACKAGE = Oribi

PROTOTYPES: DISABLE

BOOT:
    psgi_writer_boot(aTHX);
    psgi_signals_boot(aTHX);
    psgi_form_boot(aTHX);
    psgi_http_parser_boot(aTHX);
    psgi_websocket_boot(aTHX);
    psgi_events_boot(aTHX);

void
_log(level, text)
    int level
    SV *text
  PREINIT:
    STRLEN n;
    const char *p;
  CODE:
    p = SvPV(text, n);
    while (n > 0 && p[n - 1] == '\n')
        n--;
    oribi_log((enum oribi_log_level)level, "%.*s", (int)n, p);

# Bytes all of them; event may be undef. lib/Oribi.pm has what users see.
void
_publish(channel, event, data, binary)
    SV *channel
    SV *event
    SV *data
    bool binary
  PREINIT:
    char error[ORIBI_ERROR_TEXT_CAP];
    struct oribi_publication publication = {.binary = binary};
  CODE:
    publication.channel.p = SvPVbyte(channel, publication.channel.n);
    if (SvOK(event))
        publication.event.p = SvPVbyte(event, publication.event.n);
    publication.data.p = SvPVbyte(data, publication.data.n);
    if (oribi_publish(NULL, &publication, error) < 0)
        croak("Oribi: publish: %s", error);

# True: the server that has started this process logs the text.
bool
_start_failed(text)
    const char *text
  CODE:
    RETVAL = oribi_process_start_failed(text);
  OUTPUT:
    RETVAL

# The command line of this process, as the system has kept it; nothing where it has not.
void
_command_line()
  PREINIT:
    struct oribi_start start;
  PPCODE:
    if (oribi_start_record(&start, NULL, false, NULL) == 0) {
        for (char **word = start.argv; *word; word++)
            mXPUSHp(*word, strlen(*word));
        oribi_start_free(&start);
    }

SV *
_signals_keep()
  CODE:
    RETVAL = psgi_signals_keep(aTHX);
  OUTPUT:
    RETVAL

void
_signals_give_back()
  CODE:
    oribi_signals_uninstall(); /* the program goes on after its server */

void
_signals_restore(kept, child)
    SV *kept
    bool child
  CODE:
    psgi_signals_restore(aTHX_ kept, child);

const char *
_deadline_signal()
  CODE:
    RETVAL = PL_sig_name[oribi_os_runtime_signal()];
  OUTPUT:
    RETVAL

void
_title(text)
    const char *text
  CODE:
    psgi_title(aTHX_ text);

INCLUDE: xs/options.xsi

INCLUDE: xs/listeners.xsi

INCLUDE: xs/worker.xsi

INCLUDE: xs/process.xsi

INCLUDE: xs/metrics.xsi

INCLUDE: xs/multipart.xsi
