/* The Perl side of the core: objects over its headers, which only map arguments. Suggested reading order:
 *
 *   xs/binding.h   what the C files share, and the life of a call
 *   xs/worker.c    the loop
 *   xs/env.c       request to environment        xs/lazy.c   the parts made on demand
 *   xs/reply.c     response to reply             xs/body.c   handles, objects, streams
 *   this file      options, listeners, process control as objects; lib/Oribi/Host.pm drives them
 *
 * An object is a blessed scalar that holds a pointer; 0 once it was handed on. What the core borrows for the life of the process is never
 * freed: its scalar is kept by a reference that nobody gives back. */
#include "xs/binding.h"

#include "oribi/base/buf.h"
#include "oribi/base/os.h"
#include "oribi/server/control_command.h"
#include "oribi/server/host.h"
#include "oribi/server/prefork.h"

typedef struct oribi_options *Oribi__Options;
typedef struct oribi_listeners *Oribi__Listeners;
typedef struct psgi_worker *Oribi__Worker;
typedef struct oribi_host *Oribi__Core__Host;
typedef struct oribi_mold *Oribi__Core__Mold;
typedef struct oribi_seat *Oribi__Core__Seat;

enum { OPTION_TEXT_CAP = 64 * 1024 };

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

static SV *entry_of(pTHX_ const struct oribi_option *option)
{
    static const char *const types[] = {"text", "code", "list", "bool", "count", "size", "time", "range"};
    HV *entry = newHV();
    (void)hv_stores(entry, "name", newSVpv(option->name, 0));
    (void)hv_stores(entry, "flag", text_or_undef(aTHX_ option->short_flag));
    (void)hv_stores(entry, "argument", text_or_undef(aTHX_ option->argument));
    (void)hv_stores(entry, "help", text_or_undef(aTHX_ option->help));
    (void)hv_stores(entry, "default", text_or_undef(aTHX_ option->default_text));
    (void)hv_stores(entry, "aliases", text_or_undef(aTHX_ option->aliases));
    (void)hv_stores(entry, "type", newSVpv(types[option->type], 0));
    return newRV_noinc((SV *)entry);
}

/* The arguments behind the object, until the end of the call. */
static const char **words_of(pTHX_ I32 ax, I32 items)
{
    const char **words;
    Newx(words, items, const char *);
    SAVEFREEPV(words);
    for (I32 i = 1; i < items; i++)
        words[i - 1] = SvPV_nolen(ST(i));
    return words;
}

/* The arguments behind the third as a command line, until the end of the call. */
static char **command_line(pTHX_ I32 ax, I32 items)
{
    char **argv;
    Newxz(argv, items - 2, char *);
    SAVEFREEPV(argv);
    for (I32 i = 3; i < items; i++)
        argv[i - 3] = SvPV_nolen(ST(i));
    return argv;
}

static struct oribi_host_setup setup_of(struct oribi_options *options, struct oribi_listeners *listeners)
{
    return (struct oribi_host_setup){.options = options, .listeners = listeners, .program = "oribi-psgi"};
}

/* fork's result for the core, which looks at errno when it failed. */
static pid_t forked_pid(pTHX_ SV *sv)
{
    return SvOK(sv) ? (pid_t)SvIV(sv) : -1;
}

/* The signals whose handlers belong to the core. Perl's %SIG knows nothing of those handlers and could not put them back. */
static const int core_signals[] = {SIGINT, SIGTERM, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2, SIGWINCH, SIGTTIN, SIGTTOU, SIGCHLD};

enum { CORE_SIGNALS = sizeof core_signals / sizeof core_signals[0] };

static SV *psgi_signals_keep(pTHX)
{
    struct sigaction actions[CORE_SIGNALS];
    for (int i = 0; i < CORE_SIGNALS; i++)
        (void)sigaction(core_signals[i], NULL, &actions[i]); /* fails only for numbers that do not exist */
    return newSVpvn((const char *)actions, sizeof actions);
}

