#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# README.md word for word: its xlb.yaml on a node, its router, its backends, and
# `xlb bird-config`; then a client gets answers from both over IPv4 and IPv6.
# Changed are paths alone, so that nothing of this machine is touched.
#
#	client 192.0.2.7 --- router 10.0.0.1 --- lb1 10.0.0.11
#	                     10.0.1.1 --- web1 10.0.1.11, web2 10.0.1.12
src=$(cd "${top_srcdir:-$(dirname "$0")/../..}" && pwd)
bin=$(cd "${top_builddir:-.}" && pwd)
PATH=$PATH:/usr/sbin:/sbin
for tool in ip nsenter bird birdc ethtool curl python3; do
	command -v $tool >/dev/null || missing="$missing $tool"
done
[ "$(id -u)" = 0 ] || why="needs root"
[ -z "$missing" ] || why="needs$missing"
[ "$(stat -f -c %T /sys/fs/bpf)" = bpf_fs ] || why="needs bpffs at /sys/fs/bpf"
[ -z "$why" ] || { echo "1..0 # SKIP $why"; exit 0; }

id=nc$$ n=0 dir=$(mktemp -d) || exit 99
bpf=/sys/fs/bpf/$id
options=(--config "$dir/xlb.yaml" --run-dir "$dir/run" --bpf-dir "$bpf-lb1"
    --state-dir "$dir/state" --bird-dir "$dir/bird" --bird-socket "$dir/lb1.ctl")

finish() {
	local host pid

	# what was started in a subshell is no child of this one
	for pid in $(cat "$dir/pids" 2>/dev/null); do
		kill "$pid" 2>/dev/null
		while [ -e "/proc/$pid" ]; do sleep 0.1; done
	done
	for host in router lb1 web1 web2 client; do
		ip netns del "$id$host" 2>/dev/null
	done
	rm -rf "$bpf"-* "$dir"
}
trap finish EXIT
trap 'exit 1' TERM INT HUP

ok() {		# NAME COMMAND...
	local name=$1 out
	shift
	n=$((n + 1))
	if out=$("$@" 2>&1); then
		echo "ok $n - $name"
		return
	fi
	echo "not ok $n - $name"
	printf '%s\n' "$out" "$(tail -n 20 "$dir/xlbd.log" 2>/dev/null)" |
	    sed 's/^/# /'
}

within() {	# SECONDS COMMAND...: until it succeeds
	local end=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -le $end ] || { "$@"; return; }
		sleep 0.2
	done
}

at() {		# HOST COMMAND...
	nsenter --net="/run/netns/$id$1" -- "${@:2}"
}

spawn() {	# HOST COMMAND...
	nsenter --net="/run/netns/$id$1" -- "${@:2}" >>"$dir/$1.log" 2>&1 &
	echo $! >>"$dir/pids"
}

xlb() {
	at lb1 "$bin/src/xlb" "${options[@]}" "$@"
}

host() {	# NAME NET NUMBER: and its link to the router
	local name=$1 net=$2 end port=p-$1

	ip netns add "$id$name"
	at $name sysctl -qw net.ipv6.conf.all.accept_dad=0 \
	    net.ipv6.conf.default.accept_dad=0
	at router ip link add $port mtu 1600 type veth peer name eth0 mtu 1600 \
	    netns "$id$name"
	at router ip link set $port master br-$net up
	for end in lo eth0; do at $name ip link set $end up; done
	at $name ip addr add "${v4[$net]}.$3/24" dev eth0
	at $name ip addr add "${v6[$net]}::$3/64" dev eth0 nodad
	at $name ip route add default via "${v4[$net]}.1"
	at $name ip -6 route add default via "${v6[$net]}::1"
	# as on a wire
	at $name ethtool -K eth0 tx off tso off gso off gro off >/dev/null
	at router ethtool -K $port tx off tso off gso off gro off >/dev/null
	# a veth takes what its peer sends by XDP only while it runs a program
	at router ip link set dev $port xdpdrv \
	    obj "$bin/tests/fabric/veth.bpf.o" program xlbf_pass
}

section() {	# TITLE: what is indented in it, up to the next one
	awk -v title="### $1" '/^##/ { on = $0 == title }
	    on && /^    / { print substr($0, 5) }' "$src/README.md"
}

