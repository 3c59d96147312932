/* A client's certificate, as its handshake has brought it, becomes text for applications. With client_verify "optional"
 * anybody may have written it. First byte: whether the rest is the certificate, DER, or what is put into one: names,
 * serial number and times.
 *
 * Holds for every certificate that OpenSSL can read: its parts stand one behind the other in the text, without a
 * control; the PEM is this certificate again; what a frontend tells a worker is what the worker reads, and goes without
 * the PEM where that is too long. */
#include "frontend/tls_session.c"

#include "ours.h"

#include "oribi/http/proxy.h"

#include <openssl/evp.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_line(struct oribi_slice part)
{
    for (size_t i = 0; i < part.n; i++)
        expect((uint8_t)part.p[i] >= ' ' && part.p[i] != 0x7f);
}

static void check_pem(const struct oribi_tls_info *info, X509 *x509)
{
    if (!info->pem.n)
        return;
    BIO *bio = BIO_new_mem_buf(info->pem.p, (int)info->pem.n);
    X509 *again = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    expect(info->pem.n <= ORIBI__TLS_PEM_TOLD_MAX && again && X509_cmp(again, x509) == 0);
    X509_free(again);
    BIO_free(bio);
}

/* As oribi__upstream_about() tells it. */
static void check_told(const struct oribi_tls_info *info)
{
    static char text[ORIBI_CHANNEL_HEAD_BYTES_MAX];
    struct oribi_channel_head got;
    struct oribi_channel_head told = {.protocol = 20,
                                      .tls = true,
                                      .tls_version = ORIBI_SLICE("TLSv1.3"),
                                      .cipher = ORIBI_SLICE("x"),
                                      .subject = info->subject,
                                      .issuer = info->issuer,
                                      .serial = info->serial,
                                      .begins = info->begins,
                                      .ends = info->ends,
                                      .pem = info->pem};
    size_t n = oribi_channel_head_write(&told, text, sizeof(text));
    if (n == 0)
        told.pem = oribi_slice(NULL, 0);
    n = n ? n : oribi_channel_head_write(&told, text, sizeof(text));
    if (n == 0)
        return; /* names of kilobytes: the request is answered with 503 */
    expect(oribi_channel_head_read(text, n, &got) == (ssize_t)n);
    expect(oribi_slice_equal(got.subject, told.subject) && oribi_slice_equal(got.issuer, told.issuer) &&
           oribi_slice_equal(got.serial, told.serial) && oribi_slice_equal(got.begins, told.begins) &&
           oribi_slice_equal(got.ends, told.ends) && oribi_slice_equal(got.pem, told.pem));
}

/* Parts of any type with any bytes. */
static void put_name(struct bytes *in, X509_NAME *name)
{
    static const int ids[] = {NID_commonName,         NID_organizationName, NID_serialNumber, NID_domainComponent,
                              NID_pkcs9_emailAddress, NID_userId,           NID_undef,        NID_netscape_cert_type};
    static const int types[] = {V_ASN1_UTF8STRING, V_ASN1_PRINTABLESTRING, V_ASN1_T61STRING,    V_ASN1_IA5STRING,
                                V_ASN1_BMPSTRING,  V_ASN1_UNIVERSALSTRING, V_ASN1_OCTET_STRING, V_ASN1_INTEGER};
    for (int count = next_byte(in) % 8; count > 0; count--) {
        int id = ids[next_byte(in) % 8];
        uint8_t how = next_byte(in);
        struct bytes value = next_bytes(in, next_byte(in) * (how & 64 ? 8u : 1u));
        (void)X509_NAME_add_entry_by_NID(name, id, types[how % 8], value.p, (int)value.n, -1, how & 128 ? -1 : 0);
    }
}

static void put_time(struct bytes *in, ASN1_TIME *time)
{
    uint8_t how = next_byte(in);
    struct bytes value = next_bytes(in, how % 32);
    time->type = how & 128 ? V_ASN1_GENERALIZEDTIME : V_ASN1_UTCTIME;
    expect(ASN1_STRING_set(time, value.p, (int)value.n) == 1);
}

/* The input in a certificate that is right otherwise. NULL: OpenSSL would not read it. */
static X509 *make(struct bytes in)
{
    static EVP_PKEY *key;
    X509 *x509 = X509_new();
    unsigned char *der = NULL;
    key = key ? key : EVP_EC_gen("P-256");
    expect(x509 && key && X509_set_pubkey(x509, key) == 1);
    put_name(&in, X509_get_subject_name(x509));
    put_name(&in, X509_get_issuer_name(x509));
    struct bytes serial = next_bytes(&in, next_byte(&in) % 40);
    (void)ASN1_STRING_set(X509_get_serialNumber(x509), serial.p, (int)serial.n);
    put_time(&in, X509_getm_notBefore(x509));
    put_time(&in, X509_getm_notAfter(x509));
    (void)X509_sign(x509, key, EVP_sha256());
    int n = i2d_X509(x509, &der);
    const unsigned char *p = der;
    X509_free(x509);
    x509 = n > 0 ? d2i_X509(NULL, &p, n) : NULL;
    OPENSSL_free(der);
    return x509;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct oribi__tls_about about = {0};
    struct oribi_tls_session session = {.about = &about};
    if (size < 1 || size > 8192)
        return 0;
    int64_t blocks = oribi_mem_blocks();
    const unsigned char *p = data + 1;
    X509 *x509 = data[0] & 1 ? d2i_X509(NULL, &p, (long)size - 1) : make((struct bytes){data + 1, size - 1});
    ERR_clear_error();
    if (!x509)
        return 0;
    describe(&session, x509);
    const struct oribi_tls_info *info = &about.info;
    expect(about.text && info->subject.p == about.text && info->issuer.p == info->subject.p + info->subject.n &&
           info->serial.p == info->issuer.p + info->issuer.n && info->begins.p == info->serial.p + info->serial.n &&
           info->ends.p == info->begins.p + info->begins.n && info->pem.p == info->ends.p + info->ends.n);
    check_line(info->subject);
    check_line(info->issuer);
    check_line(info->serial);
    check_line(info->begins);
    check_line(info->ends);
    check_pem(info, x509);
    check_told(info);
    oribi_mem_free(about.text);
    X509_free(x509);
    ERR_clear_error();
    expect(oribi_mem_blocks() == blocks);
    return 0;
}
