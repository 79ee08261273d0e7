#!/bin/sh
# Runs when the files are gone. dpkg says "remove" or "purge"; rpm says how many versions are left. The user stays, as
# Debian and Fedora ask: files elsewhere may belong to it.
set -e
case "$1" in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl daemon-reload
	fi
	;;
purge)
	# With DynamicUser=, the state directory is a link into /var/lib/private.
	rm -rf /var/lib/solotick /var/lib/private/solotick
	;;
esac
