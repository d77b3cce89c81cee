#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The kernel's IPVS and xlb on the same node: the same packets of the same
# flows, to the same backends by IPIP. What each costs, in instructions: the
# clock counts these here (run --ipvs). Lines with # | are the table.
. /guest/lib.sh

PACKETS=20000 ROUNDS=5
BACKENDS="11 12 13 14 15 16 17 18"
MANY=10000
LEAST=5		# times what xlb costs
rows=/tmp/rows ratios=/tmp/ratios

log_print() {
	cat /tmp/xlbd.log /tmp/cost.log
}

counts_instructions() {
	local each=$(tests/vm/cost loop)

	echo "# | ticks of the clock for each instruction of a loop: $each" >>$rows
	echo "$each" | awk '{ exit !($1 >= 0.999 && $1 <= 1.001) }'
}

cost() {	# ARGUMENTS of cost flood, before the numbers: on fields
	tests/vm/cost flood "$@" 2>>/tmp/cost.log >/tmp/fields
	local status=$?

	cat /tmp/fields >>/tmp/cost.log
	read -r low median high sent came wrong why fair </tmp/fields
	return $status
}

# Each flow begins, then each packet is looked at: all have to come, and to go
# where the flow's others go; each backend has its share if there are many.
right() {	# FLOWS
	cost --syn --look $1 $1 1 || return 1
	[ "$came" = "$sent" ] || { echo "$came of $sent SYN came"; return 1; }
	cost --look $1 $PACKETS 1 || return 1
	echo "$came of $sent came, $wrong wrong ($why), $fair backends"
	[ "$came" = "$sent" ] && [ "$wrong" = 0 ] &&
	    { [ $1 = 1 ] || [ "$fair" = 8 ]; }
}

# A row of the table, if none was lost: a fast drop would look great.
row() {		# NAME FLOWS ARGUMENTS...
	local name=$1 flows=$2
	shift 2

	cost "$@" $flows $PACKETS $ROUNDS || return 1
	noted "$name" $flows $came
}

noted() {	# NAME FLOWS CAME
	echo "$3 of $sent came through"
	[ "$3" = "$sent" ] || return 1
	echo "$1|$2|$low|$median|$high" >>$rows
}

dummy_sent() {
	ip -n node -s link show out0 | sed -n '/TX:/{n;p}' |
	    { read -r bytes packets rest; echo $packets; }
}

# To a device that only counts: what a driver costs is no part of it.
row_dummy() {	# NAME FLOWS
	local before=$(dummy_sent)

	cost $2 $PACKETS $ROUNDS || return 1
	[ "$came" = 0 ] || { echo "$came came back"; return 1; }
	noted "$1" $2 $(($(dummy_sent) - before))
}

ipvs_on() {
	must ip -n node addr add $VIP4/32 dev lo
	must at node ethtool -K eth0 gro on
	must at node ipvsadm -A -t $VIP4:80 -s mh -b mh-port
	for b in $BACKENDS; do
		must at node ipvsadm -a -t $VIP4:80 -r 10.0.2.$b:80 -i -w 1
	done
}

knows() {	# FLOWS: as established connections
	local found=$(at node ipvsadm -Lnc | grep -c ESTABLISHED)

	echo "IPVS has $found connections"
	[ "$found" = $1 ] &&
	    [ "$(at node sysctl -n net.ipv4.vs.conntrack)" = 0 ]
}

ipvs_off() {
	must at node ipvsadm -C
	must at node ethtool -K eth0 gro off
	must ip -n node addr del $VIP4/32 dev lo
}

xlb_on() {
	xlbd_start <<Y
interfaces: [{name: eth0, xdp: native}]
pools:
  all:
    backends:
$(for b in $BACKENDS; do echo "      - {name: b$b, address: 10.0.2.$b}"; done)
services:
  - {name: a, addresses: [$VIP4], listen: [tcp/80], pool: all}
Y
}

mac() {		# NAMESPACE DEVICE
	ip -n $1 -o link show $2 | sed 's/.*ether \([^ ]*\).*/\1/'
}

# Instructions for a packet, and how many of these are not those of a node that
# drops it by XDP: what it takes to make it and to bring it here.
table() {
	awk -F'|' '
	/^#/ { print; next }
	$1 == "dropped by XDP" { floor[$2] = $4 }
	{ printf "# | %s | %s | %s (%s to %s) | %d |\n", $1, $2, $4, $3, $5,
	    $4 - floor[$2] }' $rows
}

net() {		# NAME FLOWS: the last column
	table | awk -F' [|] ' -v n="# | $1 | $2 " 'index($0, n) == 1 {
	    sub(/ .*/, "", $5); print $5 }'
}

# What README.md says.
ratio() {	# NAME FLOWS: beside xlb
	local other=$(net "$1" $2) own=$(net xlb $2)

	echo "$1: ${other:-no figure}, xlb: ${own:-no figure}"
	[ -n "$other" ] && [ -n "$own" ] && [ "$own" -gt 0 ] || return 1
	echo "# | $1, flows: $2, times xlb: $(echo "$other $own" |
	    awk '{ printf "%.1f", $1 / $2 }')" >>$ratios
	[ "$other" -ge $((LEAST * own)) ]
}

# No hash chains that a larger table would not have.
rmmod ip_vs_mh
rmmod ip_vs
must insmod /lib/modules/*-ip_vs.ko conn_tab_bits=16
must insmod /lib/modules/*-ip_vs_mh.ko
network
>$rows
>/tmp/cost.log
for ns in router node; do
	at $ns sysctl -qw net.ipv6.conf.all.disable_ipv6=1
done
for dev in eth0 out0; do
	[ $dev = eth0 ] || must ip -n node link add out0 mtu 1600 type dummy
	ip -n node link set $dev up
	must ip -n node neigh replace 10.0.1.254 dev $dev nud permanent \
	    lladdr $(mac router p0)
done
ok "the clock counts instructions" counts_instructions
ok "BPF is compiled" [ "$(sysctl -n net.core.bpf_jit_enable)" = 1 ]

for flows in 1 $MANY; do
	ok "dropped by XDP, $flows" row "dropped by XDP" $flows --node drop
	ok "bare XDP, $flows" row "encapsulated by XDP, and no more" $flows \
	    --node bare
done

ipvs_on
for flows in 1 $MANY; do
	ok "dropped as an skb, $flows" row "dropped before IP" $flows --node skb
	ok "IPVS tunnels, $flows" right $flows
	ok "IPVS knows them, $flows" knows $flows
	ok "IPVS, $flows" row "IPVS" $flows
	must ip -n node route add 10.0.2.0/24 via 10.0.1.254 dev out0 onlink
	ok "IPVS to a dummy, $flows" row_dummy "IPVS, to a dummy" $flows
	must ip -n node route del 10.0.2.0/24 dev out0
done
ipvs_off

xlb_on
for flows in 1 $MANY; do
	ok "xlb tunnels, $flows" right $flows
	ok "xlb, $flows" row xlb $flows
done

>$ratios
for flows in 1 $MANY; do
	for name in "IPVS, to a dummy" IPVS; do
		ok "$name costs $LEAST times what xlb does, $flows" ratio "$name" $flows
	done
done
table
cat $ratios
end
