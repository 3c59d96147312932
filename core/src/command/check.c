/* The list of findings, and its two forms: text for people, JSON for programs. */
#include "command/check_private.h"

#include "oribi/base/error.h"
#include "oribi/base/escape.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"
#include "oribi/supervisor/packaged.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const level_names[] = {
    [ORIBI_CHECK_WRONG] = "wrong", [ORIBI_CHECK_RISK] = "risk", [ORIBI_CHECK_NOTE] = "note"};

const char *oribi_check_level_name(enum oribi_check_level level)
{
    return level_names[level];
}

enum oribi_check_level oribi_check_level_named(const char *name)
{
    for (int level = ORIBI_CHECK_WRONG; level <= ORIBI_CHECK_NOTE; level++)
        if (strcmp(name, level_names[level]) == 0)
            return (enum oribi_check_level)level;
    return ORIBI_CHECK_RISK;
}

struct oribi_check *oribi_check_create(void)
{
    return oribi_mem_alloc(1, sizeof(struct oribi_check));
}

void oribi_check_destroy(struct oribi_check *check)
{
    oribi_mem_free(check);
}

/* One line; a part of a UTF-8 sequence at the cut goes with it. */
static void copy_line(char *dst, size_t cap, const char *text)
{
    size_t n = strnlen(text, cap);
    if (n == cap) {
        n = cap - 1;
        while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
            n--;
    }
    for (size_t i = 0; i < n; i++)
        dst[i] = text[i];
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)dst[i] < ' ' || dst[i] == 0x7f)
            dst[i] = ' ';
    while (n > 0 && dst[n - 1] == ' ')
        n--;
    dst[n] = '\0';
}

void oribi_check_add(struct oribi_check *check, enum oribi_check_level level, const char *id, const char *what,
                     const char *why, const char *todo)
{
    check->wrong += level == ORIBI_CHECK_WRONG;
    check->risks += level == ORIBI_CHECK_RISK;
    if (check->count == ORIBI_CHECK_FINDINGS_MAX) {
        check->dropped++;
        return;
    }
    struct oribi_finding *finding = &check->findings[check->count++];
    finding->level = level;
    copy_line(finding->id, sizeof(finding->id), id);
    copy_line(finding->what, sizeof(finding->what), what);
    copy_line(finding->why, sizeof(finding->why), why);
    copy_line(finding->todo, sizeof(finding->todo), todo);
}

void oribi__check_say(struct oribi_check *check, enum oribi_check_level level, const char *id, const char *why,
                      const char *todo, const char *format, ...)
{
    char what[ORIBI_CHECK_WHAT_CAP];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(what, sizeof(what), format, args); /* cut when longer */
    va_end(args);
    oribi_check_add(check, level, id, what, why, todo);
}

bool oribi__check_is_given(const struct oribi_options *options, const char *name)
{
    return oribi_options_source(options, oribi_options_find(name)) > ORIBI_FROM_DEFAULT;
}

/* --- the command line --- */

int oribi_check_parse(struct oribi_options *options, size_t argc, const char *const *argv,
                      struct oribi_check_asked *asked, char *error)
{
    const char **rest = oribi_mem_alloc(argc + 1, sizeof(*rest));
    size_t count = 0;
    const char *name = NULL; /* of a packaged server */
    bool ended = false;      /* by -- */
    *asked = (struct oribi_check_asked){0};
    for (size_t i = 0; i < argc; i++) {
        ended |= strcmp(argv[i], "--") == 0;
        if (!ended && strcmp(argv[i], "--json") == 0)
            asked->json = true;
        else if (!ended && strcmp(argv[i], "--strict") == 0)
            asked->strict = true;
        else if (!ended && !name && oribi__packaged_is_name(argv[i]) && access(argv[i], F_OK) != 0)
            name = argv[i];
        else
            rest[count++] = argv[i];
    }
    int code = name ? oribi__packaged_enter(options, name, error) : 0;
    if (code == 0)
        code = oribi_options_parse(options, count, rest, error);
    oribi_mem_free(rest);
    return code;
}

void oribi_check_help(struct oribi_buf *out, const char *program)
{
    oribi_buf_print(out,
                    "Usage: %s check [--json] [--strict] [options] [@NAME|application]\n"
                    "\n"
                    "Tells everything that is wrong or risky: configuration, application, limits, folders, addresses.\n"
                    "It starts nothing, listens on nothing and writes no file. Options are those of a start.\n"
                    "\n"
                    "  --json              one line of JSON\n"
                    "  --strict            risks make the exit code 1, too\n"
                    "  @NAME               a server of the Debian packages, with the environment of its unit\n"
                    "\n"
                    "The exit code is 0 when nothing is wrong, 1 when something is.\n",
                    program);
}

/* --- the report --- */

/* Findings of this level, in the order in which they were found. */
static void put_findings(const struct oribi_check *check, struct oribi_buf *out, enum oribi_check_level level)
{
    for (size_t i = 0; i < check->count; i++) {
        const struct oribi_finding *finding = &check->findings[i];
        if (finding->level == level)
            oribi_buf_print(out, "%-5s  %s: %s\n       why: %s\n       do:  %s\n\n", level_names[level], finding->id,
                            finding->what, finding->why, finding->todo);
    }
}

