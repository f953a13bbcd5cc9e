// Command dates runs the suites that read the time on other days than today, so that a test whose
// dates are fixed fails now and not on some day.
//
//	dates [-list] [TESTED]
//
// TESTED is the program of scripts/tested. The suites take their time from kit.Clock, which
// SELVAGE_DATE sets; each day is repeated by what is printed before it. With -list the days are
// printed, and nothing is run.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
	_ "time/tzdata" // of a machine that has none
)

// suites are what is run on each day: the API with the rules below it, whose tests have most of
// the dates. What takes long and asks for no date is left out.
var suites = []string{"-short", "-timeout", "60m", "-skip",
	"Flood|BodiesTakeOwnRows|FiltersByRowsOfOthers|WhatABodyMayHold|BadBodiesAreRefused", "./api/..."}

// meshes are run on the farthest days alone: nodes that are put together, with their consensus,
// sessions, tokens and schedules.
var meshes = []string{"-short", "-timeout", "60m", "-parallel", "4", "-run",
	"Spec_|Gate|Purse|Metered|Permit|Schedule|Cron|Timer|Message|Inbox|Away|Resume|Join|Token", "./testnet/testkit"}

// zone is where summer time begins and ends.
const zone = "Europe/Berlin"

// A day is a time at which a test may fail that passes now.
type day struct {
	name string
	at   time.Time
	far  bool // meshes are run too
}

// days returns what comes next of each kind, seen from now.
func days(now time.Time) ([]day, error) {
	now = now.UTC().Truncate(time.Second)
	month := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC).AddDate(0, 1, 0)
	leapDay := func(year int) time.Time { return time.Date(year, 2, 29, 23, 59, 50, 0, time.UTC) } // else 1 March
	leap := leapDay(now.Year())
	for leap.Month() != time.February || leap.Before(now) {
		leap = leapDay(leap.Year() + 1)
	}
	out := []day{
		{name: "tomorrow", at: now.AddDate(0, 0, 1)},
		// The month turns while tests run.
		{name: "the last seconds of the month", at: month.Add(-10 * time.Second)},
		{name: "the first minute of a month", at: month.Add(30 * time.Second)},
		{name: "the end of 29 February", at: leap, far: true},
		{name: "in 40 days", at: now.AddDate(0, 0, 40)},
		{name: "in 400 days", at: now.AddDate(0, 0, 400), far: true},
	}
	there, err := time.LoadLocation(zone)
	if err != nil {
		return nil, err
	}
	for at := now.In(there); len(out) < 8; {
		_, next := at.ZoneBounds()
		if next.IsZero() {
			return nil, fmt.Errorf("the clocks of %s change no more after %s", zone, at)
		}
		before, name := next.Add(-10*time.Second), "summer time ends"
		if next.IsDST() {
			name = "summer time begins"
		}
		if before.IsDST() != next.IsDST() { // a year's end is a bound, too, of far years
			out = append(out, day{name: name, at: before})
		}
		at = next
	}
	return out, nil
}

// run runs a suite on a day.
func (d day) run(tested, suite []string, stage string) error {
	args := append(append(tested[1:len(tested):len(tested)], "-stage", stage), suite...)
	cmd := exec.Command(tested[0], args...)
	cmd.Env = append(os.Environ(), d.env()...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

// env is the environment that makes it this day.
func (d day) env() []string {
	return []string{"SELVAGE_DATE=" + d.at.Format(time.RFC3339), "TZ=" + d.at.Location().String()}
}

func main() {
	list := flag.Bool("list", false, "print the days")
	flag.Parse()
	tested := flag.Args()
	if len(tested) == 0 {
		tested = []string{"go", "run", "./scripts/tested"}
	}
	all, err := days(time.Now())
	if err != nil {
		fmt.Fprintln(os.Stderr, "dates:", err)
		os.Exit(1)
	}
	var failed []string
	for _, d := range all {
		fmt.Printf("%s: %s\n", d.name, strings.Join(d.env(), " "))
		if *list {
			continue
		}
		err := d.run(tested, suites, "on another day: "+d.name)
		if d.far {
			if merr := d.run(tested, meshes, "on another day, meshes: "+d.name); err == nil {
				err = merr
			}
		}
		if err != nil {
			failed = append(failed, d.name)
		}
	}
	if len(failed) > 0 {
		fmt.Println("FAIL on other days:", strings.Join(failed, ", "))
		os.Exit(1)
	}
}
