// Package schedule reads cron expressions and says when their ticks are.
//
// A Schedule is a pure value: the same expression, options and time zone database give the same ticks on every machine,
// whatever its clock says. Next and Last are total, strictly monotone and bounded in time for every argument; ticks are
// whole seconds from year 1 to the end of 2199. The limit: two machines with different time zone databases can disagree
// on ticks after a change of law. Go prefers the system's database, and uses the embedded one where there is none, as
// in an image from scratch.
//
// # Dialect
//
// Five fields (minute, hour, day of month, month, day of week); six with the second first; seven with the year last.
// Each is a list of values, ranges a-b and steps */n, a/n, a-b/n, which begin anew in every hour, day and so on.
// Months and weekdays have names, letters of either case, and Sunday is 0 or 7. Day of month also takes L, L-n, LW and
// nW; day of week takes L (Sunday), 5L or FRIL (the last Friday) and 5#3 or FRI#3 (the third); both take ?, which is *.
// If both day fields are restricted, a day that matches either has a tick, as in cron(5) and Kubernetes.
//
// H is a value that the job's name decides, for ever: H any of the field (days 1-28), H(a-b) one of the range, H/n and
// H(a-b)/n every n-th from one of the first n on, as in Jenkins. Unlike in Jenkins, H/1 is every value.
//
// Also: @yearly @annually @monthly @weekly @daily @midnight @hourly; @every <duration>, counted from the start of the
// window, or from the Unix epoch without one, so that all replicas agree; @at <RFC 3339 time>, once.
//
// # Rules
//
// Rules leave out ticks, or move them. They are a series around the series of an expression, so that Next and Last
// alone know of them, and an instant that they exclude is no tick for anyone. First Every keeps some days. Then the
// calendars that config/calendars.go reads rule out days: ruled.open in rules.go. A tick of such a day is left out,
// or takes its time to the nearest open day. Several expressions are one series, each under the rules by itself.
//
// A rule looks at an instant, and not at a day: a calendar may be in another zone. It also gives the time around the
// instant in which its answer is the same. The search goes by these stretches. Rules begin in 1970.
//
// # Daylight saving
//
// A schedule runs through the hours if its hours are spread evenly over the day, at most four hours apart, however they
// are written. All others are fixed. A fixed time that the clocks skip fires once, later by the length of the gap;
// where that meets another tick of its own, both are one. A fixed time that occurs twice fires once, at the first.
// Schedules that run through the hours fire at every existing instant whose wall clock matches: they tick through the
// repeated hour again and invent nothing for the skipped one. @every and @at know no wall clock.
//
// # Why a library parses and this package walks
//
// github.com/netresearch/go-cron turns the expression into sets; it is maintained and widely used. This package first
// checks every field and writes it out in plain numbers, so the library reads it as this dialect does. By itself the
// library drops empty list parts, turns reversed ranges round, reads "*-5" as "*" and "+5" as "5", rejects THU (for its
// H) and "0 */24 * * *", spells the last Friday 5#L, lets MON/2 reach Sunday, and hashes H alike in every field. Its
// Next is not used: it fires a repeated time twice, however the hours are written, and gives up after five years by
// default.
package schedule
