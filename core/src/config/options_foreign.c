/* Names that other servers have and this one has not: what "unknown option" says about them. Names that mean the same
 * here are aliases of the options' table; these would need another value, another place, or nothing at all. A flag
 * that asks for what is always so here, or that is about what is not here, is ignored, and the log says so; any other
 * would be missed, and is refused. */
#include "config/options_private.h"

#include "oribi/base/error.h"

#include <stdio.h>
#include <string.h>

#define TLS       "bind tls://host:port?certificate=FILE&key=FILE"
#define AS_APP    "the application is the command's argument, as in: oribi config.ru, oribi-psgi app.psgi"
#define NOT_THERE "not there and not needed: "
#define BUFFERED  NOT_THERE "a body is always read before the application is called"
#define BY_FORK   NOT_THERE "a reload (HUP, ctl reload) starts the command anew, with the libraries of that moment"
#define FILES     "static sends files without the application, as in: static /assets=public/assets"
#define NO_STATE  "there is no state file: `ctl` finds the server of its folder by itself"
#define MIDDLE    NOT_THERE "no middleware is added to an application"
#define THREADS   "there is no hook for threads; what a thread needs is made at its first use"

static const struct oribi__foreign_name names[] = {
    /* Puma */
    {"activate_control_app", "Puma", NULL,
     "`ctl` finds the server of its folder by itself; control names another socket"},
    {"after_booted", "Puma", "server_ready", NULL},
    {"after_refork", "Puma", "server_ready", NULL},
    {"after_worker_boot", "Puma", NULL, "after_worker_ready is the nearest: it runs in the worker, once that serves"},
    {"after_worker_shutdown", "Puma", "on_worker_exit", NULL},
    {"before_restart", "Puma", "before_reload", NULL},
    {"before_thread_exit", "Puma", NULL, THREADS},
    {"before_thread_start", "Puma", NULL, THREADS},
    {"before_worker_boot", "Puma", "after_fork", NULL},
    {"before_worker_fork", "Puma, Pitchfork", "before_fork", NULL},
    {"before_worker_shutdown", "Puma", "before_worker_exit", NULL},
    {"bind_to_activated_sockets", "Puma", NULL, NOT_THERE "sockets of systemd are found by themselves"},
    {"clean_thread_locals", "Puma", NULL, "not there: thread variables stay from call to call"},
    {"control_token", "Puma", NULL,
     "not there: root and the user of the server may command, over the socket of `control`"},
    {"control_url", "Puma", "control", NULL},
    {"custom_logger", "Puma", NULL, "error_log takes a file; error_log_format json makes objects of its lines"},
    {"default_host", "Puma", "host", NULL},
    {"debug", "Puma, Unicorn", "verbose", NULL},
    {"directory", "Puma", "chdir", NULL},
    {"dir", "Puma", "chdir", NULL},
    {"drain_on_shutdown", "Puma", NULL,
     NOT_THERE "requests that have come in are answered; drain_delay announces a stop"},
    {"e", "Puma, Unicorn", NULL, "Puma's -e is --env (-E); source text is nothing that oribi serves"},
    {"enable_keep_alives", "Puma", "keepalive", NULL},
    {"extra_runtime_dependencies", "Puma", NULL, BY_FORK, ORIBI__LOSS_OF_VALUE},
    {"first_data_timeout", "Puma", "head_timeout", NULL},
    {"force_shutdown_after", "Puma", "shutdown_timeout", NULL},
    {"fiber_per_request", "Puma", NULL, "not there: thread variables stay from call to call"},
    {"fork_worker", "Puma", "refork_after", NULL},
    {"http_content_length_limit", "Puma", "body_bytes_max", NULL},
    {"io_selector_backend", "Puma", NULL, NOT_THERE "epoll is used"},
    {"log_formatter", "Puma", NULL,
     "access_log_format is that of the access log, error_log_format of other lines: text or json"},
    {"log_requests", "Puma", "access_log", NULL},
    {"lowlevel_error_handler", "Puma", NULL,
     "not there: what the application raises is a 500 and a line with its backtrace in error_log"},
    {"max_fast_inline", "Puma", "keepalive_requests_max", NULL},
    {"max_io_threads", "Puma", "threads", NULL},
    {"max_keep_alive", "Puma", "keepalive_requests_max", NULL},
    {"max_threads", "Puma", "threads", NULL},
    {"min_threads", "Puma", "threads", NULL},
    {"mutate_stdout_and_stderr_to_sync_on_write", "Puma", NULL,
     "not there: write $stdout.sync = true into the configuration file"},
    {"nakayoshi_fork", "Puma", NULL, NOT_THERE "the heap is settled before the first fork"},
    {"on_booted", "Puma", "server_ready", NULL},
    {"on_refork", "Puma", "before_refork", NULL},
    {"on_restart", "Puma", "before_reload", NULL},
    {"on_stopped", "Puma", NULL,
     "not there: an at_exit block of the configuration file runs when the server has ended"},
    {"after_stopped", "Puma", NULL,
     "not there: an at_exit block of the configuration file runs when the server has ended"},
    {"on_thread_exit", "Puma", NULL, THREADS},
    {"on_thread_start", "Puma", NULL, THREADS},
    {"on_worker_boot", "Puma", "after_fork", NULL},
    {"on_worker_fork", "Puma", "before_fork", NULL},
    {"on_worker_shutdown", "Puma", "before_worker_exit", NULL},
    {"out_of_band", "Puma", "oob_gc", NULL},
    {"persistent_timeout", "Puma", "idle_timeout", NULL},
    {"plugin", "Puma", NULL,
     "there are none: tmp_restart is restart_file \"tmp/restart.txt\", for systemd and solid_queue their own services"},
    {"preload_app!", "Puma", "preload", NULL},
    {"prune_bundler", "Puma", NULL, BY_FORK, ORIBI__LOSS_OF_SWITCH},
    {"queue_requests", "Puma", NULL, BUFFERED},
    {"rack_url_scheme", "Puma", NULL, "trusted_proxies names the proxies whose X-Forwarded-Proto decides it"},
    {"rackup", "Puma", NULL, AS_APP},
    {"app", "Puma, plackup", NULL, AS_APP},
    {"raise_exception_on_sigterm", "Puma", NULL, NOT_THERE "TERM is a graceful stop with exit code 0"},
    {"redirect_append", "Puma", NULL, NOT_THERE "log files are always appended to", ORIBI__LOSS_OF_SWITCH},
    {"redirect_stderr", "Puma", "error_log", NULL},
    {"redirect_stdout", "Puma", "access_log", NULL},
    {"restart_command", "Puma", NULL, BY_FORK},
    {"S", "Puma", NULL, NO_STATE "; a socket to serve on is --bind"},
    {"set_remote_address", "Puma", NULL, "trusted_proxies names the proxies whose X-Forwarded-For decides it"},
    {"shutdown_debug", "Puma", NULL, "not there: what is killed after shutdown_timeout is named in error_log"},
    {"silence_fork_callback_warning", "Puma", NULL, NOT_THERE "nothing is warned of"},
    {"silent", "Puma", "quiet", NULL},
    {"silence_single_worker_warning", "Puma", NULL, NOT_THERE "nothing is warned of"},
    {"state", "Puma", NULL, NO_STATE},
    {"state_path", "Puma", NULL, NO_STATE},
    {"state_permission", "Puma", NULL, NO_STATE},
    {"stdout_redirect", "Puma", NULL,
     "error_log takes what goes to standard error, access_log the requests; both append"},
    {"supported_http_methods", "Puma", NULL,
     NOT_THERE "every method reaches the application, CONNECT with connect_allow"},
    {"tag", "Puma", NULL, "not there: process titles name the program, its generation and the worker"},
    {"wait_for_less_busy_worker", "Puma", NULL, NOT_THERE "a request is passed on to a worker that is idle"},
    {"V", "Puma", "version", NULL},
    {"worker_boot_timeout", "Puma", "boot_timeout", NULL},
    {"worker_check_interval", "Puma", NULL, NOT_THERE "the end of a worker is noticed at once"},
    {"worker_culling_strategy", "Puma", NULL, "not there: the workers with the highest places go first"},
    {"worker_shutdown_timeout", "Puma", "shutdown_timeout", NULL},
    {"worker_timeout", "Puma", "call_timeout", NULL},

    /* Unicorn and Pitchfork */
    {"after_mold_fork", "Pitchfork", NULL,
     "there is none: the application loads once in the mold; before_refork runs before a worker becomes one"},
    {"after_monitor_ready", "Pitchfork", "server_ready", NULL},
    {"after_request_complete", "Pitchfork", NULL,
     "not there: rack.response_finished in the environment is called after each answer"},
    {"after_worker_exit", "Unicorn, Pitchfork", "on_worker_exit", NULL},
    {"after_worker_fork", "Pitchfork", "after_fork", NULL},
    {"after_worker_hard_timeout", "Pitchfork", "on_worker_exit", NULL},
    {"after_worker_timeout", "Pitchfork", NULL,
     "not there: the call is raised Oribi::CallTimeout, which it may rescue"},
    {"before_exec", "Unicorn", NULL, "not there: an upgrade (USR2) starts the command as it was started first"},
    {"before_service_worker_exit", "Pitchfork", NULL,
     "there is no service worker: give it a process of its own (Oribi::Prefork)"},
    {"before_service_worker_ready", "Pitchfork", NULL,
     "there is no service worker: give it a process of its own (Oribi::Prefork)"},
    {"c", "Unicorn", "config", NULL},
    {"check_client_connection", "Unicorn, Pitchfork", NULL,
     NOT_THERE "a client that left is noticed while the request waits"},
    {"client_body_buffer_size", "Unicorn, Pitchfork", "body_memory_max", NULL},
    {"default_middleware", "Unicorn, plackup", NULL, MIDDLE},
    {"no_default_middleware", "Unicorn, plackup", NULL, MIDDLE, ORIBI__LOSS_OF_SWITCH},
    {"N", "Unicorn", NULL, MIDDLE, ORIBI__LOSS_OF_SWITCH},
    {"logger", "Unicorn, Pitchfork, uWSGI", "error_log", NULL},
    {"max_consecutive_spawn_errors", "Pitchfork", NULL, "not there: err_respawn_interval paces workers that fail"},
    {"refork_max_unavailable", "Pitchfork", "roll_max_unavailable", NULL},
    {"rewindable_input", "Unicorn, Pitchfork", NULL, BUFFERED},
    {"setpgid", "Pitchfork", NULL, NOT_THERE "process groups are left as they are"},
    {"spawn_timeout", "Pitchfork", "boot_timeout", NULL},
    {"stderr_path", "Unicorn", "error_log", NULL},
    {"stdout_path", "Unicorn", NULL,
     "access_log takes the requests; what the application prints goes to standard output"},
    {"timeout_signal", "Pitchfork", NULL,
     "not there: Oribi::CallTimeout is raised in the call; a call that goes on costs its worker"},
    {"trust_x_forwarded", "Unicorn", "trusted_proxies", NULL},
    {"worker_exec", "Unicorn", NULL, NOT_THERE "workers are forked from the loaded application"},
    {"worker_processes", "Unicorn, Pitchfork", "workers", NULL},
    {"working_directory", "Unicorn", "chdir", NULL},

    {"worker_connections", "Rainbows", NULL, "threads N are calls at a time in one worker"},

    /* Thin and Passenger */
    {"adapter", "Thin", NULL, NOT_THERE "the application is a rackup file"},
    {"log", "Thin", "error_log", NULL},
    {"max_conns", "Thin", "connections_max", NULL},
    {"max_persistent_conns", "Thin", "connections_max", NULL},
    {"no_epoll", "Thin", NULL, NOT_THERE "epoll is used", ORIBI__LOSS_OF_SWITCH},
    {"onebyone", "Thin", NULL, NOT_THERE "a reload replaces the workers one by one", ORIBI__LOSS_OF_SWITCH},
    {"prefix", "Thin", NULL, "mount the application in config.ru: map \"/prefix\" do run app end"},
    {"servers", "Thin", "workers", NULL},
    {"threaded", "Thin", NULL, "threads N are calls at a time in one worker"},
    {"threadpool_size", "Thin", "threads", NULL},
    {"trace", "Thin", NULL, "not there: access_log has the requests, verbose more of the server"},
    {"wait", "Thin", "boot_timeout", NULL},
    {"app_type", "Passenger", NULL, NOT_THERE "the application is a rackup file"},
    {"concurrency_model", "Passenger", NULL, "threads N are calls at a time in one worker"},
    {"disable_security_update_check", "Passenger", NULL, NOT_THERE "nothing is looked up", ORIBI__LOSS_OF_SWITCH},
    {"envvars", "Passenger", NULL, "let the service set the environment"},
    {"engine", "Passenger", NULL, NOT_THERE "there is one server, without nginx in it"},
    {"friendly_error_pages", "Passenger", NULL, "error_page makes pages of the server's answers"},
    {"log_file", "Passenger", "error_log", NULL},
    {"log_level", "Passenger", NULL, "quiet and verbose say how much is logged"},
    {"max_pool_size", "Passenger", "workers", NULL},
    {"max_preloader_idle_time", "Passenger", NULL, NOT_THERE "the process that has loaded the application stays"},
    {"max_request_queue_size", "Passenger", "queue_max", NULL},
    {"max_request_time", "Passenger", "call_timeout", NULL},
    {"memory_limit", "Passenger", "memory_max", NULL},
    {"min_instances", "Passenger", NULL, NOT_THERE "all workers are there from the start"},
    {"nginx*", "Passenger", NULL, "there is no nginx in it: what its template does belongs to a proxy in front"},
    {"pool_idle_time", "Passenger", NULL, NOT_THERE "all workers stay"},
    {"restart_dir", "Passenger", "restart_file", NULL},
    {"rolling_restarts", "Passenger", NULL, NOT_THERE "every reload replaces the workers one by one",
     ORIBI__LOSS_OF_SWITCH},
    {"spawn_method", "Passenger", NULL, "smart is preload on, direct is preload off"},
    {"startup_file", "Passenger", NULL, AS_APP},
    {"start_timeout", "Passenger", "boot_timeout", NULL},
    {"static_files_dir", "Passenger", "static", NULL},
    {"sticky_sessions", "Passenger", NULL, NOT_THERE "a session belongs into a store that all workers share"},
    {"thread_count", "Passenger", "threads", NULL},

    /* plackup, Starman, Starlet, Gazelle */
    {"a", "plackup", NULL, AS_APP},
    {"enable_ssl", "Starman", NULL, TLS},
    {"ssl*", "Puma, Starman", NULL, TLS},
    {"net_server_log_level", "Starman", NULL, NOT_THERE "Net::Server is not used", ORIBI__LOSS_OF_VALUE},
    {"net_server*", "Starman", NULL, NOT_THERE "Net::Server is not used"},
    {"path", "plackup", NULL,
     "mount the application in its own file, with mount of Plack::Builder; a socket is --bind PATH"},
    {"L", "plackup", NULL, "-L Delayed is --no-preload"},
    {"loader", "plackup", NULL, "--loader Delayed is --no-preload"},
    {"disable_proctitle", "Starman", NULL, NOT_THERE "process titles are always set", ORIBI__LOSS_OF_SWITCH},
    {"proctitle", "Starman", NULL, NOT_THERE "process titles are always set", ORIBI__LOSS_OF_SWITCH},
    {"R", "plackup", NULL, "here it is --dev with --watch PATH; what the application was loaded from is watched too"},
    {"reload", "plackup", NULL, "here it is --dev, which is on in development by itself"},
    {"s", "plackup", NULL, "the command is the server: plackup -s Oribi, rackup -s oribi"},
    {"server", "plackup", NULL, "the command is the server: plackup -s Oribi, rackup -s oribi"},

    /* uWSGI */
    {"auto_procname", "uWSGI", NULL, NOT_THERE "process titles are always set", ORIBI__LOSS_OF_SWITCH},
    {"buffer_size", "uWSGI", "head_bytes_max", NULL},
    {"cheaper", "uWSGI", NULL, "not there: the number of workers is changed by `ctl workers` or TTIN and TTOU"},
    {"check_static", "uWSGI", NULL, FILES},
    {"die_on_term", "uWSGI", NULL, NOT_THERE "TERM is a graceful stop", ORIBI__LOSS_OF_SWITCH},
    {"disable_logging", "uWSGI", NULL, "access_log off does that"},
    {"emperor", "uWSGI", NULL, "not there: each application is a service of its own"},
    {"enable_threads", "uWSGI", NULL,
     NOT_THERE "threads of the application run; see threads for calls in threads (oribi)", ORIBI__LOSS_OF_SWITCH},
    {"evil_reload_on_rss", "uWSGI", "memory_max", NULL},
    {"gid", "uWSGI", "group", NULL},
    {"harakiri", "uWSGI", "call_timeout", NULL},
    {"http", "uWSGI", "bind", NULL},
    {"http_keepalive", "uWSGI", "keepalive", NULL},
    {"http_socket", "uWSGI", "bind", NULL},
    {"http_timeout", "uWSGI", "body_timeout", NULL},
    {"https", "uWSGI", NULL, TLS},
    {"ini", "uWSGI", "config", NULL},
    {"lazy", "uWSGI", NULL, "preload off, on the command line --no-preload"},
    {"lazy_apps", "uWSGI", NULL, "preload off, on the command line --no-preload"},
    {"log_format", "uWSGI", "access_log_format", NULL},
    {"logto", "uWSGI", "error_log", NULL},
    {"master", "uWSGI", NULL, NOT_THERE "there always is a supervisor", ORIBI__LOSS_OF_SWITCH},
    {"master_fifo", "uWSGI", "control", NULL},
    {"max_worker_lifetime", "uWSGI", "age_max", NULL},
    {"need_app", "uWSGI", NULL, NOT_THERE "a start without an application fails", ORIBI__LOSS_OF_SWITCH},
    {"post_buffering", "uWSGI", "body_memory_max", NULL},
    {"processes", "uWSGI", "workers", NULL},
    {"procname_prefix", "uWSGI", NULL, "not there: process titles name the program, its generation and the worker"},
    {"psgi", "uWSGI", NULL, AS_APP},
    {"rack", "uWSGI", NULL, AS_APP},
    {"reload_mercy", "uWSGI", "shutdown_timeout", NULL},
    {"reload_on_as", "uWSGI", "memory_max", NULL},
    {"reload_on_rss", "uWSGI", "memory_max", NULL},
    {"req_logger", "uWSGI", "access_log", NULL},
    {"single_interpreter", "uWSGI", NULL, NOT_THERE "a process has one interpreter", ORIBI__LOSS_OF_SWITCH},
    {"so_keepalive", "uWSGI", NULL, NOT_THERE "idle_timeout ends connections that rest", ORIBI__LOSS_OF_SWITCH},
    {"socket_timeout", "uWSGI", "write_timeout", NULL},
    {"static_map", "uWSGI", NULL, FILES},
    {"stats", "uWSGI", NULL, "status ADDR answers with metrics and /status.json over HTTP"},
    {"strict", "uWSGI", NULL, NOT_THERE "an unknown option is always an error", ORIBI__LOSS_OF_SWITCH},
    {"thunder_lock", "uWSGI", NULL, NOT_THERE "one worker is woken for a connection", ORIBI__LOSS_OF_SWITCH},
    {"touch_chain_reload", "uWSGI", "restart_file", NULL},
    {"touch_reload", "uWSGI", "restart_file", NULL},
    {"touch_workers_reload", "uWSGI", "restart_file", NULL},
    {"uid", "uWSGI", "user", NULL},
    {"vacuum", "uWSGI", NULL, NOT_THERE "socket and pid file are removed at the end", ORIBI__LOSS_OF_SWITCH},
    {"worker_reload_mercy", "uWSGI", "shutdown_timeout", NULL},

    /* A rackup file given as the configuration file */
    {"map", "rackup", NULL,
     "this looks like a rackup file: that is the command's argument, not the configuration file"},
    {"run", "rackup", NULL,
     "this looks like a rackup file: that is the command's argument, not the configuration file"},
    {"use", "rackup", NULL,
     "this looks like a rackup file: that is the command's argument, not the configuration file"},
};