static void put_text(const struct oribi_check *check, struct oribi_buf *out, const struct oribi_check_version *versions,
                     size_t version_count)
{
    put_findings(check, out, ORIBI_CHECK_WRONG);
    put_findings(check, out, ORIBI_CHECK_RISK);
    put_findings(check, out, ORIBI_CHECK_NOTE);
    for (size_t i = 0; i < version_count; i++)
        oribi_buf_print(out, "%s%s %s", i ? ", " : "", versions[i].name, versions[i].text);
    oribi_buf_print(out, "%s%zu wrong, %zu %s", version_count ? ": " : "", check->wrong, check->risks,
                    check->risks == 1 ? "risk" : "risks");
    if (check->dropped)
        oribi_buf_print(out, " (%zu not shown)", check->dropped);
    oribi_buf_append(out, "\n", 1);
}

static void put_json_text(struct oribi_buf *out, const char *before, const char *text)
{
    oribi_buf_print(out, "%s", before);
    oribi_escape_append_json(out, oribi_slice(text, strlen(text)));
}

static void put_json(const struct oribi_check *check, struct oribi_buf *out, bool is_ok, const char *program,
                     const struct oribi_check_version *versions, size_t version_count)
{
    put_json_text(out, "{\"command\":", program);
    oribi_buf_print(out, ",\"ok\":%s,\"wrong\":%zu,\"risks\":%zu,\"dropped\":%zu,\"findings\":[",
                    is_ok ? "true" : "false", check->wrong, check->risks, check->dropped);
    for (size_t i = 0; i < check->count; i++) {
        const struct oribi_finding *finding = &check->findings[i];
        put_json_text(out, i ? ",{\"level\":" : "{\"level\":", level_names[finding->level]);
        put_json_text(out, ",\"id\":", finding->id);
        put_json_text(out, ",\"what\":", finding->what);
        put_json_text(out, ",\"why\":", finding->why);
        put_json_text(out, ",\"do\":", finding->todo);
        oribi_buf_append(out, "}", 1);
    }
    oribi_buf_print(out, "],\"versions\":{");
    for (size_t i = 0; i < version_count; i++) {
        put_json_text(out, i ? "," : "", versions[i].name);
        put_json_text(out, ":", versions[i].text);
    }
    oribi_buf_print(out, "}}\n");
}

int oribi_check_report(const struct oribi_check *check, struct oribi_buf *out, struct oribi_check_asked asked,
                       const char *program, const struct oribi_check_version *versions, size_t version_count)
{
    bool is_ok = check->wrong == 0 && !(asked.strict && check->risks > 0);
    if (asked.json)
        put_json(check, out, is_ok, program, versions, version_count);
    else
        put_text(check, out, versions, version_count);
    return is_ok ? 0 : 1;
}

/* --- the core's part --- */

/* The workers' user makes the files; a look as root says nothing of that one. */
static int may_user_write(const struct oribi_options *options, const char *dir, char *error)
{
    uid_t uid;
    gid_t gid;
    if (!options->user || geteuid() != 0 ||
        oribi_process_find_user(options->user, options->group, &uid, &gid, error) < 0)
        return 0; /* check_places.c tells of a user that is not there */
    return oribi_os_user_may(uid, gid, dir, ORIBI_MAY_WRITE | ORIBI_MAY_ENTER);
}

/* `error` keeps why no file can be made there. */
static void look_at_temp(struct oribi__check_temp *temp, const struct oribi_options *options, char *error)
{
    temp->dir = oribi_os_temp_dir();
    temp->trouble = NULL;
    int code = oribi_disk_look(temp->dir, &temp->disk);
    if (code == 0)
        code = oribi_os_may(temp->dir, ORIBI_MAY_WRITE | ORIBI_MAY_ENTER);
    if (code == 0)
        code = may_user_write(options, temp->dir, error);
    if (code == 0 && temp->disk.free_bytes <= 0) /* as file systems that keep no files say, too: /proc */
        code = oribi_os_fail_saying("no space left on it");
    if (code == 0)
        return;
    (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "%s", oribi_os_error_text()); /* cut: a path of 120 bytes at most */
    temp->trouble = error;
}

void oribi_check_machine(struct oribi_check *check, const struct oribi_options *options)
{
    struct oribi__check_facts facts = {.is_running = oribi__check_is_running(options),
                                       .is_root = geteuid() == 0 && !oribi__packaged_is_entered(options)};
    char error[ORIBI_ERROR_TEXT_CAP];
    oribi_machine_look(&facts.machine);
    look_at_temp(&facts.temp, options, error);
    oribi__check_ports(check, options, facts.is_running);
    oribi__check_tls(check, options);
    oribi__check_acme(check, options, facts.is_root);
    oribi__check_places(check, options, facts.is_running);
    oribi__check_limits(check, options, &facts);
    oribi__check_settings(check, options, facts.is_root);
}
