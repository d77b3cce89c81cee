#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# VLAN devices and bonds: tags between a client and a next hop, and to what xlbd
# attaches.
. /guest/lib.sh

network
decapsulate backend 10.0.2.11
serve 80

vlan() {	# ID NET
	must ip -n router link add link p0 name p0.$1 type vlan id $1
	must ip -n node link add link eth0 name eth0.$1 type vlan id $1
	ip -n router link set p0.$1 up
	ip -n node link set eth0.$1 up
	give router p0.$1 $2 254
	give node eth0.$1 $2 1
}

config() {	# INTERFACE MODE
	cat <<Y
interfaces: [{name: $1, xdp: $2}]
pools:
  four: {backends: [{name: b, address: 10.0.2.11}]}
services:
  - {name: a, addresses: [$VIP4, "$VIP6"], listen: [tcp/80], pool: four}
Y
}

says() {	# WORDS: xlbd's log
	within 60 grep -q "$1" /tmp/xlbd.log
}

refused() {	# INTERFACE WORDS
	config $1 native | reload && { echo "$1: not refused"; return 1; }
	says "interface $1: no XDP: .*$2"
}

vlan 10 3
vlan 100 4
config eth0 native | xlbd_start
for vip in $VIP4 $VIP6; do
	ok "$vip untagged" through $vip p0 1 eth0 1 p0
	ok "$vip tag pushed" through $vip p0 1 eth0.100 4 p0.100
	ok "$vip tag popped" through $vip p0.10 3 eth0 1 p0
	ok "$vip tag kept" through $vip p0.100 4 eth0.100 4 p0.100
	ok "$vip tag rewritten" through $vip p0.10 3 eth0.100 4 p0.100
	ok "$vip echo in a VLAN" ping_vip $vip p0.10 3
done
ok "a VLAN device is refused, with what to do" refused eth0.100 \
    "it is a VLAN device: attach to eth0 instead"

# One bond on each side, with two links.
bond() {	# NAMESPACE BOND PORT...
	local ns=$1 dev=$2 port
	shift 2
	must ip -n $ns link add $dev mtu 1600 type bond mode active-backup miimon 50
	for port; do
		ip -n $ns link set $port down
		must ip -n $ns link set $port master $dev
	done
	ip -n $ns link set $dev up
}

pair router r1 node e1
pair router r2 node e2
bond node bond0 e1 e2
bond router bond1 r1 r2
give node bond0 5 1
give router bond1 5 254
xdp_pass router bond1
config "e1, xdp: native}, {name: e2" native | reload >/dev/null 2>&1
for vip in $VIP4 $VIP6; do
	ok "$vip through the ports of a bond" through $vip bond1 5 bond0 5 bond1
done
config bond0 native | reload >/dev/null 2>&1
ok "a bond is attached to" says "interface bond0: detached -> native"
for vip in $VIP4 $VIP6; do
	ok "$vip through a bond" through $vip bond1 5 bond0 5 bond1
done
ip -n router link set r1 down
ok "$VIP4 when a port of it is down" through $VIP4 bond1 5 bond0 5 bond1
end
