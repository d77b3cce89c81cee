/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an https check wants of TLS, and why it did not get it. */
#include "io/probe_tls.h"

#include <stdio.h>
#include <string.h>

#define X509_V_ERR_HOSTNAME_MISMATCH 62	/* OpenSSL's x509_vfy.h */
#define X509_V_ERR_IP_ADDRESS_MISMATCH 64

int
tls_set(CURL *easy, const struct probe_check *check, const struct probe_ca *ca)
{
	struct curl_blob blob = { ca->pem, ca->len, CURL_BLOB_COPY };
	long verify = check->verify;

	/* Each probe is a handshake of its own: a session that is resumed
	 * shows no certificate. Without a directory of authorities libcurl
	 * keeps the system's file in memory between handshakes. */
	if (curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, verify) ||
	    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, verify * 2) ||
	    curl_easy_setopt(easy, CURLOPT_SSL_SESSIONID_CACHE, 0L) ||
	    curl_easy_setopt(easy, CURLOPT_CAPATH, NULL))
		return -1;
	if (!check->ca)
		return 0;
	if (ca->pem == NULL ||
	    curl_easy_setopt(easy, CURLOPT_CAINFO, NULL) ||
	    curl_easy_setopt(easy, CURLOPT_CAINFO_BLOB, &blob))
		return -1;
	return 0;
}

bool
tls_is_up(CURL *easy)
{
	curl_off_t us = 0;

	return curl_easy_getinfo(easy, CURLINFO_APPCONNECT_TIME_T, &us) ==
	    CURLE_OK && us > 0;
}

/* Of "error:0A00010B:SSL routines::wrong version number", "OpenSSL SSL_connect:
 * SSL_ERROR_SYSCALL in connection to 10.0.0.1:443 " and "Recv failure:
 * Connection reset by peer" what an operator can use. */
static void
error_shorten(const char *error, char said[HEALTH_SAID_MAX])
{
	const char *from = error, *to, *p;

	if ((p = strstr(from, "::")) != NULL)
		from = p + 2;
	while ((p = strstr(from, ": ")) != NULL)
		from = p + 2;
	to = strstr(from, " in connection to");
	snprintf(said, HEALTH_SAID_MAX, "%.*s",
	    to != NULL ? (int)(to - from) : HEALTH_SAID_MAX, from);
}

/* The chain is fine as far as OpenSSL is concerned where libcurl compares the
 * name by itself. */
static uint16_t
cert_error(CURL *easy, const struct probe_check *check)
{
	long code = 0;

	curl_easy_getinfo(easy, CURLINFO_SSL_VERIFYRESULT, &code);
	if (code > 1 && code <= UINT16_MAX)	/* 1: none */
		return (uint16_t)code;
	return check->sni[0] != '\0' ? X509_V_ERR_HOSTNAME_MISMATCH :
	    X509_V_ERR_IP_ADDRESS_MISMATCH;
}

bool
tls_judge(CURL *easy, const struct probe_check *check, CURLcode code,
    const char *error, struct probe_end *end)
{
	switch (code) {
	case CURLE_PEER_FAILED_VERIFICATION:
		end->result = PROBE_CERT;
		end->detail = cert_error(easy, check);
		return true;
	case CURLE_SSL_CACERT_BADFILE:	/* of ours: says nothing of the backend */
		end->result = PROBE_LOCAL;
		return true;
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_SSL_CIPHER:
	case CURLE_SSL_CERTPROBLEM:
		end->result = PROBE_TLS;
		error_shorten(error, end->said);
		return true;
	default:
		return false;
	}
}
