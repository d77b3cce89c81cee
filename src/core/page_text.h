/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What of the status page is always the same. Browsers run its style and its
 * script by their digests alone; a test compares these with the texts, and says
 * what they should be.
 */
#ifndef XLB_PAGE_TEXT_H
#define XLB_PAGE_TEXT_H

extern const char page_style[], page_script[];

#define PAGE_STYLE_DIGEST "sha256-aWnMJdXPxeKem7tsUHP7UHf1hU5b7gnkAnNLA+WQyZg="
#define PAGE_SCRIPT_DIGEST "sha256-plgbU7zTqIo5iJW3mmcbPZsT0wBeHIhO6zv7d8jOuR4="

/* What the page may do: nothing but what is in it, and ask for itself anew. */
#define PAGE_POLICY "default-src 'none'; style-src '" PAGE_STYLE_DIGEST \
	"'; script-src '" PAGE_SCRIPT_DIGEST "'; connect-src 'self'; " \
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

#endif