const char *oribi__options_hook_names(void)
{
    return "server_ready before_reload on_worker_exit before_fork after_fork after_worker_ready before_refork "
           "before_worker_exit";
}

const struct oribi__foreign_name *oribi__options_foreign(size_t *count)
{
    *count = sizeof(names) / sizeof(names[0]);
    return names;
}

/* A name of the table that ends in a star stands for all that begin so. */
static bool is_meant(const char *name, const char *typed)
{
    size_t n = strlen(name) - 1;
    if (name[n] != '*')
        return oribi__options_same_name(name, typed);
    while (*typed == '-')
        typed++;
    for (size_t i = 0; i < n; i++) {
        if (typed[i] != name[i] && !(typed[i] == '-' && name[i] == '_'))
            return false;
    }
    return true;
}

/* "--idle-timeout" for a flag, "idle_timeout" for the configuration file. */
static void spell(const char *option, bool as_flag, char dst[ORIBI__OPTION_NAME_CAP + 2])
{
    (void)snprintf(dst, ORIBI__OPTION_NAME_CAP + 2, "%s%s", as_flag ? "--" : "", option); /* names are shorter */
    for (char *p = dst; as_flag && *p; p++)
        *p = *p == '_' ? '-' : *p;
}

/* NULL: no other server is known to have it. */
static const struct oribi__foreign_name *find(const char *typed)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (is_meant(names[i].name, typed))
            return &names[i];
    return NULL;
}