static void psgi_signals_restore(pTHX_ SV *kept)
{
    struct sigaction actions[CORE_SIGNALS];
    if (SvCUR(kept) != sizeof actions)
        croak("Oribi: these are no kept signals");
    memcpy(actions, SvPVX(kept), sizeof actions);
    for (int i = 0; i < CORE_SIGNALS; i++)
        (void)sigaction(core_signals[i], &actions[i], NULL);
}

/* What a manager (lib/Oribi/Prefork.pm) does with signals: [signal, what the workers get, seconds between two of them] for each trap. */
static void fill_traps(pTHX_ struct oribi_prefork *prefork, AV *traps)
{
    char error[ORIBI_OPTIONS_ERROR_CAP];
    for (SSize_t i = 0; i <= av_len(traps); i++) {
        AV *trap = (AV *)SvRV(*av_fetch(traps, i, 0)); /* our own module made it */
        const char *name = SvPV_nolen(*av_fetch(trap, 0, 0));
        const char *send = SvPV_nolen(*av_fetch(trap, 1, 0));
        int numbers[] = {oribi_signal_number(name), *send ? oribi_signal_number(send) : 0};
        if (!numbers[0] || (*send && !numbers[1]))
            croak("trap_signals: there is no signal %s\n", numbers[0] ? send : name);
        if (oribi_prefork_trap(prefork, numbers[0], numbers[1], (int64_t)(SvNV(*av_fetch(trap, 2, 0)) * 1000), error) < 0)
            croak("%s\n", error);
    }
}

MODULE = Oribi    PACKAGE = Oribi

PROTOTYPES: DISABLE

BOOT:
    psgi_writer_boot(aTHX);

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

SV *
_signals_keep()
  CODE:
    RETVAL = psgi_signals_keep(aTHX);
  OUTPUT:
    RETVAL

void
_signals_restore(kept)
    SV *kept
  CODE:
    psgi_signals_restore(aTHX_ kept);

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

MODULE = Oribi    PACKAGE = Oribi::Options

SV *
_new(class)
    const char *class
  PREINIT:
    struct oribi_options *options;
  CODE:
    Newx(options, 1, struct oribi_options);
    oribi_options_init(options);
    options->lang = ORIBI_LANG_PERL;
    RETVAL = object_of(aTHX_ class, options);
  OUTPUT:
    RETVAL

void
DESTROY(object)
    SV *object
  PREINIT:
    struct oribi_options *options;
  CODE:
    options = INT2PTR(struct oribi_options *, SvIV(SvRV(object)));
    if (options && !PL_dirty) { /* at the end of the process somebody may still read it */
        oribi_options_deinit(options);
        Safefree(options);
        hand_on(aTHX_ object);
    }

SV *
set_from(options, source, name, value)
    Oribi::Options options
    int source
    const char *name
    const char *value
  PREINIT:
    char error[ORIBI_OPTIONS_ERROR_CAP];
  CODE:
    if (oribi_options_set_from(options, (enum oribi_option_source)source, name, value, error) < 0)
        RETVAL = newSVpv(error, 0);
    else
        RETVAL = newSV(0);
  OUTPUT:
    RETVAL

void
_prefork_defaults(options)
    Oribi::Options options
  CODE:
    oribi_prefork_defaults(options);

void
_prefork_set(options, name, value)
    Oribi::Options options
    const char *name
    const char *value
  PREINIT:
    char error[ORIBI_OPTIONS_ERROR_CAP];
  CODE:
    if (oribi_prefork_set(options, name, value, error) < 0)
        croak("%s\n", error);

SV *
_parse(options, ...)
    Oribi::Options options
  PREINIT:
    char error[ORIBI_OPTIONS_ERROR_CAP];
    const char **argv;
  CODE:
    argv = words_of(aTHX_ ax, items);
    RETVAL = oribi_options_parse(options, (size_t)(items - 1), argv, error) < 0 ? newSVpv(error, 0) : newSV(0);
  OUTPUT:
    RETVAL

