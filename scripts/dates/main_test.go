package main

import (
	"testing"
	"time"
)

// Each kind of day is the next one, whenever it is asked for.
func TestTheDaysAreThoseThatComeNext(t *testing.T) {
	t.Parallel()
	for now, want := range map[string][]string{
		"2026-11-28T12:00:00Z": {"2026-11-29T12:00:00Z", "2026-11-30T23:59:50Z", "2026-12-01T00:00:30Z",
			"2028-02-29T23:59:50Z",
			"2027-01-07T12:00:00Z", "2028-01-02T12:00:00Z", "2027-03-28T01:59:50+01:00", "2027-10-31T02:59:50+02:00"},
		"2028-03-31T23:59:59Z": {"2028-04-01T23:59:59Z", "2028-03-31T23:59:50Z", "2028-04-01T00:00:30Z",
			"2032-02-29T23:59:50Z",
			"2028-05-10T23:59:59Z", "2029-05-05T23:59:59Z", "2028-10-29T02:59:50+02:00", "2029-03-25T01:59:50+01:00"},
		"2099-12-31T00:00:00Z": {"2100-01-01T00:00:00Z", "2099-12-31T23:59:50Z",
			"2100-01-01T00:00:30Z", "2104-02-29T23:59:50Z",
			"2100-02-09T00:00:00Z", "2101-02-04T00:00:00Z", "2100-03-28T01:59:50+01:00", "2100-10-31T02:59:50+02:00"},
	} {
		at, err := time.Parse(time.RFC3339, now)
		if err != nil {
			t.Fatal(err)
		}
		all, err := days(at)
		if err != nil || len(all) != len(want) {
			t.Fatalf("%s: %d days, %v, want %d", now, len(all), err, len(want))
		}
		for i, d := range all {
			if got := d.at.Format(time.RFC3339); got != want[i] {
				t.Errorf("%s: %s is %s, want %s", now, d.name, got, want[i])
			}
		}
	}
}
