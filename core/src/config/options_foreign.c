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
     "`ctl` finds the server of its folder by itself; control names another socket", 0},
    {"after_booted", "Puma", "server_ready", NULL, 0},
    {"after_refork", "Puma", NULL,
     "not there: the worker that was forked from is replaced soon; reopen at first use what before_refork closes", 0},
    {"after_worker_boot", "Puma", NULL, "after_worker_ready is the nearest: it runs in the worker, once that serves",
     0},
    {"after_worker_shutdown", "Puma", "on_worker_exit", NULL, 0},
    {"before_restart", "Puma", "before_reload", NULL, 0},
    {"before_thread_exit", "Puma", NULL, THREADS, 0},
    {"before_thread_start", "Puma", NULL, THREADS, 0},
    {"before_worker_boot", "Puma", "after_fork", NULL, 0},
    {"before_worker_fork", "Puma, Pitchfork", "before_fork", NULL, 0},
    {"before_worker_shutdown", "Puma", "before_worker_exit", NULL, 0},
    {"bind_to_activated_sockets", "Puma", NULL, NOT_THERE "sockets of systemd are found by themselves", 0},
    {"clean_thread_locals", "Puma", NULL, "not there: thread variables stay from call to call", 0},
    {"control_token", "Puma", NULL,
     "not there: root and the user of the server may command, over the socket of `control`", 0},
    {"control_url", "Puma", "control", NULL, 0},
    {"custom_logger", "Puma", NULL, "error_log takes a file; error_log_format json makes objects of its lines", 0},
    {"default_host", "Puma", "host", NULL, 0},
    {"debug", "Puma, Unicorn", "verbose", NULL, 0},
    {"directory", "Puma", "chdir", NULL, 0},
    {"dir", "Puma", "chdir", NULL, 0},
    {"drain_on_shutdown", "Puma", NULL,
     NOT_THERE "requests that have come in are answered; drain_delay announces a stop", 0},
    {"e", "Puma, Unicorn", NULL, "Puma's -e is --env (-E); source text is nothing that oribi serves", 0},
    {"enable_keep_alives", "Puma", "keepalive", NULL, 0},
    {"extra_runtime_dependencies", "Puma", NULL, BY_FORK, ORIBI__LOSS_OF_VALUE},
    {"first_data_timeout", "Puma", "head_timeout", NULL, 0},
    {"force_shutdown_after", "Puma", "shutdown_timeout", NULL, 0},
    {"fiber_per_request", "Puma", NULL, "not there: thread variables stay from call to call", 0},
    {"fork_worker", "Puma", "refork_after", NULL, 0},
    {"http_content_length_limit", "Puma", "body_bytes_max", NULL, 0},
    {"io_selector_backend", "Puma", NULL, NOT_THERE "epoll is used", 0},
    {"log_formatter", "Puma", NULL,
     "access_log_format is that of the access log, error_log_format of other lines: text or json", 0},
    {"log_requests", "Puma", "access_log", NULL, 0},
    {"lowlevel_error_handler", "Puma", NULL,
     "not there: what the application raises is a 500 and a line with its backtrace in error_log", 0},
    {"max_fast_inline", "Puma", "keepalive_requests_max", NULL, 0},
    {"max_io_threads", "Puma", "threads", NULL, 0},
    {"max_keep_alive", "Puma", "keepalive_requests_max", NULL, 0},
    {"max_threads", "Puma", "threads", NULL, 0},
    {"min_threads", "Puma", "threads", NULL, 0},
    {"mutate_stdout_and_stderr_to_sync_on_write", "Puma", NULL,
     "not there: write $stdout.sync = true into the configuration file", 0},
    {"nakayoshi_fork", "Puma", NULL, NOT_THERE "the heap is settled before the first fork", 0},
    {"on_booted", "Puma", "server_ready", NULL, 0},
    {"on_refork", "Puma", "before_refork", NULL, 0},
    {"on_restart", "Puma", "before_reload", NULL, 0},
    {"on_stopped", "Puma", NULL, "not there: an at_exit block of the configuration file runs when the server has ended",
     0},
    {"after_stopped", "Puma", NULL,
     "not there: an at_exit block of the configuration file runs when the server has ended", 0},
    {"on_thread_exit", "Puma", NULL, THREADS, 0},
    {"on_thread_start", "Puma", NULL, THREADS, 0},
    {"on_worker_boot", "Puma", "after_fork", NULL, 0},
    {"on_worker_fork", "Puma", "before_fork", NULL, 0},
    {"on_worker_shutdown", "Puma", "before_worker_exit", NULL, 0},
    {"out_of_band", "Puma", "oob_gc", NULL, 0},
    {"persistent_timeout", "Puma", "idle_timeout", NULL, 0},
    {"plugin", "Puma", NULL,
     "there are none: tmp_restart is restart_file \"tmp/restart.txt\", for systemd and solid_queue their own services",
     0},
    {"preload_app!", "Puma", "preload", NULL, 0},
    {"prune_bundler", "Puma", NULL, BY_FORK, ORIBI__LOSS_OF_SWITCH},
    {"queue_requests", "Puma", NULL, BUFFERED, 0},
    {"rack_url_scheme", "Puma", NULL, "trusted_proxies names the proxies whose X-Forwarded-Proto decides it", 0},
    {"rackup", "Puma", NULL, AS_APP, 0},
    {"app", "Puma, plackup", NULL, AS_APP, 0},
    {"raise_exception_on_sigterm", "Puma", NULL, NOT_THERE "TERM is a graceful stop with exit code 0", 0},
    {"redirect_append", "Puma", NULL, NOT_THERE "log files are always appended to", ORIBI__LOSS_OF_SWITCH},
    {"redirect_stderr", "Puma", "error_log", NULL, 0},
    {"redirect_stdout", "Puma", "access_log", NULL, 0},
    {"restart_command", "Puma", NULL, BY_FORK, 0},
    {"S", "Puma", NULL, NO_STATE "; a socket to serve on is --bind", 0},
    {"set_remote_address", "Puma", NULL, "trusted_proxies names the proxies whose X-Forwarded-For decides it", 0},
    {"shutdown_debug", "Puma", NULL, "not there: what is killed after shutdown_timeout is named in error_log", 0},
    {"silence_fork_callback_warning", "Puma", NULL, NOT_THERE "nothing is warned of", 0},
    {"silent", "Puma", "quiet", NULL, 0},
    {"silence_single_worker_warning", "Puma", NULL, NOT_THERE "nothing is warned of", 0},
    {"state", "Puma", NULL, NO_STATE, 0},
    {"state_path", "Puma", NULL, NO_STATE, 0},
    {"state_permission", "Puma", NULL, NO_STATE, 0},
    {"stdout_redirect", "Puma", NULL,
     "error_log takes what goes to standard error, access_log the requests; both append", 0},
    {"supported_http_methods", "Puma", NULL,
     NOT_THERE "every method reaches the application, CONNECT with connect_allow", 0},
    {"tag", "Puma", NULL, "not there: process titles name the program, its generation and the worker", 0},
    {"wait_for_less_busy_worker", "Puma", NULL, NOT_THERE "a request is passed on to a worker that is idle", 0},
    {"V", "Puma", "version", NULL, 0},
    {"worker_boot_timeout", "Puma", "boot_timeout", NULL, 0},
    {"worker_check_interval", "Puma", NULL, NOT_THERE "the end of a worker is noticed at once", 0},
    {"worker_culling_strategy", "Puma", NULL, "not there: the workers with the highest places go first", 0},
    {"worker_shutdown_timeout", "Puma", "shutdown_timeout", NULL, 0},
    {"worker_timeout", "Puma", "call_timeout", NULL, 0},

    /* Unicorn and Pitchfork */
    {"after_mold_fork", "Pitchfork", NULL,
     "there is none: the application loads once in the mold; before_refork runs before a worker becomes one", 0},
    {"after_monitor_ready", "Pitchfork", "server_ready", NULL, 0},
    {"after_request_complete", "Pitchfork", NULL,
     "not there: rack.response_finished in the environment is called after each answer", 0},
    {"after_worker_exit", "Unicorn, Pitchfork", "on_worker_exit", NULL, 0},
    {"after_worker_fork", "Pitchfork", "after_fork", NULL, 0},
    {"after_worker_hard_timeout", "Pitchfork", "on_worker_exit", NULL, 0},
    {"after_worker_timeout", "Pitchfork", NULL, "not there: the call is raised Oribi::CallTimeout, which it may rescue",
     0},
    {"before_exec", "Unicorn", NULL, "not there: an upgrade (USR2) starts the command as it was started first", 0},
    {"before_service_worker_exit", "Pitchfork", NULL,
     "there is no service worker: give it a process of its own (Oribi::Prefork)", 0},
    {"before_service_worker_ready", "Pitchfork", NULL,
     "there is no service worker: give it a process of its own (Oribi::Prefork)", 0},
    {"c", "Unicorn", "config", NULL, 0},
    {"check_client_connection", "Unicorn, Pitchfork", NULL,
     NOT_THERE "a client that left is noticed while the request waits", 0},
    {"client_body_buffer_size", "Unicorn, Pitchfork", "body_memory_max", NULL, 0},
    {"default_middleware", "Unicorn, plackup", NULL, MIDDLE, 0},
    {"no_default_middleware", "Unicorn, plackup", NULL, MIDDLE, ORIBI__LOSS_OF_SWITCH},
    {"N", "Unicorn", NULL, MIDDLE, ORIBI__LOSS_OF_SWITCH},
    {"logger", "Unicorn, Pitchfork, uWSGI", "error_log", NULL, 0},
    {"max_consecutive_spawn_errors", "Pitchfork", NULL, "not there: err_respawn_interval paces workers that fail", 0},
    {"refork_max_unavailable", "Pitchfork", "roll_max_unavailable", NULL, 0},
    {"rewindable_input", "Unicorn, Pitchfork", NULL, BUFFERED, 0},
    {"setpgid", "Pitchfork", NULL, NOT_THERE "process groups are left as they are", 0},
    {"spawn_timeout", "Pitchfork", "boot_timeout", NULL, 0},
    {"stderr_path", "Unicorn", "error_log", NULL, 0},
    {"stdout_path", "Unicorn", NULL,
     "access_log takes the requests; what the application prints goes to standard output", 0},
    {"timeout_signal", "Pitchfork", NULL,
     "not there: Oribi::CallTimeout is raised in the call; a call that goes on costs its worker", 0},
    {"trust_x_forwarded", "Unicorn", "trusted_proxies", NULL, 0},
    {"worker_exec", "Unicorn", NULL, NOT_THERE "workers are forked from the loaded application", 0},
    {"worker_processes", "Unicorn, Pitchfork", "workers", NULL, 0},
    {"working_directory", "Unicorn", "chdir", NULL, 0},

    {"worker_connections", "Rainbows", NULL, "threads N are calls at a time in one worker", 0},

    /* Thin and Passenger */
    {"adapter", "Thin", NULL, NOT_THERE "the application is a rackup file", 0},
    {"log", "Thin", "error_log", NULL, 0},
    {"max_conns", "Thin", "connections_max", NULL, 0},
    {"max_persistent_conns", "Thin", "connections_max", NULL, 0},
    {"no_epoll", "Thin", NULL, NOT_THERE "epoll is used", ORIBI__LOSS_OF_SWITCH},
    {"onebyone", "Thin", NULL, NOT_THERE "a reload replaces the workers one by one", ORIBI__LOSS_OF_SWITCH},
    {"prefix", "Thin", NULL, "mount the application in config.ru: map \"/prefix\" do run app end", 0},
    {"servers", "Thin", "workers", NULL, 0},
    {"threaded", "Thin", NULL, "threads N are calls at a time in one worker", 0},
    {"threadpool_size", "Thin", "threads", NULL, 0},
    {"trace", "Thin", NULL, "not there: access_log has the requests, verbose more of the server", 0},
    {"wait", "Thin", "boot_timeout", NULL, 0},
    {"app_type", "Passenger", NULL, NOT_THERE "the application is a rackup file", 0},
    {"concurrency_model", "Passenger", NULL, "threads N are calls at a time in one worker", 0},
    {"disable_security_update_check", "Passenger", NULL, NOT_THERE "nothing is looked up", ORIBI__LOSS_OF_SWITCH},
    {"envvars", "Passenger", NULL, "let the service set the environment", 0},
    {"engine", "Passenger", NULL, NOT_THERE "there is one server, without nginx in it", 0},
    {"friendly_error_pages", "Passenger", NULL, "error_page makes pages of the server's answers", 0},
    {"log_file", "Passenger", "error_log", NULL, 0},
    {"log_level", "Passenger", NULL, "quiet and verbose say how much is logged", 0},
    {"max_pool_size", "Passenger", "workers", NULL, 0},
    {"max_preloader_idle_time", "Passenger", NULL, NOT_THERE "the process that has loaded the application stays", 0},
    {"max_request_queue_size", "Passenger", "queue_max", NULL, 0},
    {"max_request_time", "Passenger", "call_timeout", NULL, 0},
    {"memory_limit", "Passenger", "memory_max", NULL, 0},
    {"min_instances", "Passenger", NULL, NOT_THERE "all workers are there from the start", 0},
    {"nginx*", "Passenger", NULL, "there is no nginx in it: what its template does belongs to a proxy in front", 0},
    {"pool_idle_time", "Passenger", NULL, NOT_THERE "all workers stay", 0},
    {"restart_dir", "Passenger", "restart_file", NULL, 0},
    {"rolling_restarts", "Passenger", NULL, NOT_THERE "every reload replaces the workers one by one",
     ORIBI__LOSS_OF_SWITCH},
    {"spawn_method", "Passenger", NULL, "smart is preload on, direct is preload off", 0},
    {"startup_file", "Passenger", NULL, AS_APP, 0},
    {"start_timeout", "Passenger", "boot_timeout", NULL, 0},
    {"static_files_dir", "Passenger", "static", NULL, 0},
    {"sticky_sessions", "Passenger", NULL, NOT_THERE "a session belongs into a store that all workers share", 0},
    {"thread_count", "Passenger", "threads", NULL, 0},

    /* plackup, Starman, Starlet, Gazelle */
    {"a", "plackup", NULL, AS_APP, 0},
    {"enable_ssl", "Starman", NULL, TLS, 0},
    {"ssl*", "Puma, Starman", NULL, TLS, 0},
    {"net_server_log_level", "Starman", NULL, NOT_THERE "Net::Server is not used", ORIBI__LOSS_OF_VALUE},
    {"net_server*", "Starman", NULL, NOT_THERE "Net::Server is not used", 0},
    {"path", "plackup", NULL,
     "mount the application in its own file, with mount of Plack::Builder; a socket is --bind PATH", 0},
    {"L", "plackup", NULL, "-L Delayed is --no-preload", 0},
    {"loader", "plackup", NULL, "--loader Delayed is --no-preload", 0},
    {"disable_proctitle", "Starman", NULL, NOT_THERE "process titles are always set", ORIBI__LOSS_OF_SWITCH},
    {"proctitle", "Starman", NULL, NOT_THERE "process titles are always set", ORIBI__LOSS_OF_SWITCH},
    {"R", "plackup", NULL, "here it is --dev with --watch PATH; what the application was loaded from is watched too",
     0},
    {"reload", "plackup", NULL, "here it is --dev, which is on in development by itself", 0},
    {"s", "plackup", NULL, "the command is the server: plackup -s Oribi, rackup -s oribi", 0},
    {"server", "plackup", NULL, "the command is the server: plackup -s Oribi, rackup -s oribi", 0},

    /* uWSGI */
    {"auto_procname", "uWSGI", NULL, NOT_THERE "process titles are always set", ORIBI__LOSS_OF_SWITCH},
    {"buffer_size", "uWSGI", "head_bytes_max", NULL, 0},
    {"cheaper", "uWSGI", NULL, "not there: the number of workers is changed by `ctl workers` or TTIN and TTOU", 0},
    {"check_static", "uWSGI", NULL, FILES, 0},
    {"die_on_term", "uWSGI", NULL, NOT_THERE "TERM is a graceful stop", ORIBI__LOSS_OF_SWITCH},
    {"disable_logging", "uWSGI", NULL, "access_log off does that", 0},
    {"emperor", "uWSGI", NULL, "not there: each application is a service of its own", 0},
    {"enable_threads", "uWSGI", NULL,
     NOT_THERE "threads of the application run; see threads for calls in threads (oribi)", ORIBI__LOSS_OF_SWITCH},
    {"evil_reload_on_rss", "uWSGI", "memory_max", NULL, 0},
    {"gid", "uWSGI", "group", NULL, 0},
    {"harakiri", "uWSGI", "call_timeout", NULL, 0},
    {"http", "uWSGI", "bind", NULL, 0},
    {"http_keepalive", "uWSGI", "keepalive", NULL, 0},
    {"http_socket", "uWSGI", "bind", NULL, 0},
    {"http_timeout", "uWSGI", "body_timeout", NULL, 0},
    {"https", "uWSGI", NULL, TLS, 0},
    {"ini", "uWSGI", "config", NULL, 0},
    {"lazy", "uWSGI", NULL, "preload off, on the command line --no-preload", 0},
    {"lazy_apps", "uWSGI", NULL, "preload off, on the command line --no-preload", 0},
    {"log_format", "uWSGI", "access_log_format", NULL, 0},
    {"logto", "uWSGI", "error_log", NULL, 0},
    {"master", "uWSGI", NULL, NOT_THERE "there always is a supervisor", ORIBI__LOSS_OF_SWITCH},
    {"master_fifo", "uWSGI", "control", NULL, 0},
    {"max_worker_lifetime", "uWSGI", "age_max", NULL, 0},
    {"need_app", "uWSGI", NULL, NOT_THERE "a start without an application fails", ORIBI__LOSS_OF_SWITCH},
    {"post_buffering", "uWSGI", "body_memory_max", NULL, 0},
    {"processes", "uWSGI", "workers", NULL, 0},
    {"procname_prefix", "uWSGI", NULL, "not there: process titles name the program, its generation and the worker", 0},
    {"psgi", "uWSGI", NULL, AS_APP, 0},
    {"rack", "uWSGI", NULL, AS_APP, 0},
    {"reload_mercy", "uWSGI", "shutdown_timeout", NULL, 0},
    {"reload_on_as", "uWSGI", "memory_max", NULL, 0},
    {"reload_on_rss", "uWSGI", "memory_max", NULL, 0},
    {"req_logger", "uWSGI", "access_log", NULL, 0},
    {"single_interpreter", "uWSGI", NULL, NOT_THERE "a process has one interpreter", ORIBI__LOSS_OF_SWITCH},
    {"so_keepalive", "uWSGI", NULL, NOT_THERE "idle_timeout ends connections that rest", ORIBI__LOSS_OF_SWITCH},
    {"socket_timeout", "uWSGI", "write_timeout", NULL, 0},
    {"static_map", "uWSGI", NULL, FILES, 0},
    {"stats", "uWSGI", NULL, "status ADDR answers with metrics and /status.json over HTTP", 0},
    {"strict", "uWSGI", NULL, NOT_THERE "an unknown option is always an error", ORIBI__LOSS_OF_SWITCH},
    {"thunder_lock", "uWSGI", NULL, NOT_THERE "one worker is woken for a connection", ORIBI__LOSS_OF_SWITCH},
    {"touch_chain_reload", "uWSGI", "restart_file", NULL, 0},
    {"touch_reload", "uWSGI", "restart_file", NULL, 0},
    {"touch_workers_reload", "uWSGI", "restart_file", NULL, 0},
    {"uid", "uWSGI", "user", NULL, 0},
    {"vacuum", "uWSGI", NULL, NOT_THERE "socket and pid file are removed at the end", ORIBI__LOSS_OF_SWITCH},
    {"worker_reload_mercy", "uWSGI", "shutdown_timeout", NULL, 0},

    /* A rackup file given as the configuration file */
    {"map", "rackup", NULL, "this looks like a rackup file: that is the command's argument, not the configuration file",
     0},
    {"run", "rackup", NULL, "this looks like a rackup file: that is the command's argument, not the configuration file",
     0},
    {"use", "rackup", NULL, "this looks like a rackup file: that is the command's argument, not the configuration file",
     0},
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