SV *
_finish(options)
    Oribi::Options options
  PREINIT:
    char error[ORIBI_OPTIONS_ERROR_CAP];
  CODE:
    RETVAL = oribi_options_finish(options, error) < 0 ? newSVpv(error, 0) : newSV(0);
  OUTPUT:
    RETVAL

SV *
get(options, name)
    Oribi::Options options
    const char *name
  PREINIT:
    const struct oribi_option *option;
    char *text;
    size_t n;
  CODE:
    option = oribi_options_find(name);
    if (!option)
        XSRETURN_UNDEF;
    Newx(text, OPTION_TEXT_CAP, char);
    SAVEFREEPV(text);
    n = oribi_options_get(options, option, text, OPTION_TEXT_CAP);
    RETVAL = newSVpvn(text, n < OPTION_TEXT_CAP ? n : OPTION_TEXT_CAP - 1);
  OUTPUT:
    RETVAL

SV *
app(options)
    Oribi::Options options
  CODE:
    RETVAL = text_or_undef(aTHX_ options->app);
  OUTPUT:
    RETVAL

void
_parse_control(options, ...)
    Oribi::Options options
  PREINIT:
    char error[ORIBI_OPTIONS_ERROR_CAP];
    char command[ORIBI_CONTROL_COMMAND_CAP];
    const char **argv;
  PPCODE:
    argv = words_of(aTHX_ ax, items);
    if (oribi_control_command_parse(options, (size_t)(items - 1), argv, command, error) < 0)
        croak("%s\n", error);
    mXPUSHs(newSVpv(command, 0));

int
_control(options, command)
    Oribi::Options options
    const char *command
  CODE:
    RETVAL = oribi_control_command_run(options, command, "oribi-psgi");
  OUTPUT:
    RETVAL

SV *
control_help(class)
    const char *class
  PREINIT:
    struct oribi_buf buf = {0};
  CODE:
    PERL_UNUSED_VAR(class);
    oribi_control_command_help(&buf, "oribi-psgi");
    RETVAL = text_of_buf(aTHX_ &buf);
  OUTPUT:
    RETVAL

int
source(options, name)
    Oribi::Options options
    const char *name
  PREINIT:
    const struct oribi_option *option;
  CODE:
    option = oribi_options_find(name);
    RETVAL = option ? (int)oribi_options_source(options, option) : 0;
  OUTPUT:
    RETVAL

SV *
print(options)
    Oribi::Options options
  PREINIT:
    struct oribi_buf buf = {0};
  CODE:
    oribi_options_print(&buf, options);
    RETVAL = text_of_buf(aTHX_ &buf);
  OUTPUT:
    RETVAL

SV *
help(class)
    const char *class
  PREINIT:
    struct oribi_buf buf = {0};
  CODE:
    PERL_UNUSED_VAR(class);
    oribi_options_help(&buf, ORIBI_LANG_PERL, "oribi-psgi");
    RETVAL = text_of_buf(aTHX_ &buf);
  OUTPUT:
    RETVAL

SV *
find(class, name)
    const char *class
    const char *name
  PREINIT:
    const struct oribi_option *option;
  CODE:
    PERL_UNUSED_VAR(class);
    option = oribi_options_find(name);
    RETVAL = option && (option->lang & ORIBI_LANG_PERL) ? newSVpv(option->name, 0) : newSV(0);
  OUTPUT:
    RETVAL

void
table(class)
    const char *class
  PREINIT:
    const struct oribi_option *table;
    size_t count;
  PPCODE:
    PERL_UNUSED_VAR(class);
    table = oribi_options_table(&count);
    EXTEND(SP, (SSize_t)count);
    for (size_t i = 0; i < count; i++)
        if (table[i].lang & ORIBI_LANG_PERL)
            PUSHs(sv_2mortal(entry_of(aTHX_ &table[i])));

