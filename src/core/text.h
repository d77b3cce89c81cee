/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Words as people write and read them. */
#ifndef XLB_TEXT_H
#define XLB_TEXT_H

#include <stddef.h>

#define TEXT_SHOW_MAX 72

/* `s` fit for a message: control characters as \xNN, cut when long, in quotes
 * when empty or with a space at an end. UTF-8 stays whole. Returns `buf`. */
const char *text_show(const char *s, char buf[TEXT_SHOW_MAX]);

/* Typing mistakes between two words: a letter more, less, other, or two
 * swapped. Words above 64 bytes are as far apart as can be. */
unsigned text_distance(const char *a, const char *b);

/* The best guess so far at what `word` should have been. Feed it candidates;
 * `best` stays NULL if none is near. */
struct text_guess {
	const char *word, *best;
	unsigned distance;
};
void text_guess_init(struct text_guess *g, const char *word);
void text_guess_try(struct text_guess *g, const char *candidate);

#endif