network() {
	declare -gA v4=([n]=10.0.0 [b]=10.0.1 [c]=192.0.2)
	declare -gA v6=([n]=2001:db8 [b]=2001:db8:1 [c]=2001:db8:9)
	ip netns add "${id}router"
	at router sysctl -qw net.ipv6.conf.all.accept_dad=0 \
	    net.ipv6.conf.default.accept_dad=0 net.ipv4.ip_forward=1 \
	    net.ipv6.conf.all.forwarding=1 net.ipv4.conf.all.rp_filter=0 \
	    net.ipv4.conf.default.rp_filter=0
	at router ip link set lo up
	for net in n b c; do
		at router ip link add br-$net type bridge
		at router ip link set br-$net mtu 1600 up
		at router ip addr add "${v4[$net]}.1/24" dev br-$net
		at router ip addr add "${v6[$net]}::1/64" dev br-$net nodad
	done
	host lb1 n 11
	host web1 b 11
	host web2 b 12
	host client c 7
}

backends() {
	local web

	section "On each backend" | grep -v '^ip route' |
	    sed "s,^xlb-decap,$bin/src/xlb-decap --bpf-dir $bpf-\$web," >"$dir/web"
	for web in web1 web2; do
		at $web env web=$web sh -e "$dir/web" || return 1
		mkdir "$dir/$web.d"
		echo $web >"$dir/$web.d/index.html"
		spawn $web python3 -m http.server --bind :: -d "$dir/$web.d" 80
	done
}

router() {
	section "On each router" | grep -v '^sysctl' >"$dir/router.conf"
	section "On each router" | grep '^sysctl' >"$dir/router.sh"
	at router sh -e "$dir/router.sh" || return 1
	# before all else that runs here, or BFD's 300 ms are over in between
	spawn router nice -n -20 bird -f -c "$dir/router.conf" \
	    -s "$dir/router.ctl" -P "$dir/router.pid"
	within 60 birdc -s "$dir/router.ctl" show protocols
}

node() {
	awk '/^```yaml$/ { on = 1; next } /^```$/ { on = 0 } on' \
	    "$src/README.md" | sed "s,/etc/xlb/key,$dir/key," >"$dir/xlb.yaml"
	head -c 16 /dev/urandom >"$dir/key" && chmod 600 "$dir/key"
	mkdir "$dir/bird"
	sed "s,/run/xlb-bird,$dir/bird," "$src/bird/xlb.conf" >"$dir/wrapper.conf"
	echo "protocol device { }" >"$dir/lb1.conf"
	spawn lb1 nice -n -20 bird -f -c "$dir/lb1.conf" -s "$dir/lb1.ctl" \
	    -P "$dir/lb1.pid"
	nsenter --net="/run/netns/${id}lb1" -- "$bin/src/xlbd" "${options[@]}" \
	    >"$dir/xlbd.log" 2>&1 &
	echo $! >>"$dir/pids"
	within 120 xlb status
}

configure_bird() {
	xlb bird-config | sed "s,\".*/bird/xlb.conf\",\"$dir/wrapper.conf\"," \
	    >"$dir/lb1.conf" && at lb1 birdc -s "$dir/lb1.ctl" configure |
	    tee "$dir/said" && ! grep -q rror "$dir/said"
}

has_routes() {
	at router ip route show proto bird | grep -q '^203.0.113.10 via 10.0.0.11' &&
	    at router ip -6 route show proto bird |
		grep -q '^2001:db8:5::10 via 2001:db8::11'
}

no_routes() {
	[ -z "$(at router ip route show proto bird)" ] &&
	    [ -z "$(at router ip -6 route show proto bird)" ]
}

# One is enough for a route; who is up is asked before the clients are.
both_are_up() {
	xlb status --json | python3 -c '
import json, sys
up = [b["eligible"] for p in json.load(sys.stdin)["pools"] for b in p["backends"]]
sys.exit(up != [True, True])'
}

both_answer() {	# ADDRESS
	local i got=

	# web2 has a third of the flows: it gets some. If the machine stands still
	# for 300 ms BFD takes the route away for a few seconds.
	for i in $(seq 60); do
		got="$got$(at client curl -s -g -m 120 --retry 20 \
		    --retry-all-errors --retry-delay 1 --connect-timeout 5 \
		    "http://$1/") " || return 1
	done
	echo "$got"
	[[ $got == *web1* && $got == *web2* ]]
}

echo 1..11
network
ok "the backends" backends
ok "the router" router

ok "the node" node
ok "xlb check" xlb check
ok "bird.conf from xlb bird-config" configure_bird
ok "the router gets the routes" within 120 has_routes
ok "both backends are up" within 60 both_are_up
ok "a client is answered by both over IPv4" both_answer 203.0.113.10
ok "and over IPv6" both_answer '[2001:db8:5::10]'
ok "the emergency stop" at lb1 ip link set xlb0 down
ok "withdraws both at once" within 4 no_routes	# the session would take 6