MODULE = Oribi    PACKAGE = Oribi::Listeners

SV *
open(class, options)
    const char *class
    Oribi::Options options
  PREINIT:
    struct oribi_listeners *listeners;
    char error[ORIBI_OPTIONS_ERROR_CAP];
  CODE:
    Newxz(listeners, 1, struct oribi_listeners);
    if (oribi_listeners_open(listeners, options, error) < 0) {
        Safefree(listeners);
        croak("%s\n", error);
    }
    RETVAL = object_of(aTHX_ class, listeners);
  OUTPUT:
    RETVAL

void
list(listeners)
    Oribi::Listeners listeners
  PPCODE:
    for (uint32_t i = 0; i < listeners->count; i++) {
        const struct oribi_listener *listener = &listeners->items[i];
        HV *entry = newHV();
        (void)hv_stores(entry, "text", newSVpv(listener->text, 0));
        (void)hv_stores(entry, "host", newSVpv(listener->host, 0));
        (void)hv_stores(entry, "port", newSVpv(listener->port, 0));
        (void)hv_stores(entry, "path", text_or_undef(aTHX_ listener->path));
        (void)hv_stores(entry, "fd", newSViv(listener->fd));
        XPUSHs(sv_2mortal(newRV_noinc((SV *)entry)));
    }

void
close(listeners, unlink_paths = 0)
    Oribi::Listeners listeners
    int unlink_paths
  CODE:
    oribi_listeners_close(listeners, unlink_paths != 0);

void
DESTROY(object)
    SV *object
  PREINIT:
    struct oribi_listeners *listeners;
  CODE:
    listeners = INT2PTR(struct oribi_listeners *, SvIV(SvRV(object)));
    if (listeners && !PL_dirty) {
        oribi_listeners_close(listeners, false);
        Safefree(listeners);
        hand_on(aTHX_ object);
    }

MODULE = Oribi    PACKAGE = Oribi::Worker

SV *
_new(class, options, listeners, app)
    const char *class
    Oribi::Options options
    Oribi::Listeners listeners
    SV *app
  PREINIT:
    struct oribi_worker *core;
    SV *inner;
  CODE:
    struct oribi_worker_setup setup = {.options = options, .listeners = listeners, .life_fd = -1};
    if (oribi_worker_create(&setup, &core) < 0)
        croak("the worker cannot be made: %s\n", Strerror(errno));
    keep(aTHX_ ST(1));
    keep(aTHX_ ST(2));
    inner = newSViv(0);
    RETVAL = sv_bless(newRV_noinc(inner), gv_stashpv(class, GV_ADD));
    sv_setiv(inner, PTR2IV(psgi_worker_new(aTHX_ core, options, inner, app, false)));
  OUTPUT:
    RETVAL

bool
run(worker)
    Oribi::Worker worker
  CODE:
    RETVAL = psgi_worker_run(aTHX_ worker);
  OUTPUT:
    RETVAL

void
warmed_up(worker)
    Oribi::Worker worker
  PREINIT:
    char error[ORIBI_OPTIONS_ERROR_CAP];
    struct oribi_warmup *warmup;
  CODE:
    warmup = worker->warmup;
    worker->warmup = NULL;
    if (warmup && oribi_warmup_end(warmup, error) < 0)
        croak("%s\n", error);

void
stop(worker)
    Oribi::Worker worker
  CODE:
    oribi_worker_stop(worker->core);

bool
_overdue(worker)
    Oribi::Worker worker
  CODE:
    RETVAL = psgi_worker_overdue(aTHX_ worker);
  OUTPUT:
    RETVAL

bool
harakiri(worker)
    Oribi::Worker worker
  CODE:
    RETVAL = worker->harakiri;
  OUTPUT:
    RETVAL

