# SPDX-License-Identifier: GPL-2.0-or-later
# A client, a router, a node and a backend, each in a namespace; sourced by the
# tests. Results are TAP.
#
#	client 10.0.9.2 --- 10.0.9.1 router 10.0.1.254 p0 --- eth0 10.0.1.1 node
#	                             10.0.2.254 pb --- eth0 10.0.2.11 backend
#
# IPv6 is fd00:N::H for 10.0.N.H. More links, and more nodes, are made by the tests.
VIP4=203.0.113.10
VIP6=2001:db8:5::10
host=node		# whose xlbd it is about
spaces=
n=0 bad=0

log_print() {
	cat /tmp/xlbd.log
}

ok() {		# NAME COMMAND...: passes if the command does
	local name=$1 out
	shift
	n=$((n + 1))
	if out=$("$@" 2>&1); then
		echo "ok $n - $name"
	else
		bad=$((bad + 1))
		echo "$out" | sed 's/^/# /'
		log_print | sed 's/^/# xlbd: /'
		echo "not ok $n - $name"
	fi
}

end() {		# all goes: the next test makes its own
	echo "1..$n"
	kill $(cat /tmp/pids) 2>/dev/null	# some have ended
	wait
	for ns in $spaces; do
		ip netns del $ns
		rm -rf /sys/fs/bpf/$ns /run/xlb-$ns /tmp/$ns
	done
	exit $((bad > 0))
}

must() {
	"$@" || { echo "Bail out! $*"; exit 1; }
}

at() {		# NAMESPACE COMMAND...
	local ns=$1
	shift
	nsenter --net=/run/netns/$ns "$@"
}

spawn() {	# LOG NAMESPACE COMMAND...
	local log=$1 ns=$2
	shift 2
	nsenter --net=/run/netns/$ns "$@" >>"$log" 2>&1 &
	echo $! >>/tmp/pids
}

