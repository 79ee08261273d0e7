package convert

import (
	"fmt"
	"slices"
	"strings"
)

func general(all []job, kinds map[Format]bool, o Options) []string {
	out := []string{"read the comments that begin so, " +
		"then check the table with `solotick validate` and `solotick next`."}
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	unzoned := slices.ContainsFunc(all, func(j job) bool { return j.timeZone == "" })
	zoned := changes(o.TimeZone) || slices.ContainsFunc(all, func(j job) bool { return changes(j.timeZone) })
	if kinds[Crontab] {
		add("each machine that has a crontab runs all of it; here each tick is fired by one replica. Give a job " +
			"guarantee: every-replica where each machine needs its own run.")
		add("commands get the user, the environment and the directory of Solotick, not those of a login; " +
			"what they need goes into exec.env and exec.dir.")
		if o.TimeZone == "" && unzoned {
			add("cron goes by the local time of its machine, this table by UTC until a zone is set: " +
				"put the machine's into defaults.timeZone. --time-zone does it.")
		}
	}
	if kinds[Kubernetes] && o.TimeZone == "" && unzoned {
		add("a CronJob without timeZone goes by the zone of the cluster's controller manager, " +
			"which is UTC nearly everywhere.")
	}
	if slices.ContainsFunc(all, func(j job) bool { return j.guarantee != "" }) {
		add("where a backoffLimit allows another attempt a job has guarantee: at-least-once, " +
			"because Kubernetes too starts again what the loss of a node has cut short.")
	}
	if zoned || kinds[Crontab] && o.TimeZone == "" {
		add("%s", daylight(kinds))
	}
	return out
}

// changes reports whether a zone may have changes of the clocks.
func changes(zone string) bool {
	return zone != "" && zone != "UTC" && zone != "GMT" && !strings.HasPrefix(zone, "Etc/")
}

// daylight says how ticks differ on the two days on which the clocks change.
func daylight(kinds map[Format]bool) string {
	var before []string
	if kinds[Crontab] {
		before = append(before,
			"cron runs a skipped one right after the change, and goes by the wall clock where hour or minute is *")
	}
	if kinds[Kubernetes] {
		before = append(before, "Kubernetes leaves a skipped time out and may run a repeated one twice")
	}
	return "when the clocks change, a fixed time that is skipped fires once, later by the length of the gap, " +
		"and one that occurs twice fires once; " + strings.Join(before, "; ") + "."
}