bool oribi_options_find_foreign(const char *name, struct oribi_option_foreign *found)
{
    const struct oribi__foreign_name *row = find(name);
    if (row)
        *found = (struct oribi_option_foreign){.server = row->server, .here = row->here, .advice = row->advice};
    return row != NULL;
}

bool oribi__options_ignore(struct oribi_options *options, const char *typed, bool *takes_value)
{
    const struct oribi__foreign_name *row = find(typed);
    if (!row || row->loss == ORIBI__LOSS_COUNTS)
        return false;
    *takes_value = row->loss == ORIBI__LOSS_OF_VALUE;
    if (options->ignored_count < ORIBI_OPTIONS_IGNORED_MAX)
        options->ignored[options->ignored_count++] = row;
    return true;
}

int oribi__options_refuse_foreign(const char *typed, char *error)
{
    struct oribi_option_foreign found;
    char here[ORIBI__OPTION_NAME_CAP + 2];
    if (!oribi_options_find_foreign(typed, &found))
        return 0;
    if (!found.here)
        return oribi__refuse(error, "unknown option %.48s (%s): %s", typed, found.server, found.advice);
    spell(found.here, typed[0] == '-', here);
    return oribi__refuse(error, "unknown option %.48s (%s): here it is %s", typed, found.server, here);
}
