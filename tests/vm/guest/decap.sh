#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# What xlb sends, taken apart by the kernel's own tunnels: each mix of families,
# plain and in GUE. They drop what has a wrong length or checksum.
. /guest/lib.sh

network
route_vips p0 1
must ip -n backend link add t44 type ipip local 10.0.2.11 remote 10.0.1.1
must ip -n backend link add t64 type sit local 10.0.2.11 remote 10.0.1.1
must ip -n backend link add tx6 type ip6tnl mode any local fd00:2::11 \
    remote fd00:1::1
for dev in t44 t64 tx6; do must ip -n backend link set $dev up; done
must ip -n backend fou add port 6080 gue
must ip -n backend -6 fou add port 6080 gue
serve 80 81 82 83
xlbd_start <<Y
interfaces: [{name: eth0, xdp: native}]
pools:
  four: {backends: [{name: b, address: 10.0.2.11}]}
  six: {backends: [{name: b, address: "fd00:2::11"}]}
services:
  - {name: a, addresses: [$VIP4, "$VIP6"], listen: [tcp/80], pool: four}
  - {name: b, addresses: [$VIP4, "$VIP6"], listen: [tcp/81], pool: six}
  - {name: c, addresses: [$VIP4, "$VIP6"], listen: [tcp/82], pool: four, forward: gue}
  - {name: d, addresses: [$VIP4, "$VIP6"], listen: [tcp/83], pool: six, forward: gue}
Y

apart() {	# VIP PORT DEVICE: and by that device
	local before=$(rx backend $3)

	fetch $1 $2 || return 1
	[ "$(rx backend $3)" -ge $((before + 3)) ] && return 0
	echo "$3 received $before, then $(rx backend $3)"
	return 1
}

udp() {		# a counter of the backend's
	at backend cat /proc/net/snmp6 | awk -v k=$1 '$1 == k { print $2 }'
}

# Read from the wire, before the kernel's tunnels: UDP checksums over IPv6.
errors_before=$(udp Udp6InCsumErrors)
ok "4in4 by ipip" apart $VIP4 80 t44
ok "6in4 by sit" apart $VIP6 80 t64
ok "4in6 by ip6tnl" apart $VIP4 81 tx6
ok "6in6 by ip6tnl" apart $VIP6 81 tx6
ok "4in4 in GUE by fou" apart $VIP4 82 t44
ok "6in4 in GUE by fou" apart $VIP6 82 t64
ok "4in6 in GUE by fou6" apart $VIP4 83 tx6
ok "6in6 in GUE by fou6" apart $VIP6 83 tx6
ok "no outer checksum was wrong" [ "$(udp Udp6InCsumErrors)" = "$errors_before" ]
end
