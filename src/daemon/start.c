/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * With which configuration xlbd starts, and on which maps: the file's or the one
 * that was accepted last, those that are pinned or new ones. And the question
 * what would come of a start, which changes nothing.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/daemon.h"
#include "io/log.h"

/* Above this a frame does not fit the one buffer of a page that drivers give
 * a program without xdp.frags (measured on veth: 3506 of MTU pass). */
#define FRAGS_MTU 3498

struct config *
start_config(struct daemon *d)
{
	struct config *c;
	struct diag dg, kept;

	diag_init(&dg);
	diag_init(&kept);
	c = config_load(&d->opt, &dg);
	config_messages(&dg, NULL);
	config_verdict_set(&d->verdict, &dg, false);
	if (c == NULL) {
		c = config_kept(&d->opt, &kept);
		if (c != NULL) {
			log_change("configuration", "none", "kept", "the file "
			    "does not load: the one accepted last is used");
			d->verdict.kept = true;
		} else {
			config_messages(&kept, NULL);
			log_change("configuration", "none", "refused", "xlbd "
			    "ends: mend the file (xlb check), then start it");
		}
	}
	diag_fini(&kept);
	diag_fini(&dg);
	return c;
}

void
prog_config_init(struct prog_config *pc, const struct options *opt,
    const struct config *c)
{
	*pc = (struct prog_config){
		.bpf_dir = opt->bpf_dir,
		.ring_size = c->conf->table_size,
		.flow_entries = c->conf->flow_entries,
		.nat = conf_uses_nat(c->conf),
		.seed = c->conf->seed,
	};
	memcpy(pc->hash_key, c->hash_key, sizeof(pc->hash_key));
}

static int
start_prog(struct daemon *d, const struct config *c)
{
	struct prog_config pc;
	struct netlink_if nif;
	size_t i;

	prog_config_init(&pc, &d->opt, c);
	for (i = 0; i < c->conf->ninterface; i++) {
		netlink_if(d->nl, c->conf->interface[i].name, &nif);
		pc.frags |= nif.mtu > FRAGS_MTU;
	}
	return prog_open(&pc, &d->prog);
}

/*
 * A restart adopts what is pinned; a file that changes what may not change
 * while flows are on is refused as a reload refuses it, and the text that was
 * accepted last stays.
 */
enum adopt { ADOPT_FILE, ADOPT_KEPT, ADOPT_NOTHING };

/* `kept`: NULL where there is none. `dg` says why not the file. */
static enum adopt
adopt_choose(const struct config *kept, const struct config *file,
    struct diag *dg)
{
	if (kept == NULL)
		return ADOPT_FILE;
	if (config_begins_anew(kept, file))
		return ADOPT_NOTHING;
	config_check_change(kept, file, dg);
	return dg->errors > 0 ? ADOPT_KEPT : ADOPT_FILE;
}

static struct config *
kept_quietly(const struct options *opt)
{
	struct config *kept;
	struct diag dg;

	diag_init(&dg);
	kept = config_kept(opt, &dg);
	diag_fini(&dg);
	return kept;
}

int
start_datapath(struct daemon *d, struct config **c)
{
	struct config *kept = NULL;
	enum adopt choice;
	struct diag dg;
	int rc;

	diag_init(&dg);
	rc = start_prog(d, *c);
	if (!d->verdict.kept && (rc == -EEXIST ||
	    (rc == 0 && prog_adopted(d->prog))))
		kept = kept_quietly(&d->opt);
	choice = adopt_choose(kept, *c, &dg);
	if (choice == ADOPT_NOTHING) {
		if (rc == 0)
			prog_close(d->prog);
		rc = prog_remove_dir(d->opt.bpf_dir);
		if (rc == 0)
			rc = start_prog(d, *c);
	} else if (choice == ADOPT_KEPT) {
		config_messages(&dg, NULL);
		log_change("configuration", "none", "kept", "the file is "
		    "refused: the one accepted last is used");
		config_verdict_set(&d->verdict, &dg, true);
		config_free(*c);
		*c = kept;
		kept = NULL;
		if (rc < 0)
			rc = start_prog(d, *c);
	}
	if (rc == 0 && !d->verdict.kept)
		config_keep(&d->opt, *c);
	config_free(kept);
	diag_fini(&dg);
	return rc;
}

static int
preflight_prog(const struct options *opt, const struct config *c)
{
	struct prog_config pc;

	prog_config_init(&pc, opt, c);
	return prog_check(&pc);
}

int
preflight(const struct options *opt)
{
	struct config *c;
	struct diag dg;
	int rc;

	diag_init(&dg);
	c = config_load(opt, &dg);
	diag_print(&dg, stderr);
	diag_fini(&dg);
	if (c == NULL)
		return EXIT_CONFIG;
	rc = preflight_prog(opt, c);
	config_free(c);
	return rc < 0 ? EXIT_FAILED : 0;
}

/* As start_config(). */
static struct config *
preflight_config(const struct options *opt, bool *is_kept)
{
	struct config *c;
	struct diag dg;

	diag_init(&dg);
	c = config_load(opt, &dg);
	*is_kept = c == NULL;
	if (c == NULL)
		c = config_kept(opt, &dg);
	if (c == NULL)
		diag_print(&dg, stderr);
	diag_fini(&dg);
	return c;
}

/* As start_datapath(). */
int
preflight_restart(const struct options *opt)
{
	struct config *c, *kept = NULL;
	enum adopt choice;
	struct diag dg;
	bool is_kept;
	int rc;

	c = preflight_config(opt, &is_kept);
	if (c == NULL)
		return EXIT_CONFIG;
	diag_init(&dg);
	rc = preflight_prog(opt, c);
	if (rc == -EEXIST && !is_kept)
		kept = kept_quietly(opt);
	choice = adopt_choose(kept, c, &dg);
	if (choice == ADOPT_NOTHING)
		rc = 0;
	else if (choice == ADOPT_KEPT)
		rc = preflight_prog(opt, kept);
	config_free(kept);
	config_free(c);
	diag_fini(&dg);
	return rc < 0 ? EXIT_FAILED : 0;
}