void
DESTROY(object)
    SV *object
  PREINIT:
    struct psgi_worker *worker;
  CODE:
    worker = INT2PTR(struct psgi_worker *, SvIV(SvRV(object)));
    if (worker) {
        hand_on(aTHX_ object);
        if (PL_dirty)
            oribi_worker_destroy(worker->core); /* our scalars are going already */
        else
            psgi_worker_free(aTHX_ worker);
    }

MODULE = Oribi    PACKAGE = Oribi::Core::Host

SV *
create(class, options, listeners, ...)
    const char *class
    Oribi::Options options
    Oribi::Listeners listeners
  PREINIT:
    struct oribi_host *host;
    char error[ORIBI_OPTIONS_ERROR_CAP];
  CODE:
    struct oribi_host_setup setup = setup_of(options, listeners);
    if (items > 3)
        setup.argv = command_line(aTHX_ ax, items);
    if (oribi_host_create(&setup, &host, error) < 0)
        croak("%s\n", error);
    keep(aTHX_ ST(1));
    keep(aTHX_ ST(2));
    RETVAL = object_of(aTHX_ class, host);
  OUTPUT:
    RETVAL

void
take(host)
    Oribi::Core::Host host
  PREINIT:
    const struct oribi_host_action *action;
  PPCODE:
    action = oribi_host_take(host);
    switch (action->type) {
    case ORIBI_HOST_FORK_DAEMON:
        mXPUSHs(newSVpvs("fork_daemon"));
        break;
    case ORIBI_HOST_FORK_MOLD:
        mXPUSHs(newSVpvs("fork_mold"));
        break;
    case ORIBI_HOST_HOOK:
        mXPUSHs(newSVpvs("hook"));
        mXPUSHs(newSVpv(action->hook, 0));
        mXPUSHi(action->pid);
        mXPUSHi(action->status);
        mXPUSHs(text_or_undef(aTHX_ action->reason));
        break;
    case ORIBI_HOST_EXIT:
        mXPUSHs(newSVpvs("exit"));
        mXPUSHi(action->exit_code);
        mXPUSHs(newSVpv(oribi_signal_name(action->signal), 0));
        break;
    case ORIBI_HOST_FORK_WORKER:
        mXPUSHs(newSVpvs("fork_worker"));
        break;
    case ORIBI_HOST_TRAPPED:
        mXPUSHs(newSVpvs("trapped"));
        mXPUSHs(newSVpv(oribi_signal_name(action->signal), 0));
        break;
    case ORIBI_HOST_NONE:
        mXPUSHs(newSVpvs("none"));
        break;
    }

void
wait(host)
    Oribi::Core::Host host
  CODE:
    oribi_host_wait(host);
    PERL_ASYNC_CHECK();

void
forked(host, pid)
    Oribi::Core::Host host
    SV *pid
  CODE:
    oribi_host_forked(host, forked_pid(aTHX_ pid));

void
daemon_enter(host)
    Oribi::Core::Host host
  CODE:
    oribi_host_daemon_enter(host);

int
daemon_wait(host, pid)
    Oribi::Core::Host host
    SV *pid
  CODE:
    RETVAL = oribi_host_daemon_wait(host, forked_pid(aTHX_ pid));
  OUTPUT:
    RETVAL

void
title(host)
    Oribi::Core::Host host
  PREINIT:
    char text[ORIBI_TITLE_CAP];
  CODE:
    if (oribi_host_title(host, text, sizeof text) > 0)
        psgi_title(aTHX_ text);

void
destroy(host)
    Oribi::Core::Host host
  CODE:
    hand_on(aTHX_ ST(0));
    oribi_host_destroy(host);

SV *
enter_mold(host)
    Oribi::Core::Host host
  PREINIT:
    struct oribi_mold *mold;
    char error[ORIBI_OPTIONS_ERROR_CAP];
  CODE:
    hand_on(aTHX_ ST(0));
    if (oribi_mold_enter(host, &mold, error) < 0)
        croak("%s\n", error);
    RETVAL = object_of(aTHX_ "Oribi::Core::Mold", mold);
  OUTPUT:
    RETVAL

