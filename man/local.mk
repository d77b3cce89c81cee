# SPDX-License-Identifier: GPL-2.0-or-later
dist_man_MANS += man/xlb.yaml.5
dist_man_MANS += man/xlb.8 man/xlbd.8
