/* Texts of `init`: those of the files that it makes, and those that it prints. */
#include "command/init_private.h"

#include <stdio.h>
#include <string.h>

enum { COMMENT_AT = 40 }; /* where the explanations stand */

enum whose {
    ANY,
    RAILS,  /* for Rails alone */
    OTHERS, /* for all but Rails */
    RUBY,
    PERL,
};

/* A setting of the configuration file, as a comment. */
struct proposal {
    const char *name; /* an option */
    const char *value;
    const char *text;
    enum whose whose;
};

static const struct proposal proposals[] = {
    {"bind", "127.0.0.1:9292", "in production 0.0.0.0:9292; also unix:///run/app/app.sock, and PORT", OTHERS},
    {"host", "127.0.0.1", "in production 0.0.0.0; also bind \"unix:///run/app/app.sock\"", RAILS},
    {"workers", "4", "one for each processor unless this or WEB_CONCURRENCY tells", RUBY},
    {"workers", "4", "one for each processor unless told", PERL},
    {"threads", "3", "calls at a time in a worker, also RAILS_MAX_THREADS; one unless told", RUBY},
    {"call_timeout", "30s", "how long a request may take in the application: 60s unless told", ANY},
    {"shutdown_timeout", "25s", "how long a stop waits for requests: 30s unless told", ANY},
    {"health", "/up", "answered by the server, 503 once it is about to stop", ANY},
    {"static", "/assets=public/assets", "files that are sent without the application", RAILS},
    {"static", "/public=public", "files that are sent without the application", OTHERS},
    {"compress", "br gzip", "of answers, as far as --version names them", ANY},
    {"status", "127.0.0.1:9394", "metrics for Prometheus, and a page of the server's state", ANY},
    {"access_log", "log/access.log", "off in production unless told", ANY},
    {"pid_file", "tmp/server.pid", "none unless told", ANY},
    {"restart_file", "tmp/restart.txt", "a touch of it is a reload", OTHERS},
};

static bool is_number(const char *text)
{
    return strspn(text, "0123456789") == strlen(text);
}

static void put_line(struct oribi_buf *text, const char *line, const char *comment)
{
    oribi_buf_print(text, "%-*s# %s\n", COMMENT_AT, line, comment);
}

static void put_proposal(const struct oribi__init *run, const struct proposal *it, struct oribi_buf *text)
{
    char line[128];
    const char *q = run->lang == ORIBI_LANG_PERL ? "'" : "\"";
    if (is_number(it->value))
        q = "";
    if (run->lang == ORIBI_LANG_PERL)
        (void)snprintf(line, sizeof(line), "    # %s => %s%s%s,", it->name, q, it->value, q);
    else
        (void)snprintf(line, sizeof(line), "# %s %s%s%s", it->name, q, it->value, q); /* all are short */
    put_line(text, line, it->text);
}

static bool is_for(const struct oribi__init *run, enum whose whose)
{
    switch (whose) {
    case ANY:
        return true;
    case RAILS:
    case OTHERS:
        return run->is_rails == (whose == RAILS);
    case RUBY:
    case PERL:
        return (run->lang == ORIBI_LANG_PERL) == (whose == PERL);
    }
    return false;
}

/* Settings that users of Rails expect of every server. */
static void put_settings_for_rails(struct oribi_buf *text)
{
    put_line(text, "port ENV.fetch(\"PORT\", 3000)", "with every command, as bin/rails server has it");
    put_line(text, "restart_file \"tmp/restart.txt\"", "bin/rails restart is a reload");
    oribi_buf_print(text, "\n");
}

void oribi__init_config(const struct oribi__init *run, struct oribi_buf *text)
{
    bool perl = run->lang == ORIBI_LANG_PERL;
    oribi_buf_print(text,
                    "# Configuration of Oribi. It serves without any of these lines: take the # away to set one.\n"
                    "# All options: %s --help. What is wrong or risky: %s check. Changes are taken over, while\n"
                    "# requests go on, by: %s ctl reload.\n%s\n",
                    run->program, run->program, run->program, perl ? "{" : "");
    if (run->is_rails)
        put_settings_for_rails(text);
    for (size_t i = 0; i < sizeof(proposals) / sizeof(proposals[0]); i++) {
        if (is_for(run, proposals[i].whose))
            put_proposal(run, &proposals[i], text);
    }
    if (perl)
        oribi_buf_print(text, "\n    # In each new worker; connections that processes must not share are made here.\n"
                              "    # after_fork => sub { my ($index) = @_; },\n};\n");
    else
        oribi_buf_print(text,
                        "\n# In each new worker; connections that processes must not share are made here%s.\n"
                        "# after_fork { |index| }\n",
                        run->is_rails ? " (Rails does so for Active Record)" : "");
}

