package core

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/ledger"
)

// MaxCron bounds a cron expression, in bytes.
const MaxCron = 200

// A Cron is a schedule of five fields: minute, hour, day of the month, month,
// day of the week. Each field is a set of bits.
type Cron struct {
	minute, hour, day, month, weekday uint64
	anyHour, anyDay, anyWeekday       bool
}

var (
	monthNames   = []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}
	weekdayNames = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}
)

// ParseCron reads an expression: numbers, names of months and weekdays, ranges,
// lists, steps and *. Seven is Sunday, as zero is. Anything else is refused.
func ParseCron(text string) (c Cron, err error) {
	fields := strings.Fields(text)
	if len(text) > MaxCron {
		return c, ledger.Refuse(ledger.Unprocessable, nil, "Cron expression is longer than %d bytes", MaxCron)
	}
	if len(fields) != 5 {
		return c, ledger.Refuse(ledger.Unprocessable, nil, "Cron expression must have exactly 5 fields, got %d: %q",
			len(fields), text)
	}
	for n, f := range []struct {
		to     *uint64
		lo, hi int
		names  []string
		what   string
	}{
		{&c.minute, 0, 59, nil, "minute"}, {&c.hour, 0, 23, nil, "hour"}, {&c.day, 1, 31, nil, "day of month"},
		{&c.month, 1, 12, monthNames, "month"}, {&c.weekday, 0, 7, weekdayNames, "day of week"},
	} {
		set, ok := cronField(fields[n], f.lo, f.hi, f.names)
		if !ok {
			return c, ledger.Refuse(ledger.Unprocessable, nil, "Invalid %s in cron expression: %q", f.what, fields[n])
		}
		*f.to = set
	}
	if c.weekday&(1<<7) != 0 {
		c.weekday |= 1
	}
	c.anyHour = c.hour == 1<<24-1
	c.anyDay, c.anyWeekday = strings.HasPrefix(fields[2], "*"), strings.HasPrefix(fields[4], "*")
	return c, nil
}

func cronField(text string, lo, hi int, names []string) (set uint64, ok bool) {
	value := func(s string) (int, bool) {
		if n := slices.Index(names, strings.ToLower(s)); n >= 0 {
			return n + lo, true
		}
		if s == "" || len(s) > 2 || strings.Trim(s, "0123456789") != "" {
			return 0, false
		}
		n, err := strconv.Atoi(s)
		return n, err == nil && n >= lo && n <= hi
	}
	for part := range strings.SplitSeq(text, ",") {
		span, step, stepped := strings.Cut(part, "/")
		every := 1
		if stepped {
			n, err := strconv.Atoi(step)
			if err != nil || n < 1 || n > hi || strings.Trim(step, "0123456789") != "" {
				return 0, false
			}
			every = n
		}
		from, to := lo, hi
		if span != "*" {
			a, b, ranged := strings.Cut(span, "-")
			if from, ok = value(a); !ok {
				return 0, false
			}
			switch {
			case ranged:
				if to, ok = value(b); !ok || to < from {
					return 0, false
				}
			case !stepped:
				to = from
			}
		}
		for n := from; n <= to; n += every {
			set |= 1 << n
		}
	}
	return set, true
}

func (c Cron) onDay(y int, m time.Month, d int) bool {
	if c.month&(1<<m) == 0 {
		return false
	}
	day := c.day&(1<<d) != 0
	weekday := c.weekday&(1<<time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Weekday()) != 0
	if c.anyDay || c.anyWeekday {
		return day && weekday
	}
	return day || weekday // if both are restricted, one match is enough, as in cron
}

// cronHorizon is how many days ahead Next searches: longer than the longest time without a
// 29th of February.
const cronHorizon = 366*8 + 2

// Next returns the first instant after a given one at which local time in zone matches the
// schedule; ok is false if there is none. If the clocks skip a time, it fires right after the
// skip. If they show a time twice, it fires only the first time, unless the schedule is for
// every hour.
func (c Cron) Next(after time.Time, zone *time.Location) (next time.Time, ok bool) {
	if next, ok = c.soon(after, zone); ok {
		return next, ok
	}
	y, m, d := after.In(zone).Date()
	begin := time.Date(y, m, d-1, 0, 0, 0, 0, time.UTC) // the clocks may be set back over midnight
	last := -1
	for n := range cronHorizon {
		if last >= 0 && n > last+1 {
			break
		}
		y, m, d := begin.AddDate(0, 0, n).Date()
		if !c.onDay(y, m, d) {
			continue
		}
		for hour := range 24 {
			if c.hour&(1<<hour) == 0 {
				continue
			}
			for minute := range 60 {
				if c.minute&(1<<minute) == 0 {
					continue
				}
				for _, t := range c.instants(y, m, d, hour, minute, zone) {
					if t.After(after) && (!ok || t.Before(next)) {
						next, ok = t, true
						if last < 0 {
							last = n
						}
					}
				}
			}
		}
	}
	return next.UTC(), ok
}

// soon is Next for a match of today or tomorrow, on days around which the clocks are not
// changed, so that each time occurs once. It is the fast path for schedules of every minute,
// for which Next is called thousands of times after a long gap.
func (c Cron) soon(after time.Time, zone *time.Location) (time.Time, bool) {
	const days = 3 * 24 * time.Hour
	here := after.In(zone)
	from, to := here.ZoneBounds()
	if !from.IsZero() && after.Sub(from) < days || !to.IsZero() && to.Sub(after) < days {
		return time.Time{}, false
	}
	y, m, d := here.Date()
	for n := range 2 {
		if y, m, d := time.Date(y, m, d+n, 0, 0, 0, 0, time.UTC).Date(); !c.onDay(y, m, d) {
			continue
		}
		begin := 0
		if n == 0 {
			begin = here.Hour()
		}
		for hour := begin; hour < 24; hour++ {
			if c.hour&(1<<hour) == 0 {
				continue
			}
			for minute := range 60 {
				if c.minute&(1<<minute) == 0 {
					continue
				}
				if t := time.Date(y, m, d+n, hour, minute, 0, 0, zone); t.After(after) {
					return t.UTC(), true
				}
			}
		}
	}
	return time.Time{}, false
}

// instants returns when the local time of a zone has a value: usually one instant.
func (c Cron) instants(y int, m time.Month, d, hour, minute int, zone *time.Location) []time.Time {
	t := time.Date(y, m, d, hour, minute, 0, 0, zone)
	wall := time.Date(y, m, d, hour, minute, 0, 0, time.UTC)
	shown := func(t time.Time) time.Time {
		_, off := t.Zone()
		return t.UTC().Add(time.Duration(off) * time.Second)
	}
	from, to := t.ZoneBounds()
	switch at := shown(t); {
	case at.Before(wall):
		return []time.Time{to}
	case at.After(wall):
		return []time.Time{from}
	}
	all := []time.Time{t}
	for _, edge := range []time.Time{from.Add(-time.Second), to} {
		if from.IsZero() && edge.Before(from) || to.IsZero() && edge.IsZero() {
			continue
		}
		_, off := edge.In(zone).Zone()
		other := wall.Add(-time.Duration(off) * time.Second).In(zone)
		if !other.Equal(t) && shown(other).Equal(wall) {
			all = append(all, other)
		}
	}
	slices.SortFunc(all, func(a, b time.Time) int { return a.Compare(b) })
	if !c.anyHour {
		all = all[:1]
	}
	return all
}
