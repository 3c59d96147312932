/* The files of a certificate, as options name them. */
#include "config/certificate.c"

#include "tap.h"

static struct oribi_certificate_files files;
static char error[ORIBI_ERROR_TEXT_CAP];

static void reads(const char *line, const char *certificate, const char *key, const char *ocsp)
{
    ok_eq(oribi_certificate_read(line, &files, error), 0);
    is_str(files.certificate, certificate);
    is_str(files.key, key);
    is_str(files.ocsp, ocsp);
}

static void test_lines(void)
{
    reads("a.pem", "a.pem", "a.pem", "");
    reads("a.pem,a.key", "a.pem", "a.key", "");
    reads("a.pem,a.key,a.ocsp", "a.pem", "a.key", "a.ocsp");
    reads("a.pem,,a.ocsp", "a.pem", "a.pem", "a.ocsp");
    reads("a.pem?key=a.key&ocsp=b%26c%25", "a.pem", "a.key", "b&c%");
    reads("a.pem,a.key?ocsp=o", "a.pem", "a.key", "o");
    reads("a%20.pem", "a%20.pem", "a%20.pem", ""); /* escapes stand behind the question mark alone */
    ok_eq(oribi_certificate_check("a", error), 0);
}

static void refuses(const char *line, const char *words)
{
    error[0] = '\0';
    ok_eq(oribi_certificate_check(line, error), ORIBI_EINVAL);
    ok_named(strstr(error, words) != NULL && !strchr(error, '\n'), "%s", error);
}

static void test_mistakes(void)
{
    static char line[2 * PATH_MAX];
    refuses(",a.key", "needs a file");
    refuses("?key=a", "needs a file");
    refuses("a?kee=b", "unknown setting \"kee\" (known: key, ocsp)");
    refuses("a,b?key=c", "has two files for key");
    refuses("a?key=", "needs a file for key");
    refuses("a?key", "needs a file for key");
    refuses("a?key=%zz", "is written %25");
    refuses("a?key=b%00c", "is written %25");
    memset(line, 'a', sizeof(line) - 1);
    line[PATH_MAX - 1] = '\0';
    ok_eq(oribi_certificate_check(line, error), 0);
    line[PATH_MAX - 1] = 'a';
    line[PATH_MAX] = '\0';
    refuses(line, "more than");
}

static void test_addresses(void)
{
    struct oribi_address address;
    ok_eq(oribi_address_parse("tls://:443?certificate=a%26.pem&key=k&ocsp=o", &address, error), 0);
    oribi_certificate_of_address(&address, &files);
    is_str(files.certificate, "a&.pem");
    is_str(files.key, "k");
    is_str(files.ocsp, "o");
    ok_eq(oribi_address_parse("tls://:443?certificate=a.pem", &address, error), 0);
    oribi_certificate_of_address(&address, &files);
    is_str(files.key, "a.pem");
    ok_eq(oribi_address_parse("tls://:443?certificate=a%.pem", &address, error), ORIBI_EINVAL);
    ok_named(strstr(error, "is written %25") != NULL, "%s", error);
}

int main(void)
{
    test_lines();
    test_mistakes();
    test_addresses();
    return done_testing();
}