void oribi__init_command(struct oribi_buf *text)
{
    oribi_buf_print(text, "#!/usr/bin/env ruby\n"
                          "# frozen_string_literal: true\n"
                          "\n"
                          "# The server as the Gemfile has it.\n"
                          "ENV[\"BUNDLE_GEMFILE\"] ||= File.expand_path(\"../Gemfile\", __dir__)\n"
                          "require \"bundler/setup\"\n"
                          "load Gem.bin_path(\"oribi\", \"oribi\")\n");
}

/* Application that the command names: none where the command finds it by itself. */
static const char *named_app(const struct oribi__init *run)
{
    return strcmp(run->app, run->lang == ORIBI_LANG_PERL ? "app.psgi" : "config.ru") == 0 ? "" : run->app;
}

static const char *bundled(const struct oribi__init *run)
{
    return !run->has_bundle ? "" : run->lang == ORIBI_LANG_PERL ? "carton exec " : "bundle exec ";
}

static void put_words(const struct oribi__init *run, struct oribi_buf *out)
{
    const char *app = named_app(run);
    oribi_buf_print(out, "%s%s%s%s", bundled(run), run->program, *app ? " " : "", app);
}

void oribi__init_web(const struct oribi__init *run, struct oribi_buf *text)
{
    oribi_buf_print(text, "web: ");
    if (run->has_bundle && run->lang == ORIBI_LANG_RUBY)
        oribi_buf_print(text, "bin/oribi");
    else
        put_words(run, text);
}

static void put_json_words(const struct oribi__init *run, struct oribi_buf *out)
{
    struct oribi_buf words = {0};
    put_words(run, &words);
    oribi_buf_print(out, "[\"");
    for (size_t i = 0; i < words.len; i++) {
        if (words.p[i] == ' ')
            oribi_buf_print(out, "\", \"");
        else
            oribi_buf_append(out, &words.p[i], 1);
    }
    oribi_buf_print(out, "\", \"--env\", \"production\"]");
    oribi_buf_deinit(&words);
}

/* The entrypoint that Rails makes prepares the database for this command alone. */
static void put_docker(const struct oribi__init *run, struct oribi_buf *out)
{
    if (run->is_rails) {
        oribi_buf_print(out,
                        "CMD [\"./bin/rails\", \"server\"]    as Rails makes it, also behind ./bin/thrust: it starts "
                        "Oribi,\n  and its entrypoint runs db:prepare for this command alone\n");
        return;
    }
    oribi_buf_print(out, "EXPOSE 9292\n  CMD ");
    put_json_words(run, out);
    oribi_buf_print(out, "\n");
}

void oribi__init_next(const struct oribi__init *run, bool needs_install, struct oribi_buf *out)
{
    bool perl = run->lang == ORIBI_LANG_PERL;
    oribi_buf_print(out, "\nNext:\n");
    if (needs_install)
        oribi_buf_print(out, "  %s\n", perl ? "carton install, or cpanm --installdeps ." : "bundle install");
    oribi_buf_print(out, "  ");
    put_words(run, out);
    oribi_buf_print(
        out, "    serves on http://127.0.0.1:%s, or on PORT\n  %s%s check%s%s    tells what is wrong or risky\n",
        run->is_rails ? "3000" : "9292", bundled(run), run->program, *named_app(run) ? " " : "", named_app(run));
    oribi_buf_print(out, "\nIn a Procfile for production:\n  web: ");
    put_words(run, out);
    oribi_buf_print(out, " --env production\nIn a Dockerfile:\n  ");
    put_docker(run, out);
}

void oribi__init_help(struct oribi_buf *out, const char *program)
{
    oribi_buf_print(
        out,
        "Usage: %s init [--psgi|--rack] [--pretend] [--force] [FOLDER]\n\n"
        "Makes what an application needs to be served by Oribi, in its folder: config/oribi.rb or config/oribi.pl,\n"
        "Procfile.dev and, with a Gemfile, bin/oribi; adds a line to Gemfile or cpanfile. Run again it changes "
        "nothing.\n"
        "Tells what is to be changed by hand.\n\n"
        "      --psgi     for a PSGI application, served by oribi-psgi\n"
        "      --rack     for a Rack application, served by oribi\n"
        "      --pretend  write nothing, tell only\n"
        "      --force    write files anew that are there and differ; the former ones are kept as NAME.old\n"
        "  -h, --help     print this text\n",
        program);
}
