# SPDX-License-Identifier: GPL-2.0-or-later
xlbbirddir = $(datadir)/xlb/bird
dist_xlbbird_DATA = bird/xlb.conf bird/bird.conf.example bird/README
