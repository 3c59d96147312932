/* oribi-frontend: holds the clients of tls:// and of listeners with frontend=on. The supervisor starts it
 * (config.h). */
#include "frontend/acme.h"
#include "frontend/certificate_check.h"
#include "frontend/local.h"
#include "frontend/os_confine.h"
#include "frontend/run.h"

#include "oribi/base/log.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"

#include <nghttp2/nghttp2.h>
#include <openssl/crypto.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SPARE_FDS = 1024 }; /* bodies in files, files of answers, and the frontend's own */

/* Stops come by the supervisor; a terminal's Ctrl-C reaches the whole group. */
static void settle_signals(void)
{
    static const int ignored[] = {SIGINT,  SIGTERM, SIGQUIT, SIGHUP,   SIGUSR1, SIGUSR2,
                                  SIGPIPE, SIGTTIN, SIGTTOU, SIGWINCH, SIGXFSZ};
    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
        (void)signal(ignored[i], SIG_IGN); /* cannot fail for these */
}

/* For --version of the server. */
static int tell_version(void)
{
    return printf("OpenSSL %s, nghttp2 %s\n", OpenSSL_version(OPENSSL_VERSION_STRING),
                  nghttp2_version(0)->version_str) < 0;
}

/* All that opens files is behind it, but the local content, which opens more of them later. */
static void confine(const struct oribi_frontend_config *config)
{
    oribi_confine_memory(); /* a change of user may have undone it */
    oribi_confine_rights();
    bool reads = config->local->mounts.count > 0 || config->local->error_pages.count > 0;
    if (config->options->frontend_sandbox && oribi_confine_calls(oribi_os_temp_dir(), reads) < 0)
        oribi_log(ORIBI_LOG_INFO, "frontend: this kernel has no seccomp: system calls are not restricted");
}

int main(int argc, char **argv)
{
    char error[ORIBI_ERROR_TEXT_CAP] = "";
    settle_signals();
    oribi_confine_memory(); /* keys are in it */
    if (argc == 2 && strcmp(argv[1], "--check") == 0)
        return oribi_frontend_check();
    if (argc == 2 && strcmp(argv[1], "--acme") == 0)
        return oribi_frontend_acme();
    if (getenv(ORIBI__ACME_HOOK))
        return oribi_frontend_acme_hook(argc, argv);
    if (argc == 2 && strcmp(argv[1], "--version") == 0)
        return tell_version();
    struct oribi_frontend_config *config = oribi_mem_alloc(1, sizeof(*config));
    if (oribi_frontend_config_take(config, error) < 0) {
        if (config->control_fd > 0)
            oribi_frontend_failed(config, error);
        else
            (void)fprintf(stderr, "oribi-frontend: %s\n", error);
        return 1;
    }
    struct oribi__frontend *frontend = oribi__frontend_create(config, error);
    if (!frontend) {
        oribi_frontend_failed(config, error);
        return 1;
    }
    (void)oribi_os_want_descriptors((uint64_t)config->options->connections_max + config->channel_count + SPARE_FDS);
    confine(config);
    if (oribi__frontend_local_open(frontend) < 0) {
        oribi_frontend_failed(config, "out of memory");
        return 1;
    }
    oribi_frontend_ready(config);
    oribi__frontend_run(frontend);
    oribi__frontend_destroy(frontend);
    return 0;
}
