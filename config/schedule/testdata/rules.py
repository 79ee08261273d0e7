#!/usr/bin/env python3
"""Writes rules.json, the ticks of schedules with rules as python3-dateutil finds them: ./rules.py > rules.json

It shares no code with the package. The days of a cron expression are a rule of RFC 5545 here, and dateutil knows the
zones. Each year of each schedule has its number of ticks and a hash of them, one in a line in UTC. The years have
passed, so that no later change of a law changes them. To see the ticks themselves: ./rules.py NAME ZONE YEAR
"""
import datetime as dt
import hashlib
import json
import sys

from dateutil import rrule, tz

YEARS = range(2021, 2026)
ZONES = ["Europe/Berlin", "America/New_York", "America/Santiago", "Africa/Cairo", "Australia/Lord_Howe", "Pacific/Auckland"]
DAY = dt.timedelta(days=1)
BEGIN, END = dt.datetime(2019, 1, 1), dt.datetime(2028, 1, 1)  # with room for what moves


def spans(text):
    days = set()
    for span in text.split():
        first, _, last = span.partition("..")
        day, last = dt.date.fromisoformat(first), dt.date.fromisoformat(last or first)
        while day <= last:
            days.add(day)
            day += DAY
    return days


HOLIDAYS = " ".join(
    f"{y}-01-01 {y}-05-01 {y}-10-03 {y}-12-24..{y + 1}-01-02" for y in range(2019, 2028)
) + " 2021-04-02 2021-04-05 2022-03-27 2022-10-30 2023-03-26..2023-03-31 2024-02-28..2024-03-10 2024-03-31 2025-04-05..2025-04-06 2025-03-29 2025-03-08 2021-03-29 2021-03-15"

# The days of a calendar: spans, and a cron expression next to a rule that means the same.
CALENDARS = {
    "holidays": (HOLIDAYS, "", None),
    "weekend": ("", "* * * * SAT,SUN", dict(freq=rrule.WEEKLY, byweekday=(rrule.SA, rrule.SU))),
    "month": ("2022-06-15", "* * 1-7,L * *", dict(freq=rrule.MONTHLY, bymonthday=(1, 2, 3, 4, 5, 6, 7, -1))),
}

# A schedule: its expressions, each next to its rule.
NIGHTLY = ("30 2 * * *", dict(freq=rrule.DAILY, byhour=2, byminute=30))
MIDNIGHT = ("0 0 * * *", dict(freq=rrule.DAILY, byhour=0, byminute=0))
WORKDAYS = ("0 9,17 * * MON-FRI", dict(freq=rrule.WEEKLY, byweekday=range(5), byhour=(9, 17), byminute=0))
MONDAYS = ("15 7 * * MON", dict(freq=rrule.WEEKLY, byweekday=rrule.MO, byhour=7, byminute=15))
LAST = ("0 18 L * *", dict(freq=rrule.MONTHLY, bymonthday=-1, byhour=18, byminute=0))
BEFORE_SUNDAY = ("30 2 * * SAT", dict(freq=rrule.WEEKLY, byweekday=rrule.SA, byhour=2, byminute=30))
AFTER_SUNDAY = ("30 2 * * MON", dict(freq=rrule.WEEKLY, byweekday=rrule.MO, byhour=2, byminute=30))
ODD = ("0,30 2 * * *", dict(freq=rrule.DAILY, byhour=2, byminute=(0, 30)))