within() {	# SECONDS COMMAND...: until it succeeds
	local end=$(($(date +%s) + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		if [ "$(date +%s)" -gt $end ]; then
			"$@"
			return
		fi
		sleep 0.1
	done
}

netns() {
	must ip netns add $1
	spaces="$spaces $1"
	at $1 sysctl -qw net.ipv6.conf.all.accept_dad=0 \
	    net.ipv6.conf.default.accept_dad=0 net.ipv4.ip_forward=1 \
	    net.ipv6.conf.all.forwarding=1 net.ipv4.conf.all.rp_filter=0 \
	    net.ipv4.conf.default.rp_filter=0
	at $1 ip link set lo up
}

give() {	# NAMESPACE DEVICE NET HOST
	must ip -n $1 addr add 10.0.$3.$4/24 dev $2
	must ip -n $1 addr add fd00:$3::$4/64 dev $2 nodad
}

gateway() {	# NAMESPACE NET: the router there
	must ip -4 -n $1 route replace default via 10.0.$2
	must ip -6 -n $1 route replace default via fd00:$(echo $2 | sed 's/\./::/')
}

# Frames as on a wire: no checksum or tag that a card would fill in.
pair() {	# NAMESPACE DEVICE NAMESPACE DEVICE
	must ip -n $1 link add $2 mtu 1600 type veth peer name $4 mtu 1600 netns $3
	for end in "$1 $2" "$3 $4"; do
		at ${end% *} ethtool -K ${end#* } tx off tso off gso off \
		    gro off txvlan off >/dev/null
		ip -n ${end% *} link set ${end#* } up
	done
}

# A veth takes what its peer sends by XDP only while it runs a program too.
xdp_pass() {	# NAMESPACE DEVICE
	must ip -n $1 link set dev $2 xdpdrv \
	    obj /b/tests/fabric/veth.bpf.o program xlbf_pass
}

hold_vips() {	# NAMESPACE
	must ip -n $1 addr add $VIP4/32 dev lo
	must ip -n $1 addr add $VIP6/128 dev lo
}

# By the kernel's own devices, for both families in IPv4.
decapsulate() {	# NAMESPACE ADDRESS
	must ip -n $1 link add t44 type ipip local $2
	must ip -n $1 link add t64 type sit local $2
	for dev in t44 t64; do must ip -n $1 link set $dev up; done
}

network() {
	>/tmp/pids
	>/tmp/xlbd.log
	for ns in client router node backend; do netns $ns; done
	pair client eth0 router pc
	pair router p0 node eth0
	pair router pb backend eth0
	give client eth0 9 2
	give router pc 9 1
	give router p0 1 254
	give node eth0 1 1
	give router pb 2 254
	give backend eth0 2 11
	gateway client 9.1
	gateway node 1.254
	gateway backend 2.254
	xdp_pass router p0
	hold_vips backend
	mkdir -p /tmp/www
	echo hello >/tmp/www/index.html
}

route_vips() {	# how the router reaches them: device and net
	ip -n router route replace $VIP4/32 via 10.0.$2.1 dev $1
	ip -6 -n router route replace $VIP6/128 via fd00:$2::1 dev $1
}

serve() {	# PORT...
	for port; do
		spawn /dev/null backend httpd -f -p $port -h /tmp/www
	done
}

# The whole tunnel from the client to a socket of the backend, and back.
fetch() {	# VIP PORT
	within 60 at client sh -c "printf 'GET / HTTP/1.0\r\n\r\n' |
	    timeout 10 nc -w 10 $1 $2 | grep -q hello"
}

# The client and the daemon of that node, with all that they use in directories of its own.
node_xlb() {
	at $host src/xlb $(options) "$@"
}

options() {
	echo --config /tmp/$host/xlb.yaml --run-dir /run/xlb-$host \
	    --bpf-dir /sys/fs/bpf/$host --state-dir /tmp/$host/state \
	    --bird-dir /tmp/$host/bird --bird-socket /tmp/$host/bird.ctl
}

xlb_is_up() {	# there is no hurry to ask while the kernel still reads the program
	[ -S /run/xlb-$host/xlb.sock ] && node_xlb status --json | grep -q '"schema"'
}

xlbd_start() {	# the configuration is standard input
	mkdir -p /tmp/$host/bird
	cat >/tmp/$host/xlb.yaml
	spawn /tmp/xlbd.log $host src/xlbd $(options)
	within 180 xlb_is_up || { cat /tmp/xlbd.log; echo "Bail out! xlbd"; exit 1; }
}

reload() {
	cat >/tmp/$host/xlb.yaml
	node_xlb reload
}

boot_time() { sed 's/[ .].*//' /proc/uptime; }	# goes on while it sleeps

# To RAM, once in a guest's life: what is left of its alarm wakes it at once later.
sleeps() {	# SECONDS LEAST: on the way there and asleep
	local rtc=/sys/class/rtc/rtc0 now=$(boot_time)

	echo $(($(cat $rtc/since_epoch) + $1)) >$rtc/wakealarm || return 1
	echo mem >/sys/power/state || return 1
	now=$(($(boot_time) - now))
	echo "for $now s"
	[ $now -ge $2 ]
}

rx() {		# NAMESPACE DEVICE: packets received
	ip -n $1 -s link show $2 | sed -n '/RX:/{n;p}' | { read -r bytes packets rest
	echo $packets; }
}

passes() {	# VIP DEVICE: at the router it goes on to the backend by that one
	local before=$(rx router $2)

	fetch $1 80 || return 1
	[ "$(rx router $2)" -ge $((before + 3)) ] && return 0
	echo "$2 received $before, then $(rx router $2)"
	return 1
}

# From the client by one device of the router's, to the backend by one of the
# node's, which leads to another of the router's.
through() {	# VIP DEVICE-IN NET NODE-DEVICE NET DEVICE-BACK
	route_vips $2 $3
	must ip -n node route replace 10.0.2.0/24 via 10.0.$5.254 dev $4
	within 60 passes $1 $6
}

ping_vip() {	# VIP DEVICE NET
	route_vips $2 $3
	at client ping -c 3 -W 2 $1
}