SV *
manage(class, options, program, traps, left, ...)
    const char *class
    Oribi::Options options
    SV *program
    AV *traps
    AV *left
  PREINIT:
    struct oribi_host *host;
    char error[ORIBI_OPTIONS_ERROR_CAP];
  CODE:
    struct oribi_prefork prefork = {.trap_count = 0};
    struct oribi_host_setup setup = {.options = options, .program = savepv(SvPV_nolen(program)), .prefork = &prefork};
    fill_traps(aTHX_ &prefork, traps);
    for (SSize_t i = 0; i <= av_len(left); i++)
        oribi_prefork_leave(&prefork, oribi_signal_number(SvPV_nolen(*av_fetch(left, i, 0))));
    if (items > 5) {
        Newxz(setup.argv, items - 4, char *);
        SAVEFREEPV(setup.argv);
        for (I32 i = 5; i < items; i++)
            ((char **)setup.argv)[i - 5] = SvPV_nolen(ST(i));
    }
    if (oribi_host_create(&setup, &host, error) < 0)
        croak("%s\n", error);
    keep(aTHX_ ST(1));
    RETVAL = object_of(aTHX_ class, host);
  OUTPUT:
    RETVAL

void
wait_for(host, seconds)
    Oribi::Core::Host host
    NV seconds
  CODE:
    oribi_host_wait_for(host, (int64_t)(seconds * 1000));
    PERL_ASYNC_CHECK();

void
before_fork(host)
    Oribi::Core::Host host
  CODE:
    oribi_host_before_fork(host);

void
worker_forked(host, pid)
    Oribi::Core::Host host
    SV *pid
  CODE:
    oribi_host_worker_forked(host, forked_pid(aTHX_ pid));

void
resume(host)
    Oribi::Core::Host host
  CODE:
    oribi_host_resume(host);

void
configure(host)
    Oribi::Core::Host host
  CODE:
    oribi_host_configure(host);

UV
signal_all(host, signal)
    Oribi::Core::Host host
    SV *signal
  PREINIT:
    int number;
  CODE:
    number = looks_like_number(signal) ? (int)SvIV(signal) : oribi_signal_number(SvPV_nolen(signal));
    if (number <= 0)
        croak("there is no signal %s\n", SvPV_nolen(signal));
    RETVAL = oribi_host_signal_all(host, number);
  OUTPUT:
    RETVAL

UV
workers(host)
    Oribi::Core::Host host
  CODE:
    RETVAL = oribi_host_workers(host);
  OUTPUT:
    RETVAL

SV *
enter_seat(host)
    Oribi::Core::Host host
  PREINIT:
    struct oribi_seat *seat;
    char error[ORIBI_OPTIONS_ERROR_CAP];
  CODE:
    hand_on(aTHX_ ST(0));
    seat = oribi_seat_enter_host(host, error);
    if (!seat)
        croak("%s\n", error);
    RETVAL = object_of(aTHX_ "Oribi::Core::Seat", seat);
  OUTPUT:
    RETVAL

MODULE = Oribi    PACKAGE = Oribi::Core::Mold

SV *
inherit_managed(class, options, program)
    const char *class
    Oribi::Options options
    SV *program
  PREINIT:
    static const struct oribi_prefork none;
    struct oribi_mold *mold;
    char error[ORIBI_OPTIONS_ERROR_CAP];
  CODE:
    struct oribi_host_setup setup = {.options = options, .program = savepv(SvPV_nolen(program)), .prefork = &none};
    if (oribi_mold_inherit(&setup, &mold, error) < 0)
        croak("%s\n", error);
    keep(aTHX_ ST(1));
    RETVAL = object_of(aTHX_ class, mold);
  OUTPUT:
    RETVAL

bool
inherited(class)
    const char *class
  CODE:
    PERL_UNUSED_VAR(class);
    RETVAL = oribi_mold_inherited();
  OUTPUT:
    RETVAL