CASES = [
    dict(name="exclude", of=[WORKDAYS], exclude=["holidays"]),
    dict(name="exclude-two", of=[NIGHTLY], exclude=["holidays", "weekend"]),
    dict(name="exclude-in-tokyo", of=[NIGHTLY, WORKDAYS], exclude=["holidays"], calendarZone="Asia/Tokyo"),
    dict(name="include", of=[WORKDAYS], include=["month"]),
    dict(name="include-two-exclude", of=[ODD], include=["month", "weekend"], exclude=["holidays"]),
    dict(name="next", of=[NIGHTLY], exclude=["holidays", "weekend"], move=1),
    dict(name="next-midnight", of=[MIDNIGHT], exclude=["holidays"], move=1),
    dict(name="next-of-last", of=[LAST], exclude=["holidays", "weekend"], move=1),
    dict(name="next-in-los-angeles", of=[ODD], exclude=["weekend"], move=1, calendarZone="America/Los_Angeles"),
    dict(name="next-into-a-gap", of=[BEFORE_SUNDAY], exclude=["holidays"], move=1),
    dict(name="previous-into-a-gap", of=[AFTER_SUNDAY], exclude=["holidays"], move=-1),
    dict(name="previous", of=[NIGHTLY], exclude=["holidays", "weekend"], move=-1),
    dict(name="previous-of-last", of=[LAST], exclude=["holidays", "weekend"], move=-1),
    dict(name="previous-included", of=[MONDAYS], include=["month"], move=-1),
    dict(name="list", of=[WORKDAYS, MONDAYS, ("0 9 * * MON", dict(freq=rrule.WEEKLY, byweekday=rrule.MO, byhour=9, byminute=0))]),
    dict(name="list-next", of=[WORKDAYS, MONDAYS, NIGHTLY], exclude=["holidays"], move=1),
    dict(name="weeks", of=[MONDAYS], weeks=2, start="2026-01-05"),
    dict(name="weeks-of-all-days", of=[NIGHTLY], weeks=3, start="2020-02-26"),
    dict(name="weeks-before", of=[NIGHTLY], weeks=2, start="2025-07-09"),
    dict(name="days", of=[MIDNIGHT, ODD], days=5, start="2023-06-15"),
    dict(name="weeks-next", of=[MONDAYS], weeks=2, start="2026-01-05", exclude=["holidays"], move=1),
]


def days_of(name):
    text, _, rule = CALENDARS[name]
    days = spans(text)
    if rule:
        days |= {t.date() for t in rrule.rrule(dtstart=BEGIN, until=END, **rule)}
    return days


def instant(wall, zone):
    """The first moment at which a wall clock shows it; one that is skipped comes later by the gap."""
    return tz.resolve_imaginary(wall.replace(tzinfo=zone)).astimezone(tz.UTC)


def ticks(case, zone):
    of_calendar = tz.gettz(case["calendarZone"]) if "calendarZone" in case else zone
    without = set().union(*(days_of(c) for c in case.get("exclude", [])))
    within = set().union(*(days_of(c) for c in case["include"])) if "include" in case else None

    def allowed(at):
        day = at.astimezone(of_calendar).date()
        return day not in without and (within is None or day in within)

    def kept(day):
        n = (day - dt.date.fromisoformat(case["start"])).days if "start" in case else 0
        if "weeks" in case:
            return n // 7 % case["weeks"] == 0
        return n % case.get("days", 1) == 0

    found = set()
    for _, rule in case["of"]:
        for wall in rrule.rrule(dtstart=BEGIN, until=END, bysecond=0, **rule):
            if not kept(wall.date()):
                continue
            at, steps = instant(wall, zone), 0
            while not allowed(at) and "move" in case and steps < 366:
                wall, steps = wall + case["move"] * DAY, steps + 1
                at = instant(wall, zone)
            if allowed(at):
                found.add(at.strftime("%Y-%m-%dT%H:%M:%SZ"))
    return sorted(found)


def main():
    if len(sys.argv) == 4:
        case = next(c for c in CASES if c["name"] == sys.argv[1])
        print("\n".join(t for t in ticks(case, tz.gettz(sys.argv[2])) if t.startswith(sys.argv[3])))
        return
    cases = []
    for case in CASES:
        out = {k: v for k, v in case.items() if k not in ("of", "move")}
        out["schedule"] = [text for text, _ in case["of"]]
        out["onExcluded"] = {1: "next", -1: "previous", 0: "skip"}[case.get("move", 0)]
        out["zones"] = {}
        for name in ZONES:
            years = out["zones"][name] = {}
            found = ticks(case, tz.gettz(name))
            for year in YEARS:
                some = [t for t in found if t.startswith(str(year))]
                years[year] = f"{len(some)} {hashlib.sha256(''.join(t + chr(10) for t in some).encode()).hexdigest()[:16]}"
        cases.append(out)
    calendars = {name: {"dates": text, "cron": cron} for name, (text, cron, _) in CALENDARS.items()}
    json.dump({"calendars": calendars, "cases": cases}, sys.stdout, indent=1)
    print()


main()
