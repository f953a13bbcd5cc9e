# What limits of runs are worth where version 2 has the controllers: run as root
# on a machine whose first process is systemd. $shim_test are the tests of
# adapter/shim that need a cgroup of their own.
set -eu
dpkg -i /selvage.deb || { journalctl --no-pager -u selvage; exit 1; }
group=/sys/fs/cgroup$(systemctl show -P ControlGroup selvage.service)
echo "shared out: $(cat "$group/cgroup.subtree_control")"
echo "runs without cgroups: $(journalctl --no-pager -o cat -u selvage | grep -c 'runs have no cgroups' || true)"
selvage company create Acme
work() {
	selvage agent create "$1" --config "{\"command\": \"/bin/sh\", \"args\": [\"-c\", \"$2\"], \"limits\": $3}"
	selvage issue create "For $1" --assignee "$1"
}
work Hog 'tail /dev/zero; echo over' '{"memoryMb": 64}'
work Rabbit 'i=0; while [ $i -lt 40 ]; do sleep 100 & i=$((i+1)); done; echo over' '{"processes": 20}'
for name in Hog Rabbit; do
	for i in $(seq 300); do
		id=$(selvage run list | awk -v name=$name '$2 == name && /failed|succeeded|timed_out|cancelled/ { print $1; exit }')
		[ -n "$id" ] && break
		sleep 0.2
	done
	echo "$name: $(selvage run show "$id")"
	selvage run log "$id"
done
echo "killed for memory: $(awk '$1 == "oom_kill" { print $2 }' "$group/runs/memory.events")"
cat >/etc/systemd/system/shim-test.service <<UNIT
[Service]
Type=oneshot
Delegate=yes
Environment=HOME=/root PATH=$PATH
StandardOutput=append:/shim-test
StandardError=append:/shim-test
ExecStart=$shim_test -test.v -test.run TestACgroupHoldsTheTree
UNIT
systemctl daemon-reload
systemctl start shim-test || true
cat /shim-test