SV *
inherit(class, options, listeners)
    const char *class
    Oribi::Options options
    Oribi::Listeners listeners
  PREINIT:
    struct oribi_mold *mold;
    char error[ORIBI_OPTIONS_ERROR_CAP];
  CODE:
    struct oribi_host_setup setup = setup_of(options, listeners);
    if (oribi_mold_inherit(&setup, &mold, error) < 0)
        croak("%s\n", error);
    keep(aTHX_ ST(1));
    keep(aTHX_ ST(2));
    RETVAL = object_of(aTHX_ class, mold);
  OUTPUT:
    RETVAL

SV *
warm_up(mold, app)
    Oribi::Core::Mold mold
    SV *app
  PREINIT:
    struct oribi_worker *core;
    struct psgi_worker *worker;
    SV *inner;
  CODE:
    struct oribi_worker_setup setup = {.options = oribi_mold_options(mold), .life_fd = -1};
    if (oribi_worker_create(&setup, &core) < 0)
        croak("the worker cannot be made: %s\n", Strerror(errno));
    inner = newSViv(0);
    RETVAL = sv_bless(newRV_noinc(inner), gv_stashpvs("Oribi::Worker", GV_ADD));
    worker = psgi_worker_new(aTHX_ core, setup.options, inner, app, true);
    sv_setiv(inner, PTR2IV(worker));
    if (oribi_warmup_begin(core, oribi_mold_listeners(mold), &worker->warmup) < 0)
        croak("cannot warm up: %s\n", Strerror(errno));
  OUTPUT:
    RETVAL

void
ready(mold)
    Oribi::Core::Mold mold
  CODE:
    oribi_mold_ready(mold);

void
failed(mold, text)
    Oribi::Core::Mold mold
    SV *text
  PREINIT:
    STRLEN n;
    const char *p;
  CODE:
    p = SvPV(text, n);
    oribi_mold_failed(mold, p, n);

const char *
take(mold)
    Oribi::Core::Mold mold
  CODE:
    switch (oribi_mold_take(mold)) {
    case ORIBI_MOLD_SPAWN:
        RETVAL = "spawn";
        break;
    case ORIBI_MOLD_EXIT:
        RETVAL = "exit";
        break;
    default:
        RETVAL = "none";
        break;
    }
  OUTPUT:
    RETVAL

void
wait(mold)
    Oribi::Core::Mold mold
  CODE:
    oribi_mold_wait(mold);
    PERL_ASYNC_CHECK();

void
before_fork(mold)
    Oribi::Core::Mold mold
  CODE:
    oribi_mold_before_fork(mold);

void
intermediate(mold, pid)
    Oribi::Core::Mold mold
    SV *pid
  CODE:
    oribi_mold_intermediate(mold, forked_pid(aTHX_ pid));

void
after_fork(mold, pid)
    Oribi::Core::Mold mold
    SV *pid
  CODE:
    oribi_mold_after_fork(mold, forked_pid(aTHX_ pid));

void
title(mold)
    Oribi::Core::Mold mold
  PREINIT:
    char text[ORIBI_TITLE_CAP];
  CODE:
    if (oribi_mold_title(mold, text, sizeof text) > 0)
        psgi_title(aTHX_ text);

void
destroy(mold)
    Oribi::Core::Mold mold
  CODE:
    hand_on(aTHX_ ST(0));
    oribi_mold_destroy(mold);

SV *
enter_seat(mold)
    Oribi::Core::Mold mold
  CODE:
    hand_on(aTHX_ ST(0));
    RETVAL = object_of(aTHX_ "Oribi::Core::Seat", oribi_seat_enter(mold));
  OUTPUT:
    RETVAL

MODULE = Oribi    PACKAGE = Oribi::Core::Seat

void
begin(seat)
    Oribi::Core::Seat seat
  CODE:
    oribi_seat_begin(seat);

