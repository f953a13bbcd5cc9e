#!/bin/sh
# Boot this machine's systemd as the first process of a container that has this
# machine's files below and memory above, and nothing of its services. It is run
# in namespaces of its own: boot.sh DIR PACKAGE
set -e
dir=$1 package=$2 root=$1/root
mount --make-rprivate /
mount -t tmpfs -o mode=755,size=1g tmpfs "$dir"
mkdir "$dir/upper" "$dir/work" "$root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$dir/upper,workdir=$dir/work" "$root"
mount -t proc proc "$root/proc"
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro "$root/proc/sys"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for name in null zero full random urandom tty; do
	: >"$root/dev/$name"
	mount --bind "/dev/$name" "$root/dev/$name"
done
mkdir "$root/dev/shm" "$root/dev/pts"
mount -t tmpfs tmpfs "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"

# A machine where nothing was configured: of its services only the journal.
units="$root/usr/lib/systemd/system"
[ -d "$units" ] || units="$root/lib/systemd/system"
rm -rf "$root/etc/systemd" "$units"/*.target.wants "$root/etc/selvage" "$root/var/lib/selvage"
mkdir -p "$root/etc/systemd/system" "$units/sysinit.target.wants"
ln -s ../systemd-journald.service ../systemd-tmpfiles-setup.service "$units/sysinit.target.wants/"
echo 00000000000000000000000000000001 >"$root/etc/machine-id"
: >"$root/etc/fstab"
cp "$package" "$root/selvage.deb"
if [ -n "${MORE:-}" ]; then # of uml.sh: a script that is run, and where it says what it saw
	cp "$MORE/script" "$root/script"
	cp "$MORE/check.service" "$root/etc/systemd/system/"
	mkdir -p "$root/etc/systemd/system/basic.target.wants" "$root/reports"
	ln -s ../check.service "$root/etc/systemd/system/basic.target.wants/"
	mount -t hostfs none "$root/reports" -o "$REPORTS"
	# Its tasks do not keep what AVX-512 adds to registers, see xstate.c: the C library
	# does without.
	plain=GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW
	printf '[Manager]\nDefaultEnvironment=%s\n' "$plain" >"$root/etc/systemd/system.conf"
fi

init=/usr/lib/systemd/systemd
[ -x "$root$init" ] || init=/lib/systemd/systemd
cd "$root"
mkdir -p old
pivot_root . old
umount -l /old
exec env -i ${plain:-} container=selvage PATH=/usr/sbin:/usr/bin:/sbin:/bin "$init" --system --unit=basic.target --log-target=journal --show-status=0
