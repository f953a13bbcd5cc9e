#!/bin/sh
# After the files are there: the user, the limits of the kernel, the service.
set -e
if command -v systemd-sysusers >/dev/null 2>&1; then
	systemd-sysusers selvage.conf
elif ! getent passwd selvage >/dev/null 2>&1; then
	useradd --system --home-dir /var/lib/selvage --shell /usr/sbin/nologin selvage
fi
chgrp selvage /etc/selvage/config.yaml
if [ -f /etc/selvage/join ]; then chown selvage /etc/selvage/join; fi
if command -v sysctl >/dev/null 2>&1; then
	sysctl -q -p /usr/lib/sysctl.d/60-selvage.conf 2>/dev/null || true # a container may not
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	# On an upgrade a running node comes back as the new version; it was the
	# administrator's choice whether it runs.
	case "$1:$2" in
	configure: | 1:*) systemctl enable --now selvage.service ;;
	*) systemctl try-restart selvage.service ;;
	esac
fi