void
heed(seat)
    Oribi::Core::Seat seat
  CODE:
    oribi_seat_heed(seat);

bool
asked(seat)
    Oribi::Core::Seat seat
  CODE:
    RETVAL = oribi_seat_asked(seat);
  OUTPUT:
    RETVAL

int
wake_fd(seat)
    Oribi::Core::Seat seat
  CODE:
    RETVAL = oribi_seat_wake_fd(seat);
  OUTPUT:
    RETVAL

void
job_begin(seat, text)
    Oribi::Core::Seat seat
    SV *text
  PREINIT:
    STRLEN n;
    const char *p;
  CODE:
    p = SvPV(text, n);
    oribi_seat_job_begin(seat, p, n);

void
job_end(seat)
    Oribi::Core::Seat seat
  CODE:
    oribi_seat_job_end(seat);

void
job_title(seat, rest)
    Oribi::Core::Seat seat
    bool rest
  PREINIT:
    char text[ORIBI_TITLE_CAP];
  CODE:
    if (oribi_seat_job_title(seat, rest, text, sizeof text) > 0)
        psgi_title(aTHX_ text);

SV *
worker(seat, app)
    Oribi::Core::Seat seat
    SV *app
  PREINIT:
    struct oribi_worker *core;
    SV *inner;
  CODE:
    struct oribi_worker_setup setup = {.life_fd = -1};
    oribi_seat_setup(seat, &setup);
    setup.deadline_signal = oribi_os_runtime_signal();
    if (oribi_worker_create(&setup, &core) < 0)
        croak("the worker cannot be made: %s\n", Strerror(errno));
    inner = newSViv(0);
    RETVAL = sv_bless(newRV_noinc(inner), gv_stashpvs("Oribi::Worker", GV_ADD));
    sv_setiv(inner, PTR2IV(psgi_worker_new(aTHX_ core, setup.options, inner, app, true)));
  OUTPUT:
    RETVAL

void
ready(seat, worker)
    Oribi::Core::Seat seat
    Oribi::Worker worker
  CODE:
    worker->seat = seat;
    oribi_title_init(&worker->title, seat);
    oribi_seat_ready(seat, worker->core);

void
failed(seat, text)
    Oribi::Core::Seat seat
    SV *text
  PREINIT:
    STRLEN n;
    const char *p;
  CODE:
    p = SvPV(text, n);
    oribi_seat_failed(seat, p, n);

bool
stopping(seat)
    Oribi::Core::Seat seat
  CODE:
    RETVAL = oribi_seat_stop_soon(seat) || oribi_seat_stopping(seat);
  OUTPUT:
    RETVAL

UV
index(seat)
    Oribi::Core::Seat seat
  CODE:
    RETVAL = oribi_seat_index(seat);
  OUTPUT:
    RETVAL

UV
generation(seat)
    Oribi::Core::Seat seat
  CODE:
    RETVAL = oribi_seat_generation(seat);
  OUTPUT:
    RETVAL

void
leave(seat, worker)
    Oribi::Core::Seat seat
    Oribi::Worker worker
  CODE:
    worker->seat = NULL;
    worker->title.seat = NULL;
    hand_on(aTHX_ ST(0));
    oribi_seat_leave(seat);

void
before_fork(seat)
    Oribi::Core::Seat seat
  CODE:
    oribi_seat_before_fork(seat);

void
after_fork(seat, pid)
    Oribi::Core::Seat seat
    SV *pid
  CODE:
    oribi_seat_after_fork(seat, forked_pid(aTHX_ pid));

SV *
promote(seat)
    Oribi::Core::Seat seat
  PREINIT:
    struct oribi_mold *mold;
  CODE:
    hand_on(aTHX_ ST(0));
    mold = oribi_seat_promote(seat);
    RETVAL = mold ? object_of(aTHX_ "Oribi::Core::Mold", mold) : newSV(0);
  OUTPUT:
    RETVAL
