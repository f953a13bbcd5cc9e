package core

import (
	"testing"
	"time"
	_ "time/tzdata"
)

func TestCronNext(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ cron, zone, after, want string }{
		{"0 9 * * *", "UTC", "2026-11-21T03:06:26Z", "2026-11-21T09:00:00Z"},
		{"0 9 * * *", "UTC", "2026-11-21T09:00:00Z", "2026-11-22T09:00:00Z"},
		{"*/15 * * * *", "UTC", "2026-11-21T03:06:26Z", "2026-11-21T03:15:00Z"},
		{"30 8 * * mon-fri", "Europe/Berlin", "2026-11-20T08:00:00Z", "2026-11-23T07:30:00Z"},
		{"0 0 29 2 *", "UTC", "2026-11-21T00:00:00Z", "2028-02-29T00:00:00Z"},
		{"0 0 13 * 5", "UTC", "2026-11-12T23:00:00Z", "2026-11-13T00:00:00Z"}, // the 13th or a Friday
		{"0 0 13 * 5", "UTC", "2026-11-13T00:00:00Z", "2026-11-20T00:00:00Z"},
		{"0 12 * * 7", "UTC", "2026-11-21T00:00:00Z", "2026-11-22T12:00:00Z"},
		// Berlin skips 02:00 to 03:00 on 2026-03-29, which is 01:00Z.
		{"30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z"},
		{"30 2 * * *", "Europe/Berlin", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"},
		{"*/30 * * * *", "Europe/Berlin", "2026-03-29T00:30:00Z", "2026-03-29T01:00:00Z"},
		{"*/30 * * * *", "Europe/Berlin", "2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z"},
		// It shows 02:30 twice on 2026-10-25: at 00:30Z and at 01:30Z.
		{"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z"},
		{"30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"},
		{"30 * * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"},
		{"0,30 * * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z"},
		// Clocks that turn back over midnight: Sao Paulo, 2018-02-18 at 02:00Z.
		{"30 23 * * *", "America/Sao_Paulo", "2018-02-17T12:00:00Z", "2018-02-18T01:30:00Z"},
		{"30 23 * * *", "America/Sao_Paulo", "2018-02-18T01:30:00Z", "2018-02-19T02:30:00Z"},
		// Half an hour: Lord Howe goes from 02:00 to 02:30 on 2026-10-04, at 15:30Z of the day before.
		{"15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00Z", "2026-10-03T15:30:00Z"},
		{"0 0 31 2 *", "UTC", "2026-11-21T00:00:00Z", ""},
	} {
		zone, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		cron, err := ParseCron(c.cron)
		if err != nil {
			t.Fatal(err)
		}
		after, _ := time.Parse(time.RFC3339, c.after)
		got := ""
		if next, ok := cron.Next(after, zone); ok {
			got = next.Format(time.RFC3339)
		}
		if got != c.want {
			t.Errorf("%q in %s after %s: %q, want %q", c.cron, c.zone, c.after, got, c.want)
		}
	}
}

// For any schedule, the next instant is later, and no matching instant lies between.
func TestCronLeavesNothingOut(t *testing.T) {
	t.Parallel()
	zone, _ := time.LoadLocation("Europe/Berlin")
	for _, text := range []string{"7 * * * *", "*/20 1-3 * * *", "0 0 * * *", "15,45 2 * 3,10 sun"} {
		c, err := ParseCron(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, day := range []time.Time{time.Date(2026, 3, 28, 20, 0, 0, 0, time.UTC), time.Date(2026, 10, 24, 20, 0, 0, 0,
			time.UTC)} {
			want, ok := c.Next(day, zone)
			for at := day; ok && at.Before(want); at = at.Add(7 * time.Minute) {
				if got, _ := c.Next(at, zone); !got.Equal(want) {
					t.Fatalf("%q after %s: %s, but after %s: %s", text, at, got, day, want)
				}
			}
		}
	}
}

func TestCronRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "whenever", "* * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *",
		"* * * * 8", "*/0 * * * *", "5-1 * * * *",
		"a * * * *", "1,,2 * * * *", "-1 * * * *", "+1 * * * *", "* * * foo *", "1-2-3 * * * *", "*/+5 * * * *"} {
		if _, err := ParseCron(text); err == nil {
			t.Errorf("%q is taken for a schedule", text)
		}
	}
}

func FuzzCron(f *testing.F) {
	f.Add("0 9 * * *")
	f.Add("*/5 1-3,7 1 jan-mar mon")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseCron(text)
		if err != nil {
			return
		}
		at := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
		if next, ok := c.Next(at, time.UTC); ok && !next.After(at) {
			t.Errorf("%q after %s: %s", text, at, next)
		}
	})
}
