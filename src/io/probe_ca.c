/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads certificate authorities, for the prober and for the check of a file. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "io/file.h"
#include "io/probe_wire.h"

int
probe_ca_read(const char *path, struct probe_ca *ca)
{
	int rc;

	rc = file_read(path, PROBE_CA_MAX, &ca->pem, &ca->len);
	if (rc < 0) {
		ca->pem = NULL;
		return rc;
	}
	if (strstr(ca->pem, "-----BEGIN ") != NULL &&
	    strstr(ca->pem, "CERTIFICATE-----") != NULL)
		return 0;
	free(ca->pem);
	ca->pem = NULL;
	return -EINVAL;
}
