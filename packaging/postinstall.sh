#!/bin/sh
# Runs when the files are there. dpkg says "configure"; rpm says 1 at the first installation, and 2 at an upgrade.
set -e
case "$1" in
configure | 1 | 2)
	if command -v systemd-sysusers >/dev/null; then
		systemd-sysusers /usr/lib/sysusers.d/solotick.conf
	fi
	# The service is neither enabled nor started: its table is an example. After an upgrade, a service that runs is
	# restarted. If that fails, the package is still installed, and systemd and the log say what is wrong.
	if [ -d /run/systemd/system ]; then
		systemctl daemon-reload
		systemctl try-restart solotick.service || true
	fi
	;;
esac
